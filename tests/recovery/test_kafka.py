"""A job that reads Kafka and is interrupted, without Spark: each record once, offsets committed."""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from firesteel.common import Duration, Types, WatermarkStrategy
from firesteel.common.serialization import SimpleStringSchema
from firesteel.common.time import Time
from firesteel.datastream import RuntimeExecutionMode
from firesteel.datastream.connectors.kafka import (
    KafkaOffsetsInitializer,
    KafkaSource,
    KafkaSourceBuilder,
)
from firesteel.datastream.window import TumblingEventTimeWindows
from firesteel.testing import JobHarness, ListSink
from tests.recovery.jobs import INTERRUPTIONS, run_with_interruptions
from tests.servers.kafka import KafkaBroker

COUNT = 90
NO_WATERMARKS = WatermarkStrategy.no_watermarks()
LATEST = KafkaOffsetsInitializer.latest()


def builder(kafka: KafkaBroker, topic: str) -> KafkaSourceBuilder:
    return (
        KafkaSource.builder()
        .set_bootstrap_servers(kafka.servers)
        .set_topics(topic)
        .set_value_only_deserializer(SimpleStringSchema())
        .set_property("fetch.max.wait.ms", "10")
    )


@pytest.fixture
def topic(kafka: KafkaBroker) -> str:
    """0 to 89, in turn in three partitions."""
    name = kafka.topic(3)
    for partition in range(3):
        kafka.write(name, map(str, range(partition, COUNT, 3)), partition)
    return name


@pytest.mark.parametrize("ends", INTERRUPTIONS)
def test_each_record_once(tmp_path: Path, kafka: KafkaBroker, topic: str, ends: str) -> None:
    """Tasks are lost as well, and run again, between the crashes."""
    sink = ListSink(tmp_path)
    source = builder(kafka, topic).set_bounded(LATEST).build()

    def program(env: Any) -> None:
        numbers = env.from_source(source, NO_WATERMARKS, "kafka").map(int)
        numbers.rebalance().sink_to(sink)

    run_with_interruptions(program, ends, seed=len(ends))
    assert Counter(sink.values()) == Counter(range(COUNT))


def committed_when(kafka: KafkaBroker, group: str, topic: str, expected: list[Any]) -> list[Any]:
    """Wait until the group's offsets are the expected ones: jobs commit without waiting."""
    deadline = time.monotonic() + 20
    while (found := kafka.committed(group, topic, 3)) != expected and time.monotonic() < deadline:
        time.sleep(0.02)
    return found


def test_offsets_are_committed_with_checkpoints_and_not_before(
    kafka: KafkaBroker, topic: str
) -> None:
    def program(env: Any) -> Any:
        return env.from_source(source, NO_WATERMARKS, "kafka")

    group = f"group of {topic}"
    source = builder(kafka, topic).set_group_id(group).build()
    harness = JobHarness(program, checkpoint_every=0, now=time.time())

    def read() -> int:
        return sum(vertex.records_in for vertex in harness.master.metrics.vertices.values())

    while read() < COUNT:
        harness.run_epoch()
    assert kafka.committed(group, topic, 3) == [None] * 3
    harness.checkpoint()
    assert committed_when(kafka, group, topic, [30] * 3) == [30] * 3
    kafka.write(topic, ["more"], 1)
    while read() < COUNT + 1:
        harness.run_epoch()
    harness.savepoint()
    assert kafka.committed(group, topic, 3) == [30] * 3
    harness.stop()
    assert committed_when(kafka, group, topic, [30, 31, 30]) == [30, 31, 30]

    # A second job starts from the committed offsets.
    kafka.write(topic, ["taken over"], 2)
    start = KafkaOffsetsInitializer.committed_offsets()
    committed = builder(kafka, topic).set_group_id(group).set_starting_offsets(start)
    source = committed.set_bounded(LATEST).build()
    successor = JobHarness(program)
    successor.run()
    assert successor.collected == ["taken over"]


def test_who_does_not_want_offsets_committed_says_so(kafka: KafkaBroker, topic: str) -> None:
    group = f"group of {topic}"
    source = builder(kafka, topic).set_group_id(group).set_bounded(LATEST)
    source.set_property("commit.offsets.on.checkpoint", "false")
    harness = JobHarness(
        lambda env: env.from_source(source.build(), NO_WATERMARKS, "kafka"), checkpoint_every=1
    )
    harness.run()
    assert len(harness.collected) == COUNT
    assert kafka.committed(group, topic, 3) == [None] * 3


@pytest.mark.parametrize("mode", RuntimeExecutionMode.__members__)
def test_partitions_that_are_ahead_make_nothing_late(kafka: KafkaBroker, mode: str) -> None:
    """A watermark for each partition, from the moment it is assigned; times are Kafka's."""
    topic = kafka.topic(6)
    for partition in range(6):
        # The later its number, the older its records.
        stamps = range(50_250 - 10_000 * partition, 60_000 - 10_000 * partition, 500)
        kafka.write(topic, map(str, stamps), partition, timestamps=stamps)
    source = builder(kafka, topic).set_bounded(LATEST).build()
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(0))

    def program(env: Any) -> Any:
        env.set_runtime_mode(RuntimeExecutionMode[mode])
        return (
            env.from_source(source, strategy, "kafka")
            .map(lambda text: (0, 1), Types.TUPLE([Types.INT(), Types.INT()]))
            .key_by(lambda pair: pair[0])
            .window(TumblingEventTimeWindows.of(Time.seconds(10)))
            .reduce(lambda a, b: (a[0], a[1] + b[1]))
        )

    harness = JobHarness(program, records_per_epoch=7)
    harness.run()
    assert harness.collected == [(0, 20)] * 6
