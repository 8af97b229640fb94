"""KafkaSource and its builder."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Collection, Mapping
from copy import copy
from typing import Any

from firesteel.common.configuration import Configuration
from firesteel.common.serialization import DeserializationSchema
from firesteel.connectors.base import (
    Boundedness,
    ReaderContext,
    Source,
    SourceReader,
    SplitEnumerator,
)
from firesteel.connectors.kafka.offsets import (
    KafkaOffsetResetStrategy,
    KafkaOffsetsInitializer,
    SettledStart,
)
from firesteel.connectors.kafka.properties import (
    admin_properties,
    check_properties,
    flag,
    number,
    require_client,
    translate,
)
from firesteel.connectors.kafka.subscription import (
    PartitionSet,
    Subscription,
    TopicList,
    TopicPattern,
)
from firesteel.connectors.kafka.topic_partition import KafkaTopicPartition
from firesteel.errors import ConfigurationError, InvalidProgramError

__all__ = ["KafkaSource", "KafkaSourceBuilder"]

_LOG = logging.getLogger(__name__)

_DISCOVERY_MILLIS = 300_000
_TIMEOUT_MILLIS = 60_000

# The names of the Java client's reset strategies in librdkafka.
_RESETS = {
    KafkaOffsetResetStrategy.EARLIEST: "earliest",
    KafkaOffsetResetStrategy.LATEST: "latest",
    KafkaOffsetResetStrategy.NONE: "error",
}


class KafkaSource(Source):
    """Reads topics of Kafka, without end or up to given offsets.

    Each partition is a split. Its position, which checkpoints keep, is the offset of the next
    record. The source needs the extra ``kafka``: ``pip install 'firesteel[kafka]'``.

    >>> from firesteel.datastream.connectors.kafka import KafkaOffsetsInitializer, KafkaSource
    >>> clicks = (
    ...     KafkaSource.builder()
    ...     .set_bootstrap_servers("localhost:9092")
    ...     .set_topics("clicks")
    ...     .set_group_id("counter")
    ...     .set_starting_offsets(KafkaOffsetsInitializer.earliest())
    ...     .set_value_only_deserializer(SimpleStringSchema())
    ...     .build()
    ... )
    >>> clicks
    KafkaSource(topics clicks at localhost:9092)
    >>> stream = env.from_source(clicks, WatermarkStrategy.no_watermarks(), "clicks")
    >>> stream.get_type()
    String
    """

    side_by_side = True

    def __init__(
        self,
        subscription: Subscription,
        schema: DeserializationSchema,
        properties: Mapping[str, str],
        starting: KafkaOffsetsInitializer,
        stopping: KafkaOffsetsInitializer | None,
        boundedness: Boundedness,
    ) -> None:
        """Create a source from complete properties. Programs use ``KafkaSource.builder()``.

        Args:
            subscription: The topics or partitions.
            schema: Makes records of messages.
            properties: All properties, with the names of Kafka's Java client and of Flink.
            starting: The first offsets.
            stopping: The last offsets, or None.
            boundedness: BOUNDED if the source ends at the last offsets.
        """
        self._subscription = subscription
        self._schema = schema
        self._starting = starting
        self._stopping = stopping
        self._boundedness = boundedness
        self._servers = properties["bootstrap.servers"]
        self._group = properties.get("group.id", "")
        self._client_id_prefix = properties["client.id.prefix"]
        self._timeout = number(properties, "default.api.timeout.ms", _TIMEOUT_MILLIS) / 1000
        interval = number(properties, "partition.discovery.interval.ms", _DISCOVERY_MILLIS)
        self._discovery_interval = interval / 1000 if interval > 0 else None
        self._commits = flag(properties, "commit.offsets.on.checkpoint", bool(self._group))
        self.client_properties = translate(properties)
        # Filled in the driver.
        self._settled = SettledStart()

    @staticmethod
    def builder() -> KafkaSourceBuilder:
        """Start building a source."""
        return KafkaSourceBuilder()

    def get_boundedness(self) -> Boundedness:
        return self._boundedness

    def create_enumerator(self, parallelism: int, state: Any = None) -> SplitEnumerator:
        require_client("KafkaSource")
        from firesteel.connectors.kafka.cluster import KafkaCluster
        from firesteel.connectors.kafka.enumerator import KafkaPartitionEnumerator

        cluster = KafkaCluster(
            admin_properties(self.client_properties)
            | {"client.id": f"{self._client_id_prefix}-enumerator"},
            group=self._group,
            read_committed=self.client_properties["isolation.level"] == "read_committed",
            timeout=self._timeout,
        )
        return KafkaPartitionEnumerator(
            cluster,
            self._subscription,
            starting=self._starting,
            stopping=self._stopping,
            discovery_interval=self._discovery_interval,
            commits=self._commits,
            settled=self._settled,
            state=state,
        )

    def create_reader(self, context: ReaderContext) -> SourceReader:
        require_client("KafkaSource")
        from firesteel.connectors.kafka.reader import KafkaPartitionReader

        properties = {
            # librdkafka requires a group, even if nothing is committed.
            "group.id": self._client_id_prefix,
            **self.client_properties,
            "client.id": f"{self._client_id_prefix}-{context.subtask_index}",
            "enable.partition.eof": "true",
        }
        return KafkaPartitionReader(properties, self._schema, timeout=self._timeout)

    def with_configuration(self, configuration: Configuration) -> Source:
        """Return the source of one job, which settles its starting offsets once.

        >>> from firesteel.common import Configuration
        >>> from firesteel.datastream.connectors.kafka import KafkaSource
        >>> builder = KafkaSource.builder().set_topics("clicks")
        >>> builder = builder.set_bootstrap_servers("localhost:9092")
        >>> source = builder.set_value_only_deserializer(SimpleStringSchema()).build()
        >>> source.with_configuration(Configuration())
        KafkaSource(topics clicks at localhost:9092)
        """
        source = copy(self)
        source._settled = SettledStart()  # noqa: SLF001 - a copy of this object
        return source

    def with_topics(self, topics: Collection[str]) -> KafkaSource:
        """Return the source of the same job with different topics. Not in PyFlink.

        Args:
            topics: The names of all topics.

        >>> from firesteel.datastream.connectors.kafka import KafkaSource
        >>> builder = KafkaSource.builder().set_topics("clicks")
        >>> builder = builder.set_bootstrap_servers("localhost:9092")
        >>> source = builder.set_value_only_deserializer(SimpleStringSchema()).build()
        >>> source.with_topics(["views"])
        KafkaSource(topics views at localhost:9092)
        """
        source = copy(self)
        source._subscription = TopicList(sorted(topics))  # noqa: SLF001 - a copy of this object
        return source

    def get_produced_type(self) -> Any:
        return self._schema.get_produced_type()

    def __repr__(self) -> str:
        return f"KafkaSource({self._subscription!r} at {self._servers})"


class KafkaSourceBuilder:
    """Builds a KafkaSource. Servers, topics and a deserializer are required.

    >>> from firesteel.datastream.connectors.kafka import KafkaSourceBuilder
    >>> KafkaSourceBuilder().set_topics("clicks").build()
    Traceback (most recent call last):
    firesteel.errors.InvalidProgramError: KafkaSource: set_bootstrap_servers was not called
    """

    def __init__(self) -> None:
        self._subscription: Subscription | None = None
        self._schema: DeserializationSchema | None = None
        self._starting = KafkaOffsetsInitializer.earliest()
        self._stopping: KafkaOffsetsInitializer | None = None
        self._boundedness = Boundedness.CONTINUOUS_UNBOUNDED
        self._properties: dict[str, str] = {}

    def set_bootstrap_servers(self, bootstrap_servers: str) -> KafkaSourceBuilder:
        """Set the brokers to connect to first.

        Args:
            bootstrap_servers: One or more brokers, as ``host:port,host:port``.

        >>> from firesteel.datastream.connectors.kafka import KafkaSource
        >>> builder = KafkaSource.builder().set_topics("clicks")
        >>> builder = builder.set_bootstrap_servers("localhost:9092")
        >>> builder.set_value_only_deserializer(SimpleStringSchema()).build()
        KafkaSource(topics clicks at localhost:9092)
        """
        return self.set_property("bootstrap.servers", bootstrap_servers)

    def set_group_id(self, group_id: str) -> KafkaSourceBuilder:
        """Set the consumer group. Firesteel commits offsets for it when a checkpoint completes.

        Args:
            group_id: The name of the group. ``KafkaOffsetsInitializer.committed_offsets`` starts at
                its offsets.

        >>> from firesteel.datastream.connectors.kafka import KafkaSource
        >>> builder = KafkaSource.builder().set_group_id("counter")
        """
        return self.set_property("group.id", group_id)

    def set_topics(self, *topics: str) -> KafkaSourceBuilder:
        """Set the topics. All of them must exist.

        Args:
            *topics: Names of topics.

        Raises:
            InvalidProgramError: Topics, a pattern or partitions have already been set.

        >>> from firesteel.datastream.connectors.kafka import KafkaSource
        >>> KafkaSource.builder().set_topics("clicks", "views").set_topic_pattern("click.*")
        Traceback (most recent call last):
        firesteel.errors.InvalidProgramError: KafkaSource: ... cannot be set, because topics ...
        """
        if not topics:
            raise ValueError("set_topics needs at least one topic")
        return self._subscribe(TopicList(topics))

    def set_topic_pattern(self, topic_pattern: str) -> KafkaSourceBuilder:
        """Read all topics that match a regular expression, including topics that are created later.

        Args:
            topic_pattern: The expression for the whole name.

        >>> from firesteel.datastream.connectors.kafka import KafkaSource
        >>> builder = KafkaSource.builder().set_bootstrap_servers("localhost:9092")
        >>> builder = builder.set_topic_pattern("clicks-.*")
        >>> builder.set_value_only_deserializer(SimpleStringSchema()).build()
        KafkaSource(topics like clicks-.* at localhost:9092)
        """
        return self._subscribe(TopicPattern(topic_pattern))

    def set_partitions(self, partitions: set[KafkaTopicPartition]) -> KafkaSourceBuilder:
        """Read only some partitions.

        Args:
            partitions: The partitions.

        >>> from firesteel.datastream.connectors.kafka import KafkaSource, KafkaTopicPartition
        >>> builder = KafkaSource.builder().set_bootstrap_servers("localhost:9092")
        >>> builder = builder.set_partitions({KafkaTopicPartition("clicks", 0)})
        >>> builder.set_value_only_deserializer(SimpleStringSchema()).build()
        KafkaSource(partitions clicks-0 at localhost:9092)
        """
        if not partitions:
            raise ValueError("set_partitions needs at least one partition")
        return self._subscribe(PartitionSet(list(partitions)))

    def set_starting_offsets(
        self, starting_offsets_initializer: KafkaOffsetsInitializer
    ) -> KafkaSourceBuilder:
        """Set the offsets at which a job without a checkpoint starts.

        Args:
            starting_offsets_initializer: The offsets. The default is the earliest ones.

        >>> from firesteel.datastream.connectors.kafka import KafkaOffsetsInitializer, KafkaSource
        >>> latest = KafkaOffsetsInitializer.latest()
        >>> builder = KafkaSource.builder().set_starting_offsets(latest)
        """
        self._starting = starting_offsets_initializer
        return self

    def set_unbounded(
        self, stopping_offsets_initializer: KafkaOffsetsInitializer
    ) -> KafkaSourceBuilder:
        """Stop at offsets, but remain an unbounded source for the rest of the job.

        Args:
            stopping_offsets_initializer: The offsets.

        >>> from firesteel.datastream.connectors.kafka import KafkaOffsetsInitializer, KafkaSource
        >>> latest = KafkaOffsetsInitializer.latest()
        >>> builder = KafkaSource.builder().set_topics("clicks").set_unbounded(latest)
        >>> builder = builder.set_bootstrap_servers("localhost:9092")
        >>> source = builder.set_value_only_deserializer(SimpleStringSchema()).build()
        >>> source.get_boundedness().name
        'CONTINUOUS_UNBOUNDED'
        """
        self._boundedness = Boundedness.CONTINUOUS_UNBOUNDED
        self._stopping = stopping_offsets_initializer
        return self

    def set_bounded(
        self, stopping_offsets_initializer: KafkaOffsetsInitializer
    ) -> KafkaSourceBuilder:
        """Stop at offsets, as a bounded source.

        Args:
            stopping_offsets_initializer: The offsets.

        >>> from firesteel.datastream.connectors.kafka import KafkaOffsetsInitializer, KafkaSource
        >>> latest = KafkaOffsetsInitializer.latest()
        >>> builder = KafkaSource.builder().set_topics("clicks").set_bounded(latest)
        >>> builder = builder.set_bootstrap_servers("localhost:9092")
        >>> source = builder.set_value_only_deserializer(SimpleStringSchema()).build()
        >>> source.get_boundedness().name
        'BOUNDED'
        """
        self._boundedness = Boundedness.BOUNDED
        self._stopping = stopping_offsets_initializer
        return self

    def set_value_only_deserializer(
        self, deserialization_schema: DeserializationSchema
    ) -> KafkaSourceBuilder:
        """Set the schema that converts the value of a message into a record.

        Messages without a value are skipped.

        Args:
            deserialization_schema: The schema.

        >>> from firesteel.datastream.connectors.kafka import KafkaSource
        >>> builder = KafkaSource.builder().set_topics("clicks")
        >>> builder = builder.set_bootstrap_servers("localhost:9092")
        >>> source = builder.set_value_only_deserializer(SimpleStringSchema()).build()
        >>> source.get_produced_type()
        String
        """
        if not isinstance(deserialization_schema, DeserializationSchema):
            raise TypeError(
                "set_value_only_deserializer expects a DeserializationSchema, got "
                f"{deserialization_schema!r}"
            )
        self._schema = deserialization_schema
        return self

    def set_client_id_prefix(self, prefix: str) -> KafkaSourceBuilder:
        """Set the start of the client names in the logs of the brokers.

        Args:
            prefix: The text.

        >>> from firesteel.datastream.connectors.kafka import KafkaSource
        >>> builder = KafkaSource.builder().set_client_id_prefix("counter")
        """
        return self.set_property("client.id.prefix", prefix)

    def set_property(self, key: str, value: str) -> KafkaSourceBuilder:
        """Set a property of Kafka's Java consumer, of Flink's Kafka source, or of librdkafka.

        Args:
            key: The name of the property.
            value: The value.

        >>> from firesteel.datastream.connectors.kafka import KafkaSource
        >>> builder = KafkaSource.builder().set_property("partition.discovery.interval.ms", "10000")
        """
        self._properties[key] = str(value)
        return self

    def set_properties(self, props: dict[str, str]) -> KafkaSourceBuilder:
        """Set several properties.

        Args:
            props: Names and values, as for ``set_property``.

        >>> from firesteel.datastream.connectors.kafka import KafkaSource
        >>> builder = KafkaSource.builder().set_properties({"isolation.level": "read_committed"})
        """
        for key, value in props.items():
            self.set_property(key, value)
        return self

    def build(self) -> KafkaSource:
        """Create the source.

        Raises:
            InvalidProgramError: Servers, topics or the deserializer are missing.
            ConfigurationError: A property is wrong, or the Kafka client is not installed.
        """
        subscription, schema = self._subscription, self._schema
        if "bootstrap.servers" not in self._properties:
            raise InvalidProgramError("KafkaSource: set_bootstrap_servers was not called")
        if subscription is None:
            raise InvalidProgramError(
                "KafkaSource: call one of set_topics, set_topic_pattern and set_partitions"
            )
        if schema is None:
            raise InvalidProgramError("KafkaSource: set_value_only_deserializer was not called")
        if type(schema).is_end_of_stream is not DeserializationSchema.is_end_of_stream:
            _LOG.warning(
                "%s.is_end_of_stream is not called: as in Flink, a KafkaSource stops at offsets "
                "(set_bounded), not at a record",
                type(schema).__qualname__,
            )
        self._check_group()
        source = KafkaSource(
            subscription,
            schema,
            self._complete_properties(),
            self._starting,
            self._stopping,
            self._boundedness,
        )
        require_client("KafkaSource")
        check_properties(source.client_properties)
        return source

    def _subscribe(self, subscription: Subscription) -> KafkaSourceBuilder:
        if self._subscription is not None:
            raise InvalidProgramError(
                f"KafkaSource: {subscription!r} cannot be set, because {self._subscription!r} are "
                "already set"
            )
        self._subscription = subscription
        return self

    def _check_group(self) -> None:
        if "group.id" in self._properties:
            return
        asked_for = [
            name
            for name in ("enable.auto.commit", "commit.offsets.on.checkpoint")
            if flag(self._properties, name, False)
        ]
        if asked_for:
            raise ConfigurationError(
                f"{asked_for[0]} needs a consumer group for its offsets: call set_group_id",
                key=asked_for[0],
            )
        if self._starting.needs_group or (self._stopping and self._stopping.needs_group):
            raise ConfigurationError(
                "KafkaOffsetsInitializer.committed_offsets needs a group: call set_group_id",
                key="group.id",
            )

    def _complete_properties(self) -> dict[str, str]:
        properties = dict(self._properties)
        # Records that Kafka deletes before they are read fail the job, unless the user has chosen
        # where to continue.
        reset = properties.get("auto.offset.reset", _RESETS[self._starting.reset_strategy])
        properties["auto.offset.reset"] = "error" if reset == "none" else reset
        if self._stopping is not None:
            bounded = self._boundedness is Boundedness.BOUNDED
            if bounded or "partition.discovery.interval.ms" not in properties:
                # A source that stops at offsets does not wait for new partitions.
                properties["partition.discovery.interval.ms"] = "-1"
        prefix = properties.get("group.id") or f"KafkaSource-{uuid.uuid4().hex[:8]}"
        properties.setdefault("client.id.prefix", prefix)
        return properties
