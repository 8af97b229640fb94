"""RMQSource: reads a queue of RabbitMQ."""

from __future__ import annotations

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
from firesteel.connectors.rabbitmq.connection_config import (
    RMQClient,
    RMQConnectionConfig,
    require_client,
)
from firesteel.connectors.rabbitmq.enumerator import QueueEnumerator

__all__ = ["RMQSource"]

_CHECKPOINTING_INTERVAL = "execution.checkpointing.interval"


class RMQSource(Source):
    """Reads a queue of RabbitMQ.

    The source needs the extra ``rabbitmq``: ``pip install 'firesteel[rabbitmq]'``.

    With checkpoints, messages are acknowledged when a checkpoint is complete. After a failure
    RabbitMQ delivers the others again, and each record is processed at least once. With correlation
    ids it is processed exactly once. Without checkpoints, messages are acknowledged when they are
    read, and a failure loses some.

    Args:
        connection_config: The server.
        queue_name: The queue. It is created if it does not exist, so that it survives a restart of
            the server.
        use_correlation_id: True if each message has a correlation id of its own. The source then
            runs with one reader, and drops messages that are delivered again.
        deserialization_schema: Makes records of messages.

    >>> from firesteel.datastream.connectors.rabbitmq import RMQConnectionConfig, RMQSource
    >>> config = RMQConnectionConfig.Builder().set_uri("amqp://guest:guest@localhost/").build()
    >>> source = RMQSource(config, "orders", True, SimpleStringSchema())
    >>> source
    RMQSource(orders at localhost:5672)
    >>> stream = env.add_source(source)
    """

    replayable = False
    side_by_side = True
    is_source_function = True

    def __init__(
        self,
        connection_config: RMQConnectionConfig,
        queue_name: str,
        use_correlation_id: bool,
        deserialization_schema: DeserializationSchema,
    ) -> None:
        require_client("RMQSource")
        self._config = connection_config
        self._queue = queue_name
        self._use_correlation_id = use_correlation_id
        self._schema = deserialization_schema
        self._acknowledges_at_once = False

    def with_configuration(self, configuration: Configuration) -> Source:
        source = RMQSource(self._config, self._queue, self._use_correlation_id, self._schema)
        source._acknowledges_at_once = not configuration.contains_key(_CHECKPOINTING_INTERVAL)
        return source

    def get_boundedness(self) -> Boundedness:
        return Boundedness.CONTINUOUS_UNBOUNDED

    def create_enumerator(self, parallelism: int, state: Any = None) -> SplitEnumerator:
        readers = 1 if self._use_correlation_id else parallelism
        return QueueEnumerator(self._queue, readers, state or 0)

    def create_reader(self, context: ReaderContext) -> SourceReader:
        from firesteel.connectors.rabbitmq.reader import QueueReader

        return QueueReader(
            self._config,
            self._queue,
            self._schema,
            uses_ids=self._use_correlation_id,
            acknowledges_at_once=self._acknowledges_at_once,
        )

    def get_produced_type(self) -> Any:
        return self._schema.get_produced_type()

    def __repr__(self) -> str:
        return f"RMQSource({self._queue} at {RMQClient(self._config).address})"
