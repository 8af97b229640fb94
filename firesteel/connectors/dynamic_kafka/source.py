"""DynamicKafkaSource, its builder, and the schema that both take."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Mapping
from copy import copy
from typing import Any

from firesteel.common.configuration import Configuration
from firesteel.common.serialization import DeserializationSchema
from firesteel.common.typeinfo import TypeInformation
from firesteel.connectors.base import (
    Boundedness,
    ReaderContext,
    Source,
    SourceReader,
    SplitEnumerator,
)
from firesteel.connectors.dynamic_kafka.clusters import Cluster, by_cluster
from firesteel.connectors.dynamic_kafka.metadata import (
    KafkaMetadataService,
    KafkaStreamSetSubscriber,
    KafkaStreamSubscriber,
    StreamPatternSubscriber,
)
from firesteel.connectors.kafka.offsets import KafkaOffsetsInitializer
from firesteel.connectors.kafka.properties import number, require_client
from firesteel.connectors.kafka.source import KafkaSource
from firesteel.errors import InvalidProgramError

__all__ = ["DynamicKafkaSource", "DynamicKafkaSourceBuilder", "KafkaRecordDeserializationSchema"]

_INTERVAL = "stream-metadata-discovery-interval-ms"
_THRESHOLD = "stream-metadata-discovery-failure-threshold"


class KafkaRecordDeserializationSchema(DeserializationSchema):
    """Makes records of the messages of Kafka.

    >>> from firesteel.datastream.connectors.dynamic_kafka import KafkaRecordDeserializationSchema
    >>> KafkaRecordDeserializationSchema.value_only(SimpleStringSchema()).deserialize(b"ada")
    'ada'
    """

    def __init__(self, deserialization_schema: DeserializationSchema) -> None:
        if not isinstance(deserialization_schema, DeserializationSchema):
            raise TypeError(f"Expected a DeserializationSchema, got {deserialization_schema!r}")
        #: The schema of values.
        self.value_schema = deserialization_schema

    @staticmethod
    def value_only(
        deserialization_schema: DeserializationSchema,
    ) -> KafkaRecordDeserializationSchema:
        """Return a schema that makes records of values. Messages without a value are skipped.

        Args:
            deserialization_schema: The schema of values.
        """
        return KafkaRecordDeserializationSchema(deserialization_schema)

    def deserialize(self, message: bytes) -> Any:
        return self.value_schema.deserialize(message)

    def get_produced_type(self) -> TypeInformation:
        return self.value_schema.get_produced_type()


class DynamicKafkaSource(Source):
    """Reads streams of topics, which may be in several clusters, and may move between them.

    A metadata service tells which topics of which clusters belong to a stream. With the property
    ``stream-metadata-discovery-interval-ms`` the job follows changes without a restart: it reads
    new topics and clusters, and gives up those that have left the stream. The source needs the extra
    ``kafka``: ``pip install 'firesteel[kafka]'``.

    >>> from firesteel.datastream.connectors.dynamic_kafka import (
    ...     DynamicKafkaSource, SingleClusterTopicMetadataService
    ... )
    >>> service = SingleClusterTopicMetadataService("east", {"bootstrap.servers": "localhost:9092"})
    >>> source = (
    ...     DynamicKafkaSource.builder()
    ...     .set_stream_ids({"clicks"})
    ...     .set_kafka_metadata_service(service)
    ...     .set_value_only_deserializer(SimpleStringSchema())
    ...     .set_property("stream-metadata-discovery-interval-ms", "10000")
    ...     .build()
    ... )
    >>> source
    DynamicKafkaSource(streams clicks of east at localhost:9092)
    >>> stream = env.from_source(source, WatermarkStrategy.no_watermarks(), "clicks")
    >>> stream.get_type()
    String

    The source asks the service which clusters to read, and has a KafkaSource for each of them:

    >>> clusters = source.clusters()
    >>> sorted(clusters["east"].topics), source.is_active("east")
    (['clicks'], True)
    >>> source.source_of("east", clusters["east"]).get_produced_type()
    String
    """

    side_by_side = True

    def __init__(
        self,
        service: KafkaMetadataService,
        subscriber: KafkaStreamSubscriber,
        schema: DeserializationSchema,
        properties: Mapping[str, str],
        starting: KafkaOffsetsInitializer,
        stopping: KafkaOffsetsInitializer | None,
    ) -> None:
        """Create a source. Programs use ``DynamicKafkaSource.builder()``.

        Args:
            service: Describes the streams.
            subscriber: Selects the streams.
            schema: Makes records of values.
            properties: Properties of the source, and of the clients of all clusters.
            starting: The first offsets.
            stopping: The last offsets, or None.
        """
        self.service = service
        self._subscriber = subscriber
        self._schema = schema
        self._properties = dict(properties)
        self._starting = starting
        self._stopping = stopping
        interval = number(self._properties, _INTERVAL, -1)
        self.discovery_interval = interval / 1000 if interval > 0 and stopping is None else None
        self.failure_threshold = number(self._properties, _THRESHOLD, 1)
        for name in (_INTERVAL, _THRESHOLD):
            self._properties.pop(name, None)
        self._client_id_prefix = self._properties.pop(
            "client.id.prefix",
            self._properties.get("group.id") or f"DynamicKafkaSource-{uuid.uuid4().hex[:8]}",
        )
        # The sources of clusters by name, filled in the driver. Each settles its starting offsets.
        self._sources: dict[str, tuple[Cluster, KafkaSource]] = {}

    @staticmethod
    def builder() -> DynamicKafkaSourceBuilder:
        """Start building a source."""
        return DynamicKafkaSourceBuilder()

    def get_boundedness(self) -> Boundedness:
        bounded = self._stopping is not None
        return Boundedness.BOUNDED if bounded else Boundedness.CONTINUOUS_UNBOUNDED

    def create_enumerator(self, parallelism: int, state: Any = None) -> SplitEnumerator:
        require_client("DynamicKafkaSource")
        from firesteel.connectors.dynamic_kafka.enumerator import DynamicKafkaEnumerator

        return DynamicKafkaEnumerator(self, parallelism, state)

    def create_reader(self, context: ReaderContext) -> SourceReader:
        require_client("DynamicKafkaSource")
        from firesteel.connectors.dynamic_kafka.reader import DynamicKafkaReader

        return DynamicKafkaReader(self, context)

    def with_configuration(self, configuration: Configuration) -> Source:
        """Return the source of one job, which settles its starting offsets once.

        >>> from firesteel.common import Configuration
        >>> from firesteel.datastream.connectors.dynamic_kafka import (
        ...     DynamicKafkaSource, SingleClusterTopicMetadataService
        ... )
        >>> properties = {"bootstrap.servers": "localhost:9092"}
        >>> builder = DynamicKafkaSource.builder().set_stream_ids({"clicks"})
        >>> builder = builder.set_value_only_deserializer(SimpleStringSchema())
        >>> service = SingleClusterTopicMetadataService("east", properties)
        >>> source = builder.set_kafka_metadata_service(service).build()
        >>> source.with_configuration(Configuration())
        DynamicKafkaSource(streams clicks of east at localhost:9092)
        """
        source = copy(self)
        source._sources = {}  # noqa: SLF001 - a copy of this object
        return source

    def get_produced_type(self) -> Any:
        return self._schema.get_produced_type()

    def clusters(self) -> dict[str, Cluster]:
        """Ask the service for the clusters to read now. Not in PyFlink."""
        return by_cluster(self._subscriber.get_subscribed_streams(self.service))

    def is_active(self, cluster: str) -> bool:
        """Return False if errors of a cluster must not fail the job. Not in PyFlink.

        Args:
            cluster: The name of the cluster.
        """
        return self.service.is_cluster_active(cluster)

    def source_of(self, name: str, cluster: Cluster) -> KafkaSource:
        """Return the source for the topics of a cluster. Not in PyFlink.

        Args:
            name: The name of the cluster.
            cluster: Its topics and properties.
        """
        known = self._sources.get(name)
        if known is not None and known[0].properties == cluster.properties:
            source = known[1].with_topics(cluster.topics)
        else:
            source = self._new_source(name, cluster)
        self._sources[name] = cluster, source
        return source

    def _new_source(self, name: str, cluster: Cluster) -> KafkaSource:
        builder = (
            KafkaSource.builder()
            .set_properties({**dict(cluster.properties), **self._properties})
            .set_client_id_prefix(f"{self._client_id_prefix}-{name}")
            .set_topics(*sorted(cluster.topics))
            .set_starting_offsets(self._starting)
            .set_value_only_deserializer(self._schema)
        )
        if self._stopping is not None:
            builder.set_bounded(self._stopping)
        return builder.build()

    def __getstate__(self) -> dict[str, Any]:
        # The slots make sources of their own.
        return {**self.__dict__, "_sources": {}}

    def __repr__(self) -> str:
        return f"DynamicKafkaSource({self._subscriber!r} of {self.service!r})"


class DynamicKafkaSourceBuilder:
    """Builds a DynamicKafkaSource. Streams, a metadata service and a deserializer are required.

    >>> from firesteel.datastream.connectors.dynamic_kafka import (
    ...     DynamicKafkaSourceBuilder, KafkaStreamSetSubscriber, SingleClusterTopicMetadataService
    ... )
    >>> service = SingleClusterTopicMetadataService("east", {"bootstrap.servers": "localhost:9092"})
    >>> builder = (
    ...     DynamicKafkaSourceBuilder()
    ...     .set_kafka_stream_subscriber(KafkaStreamSetSubscriber({"clicks"}))
    ...     .set_value_only_deserializer(SimpleStringSchema())
    ...     .set_property("isolation.level", "read_committed")
    ... )
    >>> builder.build()
    Traceback (most recent call last):
    firesteel.errors.InvalidProgramError: DynamicKafkaSource: set_kafka_metadata_service was not ...
    >>> builder.set_kafka_metadata_service(service).build()
    DynamicKafkaSource(streams clicks of east at localhost:9092)
    """

    def __init__(self) -> None:
        self._subscriber: KafkaStreamSubscriber | None = None
        self._service: KafkaMetadataService | None = None
        self._schema: DeserializationSchema | None = None
        self._starting = KafkaOffsetsInitializer.earliest()
        self._stopping: KafkaOffsetsInitializer | None = None
        self._properties: dict[str, str] = {}

    def set_stream_ids(self, stream_ids: Collection[str]) -> DynamicKafkaSourceBuilder:
        """Set the streams to read.

        Args:
            stream_ids: The ids of streams.

        Raises:
            InvalidProgramError: Streams have already been chosen.

        >>> from firesteel.datastream.connectors.dynamic_kafka import DynamicKafkaSource
        >>> builder = DynamicKafkaSource.builder().set_stream_ids({"clicks", "views"})
        """
        return self.set_kafka_stream_subscriber(KafkaStreamSetSubscriber(stream_ids))

    def set_stream_pattern(self, stream_pattern: str) -> DynamicKafkaSourceBuilder:
        """Read all streams whose whole id matches, including streams that appear later.

        Args:
            stream_pattern: The regular expression.

        >>> from firesteel.datastream.connectors.dynamic_kafka import DynamicKafkaSource
        >>> builder = DynamicKafkaSource.builder().set_stream_pattern("clicks-.*")
        """
        return self.set_kafka_stream_subscriber(StreamPatternSubscriber(stream_pattern))

    def set_kafka_stream_subscriber(
        self, kafka_stream_subscriber: KafkaStreamSubscriber
    ) -> DynamicKafkaSourceBuilder:
        """Set the object that selects the streams.

        Args:
            kafka_stream_subscriber: The subscriber.
        """
        if not isinstance(kafka_stream_subscriber, KafkaStreamSubscriber):
            raise TypeError(f"Expected a KafkaStreamSubscriber, got {kafka_stream_subscriber!r}")
        if self._subscriber is not None:
            raise InvalidProgramError(
                f"DynamicKafkaSource: {kafka_stream_subscriber!r} cannot be set, because "
                f"{self._subscriber!r} are already set"
            )
        self._subscriber = kafka_stream_subscriber
        return self

    def set_kafka_metadata_service(
        self, kafka_metadata_service: KafkaMetadataService
    ) -> DynamicKafkaSourceBuilder:
        """Set the service that tells where the streams are.

        Args:
            kafka_metadata_service: The service.
        """
        if not isinstance(kafka_metadata_service, KafkaMetadataService):
            raise TypeError(f"Expected a KafkaMetadataService, got {kafka_metadata_service!r}")
        self._service = kafka_metadata_service
        return self

    def set_deserializer(
        self, deserializer: KafkaRecordDeserializationSchema
    ) -> DynamicKafkaSourceBuilder:
        """Set the schema that makes records of messages.

        Args:
            deserializer: The schema.

        >>> from firesteel.datastream.connectors.dynamic_kafka import (
        ...     DynamicKafkaSource, KafkaRecordDeserializationSchema
        ... )
        >>> schema = KafkaRecordDeserializationSchema.value_only(SimpleStringSchema())
        >>> builder = DynamicKafkaSource.builder().set_deserializer(schema)
        """
        if not isinstance(deserializer, KafkaRecordDeserializationSchema):
            raise TypeError(
                "set_deserializer expects a KafkaRecordDeserializationSchema, got "
                f"{deserializer!r}. Use set_value_only_deserializer for a DeserializationSchema."
            )
        # A KafkaPartitionReader knows the schemas of text and bytes.
        self._schema = deserializer.value_schema
        return self

    def set_value_only_deserializer(
        self, deserialization_schema: DeserializationSchema
    ) -> DynamicKafkaSourceBuilder:
        """Set the schema that makes records of values.

        Args:
            deserialization_schema: The schema.
        """
        return self.set_deserializer(
            KafkaRecordDeserializationSchema.value_only(deserialization_schema)
        )

    def set_starting_offsets(
        self, starting_offsets_initializer: KafkaOffsetsInitializer
    ) -> DynamicKafkaSourceBuilder:
        """Set the offsets at which all streams start without a checkpoint.

        Args:
            starting_offsets_initializer: The offsets. The default is the earliest ones.

        >>> from firesteel.datastream.connectors.dynamic_kafka import DynamicKafkaSource
        >>> from firesteel.datastream.connectors.kafka import KafkaOffsetsInitializer
        >>> latest = KafkaOffsetsInitializer.latest()
        >>> builder = DynamicKafkaSource.builder().set_starting_offsets(latest)
        """
        self._starting = starting_offsets_initializer
        return self

    def set_bounded(
        self, stopping_offsets_initializer: KafkaOffsetsInitializer
    ) -> DynamicKafkaSourceBuilder:
        """Stop at offsets. The source then asks for its streams once.

        Args:
            stopping_offsets_initializer: The offsets.

        >>> from firesteel.datastream.connectors.dynamic_kafka import DynamicKafkaSource
        >>> from firesteel.datastream.connectors.kafka import KafkaOffsetsInitializer
        >>> latest = KafkaOffsetsInitializer.latest()
        >>> builder = DynamicKafkaSource.builder().set_bounded(latest)
        """
        self._stopping = stopping_offsets_initializer
        return self

    def set_properties(self, props: dict[str, str]) -> DynamicKafkaSourceBuilder:
        """Set several properties.

        Args:
            props: Names and values, as for ``set_property``.

        >>> from firesteel.datastream.connectors.dynamic_kafka import DynamicKafkaSource
        >>> builder = DynamicKafkaSource.builder()
        >>> builder = builder.set_properties({"isolation.level": "read_committed"})
        """
        for key, value in props.items():
            self.set_property(key, value)
        return self

    def set_property(self, key: str, value: str) -> DynamicKafkaSourceBuilder:
        """Set a property for all clusters. It overrides the one of a cluster.

        Args:
            key: A property of Kafka's Java consumer, of Flink's Kafka sources, or of librdkafka.
            value: The value.
        """
        self._properties[key] = str(value)
        return self

    def set_group_id(self, group_id: str) -> DynamicKafkaSourceBuilder:
        """Set the consumer group. Firesteel commits offsets for it when a checkpoint completes.

        Args:
            group_id: The name of the group, in all clusters.

        >>> from firesteel.datastream.connectors.dynamic_kafka import DynamicKafkaSource
        >>> builder = DynamicKafkaSource.builder().set_group_id("counter")
        """
        return self.set_property("group.id", group_id)

    def set_client_id_prefix(self, prefix: str) -> DynamicKafkaSourceBuilder:
        """Set the start of the client names in the logs of the brokers.

        Args:
            prefix: The text. The name of the cluster follows.

        >>> from firesteel.datastream.connectors.dynamic_kafka import DynamicKafkaSource
        >>> builder = DynamicKafkaSource.builder().set_client_id_prefix("counter")
        """
        return self.set_property("client.id.prefix", prefix)

    def build(self) -> DynamicKafkaSource:
        """Create the source.

        Raises:
            InvalidProgramError: Streams, the service or the deserializer are missing.
            ConfigurationError: A property is wrong, or the Kafka client is not installed.
        """
        if self._service is None:
            raise InvalidProgramError(
                "DynamicKafkaSource: set_kafka_metadata_service was not called"
            )
        if self._subscriber is None:
            raise InvalidProgramError(
                "DynamicKafkaSource: call one of set_stream_ids, set_stream_pattern and "
                "set_kafka_stream_subscriber"
            )
        if self._schema is None:
            raise InvalidProgramError(
                "DynamicKafkaSource: set_deserializer or set_value_only_deserializer was not called"
            )
        require_client("DynamicKafkaSource")
        return DynamicKafkaSource(
            self._service,
            self._subscriber,
            self._schema,
            self._properties,
            self._starting,
            self._stopping,
        )
