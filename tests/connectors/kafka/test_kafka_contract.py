"""The test kit for connectors on Kafka: sources and sinks keep their contract."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from firesteel.common.serialization import SimpleStringSchema
from firesteel.connectors.kafka.transactions import KafkaTransactions
from firesteel.datastream.connectors.base import DeliveryGuarantee
from firesteel.datastream.connectors.file_system import FileSource, StreamFormat
from firesteel.datastream.connectors.hybrid_source import HybridSource
from firesteel.datastream.connectors.kafka import (
    KafkaOffsetsInitializer,
    KafkaRecordSerializationSchema,
    KafkaSink,
    KafkaSource,
    KafkaSourceBuilder,
)
from firesteel.testing import check_sink, check_source
from tests.servers.kafka import KafkaBroker
from tests.waiting import wait_until

# More seeds run in `make test-all`.
SEEDS = [pytest.param([1]), pytest.param(range(2, 8), marks=pytest.mark.slow)]


def reading(kafka: KafkaBroker, topic: str) -> KafkaSourceBuilder:
    return (
        KafkaSource.builder()
        .set_bootstrap_servers(kafka.servers)
        .set_topics(topic)
        .set_value_only_deserializer(SimpleStringSchema())
        .set_bounded(KafkaOffsetsInitializer.latest())
        .set_property("fetch.max.wait.ms", "10")
    )


def written(kafka: KafkaBroker, start: int, stop: int) -> str:
    """A topic with some numbers in each of three partitions."""
    topic = kafka.topic(3)
    for partition in range(3):
        kafka.write(topic, map(str, range(start + partition, stop, 3)), partition)
    return topic


@pytest.mark.parametrize("seeds", SEEDS)
def test_the_source(newest_kafka: KafkaBroker, seeds: Any) -> None:
    source = reading(newest_kafka, written(newest_kafka, 0, 40)).build()
    check_source(source, map(str, range(40)), seeds=seeds)


@pytest.mark.parametrize("seeds", SEEDS)
def test_files_first_and_then_a_topic(
    newest_kafka: KafkaBroker, tmp_path: Path, seeds: Any
) -> None:
    """The topic begins before the files end, so the source starts at an offset."""
    topic = written(newest_kafka, 15, 60)
    for number in range(3):
        lines = (f"{n}\n" for n in range(number * 10, number * 10 + 10))
        (tmp_path / f"{number}.txt").write_text("".join(lines))
    files = FileSource.for_record_stream_format(
        StreamFormat.text_line_format(), str(tmp_path)
    ).build()
    offsets = {(topic, partition): 5 for partition in range(3)}
    start = KafkaOffsetsInitializer.offsets(_partitions(offsets))
    present = reading(newest_kafka, topic).set_starting_offsets(start).build()
    hybrid = HybridSource.builder(files).add_source(present).build()
    check_source(hybrid, map(str, range(60)), seeds=seeds)


def _partitions(offsets: dict[tuple[str, int], int]) -> Any:
    from firesteel.datastream.connectors.kafka import KafkaTopicPartition

    return {KafkaTopicPartition(*place): offset for place, offset in offsets.items()}


@pytest.mark.parametrize("seeds", SEEDS)
@pytest.mark.parametrize(
    "guarantee", [DeliveryGuarantee.EXACTLY_ONCE, DeliveryGuarantee.AT_LEAST_ONCE]
)
def test_the_sink(newest_kafka: KafkaBroker, guarantee: DeliveryGuarantee, seeds: Any) -> None:
    is_exact = guarantee is DeliveryGuarantee.EXACTLY_ONCE

    def create() -> tuple[KafkaSink, Callable[[], list[str]]]:
        topic = newest_kafka.topic(2)
        schema = (
            KafkaRecordSerializationSchema.builder()
            .set_topic(topic)
            .set_value_serialization_schema(SimpleStringSchema())
            .build()
        )
        builder = KafkaSink.builder().set_bootstrap_servers(newest_kafka.servers)
        builder.set_record_serializer(schema).set_delivery_guarantee(guarantee)
        if is_exact:
            builder.set_transactional_id_prefix(topic)
        return builder.build(), lambda: visible(newest_kafka, topic)

    check_sink(create, [str(n) for n in range(30)], exactly_once=is_exact, seeds=seeds)


def visible(kafka: KafkaBroker, topic: str) -> list[str]:
    """The committed values, once the markers of all commits are written."""
    transactions = KafkaTransactions({"bootstrap.servers": kafka.servers}, 30.0)
    pattern = re.compile(re.escape(topic) + r"-\d+-\d+")

    def is_settled() -> bool:
        return not any(state.startswith("Prepare") for _, state in transactions.matching(pattern))

    wait_until(is_settled)
    transactions.close()
    return kafka.values(topic)
