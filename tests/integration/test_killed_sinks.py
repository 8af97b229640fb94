"""Exactly once into Kafka and PostgreSQL on Spark, while processes and servers are killed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import pytest

from tests.integration.killed_jobs import KilledJob
from tests.recovery.test_jdbc import COUNT, PARTS, Job, Tables
from tests.recovery.topic_to_topic import Topics
from tests.servers.kafka import KafkaCluster, running_cluster
from tests.servers.postgres import running_postgres

pytestmark = pytest.mark.slow

KILLS = 5


@pytest.fixture(scope="module")
def own_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaCluster]:
    with running_cluster(tmp_path_factory.mktemp("cluster")) as cluster:
        yield cluster


@pytest.mark.parametrize("seed", [1, 2])
def test_topic_to_topic(
    own_cluster: KafkaCluster, tmp_path: Path, execution: str, seed: int
) -> None:
    kafka = own_cluster
    topics = Topics.create(kafka, 1500, seconds_per_record=0.01)

    def kill_broker() -> None:
        kafka.wait_for_all_brokers()
        broker = kafka.brokers[seed % 3]
        broker.close()
        broker.start()

    job = KilledJob(Topics, topics.as_dict(), tmp_path, seed, execution)
    windows = sum(map(len, topics.expected_sums().values()))

    def written() -> int:
        return sum(end for (topic, _), end in topics.ends(kafka).items() if topic == topics.sums)

    job.run(KILLS, {"broker": kill_broker}, written, windows)
    kafka.wait_for_all_brokers()
    topics.check(kafka)


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("part", PARTS)
def test_tables(tmp_path: Path, execution: str, part: str, seed: int) -> None:
    with running_postgres() as server:
        job = Job(server, part, seconds_per_record=0.2)
        table, column = {"records": (job.records, "1"), "changes": (job.totals, "count")}[part]

        def written() -> int:
            [(count,)] = server.execute(f"SELECT coalesce(sum({column}), 0) FROM {table}")
            return int(count)

        killed = KilledJob(Tables, asdict(job.tables), tmp_path, seed, execution)
        all_results = COUNT if part == "records" else sum(row[1] for row in job.expected_totals())
        killed.run(KILLS, {"server": server.restart}, written, all_results)
        job.check()
