"""Kafka through Spark: a job that fails in the middle of a topic, and a batch job."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from firesteel.common import Encoder, WatermarkStrategy
from firesteel.common.serialization import SimpleStringSchema
from firesteel.datastream import RuntimeExecutionMode
from firesteel.datastream.connectors.file_system import BucketAssigner, FileSink, RollingPolicy
from firesteel.datastream.connectors.kafka import (
    KafkaOffsetsInitializer,
    KafkaSource,
    KafkaSourceBuilder,
)
from tests.integration.conftest import MakeEnvironment
from tests.servers.kafka import KafkaBroker
from tests.waiting import wait_until

NO_WATERMARKS = WatermarkStrategy.no_watermarks()
SECONDS = 200.0


def builder(kafka: KafkaBroker, topic: str) -> KafkaSourceBuilder:
    return (
        KafkaSource.builder()
        .set_bootstrap_servers(kafka.servers)
        .set_topics(topic)
        .set_group_id(f"readers of {topic}")
        .set_value_only_deserializer(SimpleStringSchema())
    )


def written(directory: Path) -> Counter[int]:
    files = [file for file in directory.rglob("part-*") if file.is_file()]
    return Counter(int(line) for file in files for line in file.read_text().splitlines())


def test_a_job_that_fails_in_the_middle_of_a_topic_gives_each_record_once(
    kafka: KafkaBroker, make_env: MakeEnvironment, tmp_path: Path
) -> None:
    """It goes back to a checkpoint, and finds a partition that is new."""
    out, trap = tmp_path / "out", tmp_path / "trap"
    env = make_env(
        2,
        execution_checkpointing_interval="200 ms",
        execution_checkpointing_dir=str(tmp_path / "checkpoints"),
        restart__strategy_type="fixed-delay",
        restart__strategy_fixed__delay_attempts="3",
        restart__strategy_fixed__delay_delay="100 ms",
        execution_buffer__timeout_interval="5 ms",
    )
    topic = kafka.topic(3)

    def write(start: int, stop: int, partitions: int) -> None:
        for partition in range(partitions):
            numbers = range(start + partition, stop, partitions)
            kafka.write(topic, map(str, numbers), partition)

    def fail_once(text: str) -> str:
        if text == "450" and not trap.exists():
            trap.touch()
            raise ValueError("the first time")
        return text

    sink = (
        FileSink.for_row_format(str(out), Encoder.simple_string_encoder())
        .with_bucket_assigner(BucketAssigner.base_path_bucket_assigner())
        .with_rolling_policy(RollingPolicy.on_checkpoint_rolling_policy())
        .build()
    )
    source = builder(kafka, topic).set_property("partition.discovery.interval.ms", "300").build()
    env.from_source(source, NO_WATERMARKS, "kafka").map(fail_once).rebalance().sink_to(sink)
    write(0, 300, 3)
    client = env.execute_async("kafka")
    # A file is finished when its checkpoint is complete.
    wait_until(lambda: written(out).total() >= 300)
    kafka.add_partitions(topic, 4)
    write(300, 600, 4)
    wait_until(lambda: written(out).total() >= 600)
    client.cancel().result()
    assert trap.exists()
    assert written(out) == Counter(range(600))
    assert kafka.committed(f"readers of {topic}", topic, 4) == [175, 175, 175, 75]


def test_a_batch_job_reads_up_to_what_is_there_when_it_starts(
    kafka: KafkaBroker, make_env: MakeEnvironment
) -> None:
    topic = kafka.topic(3)
    for partition in range(3):
        kafka.write(topic, map(str, range(partition, 3000, 3)), partition)
    env = make_env(2)
    env.set_runtime_mode(RuntimeExecutionMode.BATCH)
    source = builder(kafka, topic).set_bounded(KafkaOffsetsInitializer.latest()).build()
    with env.from_source(source, NO_WATERMARKS, "kafka").execute_and_collect() as results:
        assert sorted(map(int, results)) == list(range(3000))
