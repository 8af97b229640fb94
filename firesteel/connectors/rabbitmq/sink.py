"""RMQSink: writes to a queue of RabbitMQ."""

from __future__ import annotations

from typing import Any

from firesteel.common.serialization import SerializationSchema
from firesteel.connectors.base import Sink, SinkWriter, WriterContext
from firesteel.connectors.rabbitmq.connection_config import (
    RMQClient,
    RMQConnectionConfig,
    require_client,
)

__all__ = ["RMQSink"]


class RMQSink(Sink):
    """Writes each record to a queue of RabbitMQ, at least once.

    The sink needs the extra ``rabbitmq``: ``pip install 'firesteel[rabbitmq]'``. The server has all
    records of an epoch, or none, before the next checkpoint can be complete.

    Args:
        connection_config: The server.
        queue_name: The queue. It is created if it does not exist.
        serialization_schema: Makes messages of records.

    >>> from firesteel.datastream.connectors.rabbitmq import RMQConnectionConfig, RMQSink
    >>> config = RMQConnectionConfig.Builder().set_uri("amqp://guest:guest@localhost/").build()
    >>> sink = RMQSink(config, "totals", SimpleStringSchema())
    >>> sink
    RMQSink(totals at localhost:5672)
    >>> stream = env.from_collection(["a"], Types.STRING()).add_sink(sink)
    """

    is_sink_function = True

    def __init__(
        self,
        connection_config: RMQConnectionConfig,
        queue_name: str,
        serialization_schema: SerializationSchema,
    ) -> None:
        require_client("RMQSink")
        self._config = connection_config
        self._queue = queue_name
        self._schema = serialization_schema

    def create_writer(self, context: WriterContext, state: Any = None) -> SinkWriter:
        from firesteel.connectors.rabbitmq.writer import QueueWriter

        return QueueWriter(self._config, self._queue, self._schema)

    def __repr__(self) -> str:
        return f"RMQSink({self._queue} at {RMQClient(self._config).address})"
