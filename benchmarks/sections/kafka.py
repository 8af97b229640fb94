"""Reading and writing Kafka, without Spark: a job in the harness against a plain client loop."""

import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.cases import BY_NAME
from benchmarks.measure import Arguments, report
from benchmarks.sections.formats import Nothing, cpu_seconds, row
from benchmarks.sections.section import Section
from firesteel.common import Types, WatermarkStrategy
from firesteel.common.serialization import SimpleStringSchema
from firesteel.datastream import StreamExecutionEnvironment
from firesteel.datastream.connectors.base import DeliveryGuarantee
from firesteel.datastream.connectors.kafka import (
    KafkaOffsetsInitializer,
    KafkaRecordSerializationSchema,
    KafkaSink,
    KafkaSource,
)
from firesteel.testing import JobHarness

_RECORDS = 1_000_000
_TURNS = 3
_TEXT = "x" * 100
# An epoch of the harness has no duration. This many records are about a second of a real job.
_RECORDS_PER_EPOCH = 50_000
_EPOCHS_PER_CHECKPOINT = 8


def consume(servers: str, topic: str, count: int) -> None:
    from confluent_kafka import Consumer, TopicPartition

    consumer = Consumer({"bootstrap.servers": servers, "group.id": "loop"})
    consumer.assign([TopicPartition(topic, 0, 0)])
    texts: list[str] = []
    while len(texts) < count:
        texts += [
            (message.value() or b"").decode()
            for message in consumer.consume(10_000, 1.0)
            if message.error() is None
        ]
    consumer.close()


def produce(servers: str, topic: str, count: int) -> None:
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": servers, "delivery.report.only.error": True})
    for _ in range(count):
        while True:
            try:
                producer.produce(topic, _TEXT)
            except BufferError:
                producer.poll(0.1)
            else:
                break
    producer.flush()


def read_in_a_job(servers: str, topic: str, count: int) -> None:
    source = (
        KafkaSource.builder()
        .set_bootstrap_servers(servers)
        .set_topics(topic)
        .set_value_only_deserializer(SimpleStringSchema())
        .set_bounded(KafkaOffsetsInitializer.latest())
        .build()
    )

    def program(env: StreamExecutionEnvironment) -> None:
        env.from_source(source, WatermarkStrategy.no_watermarks(), "kafka").sink_to(Nothing())

    JobHarness(program, records_per_epoch=_RECORDS_PER_EPOCH).run()


def write_in_a_job(guarantee: DeliveryGuarantee, servers: str, topic: str, count: int) -> None:
    schema = (
        KafkaRecordSerializationSchema.builder()
        .set_topic(topic)
        .set_value_serialization_schema(SimpleStringSchema())
        .build()
    )
    builder = KafkaSink.builder().set_bootstrap_servers(servers).set_record_serializer(schema)
    builder.set_delivery_guarantee(guarantee).set_transactional_id_prefix(f"job of {topic}")
    sink = builder.build()

    def program(env: StreamExecutionEnvironment) -> None:
        env.from_sequence(1, count).map(lambda _: _TEXT, Types.STRING()).sink_to(sink)

    JobHarness(
        program, records_per_epoch=_RECORDS_PER_EPOCH, checkpoint_every=_EPOCHS_PER_CHECKPOINT
    ).run()


def measure(arguments: Arguments) -> None:
    from tests.servers.kafka import running_broker, why_not

    if reason := why_not():
        raise RuntimeError(reason)
    count = arguments.records_of(BY_NAME["reduce_1m"], _RECORDS)
    with (
        tempfile.TemporaryDirectory() as directory,
        running_broker(Path(directory) / "kafka") as broker,
    ):
        filled = broker.topic()
        produce(broker.servers, filled, count)
        exactly_once = partial(write_in_a_job, DeliveryGuarantee.EXACTLY_ONCE)
        at_least_once = partial(write_in_a_job, DeliveryGuarantee.AT_LEAST_ONCE)
        cases: tuple[tuple[str, Any, Any, Callable[[], str]], ...] = (
            ("KafkaSource", read_in_a_job, consume, lambda: filled),
            ("KafkaSink, EXACTLY_ONCE", exactly_once, produce, broker.topic),
            ("KafkaSink, AT_LEAST_ONCE", at_least_once, produce, broker.topic),
        )
        for name, in_a_job, in_a_loop, topic in cases:
            job, loop = [], []
            # In turns, so that other work on the machine disturbs both alike.
            for _ in range(_TURNS):
                loop.append(cpu_seconds(partial(in_a_loop, broker.servers, topic(), count)))
                job.append(cpu_seconds(partial(in_a_job, broker.servers, topic(), count)))
            report(
                section="kafka",
                name=name,
                records=count,
                job=count / min(job),
                loop=count / min(loop),
                ratio=min(loop) / min(job),
            )


SECTION = Section(
    "kafka",
    ("Kafka, 100 B records per CPU second", "job", "plain loop", "ratio (goal 0.70)"),
    row,
    measure,
)
