"""DynamicKafkaSource against two real clusters, without Spark: streams that move between them."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import cloudpickle
import pytest

from firesteel.common.serialization import SimpleStringSchema
from firesteel.connectors.dynamic_kafka.clusters import Cluster, wrap
from firesteel.connectors.kafka.errors import UnknownTopicError
from firesteel.connectors.kafka.reader import KafkaPartitionReader
from firesteel.datastream.connectors.base import (
    Boundedness,
    ReaderContext,
    SourceReader,
    SourceSplit,
    SplitEnumerator,
)
from firesteel.datastream.connectors.dynamic_kafka import (
    ClusterMetadata,
    DynamicKafkaSource,
    DynamicKafkaSourceBuilder,
    KafkaMetadataService,
    KafkaStream,
    SingleClusterTopicMetadataService,
    StreamPatternSubscriber,
)
from firesteel.datastream.connectors.kafka import KafkaOffsetsInitializer, KafkaSource
from firesteel.errors import InvalidProgramError
from firesteel.testing import check_source
from tests.servers.kafka import KafkaBroker
from tests.waiting import wait_until

INTERVAL = "stream-metadata-discovery-interval-ms"
# More seeds run in `make test-all`.
SEEDS = [pytest.param([1]), pytest.param(range(2, 8), marks=pytest.mark.slow)]


class FileService(KafkaMetadataService):
    """Reads the streams from a file: stream, cluster, servers and topics."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def write(self, streams: Mapping[str, Mapping[str, tuple[str, list[str]]]]) -> None:
        new = self.path.with_suffix(".new")
        new.write_text(json.dumps(streams))
        new.replace(self.path)

    def get_all_streams(self) -> Collection[KafkaStream]:
        return [
            KafkaStream(
                stream,
                {
                    name: ClusterMetadata(topics, {"bootstrap.servers": servers})
                    for name, (servers, topics) in clusters.items()
                },
            )
            for stream, clusters in json.loads(self.path.read_text()).items()
        ]

    def describe_streams(self, stream_ids: Collection[str]) -> Mapping[str, KafkaStream]:
        return {one.stream_id: one for one in self.get_all_streams() if one.stream_id in stream_ids}

    def is_cluster_active(self, kafka_cluster_id: str) -> bool:
        return any(kafka_cluster_id in stream.clusters for stream in self.get_all_streams())


@pytest.fixture
def service(tmp_path: Path) -> FileService:
    return FileService(tmp_path / "streams.json")


def reading(service: KafkaMetadataService) -> DynamicKafkaSourceBuilder:
    return (
        DynamicKafkaSource.builder()
        .set_kafka_metadata_service(service)
        .set_value_only_deserializer(SimpleStringSchema())
        .set_property("fetch.max.wait.ms", "10")
    )


def topic_of(kafka: KafkaBroker, start: int, stop: int, partitions: int = 2) -> str:
    """A topic with some numbers."""
    topic = kafka.topic(partitions)
    for partition in range(partitions):
        kafka.write(topic, map(str, range(start + partition, stop, partitions)), partition)
    return topic


def texts(start: int, stop: int) -> list[str]:
    return [str(number) for number in range(start, stop)]


@pytest.mark.parametrize("seeds", SEEDS)
def test_the_contract_with_two_clusters(
    kafka: KafkaBroker, newest_kafka: KafkaBroker, service: FileService, seeds: Any
) -> None:
    first, second = topic_of(kafka, 0, 20), topic_of(newest_kafka, 20, 40)
    third = topic_of(newest_kafka, 40, 50, partitions=1)
    east, west = kafka.servers, newest_kafka.servers
    service.write(
        {"a": {"east": (east, [first]), "west": (west, [second])}, "b": {"west": (west, [third])}}
    )
    builder = reading(service).set_stream_ids({"a", "b"})
    source = builder.set_bounded(KafkaOffsetsInitializer.latest()).build()
    assert source.get_boundedness() is Boundedness.BOUNDED
    check_source(source, texts(0, 50), seeds=seeds)


def test_topics_of_one_cluster_are_streams(kafka: KafkaBroker) -> None:
    name = kafka.topic()
    matching, other = kafka.topic(name=f"{name}-yes"), kafka.topic(name=f"{name}-no")
    kafka.write(matching, ["a", "b"])
    kafka.write(other, ["c"])
    service = SingleClusterTopicMetadataService("east", {"bootstrap.servers": kafka.servers})
    builder = reading(service).set_stream_pattern(re.escape(name) + "-y.*")
    source = builder.set_bounded(KafkaOffsetsInitializer.latest()).build()
    check_source(source, ["a", "b"], seeds=[1])


class Running:
    """An enumerator and a reader, with checkpoints that can be restored."""

    def __init__(self, source: DynamicKafkaSource, saved: Any = None) -> None:
        state, splits = saved or (None, [])
        self.source = source
        self.enumerator: SplitEnumerator = source.create_enumerator(1, state)
        shipped: DynamicKafkaSource = cloudpickle.loads(cloudpickle.dumps(source))
        self.reader: SourceReader = shipped.create_reader(ReaderContext(0, 1))
        self.reader.add_splits([SourceSplit(*one) for one in splits])
        self.records: list[Any] = []
        self._due = 0.0

    def step(self) -> None:
        if time.monotonic() >= self._due:
            self.reader.add_splits(list(self.enumerator.discover_splits()))
            self._due = time.monotonic() + self.enumerator.next_discovery_delay()
        self.records += self.reader.read(7)

    def read_until(self, expected: list[str]) -> None:
        def complete() -> bool:
            self.step()
            return len(self.records) >= len(expected)

        wait_until(complete, lambda: f"{self.records}, not {expected}")
        assert sorted(self.records, key=int) == expected

    def clusters(self) -> set[str]:
        return {split.properties["cluster"] for split in self.reader.snapshot_splits()}

    def wait_for_clusters(self, expected: set[str]) -> None:
        def reached() -> bool:
            self.step()
            known = set(self.enumerator.snapshot_state()["clusters"])
            return self.clusters() == known == expected

        wait_until(reached, lambda: f"{self.clusters()}, not {expected}")

    def save(self) -> Any:
        splits = [
            (one.split_id, one.properties, one.position) for one in self.reader.snapshot_splits()
        ]
        saved = json.loads(json.dumps([self.enumerator.snapshot_state(), splits]))
        self.enumerator.checkpoint_complete([SourceSplit(*one) for one in saved[1]])
        return saved

    def close(self) -> None:
        self.reader.close()
        self.enumerator.close()


def test_a_stream_moves_to_a_different_cluster_and_back(
    kafka: KafkaBroker, newest_kafka: KafkaBroker, service: FileService
) -> None:
    old, new = topic_of(kafka, 0, 10), topic_of(newest_kafka, 10, 20)
    east, west = (kafka.servers, [old]), (newest_kafka.servers, [new])
    service.write({"a": {"east": east}})
    source = reading(service).set_stream_ids({"a"}).set_property(INTERVAL, "150").build()
    running = Running(source)
    assert running.source.get_boundedness() is Boundedness.CONTINUOUS_UNBOUNDED
    running.read_until(texts(0, 10))
    service.write({"a": {"east": east, "west": west}})
    running.read_until(texts(0, 20))
    # A restored job continues in both clusters.
    saved = running.save()
    running.close()
    kafka.write(old, ["20"])
    newest_kafka.write(new, ["21"])
    running = Running(source, saved)
    running.read_until(["20", "21"])
    service.write({"a": {"west": west}})
    running.wait_for_clusters({"west"})
    kafka.write(old, ["-1"])
    newest_kafka.write(new, ["22"])
    running.read_until(["20", "21", "22"])
    # A checkpoint from before the move: the old cluster is not read again.
    running.close()
    running = Running(source, saved)
    running.read_until(["21", "22"])
    assert running.clusters() == {"west"}
    # The cluster comes back with the same topic, which has new splits.
    service.write({"a": {"east": east, "west": west}})
    running.wait_for_clusters({"east", "west"})
    generations = {
        split.properties["cluster"]: split.properties["generation"]
        for split in running.reader.snapshot_splits()
    }
    assert generations["east"] > generations["west"]
    running.read_until(["-1", *texts(0, 11)[:10], "20", "21", "22"])
    running.close()


def test_a_topic_leaves_a_cluster_and_a_new_one_is_read(
    kafka: KafkaBroker, service: FileService
) -> None:
    first, second, third = topic_of(kafka, 0, 5), topic_of(kafka, 5, 10), topic_of(kafka, 10, 15)
    service.write({"a": {"east": (kafka.servers, [first, second])}})
    builder = reading(service).set_kafka_stream_subscriber(StreamPatternSubscriber("."))
    builder.set_group_id(f"group of {first}")
    running = Running(builder.set_property(INTERVAL, "150").build())
    running.read_until(texts(0, 10))
    running.save()
    wait_until(lambda: kafka.committed(f"group of {first}", first, 2) == [3, 2])
    service.write({"a": {"east": (kafka.servers, [second, third])}})
    running.read_until(texts(0, 15))

    def topics() -> set[str]:
        running.step()
        return {one.properties["properties"]["topic"] for one in running.reader.snapshot_splits()}

    wait_until(lambda: topics() == {second, third})
    kafka.write(first, ["-1"])
    kafka.write(second, ["15"])
    running.read_until(texts(0, 16))
    running.save()
    running.close()


def test_a_reader_follows_a_cluster_whose_address_and_topics_change_at_once(
    service: FileService, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A split of the new topic tells the reader of the change. No broker has to answer."""
    old, new = "localhost:1", "localhost:2"
    split = {"partition": 0, "start": 0, "stop": None}
    first, second = (
        wrap(SourceSplit(f"{topic}-0", {**split, "topic": topic}, 7), "east", 0) for topic in "ab"
    )
    source = reading(service).set_stream_ids({"s"}).set_property(INTERVAL, "600000").build()
    opened = []
    source_of = source.source_of

    def note(name: str, cluster: Cluster) -> KafkaSource:
        opened.append(dict(cluster.properties)["bootstrap.servers"])
        return source_of(name, cluster)

    monkeypatch.setattr(source, "source_of", note)
    service.write({"s": {"east": (old, ["a"])}})
    reader = source.create_reader(ReaderContext(0, 1))
    reader.add_splits([first])
    service.write({"s": {"east": (new, ["a", "b"])}})
    reader.add_splits([second])
    assert opened == [old, new]
    assert reader.snapshot_splits() == [first, second]
    reader.close()


def test_errors_of_a_cluster_that_is_not_active(
    kafka: KafkaBroker,
    newest_kafka: KafkaBroker,
    service: FileService,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    old, new = topic_of(kafka, 0, 4), topic_of(newest_kafka, 4, 8)
    east, west = (kafka.servers, [old]), (newest_kafka.servers, [new])
    service.write({"a": {"east": east, "west": west}})
    running = Running(reading(service).set_stream_ids({"a"}).build())
    running.read_until(texts(0, 8))
    read = KafkaPartitionReader.read

    def fail(reader: KafkaPartitionReader, limit: int) -> list[Any]:
        if any(one.properties["topic"] == old for one in reader.snapshot_splits()):
            raise ConnectionError("the cluster is gone")
        return read(reader, limit)

    monkeypatch.setattr(KafkaPartitionReader, "read", fail)

    def read_both() -> None:
        for _ in range(2):
            running.step()

    with pytest.raises(ConnectionError):
        read_both()
    service.write({"a": {"west": west}})
    newest_kafka.write(new, ["8"])
    running.read_until(texts(0, 9))

    def has_dropped_the_other() -> bool:
        running.step()
        return running.clusters() == {"west"}

    wait_until(has_dropped_the_other)
    running.close()


def test_failures_of_the_service_are_counted(kafka: KafkaBroker, service: FileService) -> None:
    topic = topic_of(kafka, 0, 4)
    streams = {"a": {"east": (kafka.servers, [topic])}}
    service.write(streams)
    builder = reading(service).set_stream_ids({"a"}).set_property(INTERVAL, "1")
    builder.set_property("stream-metadata-discovery-failure-threshold", "3")
    enumerator = builder.build().create_enumerator(1)
    assert len(enumerator.discover_splits()) == 2

    def ask() -> None:
        time.sleep(enumerator.next_discovery_delay())
        enumerator.discover_splits()

    for _ in range(2):
        service.path.write_text("not JSON")
        ask()
        ask()
        service.write(streams)
        ask()
    service.write({"a": {"east": (kafka.servers, ["missing"])}})
    ask()
    ask()
    with pytest.raises(UnknownTopicError, match="missing"):
        ask()
    enumerator.close()


def test_a_stream_that_does_not_exist(service: FileService) -> None:
    service.write({})
    source = reading(service).set_stream_ids({"a"}).build()
    with pytest.raises(LookupError, match=r"does not know the streams \['a'\]"):
        source.create_enumerator(1)


def test_programs_that_cannot_work(service: FileService) -> None:
    with pytest.raises(InvalidProgramError, match="set_stream_ids"):
        reading(service).build()
    with pytest.raises(InvalidProgramError, match="cannot be set, because streams a are"):
        reading(service).set_stream_ids({"a"}).set_stream_pattern("b")
    with pytest.raises(InvalidProgramError, match="set_deserializer"):
        DynamicKafkaSource.builder().set_stream_ids({"a"}).set_kafka_metadata_service(
            service
        ).build()
    with pytest.raises(TypeError, match="KafkaRecordDeserializationSchema"):
        reading(service).set_deserializer(SimpleStringSchema())  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="KafkaMetadataService"):
        reading(None)  # type: ignore[arg-type]
    with pytest.raises(InvalidProgramError, match=r"bootstrap\.servers"):
        SingleClusterTopicMetadataService("east", {})
    with pytest.raises(ValueError, match="not a valid regular expression"):
        reading(service).set_stream_pattern("(")
    with pytest.raises(ValueError, match="a set of names"):
        reading(service).set_stream_ids("a")
