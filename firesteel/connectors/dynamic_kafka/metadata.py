"""Streams of topics, the service that tells where they are, and subscribers that select them."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from firesteel.connectors.kafka.properties import (
    admin_properties,
    number,
    require_client,
    translate,
)
from firesteel.errors import InvalidProgramError
from firesteel.stability import public_evolving

__all__ = [
    "ClusterMetadata",
    "KafkaMetadataService",
    "KafkaStream",
    "KafkaStreamSetSubscriber",
    "KafkaStreamSubscriber",
    "SingleClusterTopicMetadataService",
    "StreamPatternSubscriber",
]

_TIMEOUT_MILLIS = 60_000


@public_evolving
@dataclass(frozen=True)
class ClusterMetadata:
    """The part of a stream that is in one cluster. Not in PyFlink.

    Args:
        topics: The topics of the stream.
        properties: Properties of clients of the cluster, at least ``bootstrap.servers``.

    >>> from firesteel.datastream.connectors.dynamic_kafka import ClusterMetadata
    >>> sorted(ClusterMetadata({"a", "b"}, {"bootstrap.servers": "localhost:9092"}).topics)
    ['a', 'b']
    """

    topics: Collection[str]
    properties: Mapping[str, str] = field(repr=False)


@public_evolving
@dataclass(frozen=True)
class KafkaStream:
    """A stream, and the clusters that have topics of it. Not in PyFlink.

    Args:
        stream_id: The name of the stream.
        clusters: The clusters by their ids.

    >>> from firesteel.datastream.connectors.dynamic_kafka import ClusterMetadata, KafkaStream
    >>> east = ClusterMetadata({"clicks"}, {"bootstrap.servers": "localhost:9092"})
    >>> KafkaStream("clicks", {"east": east}).stream_id
    'clicks'
    """

    stream_id: str
    clusters: Mapping[str, ClusterMetadata]


class KafkaMetadataService(ABC):
    """Tells which topics of which clusters belong to a stream.

    Derive from it to write your own, which may read a file or ask a server. It is pickled, and
    called in the driver and in the slots.

    >>> from firesteel.datastream.connectors.dynamic_kafka import (
    ...     ClusterMetadata, KafkaMetadataService, KafkaStream
    ... )
    >>> class TwoRegions(KafkaMetadataService):
    ...     def get_all_streams(self):
    ...         clusters = {
    ...             name: ClusterMetadata({"clicks"}, {"bootstrap.servers": f"{name}:9092"})
    ...             for name in ("east", "west")
    ...         }
    ...         return [KafkaStream("clicks", clusters)]
    ...     def describe_streams(self, stream_ids):
    ...         return {one.stream_id: one for one in self.get_all_streams()}
    ...     def is_cluster_active(self, kafka_cluster_id):
    ...         return kafka_cluster_id in ("east", "west")
    >>> sorted(TwoRegions().describe_streams({"clicks"})["clicks"].clusters)
    ['east', 'west']
    """

    @public_evolving
    @abstractmethod
    def get_all_streams(self) -> Collection[KafkaStream]:
        """Return all streams. A subscriber with a pattern chooses from them. Not in PyFlink."""

    @public_evolving
    @abstractmethod
    def describe_streams(self, stream_ids: Collection[str]) -> Mapping[str, KafkaStream]:
        """Return the present state of streams by their ids. Not in PyFlink.

        Args:
            stream_ids: The ids. An unknown one is missing in the result, or an error.
        """

    @public_evolving
    @abstractmethod
    def is_cluster_active(self, kafka_cluster_id: str) -> bool:
        """Return False for a cluster whose errors must not fail the job. Not in PyFlink.

        Args:
            kafka_cluster_id: The id of the cluster.
        """

    @public_evolving  # noqa: B027 - optional
    def close(self) -> None:
        """Release what the service holds. Not in PyFlink.

        >>> from firesteel.datastream.connectors.dynamic_kafka import (
        ...     SingleClusterTopicMetadataService
        ... )
        >>> properties = {"bootstrap.servers": "localhost:9092"}
        >>> SingleClusterTopicMetadataService("east", properties).close()
        """


class SingleClusterTopicMetadataService(KafkaMetadataService):
    """A service for one cluster, in which each topic is a stream of the same name.

    Args:
        kafka_cluster_id: A name for the cluster. Checkpoints contain it.
        properties: Properties of clients of the cluster, at least ``bootstrap.servers``.

    >>> from firesteel.datastream.connectors.dynamic_kafka import SingleClusterTopicMetadataService
    >>> service = SingleClusterTopicMetadataService("east", {"bootstrap.servers": "localhost:9092"})
    >>> service.describe_streams({"clicks"})["clicks"].clusters["east"].topics
    frozenset({'clicks'})
    >>> service.is_cluster_active("east"), service.is_cluster_active("west")
    (True, False)
    """

    def __init__(self, kafka_cluster_id: str, properties: dict[str, str]) -> None:
        if "bootstrap.servers" not in properties:
            raise InvalidProgramError(
                "SingleClusterTopicMetadataService: properties need bootstrap.servers"
            )
        self._cluster_id = kafka_cluster_id
        self._properties = {name: str(value) for name, value in properties.items()}

    def get_all_streams(self) -> Collection[KafkaStream]:
        require_client("SingleClusterTopicMetadataService")
        from firesteel.connectors.kafka.cluster import KafkaCluster

        timeout = number(self._properties, "default.api.timeout.ms", _TIMEOUT_MILLIS) / 1000
        cluster = KafkaCluster(admin_properties(translate(self._properties)), timeout=timeout)
        try:
            return [self._stream(topic) for topic in cluster.topics()]
        finally:
            cluster.close()

    def describe_streams(self, stream_ids: Collection[str]) -> Mapping[str, KafkaStream]:
        return {name: self._stream(name) for name in stream_ids}

    def is_cluster_active(self, kafka_cluster_id: str) -> bool:
        return kafka_cluster_id == self._cluster_id

    def _stream(self, topic: str) -> KafkaStream:
        metadata = ClusterMetadata(frozenset({topic}), self._properties)
        return KafkaStream(topic, {self._cluster_id: metadata})

    def __repr__(self) -> str:
        return f"{self._cluster_id} at {self._properties['bootstrap.servers']}"


class KafkaStreamSubscriber(ABC):
    """Selects the streams to read.

    >>> from firesteel.datastream.connectors.dynamic_kafka import KafkaStreamSubscriber
    >>> class Large(KafkaStreamSubscriber):
    ...     def get_subscribed_streams(self, kafka_metadata_service):
    ...         streams = kafka_metadata_service.get_all_streams()
    ...         return [stream for stream in streams if len(stream.clusters) > 1]
    >>> from firesteel.datastream.connectors.dynamic_kafka import DynamicKafkaSource
    >>> builder = DynamicKafkaSource.builder().set_kafka_stream_subscriber(Large())
    """

    @public_evolving
    @abstractmethod
    def get_subscribed_streams(
        self, kafka_metadata_service: KafkaMetadataService
    ) -> Collection[KafkaStream]:
        """Return the streams to read now. Not in PyFlink.

        Args:
            kafka_metadata_service: The service of the source.
        """


class KafkaStreamSetSubscriber(KafkaStreamSubscriber):
    """Selects streams by their ids.

    Args:
        stream_ids: The ids.

    >>> from firesteel.datastream.connectors.dynamic_kafka import KafkaStreamSetSubscriber
    >>> KafkaStreamSetSubscriber({"views", "clicks"})
    streams clicks, views
    """

    def __init__(self, stream_ids: Collection[str]) -> None:
        if isinstance(stream_ids, str) or not stream_ids:
            raise ValueError(f"The ids of streams must be a set of names, got {stream_ids!r}")
        self._stream_ids = frozenset(stream_ids)

    def get_subscribed_streams(
        self, kafka_metadata_service: KafkaMetadataService
    ) -> Collection[KafkaStream]:
        found = kafka_metadata_service.describe_streams(self._stream_ids)
        missing = sorted(self._stream_ids - found.keys())
        if missing:
            raise LookupError(f"The metadata service does not know the streams {missing}")
        return [found[name] for name in sorted(self._stream_ids)]

    def __repr__(self) -> str:
        return f"streams {', '.join(sorted(self._stream_ids))}"


class StreamPatternSubscriber(KafkaStreamSubscriber):
    """Selects the streams whose whole id matches a pattern, including ones that appear later.

    Args:
        stream_pattern: The regular expression.

    >>> from firesteel.datastream.connectors.dynamic_kafka import StreamPatternSubscriber
    >>> StreamPatternSubscriber("clicks-.*")
    streams like clicks-.*
    """

    def __init__(self, stream_pattern: str) -> None:
        try:
            self._pattern = re.compile(stream_pattern)
        except re.error as error:
            raise ValueError(
                f"The stream pattern {stream_pattern!r} is not a valid regular expression: {error}"
            ) from error

    def get_subscribed_streams(
        self, kafka_metadata_service: KafkaMetadataService
    ) -> Collection[KafkaStream]:
        streams = kafka_metadata_service.get_all_streams()
        return [one for one in streams if self._pattern.fullmatch(one.stream_id)]

    def __repr__(self) -> str:
        return f"streams like {self._pattern.pattern}"
