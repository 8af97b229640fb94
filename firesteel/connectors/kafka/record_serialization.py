"""KafkaRecordSerializationSchema: the topic, key, value, partition and headers of a record."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

from firesteel.common.serialization import SerializationSchema
from firesteel.errors import InvalidProgramError
from firesteel.stability import public_evolving

__all__ = [
    "HeaderProvider",
    "KafkaPartitioner",
    "KafkaRecordSerializationSchema",
    "KafkaRecordSerializationSchemaBuilder",
    "KafkaTopicSelector",
]

Headers = Sequence[tuple[str, str | bytes | None]]


class KafkaTopicSelector(ABC):
    """Chooses the topic of a record.

    >>> from firesteel.datastream.connectors.kafka import KafkaTopicSelector
    >>> class ByCountry(KafkaTopicSelector):
    ...     def apply(self, data):
    ...         return f"orders-{data[0]}"
    >>> ByCountry().apply(("fr", 12))
    'orders-fr'
    """

    @abstractmethod
    def apply(self, data: Any) -> str:
        """Return the name of the topic.

        Args:
            data: The record.
        """


@public_evolving
class KafkaPartitioner(ABC):
    """Chooses the partition of a record, as Flink's class of the same name. Not in PyFlink.

    >>> from firesteel.datastream.connectors.kafka import KafkaPartitioner
    >>> class ByLength(KafkaPartitioner):
    ...     def partition(self, record, key, value, target_topic, partitions):
    ...         return partitions[len(value) % len(partitions)]
    >>> ByLength().partition("abc", None, b"abc", "words", [0, 1])
    1
    """

    @abstractmethod
    def partition(
        self,
        record: Any,
        key: bytes | None,
        value: bytes | None,
        target_topic: str,
        partitions: Sequence[int],
    ) -> int:
        """Return one of the partitions.

        Args:
            record: The record.
            key: The serialized key, or None.
            value: The serialized value.
            target_topic: The topic of the record.
            partitions: The partitions of the topic.
        """


@public_evolving
class HeaderProvider(ABC):
    """Makes the headers of a record, as Flink's class of the same name. Not in PyFlink.

    >>> from firesteel.datastream.connectors.kafka import HeaderProvider
    >>> class Origin(HeaderProvider):
    ...     def get_headers(self, input):
    ...         return [("origin", b"web")]
    >>> Origin().get_headers("a click")
    [('origin', b'web')]
    """

    @abstractmethod
    def get_headers(self, input: Any) -> Headers:
        """Return names with values, which are bytes, text or None.

        Args:
            input: The record.
        """


class KafkaRecordSerializationSchema:
    """The topic, key, value, partition and headers of each record of a KafkaSink.

    The timestamp of a record becomes the timestamp in Kafka.

    >>> from firesteel.datastream.connectors.kafka import KafkaRecordSerializationSchema
    >>> schema = (
    ...     KafkaRecordSerializationSchema.builder()
    ...     .set_topic("orders")
    ...     .set_value_serialization_schema(SimpleStringSchema())
    ...     .build()
    ... )
    >>> schema
    KafkaRecordSerializationSchema(topic orders)
    """

    def __init__(
        self,
        topic: str | Callable[[Any], str],
        value: SerializationSchema,
        key: SerializationSchema | None = None,
        partitioner: Callable[..., int] | None = None,
        headers: Callable[[Any], Headers] | None = None,
    ) -> None:
        """Create a schema from its parts. Programs use ``builder()``.

        Args:
            topic: The name of the topic, or a function that returns it for a record.
            value: Makes the value.
            key: Makes the key, or None for records without a key.
            partitioner: Returns the partition, or None for the hash of the key.
            headers: Returns the headers, or None.
        """
        self.topic = topic
        self.value = value
        self.key = key
        self.partitioner = partitioner
        self.headers = headers

    @staticmethod
    def builder() -> KafkaRecordSerializationSchemaBuilder:
        """Start building a schema."""
        return KafkaRecordSerializationSchemaBuilder()

    def __repr__(self) -> str:
        where = f"topic {self.topic}" if isinstance(self.topic, str) else "several topics"
        return f"KafkaRecordSerializationSchema({where})"


class KafkaRecordSerializationSchemaBuilder:
    """Builds a KafkaRecordSerializationSchema. A topic and a value schema are required.

    >>> from firesteel.datastream.connectors.kafka import KafkaRecordSerializationSchemaBuilder
    >>> KafkaRecordSerializationSchemaBuilder().set_topic("orders").build()
    Traceback (most recent call last):
    firesteel.errors.InvalidProgramError: KafkaRecordSerializationSchema: ...
    """

    def __init__(self) -> None:
        self._topic: str | Callable[[Any], str] | None = None
        self._key: SerializationSchema | None = None
        self._value: SerializationSchema | None = None
        self._partitioner: Callable[..., int] | None = None
        self._headers: Callable[[Any], Headers] | None = None

    def set_topic(self, topic: str) -> KafkaRecordSerializationSchemaBuilder:
        """Write all records to one topic.

        Args:
            topic: The name of the topic.
        """
        if not topic:
            raise ValueError("set_topic expects the name of a topic, got an empty text")
        return self._set_topic(topic)

    def set_topic_selector(
        self, topic_selector: Callable[[Any], str] | KafkaTopicSelector
    ) -> KafkaRecordSerializationSchemaBuilder:
        """Choose the topic of each record.

        Args:
            topic_selector: A KafkaTopicSelector, or a function from a record to a topic.

        >>> from firesteel.datastream.connectors.kafka import KafkaRecordSerializationSchema
        >>> builder = KafkaRecordSerializationSchema.builder()
        >>> builder = builder.set_topic_selector(lambda order: f"orders-{order[0]}")
        >>> builder.set_value_serialization_schema(SimpleStringSchema()).build()
        KafkaRecordSerializationSchema(several topics)
        """
        return self._set_topic(
            _function("set_topic_selector", topic_selector, KafkaTopicSelector, "apply")
        )

    def set_key_serialization_schema(
        self, key_serialization_schema: SerializationSchema
    ) -> KafkaRecordSerializationSchemaBuilder:
        """Set the schema of keys. Records with equal keys go to the same partition.

        Args:
            key_serialization_schema: Makes the key from the whole record.

        >>> from firesteel.common.serialization import SerializationSchema
        >>> from firesteel.datastream.connectors.kafka import KafkaRecordSerializationSchema
        >>> class Country(SerializationSchema):
        ...     def serialize(self, element):
        ...         return element[0].encode()
        >>> builder = KafkaRecordSerializationSchema.builder()
        >>> builder = builder.set_key_serialization_schema(Country())
        """
        self._key = _schema("set_key_serialization_schema", key_serialization_schema)
        return self

    def set_value_serialization_schema(
        self, value_serialization_schema: SerializationSchema
    ) -> KafkaRecordSerializationSchemaBuilder:
        """Set the schema of values. A value of None deletes a key of a compacted topic.

        Args:
            value_serialization_schema: Makes the value from the record.

        >>> from firesteel.datastream.connectors.kafka import KafkaRecordSerializationSchema
        >>> builder = KafkaRecordSerializationSchema.builder().set_topic("orders")
        >>> builder.set_value_serialization_schema(SimpleStringSchema()).build()
        KafkaRecordSerializationSchema(topic orders)
        """
        self._value = _schema("set_value_serialization_schema", value_serialization_schema)
        return self

    @public_evolving
    def set_partitioner(
        self, partitioner: KafkaPartitioner | Callable[..., int]
    ) -> KafkaRecordSerializationSchemaBuilder:
        """Choose the partition of each record. Not in PyFlink.

        The default is that of Kafka's Java client: the hash of the key, or any partition.

        Args:
            partitioner: A KafkaPartitioner, or a function with the arguments of its method.

        >>> from firesteel.datastream.connectors.kafka import KafkaRecordSerializationSchema
        >>> builder = KafkaRecordSerializationSchema.builder()
        >>> builder = builder.set_partitioner(lambda record, key, value, topic, partitions: 0)
        """
        self._partitioner = _function("set_partitioner", partitioner, KafkaPartitioner, "partition")
        return self

    @public_evolving
    def set_header_provider(
        self, header_provider: HeaderProvider | Callable[[Any], Headers]
    ) -> KafkaRecordSerializationSchemaBuilder:
        """Add headers to each record. Not in PyFlink.

        Args:
            header_provider: A HeaderProvider, or a function from a record to its headers.

        >>> from firesteel.datastream.connectors.kafka import KafkaRecordSerializationSchema
        >>> builder = KafkaRecordSerializationSchema.builder()
        >>> builder = builder.set_header_provider(lambda order: [("version", b"2")])
        """
        self._headers = _function(
            "set_header_provider", header_provider, HeaderProvider, "get_headers"
        )
        return self

    def build(self) -> KafkaRecordSerializationSchema:
        """Create the schema.

        Raises:
            InvalidProgramError: The topic or the value schema is missing.
        """
        if self._topic is None:
            raise InvalidProgramError(
                "KafkaRecordSerializationSchema: call set_topic or set_topic_selector"
            )
        if self._value is None:
            raise InvalidProgramError(
                "KafkaRecordSerializationSchema: set_value_serialization_schema was not called"
            )
        return KafkaRecordSerializationSchema(
            self._topic, self._value, self._key, self._partitioner, self._headers
        )

    def _set_topic(
        self, topic: str | Callable[[Any], str]
    ) -> KafkaRecordSerializationSchemaBuilder:
        if self._topic is not None:
            raise InvalidProgramError(
                "KafkaRecordSerializationSchema: the topic is already set; call set_topic or "
                "set_topic_selector once"
            )
        self._topic = topic
        return self


def _schema(method: str, schema: object) -> SerializationSchema:
    if not isinstance(schema, SerializationSchema):
        raise TypeError(f"{method} expects a SerializationSchema, got {schema!r}")
    return schema


def _function(method: str, given: Any, kind: type, name: str) -> Callable[..., Any]:
    """Return the method of an object of a class, or the given function."""
    if isinstance(given, kind):
        function: Callable[..., Any] = getattr(given, name)
        return function
    if not callable(given):
        raise TypeError(f"{method} expects a {kind.__name__} or a function, got {given!r}")
    return given  # type: ignore[no-any-return]  # checked
