"""KafkaSink and its builder."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from firesteel.connectors.base import (
    Committer,
    DeliveryGuarantee,
    Sink,
    SinkWriter,
    WriterContext,
)
from firesteel.connectors.kafka.properties import (
    PRODUCER_DEFAULTS,
    check_properties,
    flag,
    idempotence,
    number,
    require_client,
    translate,
)
from firesteel.connectors.kafka.record_serialization import KafkaRecordSerializationSchema
from firesteel.errors import ConfigurationError, InvalidProgramError

if TYPE_CHECKING:
    from firesteel.connectors.kafka.committer import KafkaCommitter

__all__ = ["KafkaSink", "KafkaSinkBuilder"]

_TIMEOUT_MILLIS = 60_000
# Brokers refuse longer ones, unless their transaction.max.timeout.ms says otherwise.
_TRANSACTION_MILLIS = 900_000
_LONGEST_ID = 64_000


class KafkaSink(Sink):
    """Writes records to topics of Kafka.

    The sink needs the extra ``kafka``: ``pip install 'firesteel[kafka]'``.

    >>> from firesteel.datastream.connectors.base import DeliveryGuarantee
    >>> from firesteel.datastream.connectors.kafka import KafkaRecordSerializationSchema, KafkaSink
    >>> sink = (
    ...     KafkaSink.builder()
    ...     .set_bootstrap_servers("localhost:9092")
    ...     .set_record_serializer(
    ...         KafkaRecordSerializationSchema.builder()
    ...         .set_topic("totals")
    ...         .set_value_serialization_schema(SimpleStringSchema())
    ...         .build()
    ...     )
    ...     .set_delivery_guarantee(DeliveryGuarantee.EXACTLY_ONCE)
    ...     .set_transactional_id_prefix("totals-of-shop")
    ...     .build()
    ... )
    >>> sink
    KafkaSink(topic totals at localhost:9092, EXACTLY_ONCE)
    >>> _ = env.from_collection(["a"], Types.STRING()).sink_to(sink)
    """

    def __init__(
        self,
        schema: KafkaRecordSerializationSchema,
        guarantee: DeliveryGuarantee,
        prefix: str | None,
        properties: Mapping[str, str],
    ) -> None:
        """Create a sink from complete properties. Programs use ``KafkaSink.builder()``.

        Args:
            schema: Makes records of Kafka.
            guarantee: The delivery guarantee.
            prefix: The prefix of transactional ids, for EXACTLY_ONCE.
            properties: All properties, with the names of Kafka's Java client.
        """
        self._schema = schema
        self._guarantee = guarantee
        self._prefix = prefix or ""
        self._servers = properties["bootstrap.servers"]
        self._client_id_prefix = properties.get("client.id.prefix", "KafkaSink")
        wait = number(properties, "default.api.timeout.ms", _TIMEOUT_MILLIS)
        self._timeout = number(properties, "max.block.ms", wait) / 1000
        self._ignores_lost = flag(properties, "ignore.failures.after.transaction.timeout", False)
        defaults = {**PRODUCER_DEFAULTS, **idempotence(properties)}
        if self._is_transactional:
            defaults["transaction.timeout.ms"] = str(_TRANSACTION_MILLIS)
        self.client_properties = translate(properties, defaults)

    @staticmethod
    def builder() -> KafkaSinkBuilder:
        """Start building a sink."""
        return KafkaSinkBuilder()

    @property
    def _is_transactional(self) -> bool:
        return self._guarantee is DeliveryGuarantee.EXACTLY_ONCE

    def create_writer(self, context: WriterContext, state: Any = None) -> SinkWriter:
        require_client("KafkaSink")
        from firesteel.connectors.kafka.writer import KafkaWriter, TransactionalKafkaWriter

        properties = {
            **self.client_properties,
            "client.id": f"{self._client_id_prefix}-{context.subtask_index}",
        }
        if not self._is_transactional:
            flushes = self._guarantee is DeliveryGuarantee.AT_LEAST_ONCE
            return KafkaWriter(properties, self._schema, timeout=self._timeout, flushes=flushes)
        return TransactionalKafkaWriter(
            properties,
            self._schema,
            timeout=self._timeout,
            prefix=self._prefix,
            context=context,
            state=state,
        )

    def create_committer(self) -> Committer | None:
        return self._committer() if self._is_transactional else None

    def recover(self, committables: Sequence[Any]) -> None:
        self.recover_in_term(committables, lambda: None)

    def recover_in_term(self, committables: Sequence[Any], check: Callable[[], None]) -> None:
        # Commits the transactions of the restored checkpoint, and aborts all others of the sink.
        if not self._is_transactional:
            return
        committer = self._committer()
        try:
            seconds = int(self.client_properties["transaction.timeout.ms"]) / 1000
            ignored_after = seconds if self._ignores_lost else None
            committer.recover(committables, self._prefix, ignored_after, check)
        finally:
            committer.close()

    def _committer(self) -> KafkaCommitter:
        require_client("KafkaSink")
        from firesteel.connectors.kafka.committer import KafkaCommitter
        from firesteel.connectors.kafka.transactions import KafkaTransactions

        return KafkaCommitter(KafkaTransactions(self.client_properties, self._timeout))

    def __repr__(self) -> str:
        topic = self._schema.topic
        where = f"topic {topic}" if isinstance(topic, str) else "several topics"
        return f"KafkaSink({where} at {self._servers}, {self._guarantee.name})"


class KafkaSinkBuilder:
    """Builds a KafkaSink. Servers and a record serializer are required.

    >>> from firesteel.datastream.connectors.base import DeliveryGuarantee
    >>> from firesteel.datastream.connectors.kafka import KafkaRecordSerializationSchema
    >>> from firesteel.datastream.connectors.kafka import KafkaSinkBuilder
    >>> schema = KafkaRecordSerializationSchema.builder().set_topic("totals")
    >>> schema = schema.set_value_serialization_schema(SimpleStringSchema()).build()
    >>> builder = KafkaSinkBuilder().set_bootstrap_servers("localhost:9092")
    >>> builder = builder.set_record_serializer(schema)
    >>> builder = builder.set_delivery_guarantee(DeliveryGuarantee.EXACTLY_ONCE)
    >>> builder.set_transactional_id_prefix("totals-of-shop").build()
    KafkaSink(topic totals at localhost:9092, EXACTLY_ONCE)
    >>> KafkaSinkBuilder().build()
    Traceback (most recent call last):
    firesteel.errors.InvalidProgramError: KafkaSink: set_bootstrap_servers was not called
    """

    def __init__(self) -> None:
        self._schema: KafkaRecordSerializationSchema | None = None
        self._guarantee = DeliveryGuarantee.NONE
        self._prefix: str | None = None
        self._properties: dict[str, str] = {}

    def set_bootstrap_servers(self, bootstrap_servers: str) -> KafkaSinkBuilder:
        """Set the brokers to connect to first.

        Args:
            bootstrap_servers: One or more brokers, as ``host:port,host:port``.
        """
        return self.set_property("bootstrap.servers", bootstrap_servers)

    def set_record_serializer(
        self, record_serializer: KafkaRecordSerializationSchema
    ) -> KafkaSinkBuilder:
        """Set the topic, the keys and the values of records.

        Args:
            record_serializer: The schema.
        """
        if not isinstance(record_serializer, KafkaRecordSerializationSchema):
            raise TypeError(
                "set_record_serializer expects a KafkaRecordSerializationSchema, got "
                f"{record_serializer!r}"
            )
        self._schema = record_serializer
        return self

    def set_delivery_guarantee(self, delivery_guarantee: DeliveryGuarantee) -> KafkaSinkBuilder:
        """Set the delivery guarantee.

        Args:
            delivery_guarantee: NONE, the default, may lose and repeat records after a failure.
                AT_LEAST_ONCE may repeat them. EXACTLY_ONCE writes in transactions, which become
                visible to ``read_committed`` readers when a checkpoint is complete.
        """
        if not isinstance(delivery_guarantee, DeliveryGuarantee):
            raise TypeError(
                f"set_delivery_guarantee expects a DeliveryGuarantee, got {delivery_guarantee!r}"
            )
        self._guarantee = delivery_guarantee
        return self

    def set_transactional_id_prefix(self, transactional_id_prefix: str) -> KafkaSinkBuilder:
        """Set the prefix of transactional ids, which EXACTLY_ONCE needs.

        Args:
            transactional_id_prefix: A text that no other sink of the cluster uses. Keep it when you
                restore the job.
        """
        if not transactional_id_prefix or len(transactional_id_prefix.encode()) > _LONGEST_ID:
            raise ValueError(
                "A transactional id prefix must have 1 to 64000 bytes, got "
                f"{len(transactional_id_prefix.encode())}"
            )
        self._prefix = transactional_id_prefix
        return self

    def set_property(self, key: str, value: str) -> KafkaSinkBuilder:
        """Set a property of Kafka's Java producer, or of librdkafka.

        Args:
            key: The name of the property.
            value: The value.

        >>> from firesteel.datastream.connectors.kafka import KafkaSink
        >>> builder = KafkaSink.builder().set_property("compression.type", "lz4")
        """
        self._properties[key] = str(value)
        return self

    def build(self) -> KafkaSink:
        """Create the sink.

        Raises:
            InvalidProgramError: Servers, the record serializer or the transactional id prefix are
                missing.
            ConfigurationError: A property is wrong, or the Kafka client is not installed.
        """
        if "bootstrap.servers" not in self._properties:
            raise InvalidProgramError("KafkaSink: set_bootstrap_servers was not called")
        if self._schema is None:
            raise InvalidProgramError("KafkaSink: set_record_serializer was not called")
        if self._guarantee is DeliveryGuarantee.EXACTLY_ONCE:
            if self._prefix is None:
                raise InvalidProgramError(
                    "KafkaSink: EXACTLY_ONCE needs set_transactional_id_prefix"
                )
            if self._properties.get("enable.idempotence", "true").lower() != "true":
                raise ConfigurationError(
                    "EXACTLY_ONCE needs enable.idempotence: remove the property or set it to true",
                    key="enable.idempotence",
                )
        sink = KafkaSink(self._schema, self._guarantee, self._prefix, self._properties)
        require_client("KafkaSink")
        check = sink.client_properties
        if self._guarantee is DeliveryGuarantee.EXACTLY_ONCE:
            check = {**check, "transactional.id": "check"}
        check_properties(check, writes=True)
        return sink
