"""Kafka for tests: brokers that are their own controllers (KRaft), a process each."""

from __future__ import annotations

import subprocess
import sys
import time
import uuid
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import (
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # public, as its manual says
    AdminClient,
    NewPartitions,
    NewTopic,
)

from firesteel.connectors.kafka.wire import Broker, Reader, Writer, addresses
from firesteel.spark.java import find_java
from tests.servers import leash
from tests.servers.install import KAFKA, LOG4J, spark_jars
from tests.servers.ports import free_ports

# A machine that runs many tests at once may need minutes to start a JVM.
_START_SECONDS = 240
_UPDATE_FEATURES = 57
_FEATURES = {"metadata.version": 27, "transaction.version": 2}

# What the broker needs of Spark's jars.
_SHARED = """
    jackson-annotations-2 jackson-core-2 jackson-databind-2 log4j-api-2 log4j-core-2 log4j-slf4j2-impl
    lz4-java scala-library-2 scala-reflect-2 slf4j-api snappy-java zstd-jni
"""

_SERVER = """
process.roles=broker,controller
node.id={node}
controller.quorum.voters={voters}
listeners={protocol}://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller_port}
listener.security.protocol.map=CONTROLLER:PLAINTEXT,{protocol}:{protocol}
inter.broker.listener.name={protocol}
controller.listener.names=CONTROLLER
log.dirs={data}
log.retention.ms=-1
log.cleaner.enable=false
auto.create.topics.enable=false
offsets.topic.num.partitions=1
offsets.topic.replication.factor={replicas}
transaction.state.log.num.partitions={replicas}
transaction.state.log.replication.factor={replicas}
transaction.state.log.min.isr=1
transaction.abort.timed.out.transaction.cleanup.interval.ms=500
min.insync.replicas=1
default.replication.factor={replicas}
share.coordinator.state.topic.replication.factor=1
group.initial.rebalance.delay.ms=0
controlled.shutdown.enable=false
replica.lag.time.max.ms=5000
broker.session.timeout.ms=4000
broker.heartbeat.interval.ms=500
controller.quorum.election.timeout.ms=500
controller.quorum.fetch.timeout.ms=1000
{more}
"""


def why_not() -> str | None:
    """Return the reason for which a broker cannot start, or None if it can."""
    if not list(KAFKA.glob("kafka_*.jar")):
        return "Kafka's jars are not in .servers: run `make servers`"
    return None


@contextmanager
def running_broker(directory: Path, **options: Any) -> Iterator[KafkaBroker]:
    """A broker that answers. The test is skipped if there can be none."""
    if reason := why_not():
        pytest.skip(reason)
    broker = KafkaBroker(directory, **options)
    try:
        broker.wait_until_it_answers()
        yield broker
    finally:
        broker.close()


@contextmanager
def running_cluster(directory: Path, size: int = 3) -> Iterator[KafkaCluster]:
    """Brokers with the newest features, among them version 2 of transactions."""
    if reason := why_not():
        pytest.skip(reason)
    cluster = KafkaCluster(directory, size)
    try:
        cluster.wait_until_it_answers()
        yield cluster
    finally:
        cluster.close()


class KafkaClients:
    """Clients of Kafka for tests."""

    def __init__(self, servers: str, replicas: int, properties: dict[str, str]) -> None:
        self.servers = servers
        self.properties = {**properties, "bootstrap.servers": servers, "log_level": "0"}
        self._replicas = replicas
        self.admin = self.new_admin()
        self.producer = self._new_producer()

    def new_admin(self) -> AdminClient:
        return AdminClient(self.properties)  # type: ignore[arg-type]  # text is fine

    def topic(self, partitions: int = 1, name: str | None = None) -> str:
        """A new topic."""
        name = name or f"topic-{uuid.uuid4().hex[:8]}"
        self.admin.create_topics([NewTopic(name, partitions, self._replicas)])[name].result()
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
        # Without it, records that are sent again may come after later ones.
        return Producer({**self.properties, "enable.idempotence": True})

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
        producer = Producer({**self.properties, "transactional.id": uuid.uuid4().hex})
        producer.init_transactions(30)
        producer.begin_transaction()
        return producer

    def committed(self, group: str, topic: str, partitions: int) -> list[int | None]:
        consumer = Consumer({**self.properties, "group.id": group})
        wanted = [TopicPartition(topic, number) for number in range(partitions)]
        found = consumer.committed(wanted, timeout=30)
        consumer.close()
        return [one.offset if one.offset >= 0 else None for one in found]

    def commit(self, group: str, topic: str, offsets: Iterable[int]) -> None:
        consumer = Consumer({**self.properties, "group.id": group})
        wanted = [TopicPartition(topic, number, offset) for number, offset in enumerate(offsets)]
        consumer.commit(offsets=wanted, asynchronous=False)
        consumer.close()

    def read(self, topic: str, *, committed: bool = True) -> list[list[Message]]:
        """The records of each partition, up to the last one that is visible now."""
        level = "read_committed" if committed else "read_uncommitted"
        consumer = Consumer(
            {
                **self.properties,
                "group.id": "reader",
                "isolation.level": level,
                "enable.partition.eof": "true",
                "auto.offset.reset": "earliest",
                "enable.auto.commit": "false",
            }
        )
        partitions = self.admin.list_topics(topic, timeout=30).topics[topic].partitions
        found: list[list[Message]] = [[] for _ in partitions]
        consumer.assign([TopicPartition(topic, number, 0) for number in partitions])
        open_partitions = set(partitions)
        deadline = time.monotonic() + _START_SECONDS
        while open_partitions:
            assert time.monotonic() < deadline, f"the rest of {topic} does not come"
            for message in consumer.consume(1000, 0.2):
                error = message.error()
                number = message.partition()
                assert number is not None
                if error is None:
                    found[number].append(message)
                elif error.code() == KafkaError._PARTITION_EOF:
                    open_partitions.discard(number)
        consumer.close()
        return found

    def values(self, topic: str, *, committed: bool = True) -> list[str]:
        """The visible values, partition by partition."""
        return [
            (message.value() or b"").decode()
            for messages in self.read(topic, committed=committed)
            for message in messages
        ]

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


class KafkaBroker(KafkaClients):
    """One broker. Without further settings it has version 0 of transactions."""

    def __init__(
        self,
        directory: Path,
        *,
        node: int = 1,
        ports: Sequence[tuple[int, int]] = (),
        protocol: str = "PLAINTEXT",
        settings: str = "",
        properties: dict[str, str] | None = None,
    ) -> None:
        """Start a broker.

        ports: those of all brokers and of their controllers, if there are several.
        properties: what clients need to connect.
        """
        ports = ports or [(one, other) for one, other in [free_ports(2)]]
        port, controller_port = ports[node - 1]
        data = directory / "data"
        data.mkdir(parents=True)
        (data / "meta.properties").write_text(
            f"version=1\nnode.id={node}\ncluster.id=firesteel-tests-00001\n"
        )
        voters = [f"{n}@127.0.0.1:{voter}" for n, (_, voter) in enumerate(ports, start=1)]
        file = directory / "server.properties"
        file.write_text(
            _SERVER.format(
                node=node,
                voters=",".join(voters),
                port=port,
                controller_port=controller_port,
                data=data,
                protocol=protocol,
                replicas=len(ports),
                more=settings,
            )
        )
        logging = directory / "log4j2.properties"
        logging.write_text(LOG4J)
        jars = [str(next(spark_jars().glob(f"{name}*.jar"))) for name in _SHARED.split()]
        options = ["-Xmx192m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]
        options += [f"-Dlog4j2.configurationFile={logging}", "-cp", ":".join([f"{KAFKA}/*", *jars])]
        self._command = [str(find_java()), *options, "kafka.Kafka", str(file)]
        self._output = directory / "output.txt"
        self.start()
        super().__init__(f"127.0.0.1:{port}", 1, properties or {})

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


class KafkaCluster(KafkaClients):
    """Several brokers, which may be killed and started again one by one."""

    def __init__(self, directory: Path, size: int) -> None:
        ports = free_ports(2 * size)
        pairs = list(zip(ports[::2], ports[1::2], strict=True))
        self.brokers = [
            KafkaBroker(directory / f"broker-{node}", node=node, ports=pairs)
            for node in range(1, size + 1)
        ]
        super().__init__(",".join(broker.servers for broker in self.brokers), size, {})

    def wait_until_it_answers(self) -> None:
        self.wait_for_all_brokers()
        upgrade_features(self.brokers[0].servers)

    def wait_for_all_brokers(self) -> None:
        """Wait until all brokers are there, and lead all partitions that they should."""
        for broker in self.brokers:
            broker.wait_until_it_answers()
        deadline = time.monotonic() + _START_SECONDS
        while not self._is_whole():
            assert time.monotonic() < deadline, "the brokers do not find each other"
            time.sleep(0.05)

    def _is_whole(self) -> bool:
        try:
            found = self.admin.list_topics(timeout=10)
        except KafkaException:
            return False
        return len(found.brokers) == len(self.brokers) and all(
            len(partition.isrs) == len(partition.replicas)
            for topic in found.topics.values()
            for partition in topic.partitions.values()
        )

    def close(self) -> None:
        for broker in self.brokers:
            broker.close()


def upgrade_features(servers: str) -> None:
    """Enable version 2 of transactions, as `kafka-storage.sh format` does for new clusters."""
    body = Writer().pack("i", 30_000).length(2)
    for feature, level in _FEATURES.items():
        body.text(feature).pack("hbb", level, 1, 0)
    connection = Broker(addresses(servers)[0], {}, 30.0)
    answer = connection.request(_UPDATE_FEATURES, 1, body.pack("b", 0).end())
    _, error = answer.unpack("ih")
    assert error == 0, f"the features cannot be upgraded: error {error}, {answer.text()}"
    answer.text()
    refused = [text for code, text in answer.array(lambda: _feature_result(answer)) if code]
    assert not refused, f"the features cannot be upgraded: {refused}"
    connection.close()


def _feature_result(answer: Reader) -> tuple[int, str]:
    feature, code, reason = answer.text(), answer.unpack("h"), answer.text()
    answer.tags()
    return code, f"{feature}: {reason}"
