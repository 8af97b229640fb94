"""Kafka: a job in the harness against a plain client loop, and whole programs of all peers.

The programs copy a topic. Their rate counts from the first record that arrives, without the start.
"""

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import IO, Any

from benchmarks.cases import BY_NAME
from benchmarks.measure import Arguments, report
from benchmarks.peers.catalog import ROOT
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


def produce(servers: str, topic: str, count: int, *, idempotent: bool = False) -> None:
    from confluent_kafka import Producer

    producer = Producer(
        {
            "bootstrap.servers": servers,
            "delivery.report.only.error": True,
            "enable.idempotence": idempotent,
        }
    )
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

    # With its own clock, which begins at 0, timestamps of Kafka would be far in the future.
    JobHarness(program, records_per_epoch=_RECORDS_PER_EPOCH, now=time.time()).run()


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


# Topic to topic

_MOST_SECONDS = 30.0
_FIRST_SECONDS = 180.0
CONNECTOR = "flink-sql-connector-kafka"

# Title, environment below .bench or None, and arguments of benchmarks.peers.topic_to_topic.
_COPIES: tuple[tuple[str, str | None, tuple[str, ...]], ...] = (
    ("plain loop", None, ("handwritten",)),
    ("Firesteel, AT_LEAST_ONCE", None, ("firesteel", "AT_LEAST_ONCE")),
    ("Firesteel, EXACTLY_ONCE", None, ("firesteel", "EXACTLY_ONCE")),
    ("PyFlink, AT_LEAST_ONCE", "pyflink", ("pyflink", "AT_LEAST_ONCE")),
    ("PyFlink, EXACTLY_ONCE", "pyflink", ("pyflink", "EXACTLY_ONCE")),
    ("bytewax", "bytewax", ("bytewax",)),
    ("Quix Streams", "quix", ("quix",)),
)


def copy_topics(broker: Any, source: str, count: int) -> None:
    """Report the rate of each peer that is installed, and say why others are left out."""
    rates: dict[str, float] = {}
    for title, environment, (name, *options) in _COPIES:
        python = ROOT / ".bench" / environment / "bin" / "python" if environment else None
        if python is not None and not python.exists():
            print(f"{title}: not installed, run make bench-peers", file=sys.stderr)
            continue
        if name == "pyflink":
            jars = sorted((ROOT / ".bench" / "jars").glob(f"{CONNECTOR}-*.jar"))
            if not jars:
                print(f"{title}: no {CONNECTOR}, run make bench-peers", file=sys.stderr)
                continue
            options = [*options, str(jars[-1])]
        target = broker.topic()
        command = [str(python or sys.executable), "-m", "benchmarks.peers.topic_to_topic", name]
        command += [broker.servers, source, target, *options]
        try:
            rates[title] = _copied_per_second(command, broker.servers, target, count)
        except RuntimeError as error:
            print(f"{title}: {error}", file=sys.stderr)
            continue
        loop = rates.get("plain loop", rates[title])
        report(
            section="kafka",
            name=f"topic to topic, {title}",
            records=count,
            job=rates[title],
            loop=loop,
            ratio=rates[title] / loop,
        )


def _copied_per_second(command: list[str], servers: str, target: str, count: int) -> float:
    """Run a program until it has written ``count`` records, or for some time."""
    with tempfile.TemporaryFile() as log:
        program = subprocess.Popen(
            command, cwd=ROOT, stdout=log, stderr=log, start_new_session=True
        )
        try:
            return _rate(program, servers, target, count, log)
        finally:
            os.killpg(program.pid, signal.SIGKILL)
            program.wait()


def _rate(
    program: subprocess.Popen[bytes], servers: str, target: str, count: int, log: IO[bytes]
) -> float:
    from confluent_kafka import Consumer, TopicPartition

    consumer = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": "watch",
            "isolation.level": "read_uncommitted",
        }
    )
    begun = time.monotonic()
    first: tuple[float, int] | None = None
    try:
        while True:
            _, end = consumer.get_watermark_offsets(TopicPartition(target, 0), timeout=30)
            now = time.monotonic()
            if first is None and end:
                first = now, end
            if first is not None and (end >= count or now - first[0] > _MOST_SECONDS):
                return (end - first[1]) / max(now - first[0], 1e-9)
            if program.poll() is not None or (first is None and now - begun > _FIRST_SECONDS):
                log.seek(0)
                lines = log.read().decode(errors="replace").strip().splitlines()[-5:]
                raise RuntimeError("wrote nothing: " + " | ".join(lines))
            time.sleep(0.02)
    finally:
        consumer.close()


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
            # The sink is idempotent by default, as the Java client. The loop does without it.
            ("idempotent loop", partial(produce, idempotent=True), produce, broker.topic),
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
        copy_topics(broker, filled, count)


SECTION = Section(
    "kafka",
    (
        "Kafka, 100 B records per CPU second; topic to topic: per second",
        "job",
        "plain loop",
        "ratio (goal 0.70; topic to topic: ahead of all peers)",
    ),
    row,
    measure,
)
