"""KafkaSource against a real broker, without Spark."""

from __future__ import annotations

import time
import uuid
from collections import defaultdict
from itertools import chain
from typing import Any

import cloudpickle
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from firesteel.common.serialization import (
    ByteArraySchema,
    DeserializationSchema,
    SimpleStringSchema,
)
from firesteel.connectors.kafka.errors import (
    KafkaUnreachableError,
    NoCommittedOffsetError,
    OffsetOutOfRangeError,
    UnknownTopicError,
)
from firesteel.datastream.connectors.base import ReaderContext
from firesteel.datastream.connectors.kafka import (
    KafkaOffsetResetStrategy,
    KafkaOffsetsInitializer,
    KafkaSource,
    KafkaTopicPartition,
)
from tests.thoroughness import examples

EARLIEST, LATEST = KafkaOffsetsInitializer.earliest(), KafkaOffsetsInitializer.latest()
NONE = KafkaOffsetResetStrategy.NONE
P = KafkaTopicPartition
PATIENCE = 20.0
ALL_OF_THEM = {partition: list(range(40)) for partition in range(3)}


def builder(kafka, *topics):
    new = (
        KafkaSource.builder()
        .set_bootstrap_servers(kafka.servers)
        .set_value_only_deserializer(SimpleStringSchema())
        .set_property("fetch.max.wait.ms", "20")
    )
    return new.set_topics(*topics) if topics else new


def bounded(kafka, topic):
    return builder(kafka, topic).set_bounded(LATEST)


def numbers(start, stop):
    return [str(number) for number in range(start, stop)]


@pytest.fixture(scope="module")
def three_partitions(kafka):
    """Records ``partition:number``, 40 in each partition."""
    topic = kafka.topic(3)
    for partition in range(3):
        kafka.write(topic, [f"{partition}:{number}" for number in range(40)], partition)
    return topic


def test_bytes_that_are_no_text_are_replaced(kafka, driver):
    topic = kafka.topic()
    kafka.write(topic, ["a", b"\xffb", "ä"])
    assert driver.read_all(bounded(kafka, topic).build()) == [["a", "\ufffdb", "ä"]]
    latin = bounded(kafka, topic).set_value_only_deserializer(SimpleStringSchema("latin-1"))
    assert driver.read_all(latin.build()) == [["a", "\xffb", "Ã¤"]]
    raw = bounded(kafka, topic).set_value_only_deserializer(ByteArraySchema())
    assert driver.read_all(raw.build()) == [[b"a", b"\xffb", "ä".encode()]]


def by_partition(records):
    found = defaultdict(list)
    for record in records:
        partition, number = record.split(":")
        found[int(partition)].append(int(number))
    return dict(found)


def read_until(reader, count):
    """At least so many records, or what came while one could wait."""
    records: list[Any] = []
    deadline = time.monotonic() + PATIENCE
    while len(records) < count and time.monotonic() < deadline:
        records += reader.read(100)
    return records


def start(source, splits=None):
    """A reader of all there is, and its enumerator."""
    enumerator = source.create_enumerator(1)
    reader = cloudpickle.loads(cloudpickle.dumps(source)).create_reader(ReaderContext(0, 1))
    reader.add_splits(enumerator.discover_splits() if splits is None else splits)
    return reader, enumerator


def test_all_partitions_are_read_by_all_subtasks(driver, kafka, three_partitions):
    parts = driver.read_all(bounded(kafka, three_partitions).build(), parallelism=2)
    assert [sorted(by_partition(part)) for part in parts] == [[0, 2], [1]]
    assert by_partition(chain.from_iterable(parts)) == ALL_OF_THEM


@settings(
    max_examples=examples(40),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(st.lists(st.integers(0, 12), min_size=2, max_size=10))
def test_any_restarts_give_each_record_once_in_order(driver, kafka, three_partitions, steps):
    """0 is a restart, after something was read that does not count."""
    source = bounded(kafka, three_partitions).build()
    enumerator = source.create_enumerator(1)
    splits = driver.persisted(list(enumerator.discover_splits()))
    records = driver.read_with_restarts(
        lambda: source.create_reader(ReaderContext(0, 1)), splits, steps
    )
    assert by_partition(records) == ALL_OF_THEM


def test_a_read_tells_its_partition_and_the_timestamps_of_kafka(kafka):
    topic = kafka.topic(2)
    for partition in range(2):
        stamps = range(1000 * partition + 5, 1000 * partition + 15)
        kafka.write(topic, map(str, stamps), partition, timestamps=stamps)
    reader, _ = start(bounded(kafka, topic).build())
    seen: dict[str, list[Any]] = {}
    while reader.snapshot_splits():
        values = reader.read(4)
        assert len(values) <= 4
        if values:
            assert reader.timestamps() == [int(value) for value in values]
            seen.setdefault(reader.current_split(), []).extend(values)
    assert seen == {f"{topic}-0": numbers(5, 15), f"{topic}-1": numbers(1005, 1015)}


def test_partitions_that_are_paused_lose_nothing_and_give_nothing(kafka, three_partitions):
    reader, _ = start(bounded(kafka, three_partitions).build())
    first, third = f"{three_partitions}-0", f"{three_partitions}-2"
    records: list[Any] = []
    # All of them have been fetched, and in part handed out.
    while len(records) < 30:
        records += reader.read(10)
    reader.pause_or_resume_splits({first, third}, set())
    before = by_partition(records)
    while {split.split_id for split in reader.snapshot_splits()} != {first, third}:
        records += reader.read(10)
    assert reader.read(10) == []
    found = by_partition(records)
    assert found[1] == ALL_OF_THEM[1]
    assert [found.get(n) for n in (0, 2)] == [before.get(n) for n in (0, 2)]
    reader.pause_or_resume_splits(set(), {first, third})
    while reader.snapshot_splits():
        records += reader.read(10)
    assert by_partition(records) == ALL_OF_THEM


@pytest.fixture(scope="module")
def twenty(kafka):
    """0 to 19, a second apart, the first five already forgotten."""
    topic = kafka.topic()
    kafka.write(topic, numbers(0, 20), timestamps=range(1_000, 21_000, 1_000))
    kafka.forget_before(topic, 5)
    return topic


@pytest.mark.parametrize(
    ("starting", "first"),
    [
        ("earliest", 5),
        ("latest", 20),
        ("since 12.5 s", 12),
        ("since 99 s", 20),
        ("committed", 9),
        ("never committed", 5),
        ("at 17", 17),
        ("at 2", 5),
        ("at 900, else latest", 20),
        ("another partition", 5),
    ],
)
def test_where_reading_starts(kafka, twenty, starting, first):
    group = uuid.uuid4().hex
    offsets, place = KafkaOffsetsInitializer.offsets, P(twenty, 0)
    reset = KafkaOffsetResetStrategy
    if starting == "committed":
        kafka.commit(group, twenty, [9])
    initializers = {
        "earliest": EARLIEST,
        "latest": LATEST,
        "since 12.5 s": KafkaOffsetsInitializer.timestamp(12_500),
        "since 99 s": KafkaOffsetsInitializer.timestamp(99_000),
        "committed": KafkaOffsetsInitializer.committed_offsets(),
        "never committed": KafkaOffsetsInitializer.committed_offsets(reset.EARLIEST),
        "at 17": offsets({place: 17}),
        "at 2": offsets({place: 2}),
        "at 900, else latest": offsets({place: 900}, reset.LATEST),
        "another partition": offsets({P(twenty, 3): 12}),
    }
    source = (
        bounded(kafka, twenty)
        .set_group_id(group)
        .set_starting_offsets(initializers[starting])
        .build()
    )
    reader, _ = start(source)
    assert read_until(reader, 20 - first) == numbers(first, 20)
    assert reader.snapshot_splits() == []


@pytest.mark.parametrize(
    ("stopping", "last"),
    [
        ("latest", 20),
        ("earliest", 5),
        ("since 12.5 s", 12),
        ("at 18", 18),
        ("at 18, unbounded", 18),
    ],
)
def test_where_reading_stops(driver, kafka, twenty, stopping, last):
    at_18 = KafkaOffsetsInitializer.offsets({P(twenty, 0): 18})
    initializers = {
        "latest": LATEST,
        "earliest": EARLIEST,
        "since 12.5 s": KafkaOffsetsInitializer.timestamp(12_500),
        "at 18": at_18,
    }
    source = builder(kafka, twenty)
    if stopping == "at 18, unbounded":
        source = source.set_unbounded(at_18)
    else:
        source = source.set_bounded(initializers[stopping])
    assert driver.read_all(source.build(), limit=6) == [numbers(5, last)]


def test_latest_is_settled_once(driver, kafka):
    """A task that runs again does not skip records that came after the start."""
    topic = kafka.topic()
    kafka.write(topic, ["before"])
    source = builder(kafka, topic).set_starting_offsets(LATEST).build()
    enumerator = source.create_enumerator(1)
    splits = driver.persisted(list(enumerator.discover_splits()))
    kafka.write(topic, ["after"])
    for _ in range(2):
        reader, _ = start(source, splits)
        assert read_until(reader, 1) == ["after"]


def assert_it_ends(reader):
    """Without another record: the end may come with a later read."""
    deadline = time.monotonic() + PATIENCE
    while reader.snapshot_splits() and time.monotonic() < deadline:
        assert reader.read(10) == []
    assert reader.snapshot_splits() == []


def test_committed_records_only(kafka):
    """Neither aborted ones nor those of an open transaction, nor what comes behind it."""
    topic = kafka.topic()
    for end, text in (("commit", "good"), ("abort", "bad")):
        producer = kafka.transaction()
        for number in range(3):
            producer.produce(topic, f"{text} {number}")
        producer.flush(30)
        getattr(producer, f"{end}_transaction")(30)
    kafka.write(topic, ["plain"])
    open_transaction = kafka.transaction()
    open_transaction.produce(topic, "open")
    open_transaction.flush(30)
    kafka.write(topic, ["behind"])
    committed = bounded(kafka, topic).set_property("isolation.level", "read_committed").build()
    reader, _ = start(committed)
    good = ["good 0", "good 1", "good 2"]
    assert read_until(reader, 4) == [*good, "plain"]
    assert_it_ends(reader)
    reader, _ = start(bounded(kafka, topic).build())
    assert read_until(reader, 9) == [*good, "bad 0", "bad 1", "bad 2", "plain", "open", "behind"]
    open_transaction.abort_transaction(30)


def test_a_partition_that_ends_with_the_mark_of_a_transaction_ends(kafka):
    topic = kafka.topic()
    producer = kafka.transaction()
    producer.produce(topic, "only")
    producer.commit_transaction(30)
    reader, _ = start(bounded(kafka, topic).build())
    assert read_until(reader, 1) == ["only"]
    assert_it_ends(reader)


def test_new_partitions_and_topics_are_read_from_their_beginning(driver, kafka):
    prefix = uuid.uuid4().hex[:8]
    topic = kafka.topic(1, f"{prefix}-a")
    kafka.write(topic, ["before the job"])
    source = (
        builder(kafka)
        .set_topic_pattern(f"{prefix}-.*")
        .set_starting_offsets(LATEST)
        .set_property("partition.discovery.interval.ms", "1500")
        .build()
    )
    reader, enumerator = start(source)
    assert not enumerator.is_complete()
    assert enumerator.next_discovery_delay() == 1.5
    assert enumerator.discover_splits() == []
    kafka.add_partitions(topic, 2)
    kafka.write(topic, ["new partition"], 1)
    other = kafka.topic(1, f"{prefix}-b")
    kafka.write(other, ["new topic"])
    new = enumerator.discover_splits()
    assert [split.split_id for split in new] == [f"{topic}-1", f"{other}-0"]
    reader.add_splits(new)
    assert sorted(read_until(reader, 2)) == ["new partition", "new topic"]

    kafka.add_partitions(topic, 3)
    kafka.write(topic, ["while the job was down"], 2)
    restored = source.create_enumerator(1, driver.through_json(enumerator.snapshot_state()))
    new = restored.discover_splits()
    assert [split.split_id for split in new] == [f"{topic}-2"]
    assert read_until(start(source, new)[0], 1) == ["while the job was down"]


def test_without_discovery_a_restored_source_only_makes_sure_of_its_topics(driver, kafka, twenty):
    source = builder(kafka, twenty).set_property("partition.discovery.interval.ms", "-1").build()
    enumerator = source.create_enumerator(1)
    assert len(enumerator.discover_splits()) == 1
    assert enumerator.is_complete()
    restored = source.create_enumerator(1, driver.through_json(enumerator.snapshot_state()))
    assert not restored.is_complete()
    assert restored.discover_splits() == []
    assert restored.is_complete()


def test_named_partitions(driver, kafka, three_partitions):
    chosen = {P(three_partitions, 2), P(three_partitions, 0)}
    source = builder(kafka).set_partitions(chosen).set_bounded(LATEST).build()
    [records] = driver.read_all(source)
    assert sorted(by_partition(records)) == [0, 2]
    missing = builder(kafka).set_partitions({P(three_partitions, 3)}).build()
    with pytest.raises(UnknownTopicError, match=f"{three_partitions}-3.* has 3, numbered from 0"):
        missing.create_enumerator(1)


class Numbers(DeserializationSchema):
    """Even numbers; others are skipped, and what is no number is an error."""

    def deserialize(self, message):
        number = int(message)
        return None if number % 2 else number


def test_messages_without_value_and_those_that_a_schema_skips_are_left_out(kafka):
    topic = kafka.topic()
    kafka.write(topic, ["0", None, "1", "2", None], timestamps=range(1, 6))
    source = bounded(kafka, topic).set_value_only_deserializer(Numbers()).build()
    reader, _ = start(source)
    records, stamps = [], []
    while reader.snapshot_splits():
        values = reader.read(10)
        if values:
            records += values
            stamps += reader.timestamps()
    assert (records, stamps) == ([0, 2], [1, 4])


class Nothing(DeserializationSchema):
    """Takes its time, and skips everything."""

    def deserialize(self, message):
        time.sleep(0.01)


def test_a_schema_that_skips_much_does_not_hold_up_an_epoch(kafka, twenty):
    reader, _ = start(bounded(kafka, twenty).set_value_only_deserializer(Nothing()).build())
    while reader.next_read_delay() != 0.0:
        assert reader.read(1) == []
    assert reader.snapshot_splits()
    while reader.snapshot_splits():
        assert reader.read(1) == []


def test_an_end_that_is_still_to_come_is_waited_for(kafka):
    topic = kafka.topic()
    later = KafkaOffsetsInitializer.offsets({P(topic, 0): 2})
    source = builder(kafka, topic).set_bounded(later)
    reader, _ = start(source.set_property("default.api.timeout.ms", "300").build())
    deadline = time.monotonic() + 1.0
    while time.monotonic() < deadline:
        assert reader.read(10) == []
    kafka.write(topic, ["a", "b", "c"])
    assert read_until(reader, 2) == ["a", "b"]
    assert reader.snapshot_splits() == []


def test_a_record_that_a_schema_does_not_understand_is_named(kafka):
    topic = kafka.topic()
    kafka.write(topic, ["0", "2", "four"])
    reader, _ = start(bounded(kafka, topic).set_value_only_deserializer(Numbers()).build())
    with pytest.raises(ValueError, match="four") as caught:
        read_until(reader, 3)
    assert caught.value.__notes__ == [
        f"The record is at offset 2 of partition 0 of topic '{topic}'."
    ]


def test_a_topic_that_is_not_there_is_named_with_one_that_is(kafka):
    topic = kafka.topic()
    with pytest.raises(UnknownTopicError, match=f"'{topic}x'.*Did you mean '{topic}'"):
        builder(kafka, f"{topic}x").build().create_enumerator(1)


def test_no_broker(kafka):
    source = builder(kafka, "clicks").set_bootstrap_servers("127.0.0.1:1")
    with pytest.raises(KafkaUnreachableError, match=r"127\.0\.0\.1:1 .*Connection refused"):
        source.set_property("default.api.timeout.ms", "300").build().create_enumerator(1)


def test_a_broker_that_goes_away_before_the_end(kafka, twenty):
    """A source that ends must not wait for ever; one that does not end does."""
    gone = builder(kafka, twenty).set_bootstrap_servers("127.0.0.1:1")
    properties = {"topic": twenty, "partition": 0, "start": 0}
    for stop in (20, None):
        source = gone.set_property("default.api.timeout.ms", "300").build()
        reader = source.create_reader(ReaderContext(0, 1))
        [split] = builder(kafka, twenty).build().create_enumerator(1).discover_splits()
        reader.add_splits([type(split)(split.split_id, {**properties, "stop": stop})])
        if stop is None:
            assert [reader.read(10) for _ in range(5)] == [[]] * 5
        else:
            with pytest.raises(KafkaUnreachableError, match=f"the rest of {twenty}-0"):
                read_until(reader, 1)
        reader.close()


def test_offsets_that_the_log_does_not_have_are_named(kafka, twenty):
    place = P(twenty, 0)
    strict = builder(kafka, twenty).set_starting_offsets(
        KafkaOffsetsInitializer.offsets({place: 2}, NONE)
    )
    with pytest.raises(
        OffsetOutOfRangeError, match=f"'{twenty}': .*offset 2, but the log has offsets 5 to 20"
    ):
        strict.build().create_enumerator(1)

    strict = strict.set_starting_offsets(KafkaOffsetsInitializer.offsets({place: 7}, NONE)).build()
    [split] = strict.create_enumerator(1).discover_splits()
    reader, _ = start(strict, [split.at(3)])  # retention was faster than the job
    with pytest.raises(
        OffsetOutOfRangeError, match=f"Partition 0 of topic '{twenty}'.* no offset 3"
    ):
        read_until(reader, 1)
    lenient = builder(kafka, twenty).set_property("auto.offset.reset", "earliest").build()
    lenient, _ = start(lenient, [split.at(3)])
    assert read_until(lenient, 15) == numbers(5, 20)


def test_a_group_without_offsets_is_named(kafka, twenty):
    source = builder(kafka, twenty).set_group_id("nobody")
    source.set_starting_offsets(KafkaOffsetsInitializer.committed_offsets())
    with pytest.raises(NoCommittedOffsetError, match=f"{twenty}-0.*the group 'nobody'"):
        source.build().create_enumerator(1)
