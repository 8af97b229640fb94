"""KafkaSource and its builder."""

from __future__ import annotations

import importlib.util
import logging
import uuid
from collections.abc import Mapping
from typing import Any

from firesteel.common.serialization import DeserializationSchema
from firesteel.connectors.base import (
    Boundedness,
    ReaderContext,
    Source,
    SourceReader,
    SplitEnumerator,
)
from firesteel.connectors.kafka.offsets import KafkaOffsetResetStrategy, KafkaOffsetsInitializer
from firesteel.connectors.kafka.properties import admin_properties, check_properties, translate
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

# What librdkafka calls the Java client's reset strategies.
_RESETS = {
    KafkaOffsetResetStrategy.EARLIEST: "earliest",
    KafkaOffsetResetStrategy.LATEST: "latest",
    KafkaOffsetResetStrategy.NONE: "error",
}


class KafkaSource(Source):
    """Reads topics of Kafka: for ever, or up to given offsets.

    Each partition is a split, and the offset of its next record is the position that checkpoints
    keep. Needs the extra ``kafka``: ``pip install 'firesteel[kafka]'``.

    >>> from firesteel.common.serialization import SimpleStringSchema
    >>> KafkaSource.builder().set_bootstrap_servers("localhost:9092").set_topics(
    ...     "clicks"
    ... ).set_value_only_deserializer(SimpleStringSchema()).build()
    KafkaSource(topics clicks at localhost:9092)
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
        """``properties`` are complete, in the spelling of Kafka's Java client and of Flink."""
        self._subscription = subscription
        self._schema = schema
        self._starting = starting
        self._stopping = stopping
        self._boundedness = boundedness
        self._servers = properties["bootstrap.servers"]
        self._group = properties.get("group.id", "")
        self._client_id_prefix = properties["client.id.prefix"]
        self._timeout = _millis(properties, "default.api.timeout.ms", _TIMEOUT_MILLIS) / 1000
        interval = _millis(properties, "partition.discovery.interval.ms", _DISCOVERY_MILLIS)
        self._discovery_interval = interval / 1000 if interval > 0 else None
        self._commits = _flag(properties, "commit.offsets.on.checkpoint", bool(self._group))
        self._client_properties = translate(properties)

    @staticmethod
    def builder() -> KafkaSourceBuilder:
        return KafkaSourceBuilder()

    def get_boundedness(self) -> Boundedness:
        return self._boundedness

    def create_enumerator(self, parallelism: int, state: Any = None) -> SplitEnumerator:
        _require_client()
        from firesteel.connectors.kafka.cluster import KafkaCluster
        from firesteel.connectors.kafka.enumerator import KafkaPartitionEnumerator

        cluster = KafkaCluster(
            admin_properties(self._client_properties)
            | {"client.id": f"{self._client_id_prefix}-enumerator"},
            group=self._group,
            read_committed=self._client_properties["isolation.level"] == "read_committed",
            timeout=self._timeout,
        )
        return KafkaPartitionEnumerator(
            cluster,
            self._subscription,
            starting=self._starting,
            stopping=self._stopping,
            discovery_interval=self._discovery_interval,
            commits=self._commits,
            state=state,
        )

    def create_reader(self, context: ReaderContext) -> SourceReader:
        _require_client()
        from firesteel.connectors.kafka.reader import KafkaPartitionReader

        properties = {
            # librdkafka insists on a group, even if nothing is committed.
            "group.id": self._client_id_prefix,
            **self._client_properties,
            "client.id": f"{self._client_id_prefix}-{context.subtask_index}",
            "enable.partition.eof": "true",
        }
        return KafkaPartitionReader(properties, self._schema, timeout=self._timeout)

    def get_produced_type(self) -> Any:
        return self._schema.get_produced_type()

    def __repr__(self) -> str:
        return f"KafkaSource({self._subscription!r} at {self._servers})"


class KafkaSourceBuilder:
    """Servers, topics and a schema are needed; everything else has a default."""

    def __init__(self) -> None:
        self._subscription: Subscription | None = None
        self._schema: DeserializationSchema | None = None
        self._starting = KafkaOffsetsInitializer.earliest()
        self._stopping: KafkaOffsetsInitializer | None = None
        self._boundedness = Boundedness.CONTINUOUS_UNBOUNDED
        self._properties: dict[str, str] = {}

    def set_bootstrap_servers(self, bootstrap_servers: str) -> KafkaSourceBuilder:
        """Some of the brokers, as ``host:port,host:port``."""
        return self.set_property("bootstrap.servers", bootstrap_servers)

    def set_group_id(self, group_id: str) -> KafkaSourceBuilder:
        """The group for which offsets are committed, and whose offsets one can start from."""
        return self.set_property("group.id", group_id)

    def set_topics(self, *topics: str) -> KafkaSourceBuilder:
        """These topics; all of them must exist."""
        if not topics:
            raise ValueError("set_topics needs at least one topic")
        return self._subscribe(TopicList(topics))

    def set_topic_pattern(self, topic_pattern: str) -> KafkaSourceBuilder:
        """All topics whose whole name matches this regular expression, also those that come later."""
        return self._subscribe(TopicPattern(topic_pattern))

    def set_partitions(self, partitions: set[KafkaTopicPartition]) -> KafkaSourceBuilder:
        """These partitions and no others."""
        if not partitions:
            raise ValueError("set_partitions needs at least one partition")
        return self._subscribe(PartitionSet(list(partitions)))

    def set_starting_offsets(
        self, starting_offsets_initializer: KafkaOffsetsInitializer
    ) -> KafkaSourceBuilder:
        """Where a job starts that has no checkpoint to start from. The default is the earliest."""
        self._starting = starting_offsets_initializer
        return self

    def set_unbounded(
        self, stopping_offsets_initializer: KafkaOffsetsInitializer
    ) -> KafkaSourceBuilder:
        """Stop at these offsets, but count as an unbounded source."""
        self._boundedness = Boundedness.CONTINUOUS_UNBOUNDED
        self._stopping = stopping_offsets_initializer
        return self

    def set_bounded(
        self, stopping_offsets_initializer: KafkaOffsetsInitializer
    ) -> KafkaSourceBuilder:
        """Stop at these offsets, as a bounded source."""
        self._boundedness = Boundedness.BOUNDED
        self._stopping = stopping_offsets_initializer
        return self

    def set_value_only_deserializer(
        self, deserialization_schema: DeserializationSchema
    ) -> KafkaSourceBuilder:
        """What makes a record of a message's value. Messages without a value are left out."""
        if not isinstance(deserialization_schema, DeserializationSchema):
            raise TypeError(f"Not a DeserializationSchema: {deserialization_schema!r}")
        self._schema = deserialization_schema
        return self

    def set_client_id_prefix(self, prefix: str) -> KafkaSourceBuilder:
        """What the names of this source's clients begin with, in the brokers' logs."""
        return self.set_property("client.id.prefix", prefix)

    def set_property(self, key: str, value: str) -> KafkaSourceBuilder:
        """A property of Kafka's Java consumer, of Flink's Kafka source, or of librdkafka."""
        self._properties[key] = str(value)
        return self

    def set_properties(self, props: dict[str, str]) -> KafkaSourceBuilder:
        for key, value in props.items():
            self.set_property(key, value)
        return self

    def build(self) -> KafkaSource:
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
                "%s.is_end_of_stream is not asked: as in Flink, a KafkaSource stops at offsets "
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
        _require_client()
        check_properties(source._client_properties)
        return source

    def _subscribe(self, subscription: Subscription) -> KafkaSourceBuilder:
        if self._subscription is not None:
            raise InvalidProgramError(
                f"KafkaSource: {subscription!r} cannot be set, because {self._subscription!r} are "
                "set already"
            )
        self._subscription = subscription
        return self

    def _check_group(self) -> None:
        if "group.id" in self._properties:
            return
        asked_for = [
            name
            for name in ("enable.auto.commit", "commit.offsets.on.checkpoint")
            if _flag(self._properties, name, False)
        ]
        if asked_for:
            raise ConfigurationError(
                f"{asked_for[0]} needs a group to commit offsets for: call set_group_id",
                key=asked_for[0],
            )
        if self._starting.needs_group or (self._stopping and self._stopping.needs_group):
            raise ConfigurationError(
                "KafkaOffsetsInitializer.committed_offsets needs a group: call set_group_id",
                key="group.id",
            )

    def _complete_properties(self) -> dict[str, str]:
        properties = dict(self._properties)
        reset = _RESETS[self._starting.reset_strategy]
        if properties.get("auto.offset.reset", reset) not in (reset, "none"):
            _LOG.warning("auto.offset.reset is %s, as the starting offsets say", reset)
        properties["auto.offset.reset"] = reset
        if self._stopping is not None:
            bounded = self._boundedness is Boundedness.BOUNDED
            if bounded or "partition.discovery.interval.ms" not in properties:
                # Who stops at offsets does not wait for partitions to come.
                properties["partition.discovery.interval.ms"] = "-1"
        prefix = properties.get("group.id") or f"KafkaSource-{uuid.uuid4().hex[:8]}"
        properties.setdefault("client.id.prefix", prefix)
        return properties


def _require_client() -> None:
    if importlib.util.find_spec("confluent_kafka") is None:
        raise ConfigurationError(
            "KafkaSource needs the Python package confluent-kafka, which is not installed. Install "
            "it, on every machine that runs tasks, with: pip install 'firesteel[kafka]'"
        )


def _millis(properties: Mapping[str, str], name: str, default: int) -> int:
    text = properties.get(name)
    try:
        return default if text is None else int(text)
    except ValueError:
        raise ConfigurationError(
            f"The Kafka property {name} is a number of milliseconds, got {text!r}", key=name
        ) from None


def _flag(properties: Mapping[str, str], name: str, default: bool) -> bool:
    text = properties.get(name)
    if text is None:
        return default
    if text.lower() not in ("true", "false"):
        raise ConfigurationError(
            f"The Kafka property {name} is true or false, got {text!r}", key=name
        )
    return text.lower() == "true"
