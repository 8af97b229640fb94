"""A Kafka broker for tests: one process, one node that is its own controller (KRaft)."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # public, as its manual says
    AdminClient,
    NewPartitions,
    NewTopic,
)

from firesteel.spark.java import find_java
from tests.servers import leash
from tests.servers.install import KAFKA, spark_jars

_START_SECONDS = 90

# What the broker needs of Spark's jars.
_SHARED = """
    jackson-annotations-2 jackson-core-2 jackson-databind-2 log4j-api-2 log4j-core-2 log4j-slf4j2-impl
    lz4-java scala-library-2 scala-reflect-2 slf4j-api snappy-java zstd-jni
"""

_SERVER = """
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller_port}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller_port}
controller.listener.names=CONTROLLER
log.dirs={data}
log.retention.ms=-1
log.cleaner.enable=false
auto.create.topics.enable=false
offsets.topic.num.partitions=1
offsets.topic.replication.factor=1
transaction.state.log.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
share.coordinator.state.topic.replication.factor=1
group.initial.rebalance.delay.ms=0
"""

_LOG = """
rootLogger.level=warn
rootLogger.appenderRef.out.ref=out
appender.out.type=Console
appender.out.name=out
appender.out.layout.type=PatternLayout
appender.out.layout.pattern=%d %p %c %m%n
"""


def why_not() -> str | None:
    """Why there can be no broker; None if there can."""
    if not list(KAFKA.glob("kafka_*.jar")):
        return "Kafka's jars are not in .servers: run `make servers`"
    return None


@contextmanager
def running_broker(directory: Path) -> Iterator[KafkaBroker]:
    """A broker that answers. The test is skipped if there can be none."""
    if reason := why_not():
        pytest.skip(reason)
    broker = KafkaBroker(directory)
    try:
        broker.wait_until_it_answers()
        yield broker
    finally:
        broker.close()


class KafkaBroker:
    def __init__(self, directory: Path) -> None:
        port, controller_port = _free_ports(2)
        self.servers = f"127.0.0.1:{port}"
        data = directory / "data"
        data.mkdir()
        (data / "meta.properties").write_text(
            "version=1\nnode.id=1\ncluster.id=firesteel-tests-00001\n"
        )
        settings = directory / "server.properties"
        settings.write_text(_SERVER.format(port=port, controller_port=controller_port, data=data))
        logging = directory / "log4j2.properties"
        logging.write_text(_LOG)
        jars = [str(next(spark_jars().glob(f"{name}*.jar"))) for name in _SHARED.split()]
        options = ["-Xmx192m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]
        options += [f"-Dlog4j2.configurationFile={logging}", "-cp", ":".join([f"{KAFKA}/*", *jars])]
        self._command = [str(find_java()), *options, "kafka.Kafka", str(settings)]
        self._output = directory / "output.txt"
        self.start()
        self.admin = AdminClient({"bootstrap.servers": self.servers, "log_level": 0})
        self.producer = self._new_producer()

    def start(self) -> None:
        """Start the broker, also after ``close``. It keeps its address and its data."""
        with self._output.open("wb") as output:
            self._process = subprocess.Popen(
                [sys.executable, leash.__file__, *self._command],
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=subprocess.STDOUT,
            )

    def wait_until_it_answers(self) -> None:
        deadline = time.monotonic() + _START_SECONDS
        while True:
            try:
                self.admin.list_topics(timeout=0.5)
            except KafkaException:
                assert self._process.poll() is None, self._output.read_text()
                assert time.monotonic() < deadline, "the Kafka broker does not answer"
            else:
                return

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(timeout=30)

    def topic(self, partitions: int = 1, name: str | None = None) -> str:
        """A new topic."""
        name = name or f"topic-{uuid.uuid4().hex[:8]}"
        self.admin.create_topics([NewTopic(name, partitions, 1)])[name].result()
        self._wait_for_partitions(name, partitions)
        return name

    def add_partitions(self, topic: str, total: int) -> None:
        self.admin.create_partitions([NewPartitions(topic, total)])[topic].result()
        self._wait_for_partitions(topic, total)
        # The old one has not heard of them yet.
        self.producer = self._new_producer()

    def recreate(self, topic: str, partitions: int = 1) -> None:
        """Delete a topic, and create a different one with the same name."""
        self.admin.delete_topics([topic])[topic].result()
        deadline = time.monotonic() + _START_SECONDS
        while topic in self.admin.list_topics(timeout=10).topics:
            assert time.monotonic() < deadline, f"topic {topic} is not deleted"
            time.sleep(0.01)
        self.topic(partitions, topic)
        self.producer = self._new_producer()

    def _new_producer(self) -> Producer:
        return Producer({"bootstrap.servers": self.servers, "log_level": 0})

    def write(
        self,
        topic: str,
        values: Iterable[str | bytes | None],
        partition: int = 0,
        *,
        timestamps: Iterable[int] | None = None,
    ) -> None:
        stamps = iter(timestamps) if timestamps is not None else None
        for value in values:
            stamp = next(stamps) if stamps is not None else 0
            self.producer.produce(topic, value, partition=partition, timestamp=stamp)
        assert self.producer.flush(30) == 0

    def transaction(self) -> Producer:
        """A producer that has begun a transaction."""
        identity = {"transactional.id": uuid.uuid4().hex, "log_level": 0}
        producer = Producer({"bootstrap.servers": self.servers, **identity})
        producer.init_transactions(30)
        producer.begin_transaction()
        return producer

    def committed(self, group: str, topic: str, partitions: int) -> list[int | None]:
        consumer = Consumer({"bootstrap.servers": self.servers, "group.id": group, "log_level": 0})
        wanted = [TopicPartition(topic, number) for number in range(partitions)]
        found = consumer.committed(wanted, timeout=30)
        consumer.close()
        return [one.offset if one.offset >= 0 else None for one in found]

    def commit(self, group: str, topic: str, offsets: Iterable[int]) -> None:
        consumer = Consumer({"bootstrap.servers": self.servers, "group.id": group, "log_level": 0})
        wanted = [TopicPartition(topic, number, offset) for number, offset in enumerate(offsets)]
        consumer.commit(offsets=wanted, asynchronous=False)
        consumer.close()

    def forget_before(self, topic: str, offset: int, partition: int = 0) -> None:
        """Delete old records, as retention does."""
        place = TopicPartition(topic, partition, offset)
        self.admin.delete_records([place])[place].result()

    def _wait_for_partitions(self, topic: str, count: int) -> None:
        """The broker knows of a change a little later than the controller."""
        deadline = time.monotonic() + _START_SECONDS
        while True:
            known = self.admin.list_topics(topic, timeout=10).topics[topic].partitions
            if len(known) == count and all(one.leader >= 0 for one in known.values()):
                return
            assert time.monotonic() < deadline, f"topic {topic} does not get its partitions"
            time.sleep(0.01)


def _free_ports(count: int) -> list[int]:
    probes = [socket.socket() for _ in range(count)]
    for probe in probes:
        probe.bind(("127.0.0.1", 0))
    ports = [int(probe.getsockname()[1]) for probe in probes]
    for probe in probes:
        probe.close()
    return ports
