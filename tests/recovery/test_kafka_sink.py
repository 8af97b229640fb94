"""Topic to topic, exactly once, while drivers, slots and brokers are killed, without Spark."""

from __future__ import annotations

import signal
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from tests.recovery.kafka_lives import MOMENTS, Life
from tests.recovery.topic_to_topic import Topics
from tests.servers.kafka import (
    KafkaBroker,
    KafkaClients,
    KafkaCluster,
    running_broker,
    running_cluster,
)

RECORDS = 150
LIFE_SECONDS = 200.0


@pytest.fixture(scope="module")
def oldest_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaBroker]:
    """One broker with version 0 of transactions, which tests may kill."""
    with running_broker(tmp_path_factory.mktemp("oldest")) as broker:
        yield broker


@pytest.fixture(scope="module")
def own_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaCluster]:
    """Three brokers with version 2 of transactions, which tests may kill."""
    with running_cluster(tmp_path_factory.mktemp("cluster")) as cluster:
        yield cluster


class History:
    """Lives of a driver, each of which ends at a random step, until the job has ended."""

    def __init__(self, kafka: KafkaClients, directory: Path, seed: int) -> None:
        self._kafka = kafka
        self._directory = directory
        self._seed = seed
        self._random = Random(seed)
        self._topics = Topics.create(kafka, RECORDS)
        #: The kills, by the step at which they came.
        self.kills: Counter[str] = Counter()
        #: The longest time for which a running job left the last stable offset behind.
        self.longest_wait = 0.0

    def run(self, kills: int, brokers: list[KafkaBroker] | None = None) -> None:
        """Kill the driver so many times, and the brokers in between. Then check the results."""
        for number in range(kills):
            if brokers and self._random.random() < 0.25:
                self._replace(self._random.choice(brokers))
            if not self._live(number, *self._death()):
                # The job has ended. A second one with the same topics would repeat the results.
                break
        else:
            assert not self._live(kills)
        self._topics.check(self._kafka)

    def _death(self) -> tuple[str | None, int]:
        """Choose a step and its number. Some drivers die early, and some after checkpoints."""
        if self._random.random() < 0.6:
            return self._random.choice(MOMENTS), self._random.randint(1, 6)
        return None, self._random.randint(1, 1000)

    def _live(self, number: int, dies_at: str | None = None, dies_after: int | None = None) -> bool:
        """Return False if the job has ended."""
        seed = self._seed * 1000 + number
        life = Life(self._topics, self._directory, seed, dies_at, dies_after)
        life.running.unlink(missing_ok=True)
        ends = self._topics.ends(self._kafka)
        process = life.start()
        is_checked = False
        deadline = time.monotonic() + LIFE_SECONDS
        try:
            while process.is_alive():
                if not is_checked and life.running.exists():
                    # Everything that the last driver left is committed or aborted.
                    waited = self._topics.wait_for_stable_offsets(self._kafka, ends)
                    self.longest_wait = max(self.longest_wait, waited)
                    is_checked = True
                process.join(0.05)
                assert time.monotonic() < deadline, life.errors.read_text()[-5000:]
        finally:
            process.kill()
            process.join()
        assert process.exitcode in (0, -signal.SIGKILL), life.errors.read_text()[-5000:]
        if process.exitcode:
            [*_, step] = life.died_at.read_text().splitlines()
            self.kills[step] += 1
        return bool(process.exitcode)

    def _replace(self, broker: KafkaBroker) -> None:
        """Kill a broker, and start it again while the next driver works."""
        # Two of three brokers have to stay, and the new one needs a moment to be one of them.
        if isinstance(self._kafka, KafkaCluster):
            self._kafka.wait_for_all_brokers()
        broker.close()
        broker.start()
        self.kills["broker"] += 1
        if broker is self._kafka:
            broker.wait_until_it_answers()


def run(history: History, kills: int, brokers: list[KafkaBroker] | None = None) -> None:
    history.run(kills, brokers)
    print(
        f"{history.kills.total()} kills, last stable offset behind for "
        f"{history.longest_wait:.2f} s: {dict(history.kills)}"
    )


@pytest.mark.parametrize("seed", [1, 2])
def test_five_kills(newest_kafka: KafkaBroker, tmp_path: Path, seed: int) -> None:
    run(History(newest_kafka, tmp_path, seed), 5)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10, 15))
def test_kills_with_one_broker(oldest_broker: KafkaBroker, tmp_path: Path, seed: int) -> None:
    run(History(oldest_broker, tmp_path, seed), 10, [oldest_broker])


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20, 35))
def test_kills_with_three_brokers(own_cluster: KafkaCluster, tmp_path: Path, seed: int) -> None:
    own_cluster.wait_for_all_brokers()
    run(History(own_cluster, tmp_path, seed), 10, own_cluster.brokers)
