"""KafkaSink on real brokers, without Spark: records, guarantees, transactions, errors."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest
from confluent_kafka import Producer

from firesteel.common import Types, WatermarkStrategy
from firesteel.common.serialization import (
    ByteArraySchema,
    SerializationSchema,
    SimpleStringSchema,
)
from firesteel.connectors.kafka.errors import (
    KafkaWriteError,
    TransactionLostError,
    UnknownTopicError,
)
from firesteel.connectors.kafka.transactions import KafkaTransactions
from firesteel.connectors.kafka.writer import TransactionalKafkaWriter
from firesteel.datastream.connectors.base import DeliveryGuarantee, WriteContext, WriterContext
from firesteel.datastream.connectors.kafka import (
    KafkaPartitioner,
    KafkaRecordSerializationSchema,
    KafkaRecordSerializationSchemaBuilder,
    KafkaSink,
    KafkaTopicSelector,
)
from firesteel.errors import (
    ConfigurationError,
    InvalidProgramError,
    LeadershipLostError,
    UserFunctionError,
)
from firesteel.testing import JobHarness, ScriptedSource, Timed
from tests.servers.kafka import KafkaBroker, KafkaClients

NOW = WriteContext()


@pytest.fixture(
    params=[
        "newest_kafka",
        pytest.param("kafka", marks=pytest.mark.slow),
        pytest.param("kafka_cluster", marks=pytest.mark.slow),
    ]
)
def brokers(request: pytest.FixtureRequest) -> KafkaClients:
    """Brokers with version 2 of transactions, and with version 0, as in the other tests."""
    found: KafkaClients = request.getfixturevalue(request.param)
    return found


def schema(topic: str) -> KafkaRecordSerializationSchemaBuilder:
    return (
        KafkaRecordSerializationSchema.builder()
        .set_topic(topic)
        .set_value_serialization_schema(SimpleStringSchema())
    )


def sink(
    kafka: KafkaClients,
    to: KafkaRecordSerializationSchemaBuilder | str,
    guarantee: DeliveryGuarantee = DeliveryGuarantee.AT_LEAST_ONCE,
    *,
    prefix: str | None = None,
    **properties: str,
) -> KafkaSink:
    serializer = schema(to) if isinstance(to, str) else to
    builder = KafkaSink.builder().set_bootstrap_servers(kafka.servers)
    builder.set_record_serializer(serializer.build()).set_delivery_guarantee(guarantee)
    for name, value in properties.items():
        builder.set_property(name.replace("_", "."), value)
    if guarantee is DeliveryGuarantee.EXACTLY_ONCE:
        name = to if isinstance(to, str) else "test"
        builder.set_transactional_id_prefix(prefix or f"sink of {name}")
    return builder.build()


def run(program: Callable[[Any], None], **options: Any) -> JobHarness:
    harness = JobHarness(program, **options)
    harness.run()
    return harness


# Records


@pytest.mark.parametrize("guarantee", DeliveryGuarantee)
def test_a_job_writes_all_its_records(kafka: KafkaBroker, guarantee: DeliveryGuarantee) -> None:
    topic = kafka.topic(2)
    texts = [f"text {number}" for number in range(100)]
    target = sink(kafka, topic, guarantee)
    run(lambda env: env.from_collection(texts).sink_to(target), parallelism=2)
    assert sorted(kafka.values(topic)) == sorted(texts)


class Second(SerializationSchema):
    def serialize(self, element: Any) -> bytes:
        return str(element[1]).encode()


class First(SerializationSchema):
    def serialize(self, element: Any) -> bytes:
        return str(element[0]).encode()


class ByWord(KafkaTopicSelector):
    def __init__(self, topics: list[str]) -> None:
        self.topics = topics

    def apply(self, data: Any) -> str:
        return self.topics[int(data[1]) % 2]


def test_keys_topics_headers_and_timestamps(kafka: KafkaBroker) -> None:
    topics = [kafka.topic(3), kafka.topic(3)]
    serializer = (
        KafkaRecordSerializationSchema.builder()
        .set_topic_selector(ByWord(topics))
        .set_key_serialization_schema(First())
        .set_value_serialization_schema(Second())
        .set_header_provider(lambda pair: [("word", pair[0].encode()), ("empty", None)])
        .build()
    )
    builder = KafkaSink.builder().set_bootstrap_servers(kafka.servers)
    target = builder.set_record_serializer(serializer).build()
    pairs = [(word, number) for number in range(10) for word in ("ann", "bob", "eve")]
    source = ScriptedSource([Timed(pair, 1000 + pair[1]) for pair in pairs])
    strategy = WatermarkStrategy.no_watermarks()
    run(lambda env: env.from_source(source, strategy, "pairs").sink_to(target))
    for parity, topic in enumerate(topics):
        expected = [pair for pair in pairs if pair[1] % 2 == parity]
        found: list[tuple[str, int]] = []
        for messages in kafka.read(topic):
            by_key: dict[str, list[int]] = {}
            for message in messages:
                key, number = (message.key() or b"").decode(), int(message.value() or b"")
                by_key.setdefault(key, []).append(number)
                found.append((key, number))
                assert message.headers() == [("word", key.encode()), ("empty", None)]
                assert message.timestamp()[1] == 1000 + number
            assert all(numbers == sorted(numbers) for numbers in by_key.values())
        assert sorted(found) == sorted(expected)


def test_keys_go_where_the_java_client_puts_them(kafka: KafkaBroker) -> None:
    """Values of murmur2 that Kafka's own tests use: 21 is at -973932308."""
    topic = kafka.topic(7)
    serializer = schema(topic).set_key_serialization_schema(SimpleStringSchema())
    target = sink(kafka, serializer)
    run(lambda env: env.from_collection(["21"]).sink_to(target))
    [partition] = [n for n, messages in enumerate(kafka.read(topic)) if messages]
    assert partition == (-973932308 & 0x7FFFFFFF) % 7


class LastPartition(KafkaPartitioner):
    def partition(
        self, record: Any, key: Any, value: Any, target_topic: str, partitions: Any
    ) -> int:
        return int(partitions[-1])


def test_a_partitioner_chooses(kafka: KafkaBroker) -> None:
    topic = kafka.topic(3)
    target = sink(kafka, schema(topic).set_partitioner(LastPartition()))
    run(lambda env: env.from_collection(["a", "b"]).sink_to(target))
    assert [len(messages) for messages in kafka.read(topic)] == [0, 0, 2]


def test_a_partition_that_does_not_exist(kafka: KafkaBroker) -> None:
    target = sink(kafka, schema(kafka.topic(3)).set_partitioner(lambda *_: 3))
    with pytest.raises(UserFunctionError, match=r"returned 3, the topic has \[0, 1, 2\]"):
        run(lambda env: env.from_collection(["a"]).sink_to(target))


def test_bytes_and_timestamps_of_records(kafka: KafkaBroker) -> None:
    topic = kafka.topic()
    serializer = (
        KafkaRecordSerializationSchema.builder()
        .set_topic(topic)
        .set_value_serialization_schema(ByteArraySchema())
    )
    source = ScriptedSource([Timed(b"\xff\0", 5000), Timed(b"", 6000)])
    target = sink(kafka, serializer)
    run(lambda env: env.from_source(source, None, "bytes").sink_to(target))
    [messages] = kafka.read(topic)
    assert [(m.value(), m.timestamp()[1]) for m in messages] == [(b"\xff\0", 5000), (b"", 6000)]


def test_more_records_than_the_queue_holds(kafka: KafkaBroker) -> None:
    topic = kafka.topic()
    target = sink(kafka, topic, queue_buffering_max_messages="100")
    run(lambda env: env.from_sequence(1, 5000).map(str, Types.STRING()).sink_to(target))
    assert len(kafka.values(topic)) == 5000


# Errors


def test_a_record_of_the_wrong_type_is_named(kafka: KafkaBroker) -> None:
    target = sink(kafka, kafka.topic())
    with pytest.raises(UserFunctionError, match="SimpleStringSchema expects str, got int") as e:
        run(lambda env: env.from_collection(["a", 7]).sink_to(target))
    assert "7" in str(e.value)


def test_a_missing_topic(kafka: KafkaBroker) -> None:
    target = sink(kafka, "no-such-topic", max_block_ms="500")
    with pytest.raises(UnknownTopicError, match="Kafka has no topic 'no-such-topic'"):
        run(lambda env: env.from_collection(["a"]).sink_to(target))


def test_a_record_too_large_for_the_client(kafka: KafkaBroker) -> None:
    target = sink(kafka, kafka.topic(), max_request_size="2000")
    with pytest.raises(KafkaWriteError, match=r"max\.request\.size"):
        run(lambda env: env.from_collection(["a" * 5000]).sink_to(target))


def test_a_record_too_large_for_the_broker(kafka: KafkaBroker) -> None:
    target = sink(kafka, kafka.topic(), max_request_size="5000000")
    with pytest.raises(KafkaWriteError, match=r"max\.message\.bytes of the topic"):
        run(lambda env: env.from_collection(["a" * 3_000_000]).sink_to(target))


def test_programs_that_cannot_work() -> None:
    builder = KafkaSink.builder().set_bootstrap_servers("localhost:1")
    with pytest.raises(InvalidProgramError, match="set_record_serializer"):
        builder.build()
    builder.set_record_serializer(schema("t").build())
    builder.set_delivery_guarantee(DeliveryGuarantee.EXACTLY_ONCE)
    with pytest.raises(InvalidProgramError, match="set_transactional_id_prefix"):
        builder.build()
    builder.set_transactional_id_prefix("p").set_property("enable.idempotence", "false")
    with pytest.raises(ConfigurationError, match=r"enable\.idempotence"):
        builder.build()
    builder.set_property("enable.idempotence", "true").set_property("transactional.id", "mine")
    with pytest.raises(ConfigurationError, match="set_transactional_id_prefix"):
        builder.build()
    with pytest.raises(InvalidProgramError, match="already set"):
        schema("t").set_topic("u")


def test_a_misspelled_property_gets_a_suggestion() -> None:
    builder = KafkaSink.builder().set_bootstrap_servers("localhost:1")
    builder.set_record_serializer(schema("t").build()).set_property("linger.msec", "5")
    with pytest.raises(ConfigurationError, match=r"Did you mean linger\.ms\?"):
        builder.build()


# Transactions


def writer_of(target: KafkaSink, state: Any = None) -> TransactionalKafkaWriter:
    writer = target.create_writer(WriterContext(0, 1, "job", checkpointed=True), state)
    assert isinstance(writer, TransactionalKafkaWriter)
    return writer


def commit(target: KafkaSink, committables: list[Any]) -> None:
    committer = target.create_committer()
    assert committer is not None
    committer.commit(committables)
    committer.close()


def eventually(kafka: KafkaClients, topic: str, expected: list[str]) -> None:
    """Markers are written a little after the commit has returned."""
    deadline = time.monotonic() + 30
    while (found := kafka.values(topic)) != expected:
        assert time.monotonic() < deadline, (found, expected)
        time.sleep(0.05)


def test_a_transaction_outlives_its_writer(brokers: KafkaClients) -> None:
    topic = brokers.topic()
    target = sink(brokers, topic, DeliveryGuarantee.EXACTLY_ONCE)
    writer = writer_of(target)
    writer.write("a", NOW)
    assert writer.has_open_transaction()
    writer.begin_checkpoint(1)
    [committable] = writer.prepare_commit(end_of_input=False)
    state = writer.snapshot_state()
    assert state == [committable]
    writer.write("never committed", NOW)
    del writer
    assert brokers.values(topic) == []
    # A new writer of the same attempt: the prepared transaction stays, the open one goes.
    second = writer_of(target, state)
    commit(target, [committable])
    eventually(brokers, topic, ["a"])
    commit(target, [committable])
    second.write("b", NOW)
    second.begin_checkpoint(2)
    [later] = second.prepare_commit(end_of_input=False)
    assert later["id"] != committable["id"]
    target.recover([later])
    eventually(brokers, topic, ["a", "b"])
    second.close()


def test_a_writer_that_comes_late_does_no_harm(brokers: KafkaClients) -> None:
    """A second attempt of a task may begin after the first one has prepared its checkpoint."""
    topic = brokers.topic()
    target = sink(brokers, topic, DeliveryGuarantee.EXACTLY_ONCE)
    writer = writer_of(target)
    writer.write("a", NOW)
    writer.begin_checkpoint(1)
    prepared = writer.prepare_commit(end_of_input=False)
    late = writer_of(target)
    late.write("late", NOW)
    late.begin_checkpoint(1)
    late.prepare_commit(end_of_input=False)
    commit(target, prepared)
    writer.notify_checkpoint_complete(1)
    late.close()
    writer.close()
    eventually(brokers, topic, ["a"])


def test_a_complete_checkpoint_aborts_what_lost_writers_left(brokers: KafkaClients) -> None:
    topic = brokers.topic()
    target = sink(brokers, topic, DeliveryGuarantee.EXACTLY_ONCE)
    lost = writer_of(target)
    lost.write("lost", NOW)
    lost.flush(end_of_input=False)
    del lost
    writer = writer_of(target)
    for checkpoint, text in enumerate(("a", "b"), start=1):
        writer.write(text, NOW)
        writer.begin_checkpoint(checkpoint)
        prepared = writer.prepare_commit(end_of_input=False)
        commit(target, prepared)
        writer.notify_checkpoint_complete(checkpoint)
    writer.close()
    # A reader does not have to wait until the lost transaction expires.
    eventually(brokers, topic, ["a", "b"])


def test_the_end_of_the_input_belongs_to_the_next_checkpoint(kafka: KafkaBroker) -> None:
    """Epochs after the end must not make the writer believe that it was committed."""
    target = sink(kafka, kafka.topic(), DeliveryGuarantee.EXACTLY_ONCE)
    writer = writer_of(target)
    writer.write("a", NOW)
    prepared = writer.prepare_commit(end_of_input=True)
    for _ in range(3):
        assert writer.prepare_commit(end_of_input=True) == []
    assert writer.snapshot_state() == prepared
    writer.begin_checkpoint(1)
    writer.prepare_commit(end_of_input=True)
    commit(target, prepared)
    writer.notify_checkpoint_complete(1)
    assert writer.snapshot_state() == []
    writer.close()


def test_recovery_aborts_all_other_transactions(brokers: KafkaClients) -> None:
    topic = brokers.topic()
    target = sink(brokers, topic, DeliveryGuarantee.EXACTLY_ONCE)
    writer = writer_of(target)
    writer.write("prepared", NOW)
    [committable] = writer.prepare_commit(end_of_input=False)
    writer.write("open", NOW)
    target.recover([])
    brokers.write(topic, ["after"])
    # The last stable offset does not wait for the zombie.
    eventually(brokers, topic, ["after"])
    with pytest.raises(TransactionLostError, match=r"transaction\.timeout\.ms"):
        commit(target, [committable])
    with pytest.raises(TransactionLostError):
        writer.prepare_commit(end_of_input=False)
    writer.close()


def test_recovery_that_was_frozen_leaves_the_transactions_of_the_next_master(
    kafka: KafkaBroker,
) -> None:
    """The process was frozen after it had listed the transactions, until the next master began."""
    topic = kafka.topic()
    target = sink(kafka, topic, DeliveryGuarantee.EXACTLY_ONCE)
    lost = writer_of(target)
    lost.write("lost", NOW)
    lost.prepare_commit(end_of_input=False)
    writers, prepared = [lost], list[Any]()

    def begin() -> None:
        # A writer asks for its transactional ids when it is made.
        writers.append(writer_of(target))
        writers[-1].write("next", NOW)
        prepared.extend(writers[-1].prepare_commit(end_of_input=True))

    target.recover_in_term([], begin)
    commit(target, prepared)
    eventually(kafka, topic, ["next"])
    for writer in writers:
        writer.close()


def test_recovery_aborts_nothing_after_the_end_of_its_term(kafka: KafkaBroker) -> None:
    topic = kafka.topic()
    target = sink(kafka, topic, DeliveryGuarantee.EXACTLY_ONCE)
    writer = writer_of(target)
    writer.write("prepared", NOW)
    prepared = writer.prepare_commit(end_of_input=True)

    def lose() -> None:
        raise LeadershipLostError(1, "term 2 has begun")

    with pytest.raises(LeadershipLostError):
        target.recover_in_term([], lose)
    commit(target, prepared)
    eventually(kafka, topic, ["prepared"])
    writer.close()


@pytest.mark.parametrize("batches", [1, 20])
def test_a_writer_that_is_fenced_while_it_sends(brokers: KafkaClients, batches: int) -> None:
    """The client raises an exception between its callbacks. None of these may hide it."""
    topic = brokers.topic(3)
    target = sink(brokers, topic, DeliveryGuarantee.EXACTLY_ONCE)
    writer = writer_of(target)
    texts = [str(number) for number in range(5_000)]
    writer.write_batch(texts, None, NOW)
    target.recover([])

    def write() -> None:
        for _ in range(batches):
            writer.write_batch(texts, None, NOW)
        writer.prepare_commit(end_of_input=False)

    with pytest.raises(TransactionLostError, match="newer producer"):
        write()
    writer.close()
    brokers.write(topic, ["after"])
    eventually(brokers, topic, ["after"])


def test_ids_are_used_again_when_no_checkpoint_needs_them(brokers: KafkaClients) -> None:
    topic = brokers.topic()
    target = sink(brokers, topic, DeliveryGuarantee.EXACTLY_ONCE)
    writer = writer_of(target)
    ids = []
    for checkpoint in range(1, 7):
        writer.write(str(checkpoint), NOW)
        writer.begin_checkpoint(checkpoint)
        prepared = writer.prepare_commit(end_of_input=False)
        commit(target, prepared)
        writer.notify_checkpoint_complete(checkpoint)
        # A commit may be repeated until the next checkpoint is complete.
        commit(target, prepared)
        ids += [one["id"] for one in prepared]
    writer.close()
    assert len(set(ids)) <= 4
    eventually(brokers, topic, ["1", "2", "3", "4", "5", "6"])


def test_ids_of_a_savepoint_are_never_used_again(brokers: KafkaClients) -> None:
    topic = brokers.topic()
    target = sink(brokers, topic, DeliveryGuarantee.EXACTLY_ONCE)
    writer = writer_of(target)
    saved: list[Any] = []
    for checkpoint in range(1, 8):
        writer.write(str(checkpoint), NOW)
        writer.begin_checkpoint(checkpoint)
        prepared = writer.prepare_commit(end_of_input=False)
        if checkpoint == 2:
            saved = prepared
            continue
        commit(target, [*saved, *prepared])
        writer.notify_checkpoint_complete(checkpoint)
    writer.close()
    target.recover(saved)
    again = writer_of(target)
    again.close()
    target.recover(saved)


def test_an_expired_transaction(kafka: KafkaBroker) -> None:
    topic = kafka.topic()
    target = sink(kafka, topic, DeliveryGuarantee.EXACTLY_ONCE, transaction_timeout_ms="1000")
    writer = writer_of(target)
    writer.write("a", NOW)
    [committable] = writer.prepare_commit(end_of_input=True)
    transactions = KafkaTransactions({"bootstrap.servers": kafka.servers}, 10.0)
    deadline = time.monotonic() + 60
    while (found := transactions.describe(committable["id"])) and found.state == "Ongoing":
        assert time.monotonic() < deadline
        time.sleep(0.1)
    transactions.close()
    with pytest.raises(TransactionLostError, match=r"aborts a transaction after transaction\.tim"):
        target.recover([committable])
    patient = sink(
        kafka,
        topic,
        DeliveryGuarantee.EXACTLY_ONCE,
        transaction_timeout_ms="1000",
        ignore_failures_after_transaction_timeout="true",
    )
    patient.recover([committable])
    writer.close()


def test_a_timeout_that_the_broker_does_not_allow(kafka: KafkaBroker) -> None:
    target = sink(
        kafka, kafka.topic(), DeliveryGuarantee.EXACTLY_ONCE, transaction_timeout_ms="3600000"
    )
    writer = writer_of(target)
    with pytest.raises(ConfigurationError, match=r"transaction\.max\.timeout\.ms"):
        writer.write("a", NOW)
    writer.close()


def test_other_prefixes_are_left_alone(newest_kafka: KafkaBroker) -> None:
    topic = newest_kafka.topic()
    target = sink(newest_kafka, topic, DeliveryGuarantee.EXACTLY_ONCE, prefix="a")
    other = sink(newest_kafka, topic, DeliveryGuarantee.EXACTLY_ONCE, prefix="a-0")
    writer = writer_of(other)
    writer.write("b", NOW)
    target.recover([])
    prepared = writer.prepare_commit(end_of_input=True)
    target.recover([])
    commit(other, prepared)
    eventually(newest_kafka, topic, ["b"])
    writer.close()


def test_no_records_no_transaction(kafka: KafkaBroker) -> None:
    target = sink(kafka, kafka.topic(), DeliveryGuarantee.EXACTLY_ONCE)
    writer = writer_of(target)
    assert writer.prepare_commit(end_of_input=False) == []
    assert not writer.has_open_transaction()
    writer.close()


def test_a_closed_writer_aborts_its_transaction(kafka: KafkaBroker) -> None:
    topic = kafka.topic()
    target = sink(kafka, topic, DeliveryGuarantee.EXACTLY_ONCE)
    writer = writer_of(target)
    writer.write("a", NOW)
    writer.close()
    kafka.write(topic, ["after"])
    eventually(kafka, topic, ["after"])


@pytest.mark.parametrize("checkpoint_every", [0, 2])
def test_transactions_of_a_job(brokers: KafkaClients, checkpoint_every: int) -> None:
    topic = brokers.topic(2)
    target = sink(brokers, topic, DeliveryGuarantee.EXACTLY_ONCE)
    run(
        lambda env: env.from_sequence(1, 60).map(str, Types.STRING()).sink_to(target),
        parallelism=2,
        records_per_epoch=7,
        checkpoint_every=checkpoint_every,
    )
    assert sorted(map(int, brokers.values(topic))) == list(range(1, 61))


def test_a_producer_without_a_job_is_not_disturbed(kafka: KafkaBroker) -> None:
    producer: Producer = kafka.transaction()
    target = sink(kafka, kafka.topic(), DeliveryGuarantee.EXACTLY_ONCE)
    target.recover([])
    topic = kafka.topic()
    producer.produce(topic, "a")
    producer.commit_transaction(30)
    eventually(kafka, topic, ["a"])
