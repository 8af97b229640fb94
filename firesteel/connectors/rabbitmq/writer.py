"""Writer of a queue: a transaction per epoch."""

from __future__ import annotations

from typing import Any

from pika import BasicProperties, exceptions

from firesteel.common.serialization import SerializationSchema
from firesteel.connectors.base import SinkWriter, WriteContext
from firesteel.connectors.rabbitmq.connection_config import (
    RMQClient,
    RMQConnectionConfig,
    RMQConnectionError,
    declared_channel,
)
from firesteel.usercode.failures import explaining

__all__ = ["QueueWriter"]

_PERSISTENT = 2


class QueueWriter(SinkWriter):
    """Publishes records in a transaction, which ``flush`` commits."""

    def __init__(
        self, config: RMQConnectionConfig, queue: str, schema: SerializationSchema
    ) -> None:
        """Create a writer. It connects at the first record.

        Args:
            config: The server.
            queue: The name of the queue.
            schema: Makes messages of records.
        """
        self._client = RMQClient(config)
        self._queue = queue
        self._serialize = schema.serialize
        self._properties = BasicProperties(delivery_mode=_PERSISTENT)
        self._connection: Any = None
        self._channel: Any = None
        self._has_records = False

    def write(self, value: Any, context: WriteContext) -> None:
        self.write_batch([value], None, context)

    def write_batch(
        self, values: list[Any], timestamps: list[int] | None, context: WriteContext
    ) -> None:
        iterator = iter(values)
        with explaining([self._serialize], values, iterator):
            messages = [self._serialize(value) for value in iterator]
        try:
            if self._connection is None:
                self._connection = self._client.connect()
                self._channel = declared_channel(
                    self._connection,
                    self._queue,
                    self._client.address,
                    lambda channel: channel.tx_select(),
                )
            for message in messages:
                self._channel.basic_publish("", self._queue, message, self._properties)
        except exceptions.AMQPError as error:
            raise self._explained(error) from error
        self._has_records = True

    def flush(self, end_of_input: bool) -> None:
        if self._connection is None:
            return
        try:
            if self._has_records:
                self._channel.tx_commit()
                self._has_records = False
            else:
                # Answers heartbeats of the server.
                self._connection.process_data_events(0)
        except exceptions.AMQPError as error:
            raise self._explained(error) from error

    def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            try:
                connection.close()
            except exceptions.AMQPError:
                # The server rolls back the open transaction in any case.
                return

    def _explained(self, error: exceptions.AMQPError) -> RMQConnectionError:
        reason = str(error) or repr(error)
        return RMQConnectionError(
            self._client.address, f"the connection was lost ({reason})", "the server's log"
        )
