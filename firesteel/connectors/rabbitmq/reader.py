"""Reader of a queue: acknowledges messages when the checkpoint that contains them is complete."""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pika import exceptions

from firesteel.common.serialization import DeserializationSchema
from firesteel.connectors.base import SourceReader, SourceSplit
from firesteel.connectors.rabbitmq.connection_config import (
    RMQClient,
    RMQConnectionConfig,
    RMQConnectionError,
    declared_channel,
)
from firesteel.errors import FiresteelError, shorten

__all__ = ["MissingCorrelationIdError", "QueueReader"]

_log = logging.getLogger("firesteel")

_LOST = (exceptions.AMQPError, RMQConnectionError, OSError)
# The messages that wait here before the reader leaves the rest to the network.
_MOST_WAITING = 10_000
# RabbitMQ writes acknowledgments to its disk a little later.
_MEMORY_SECONDS = 2.0


class MissingCorrelationIdError(FiresteelError, ValueError):
    """A message has no correlation id, but the source relies on it."""

    def __init__(self, queue: str, body: bytes) -> None:
        super().__init__(
            f"The message {shorten(body)} of the queue {queue!r} has no correlation id. Let the "
            "publisher set one for each message, or create the RMQSource with "
            "use_correlation_id=False, which processes messages at least once."
        )
        self.queue = queue


@dataclass(frozen=True, slots=True)
class _Message:
    tag: int
    id: str | None
    was_delivered: bool
    body: bytes


class QueueReader(SourceReader):
    """Reads messages of one consumer.

    The position of a split has the correlation ids of the messages that ``read`` has returned and
    that are not acknowledged. RabbitMQ delivers these messages again to a restored reader, which
    drops them.
    """

    def __init__(
        self,
        config: RMQConnectionConfig,
        queue: str,
        schema: DeserializationSchema,
        *,
        uses_ids: bool,
        acknowledges_at_once: bool,
    ) -> None:
        """Create a reader. It connects when it gets a split.

        Args:
            config: The server.
            queue: The name of the queue.
            schema: Makes records of messages.
            uses_ids: Drop messages that are delivered again, by their correlation ids.
            acknowledges_at_once: Acknowledge messages when they are read.
        """
        self._client = RMQClient(config)
        self._queue = queue
        self._deserialize = schema.deserialize
        self._uses_ids = uses_ids
        self._acknowledges_at_once = acknowledges_at_once
        self._splits: list[SourceSplit] = []
        self._connection: Any = None
        self._channel: Any = None
        self._connect_at = 0.0
        self._waiting: deque[_Message] = deque()
        # The messages that were returned, with their tags in the present channel, in order.
        self._returned: list[tuple[int, str | None]] = []
        self._checkpoints: dict[int, int] = {}
        # The ids of messages that were returned. Those of a lost channel or reader come again.
        self._ids: set[str] = set()
        # Acknowledged ids with the time from which they can be forgotten.
        self._acknowledged: deque[tuple[float, set[str]]] = deque()
        self._ids_of_lost_channels: set[str] = set()

    def add_splits(self, splits: Sequence[SourceSplit]) -> None:
        self._splits += splits
        for split in splits:
            self._ids_of_lost_channels.update(split.position or ())

    def read(self, limit: int) -> list[Any]:
        if not self._splits:
            return []
        try:
            self._receive()
        except _LOST as error:
            self._lose_connection(error)
            return []
        records: list[Any] = []
        while self._waiting and len(records) < limit:
            message = self._waiting.popleft()
            is_new = not self._uses_ids or self._is_new(message)
            self._returned.append((message.tag, message.id))
            record = self._deserialize(message.body) if is_new else None
            if record is not None:
                records.append(record)
        if self._acknowledges_at_once:
            self._acknowledge(len(self._returned))
        return records

    def snapshot_splits(self) -> list[SourceSplit]:
        if not self._splits:
            return []
        first, *others = self._splits
        self._forget_old_ids()
        ids = sorted(self._ids | self._ids_of_lost_channels)
        return [first.at(ids or None), *(split.at(None) for split in others)]

    def begin_checkpoint(self, checkpoint_id: int) -> None:
        self._checkpoints[checkpoint_id] = len(self._returned)

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        count = self._checkpoints.get(checkpoint_id)
        self._checkpoints = {
            later: number for later, number in self._checkpoints.items() if later > checkpoint_id
        }
        if count:
            self._acknowledge(count)

    def close(self) -> None:
        connection, self._connection, self._channel = self._connection, None, None
        if connection is not None:
            try:
                connection.close()
            except _LOST:
                # The server notices the end of the connection, too.
                return

    def _is_new(self, message: _Message) -> bool:
        if message.id is None:
            raise MissingCorrelationIdError(self._queue, message.body)
        is_known = message.id in self._ids or message.id in self._ids_of_lost_channels
        if not is_known and not message.was_delivered:
            # Messages that come again are at the head of the queue. The others were acknowledged.
            self._ids_of_lost_channels.clear()
        self._ids_of_lost_channels.discard(message.id)
        self._ids.add(message.id)
        return not is_known

    def _forget_old_ids(self) -> None:
        """Forget acknowledged messages that a server which is killed does not deliver again."""
        while self._acknowledged and self._acknowledged[0][0] <= time.monotonic():
            self._ids -= self._acknowledged.popleft()[1]

    # Messages

    def _receive(self) -> None:
        if self._connection is None:
            if time.monotonic() < self._connect_at:
                return
            self._connect()
        if len(self._waiting) < _MOST_WAITING:
            self._connection.process_data_events(0)

    def _connect(self) -> None:
        self._connection = self._client.connect()
        self._channel = declared_channel(
            self._connection, self._queue, self._client.address, self._consume
        )

    def _consume(self, channel: Any) -> None:
        if self._client.prefetch_count:
            channel.basic_qos(prefetch_count=self._client.prefetch_count)
        channel.tx_select()
        # With ids, no other consumer may hold messages that come again later. RabbitMQ refuses this
        # one until it has noticed the end of a lost reader.
        channel.basic_consume(self._queue, self._take, exclusive=self._uses_ids)

    def _take(self, channel: Any, method: Any, properties: Any, body: bytes) -> None:
        self._waiting.append(
            _Message(method.delivery_tag, properties.correlation_id, method.redelivered, body)
        )

    def _lose_connection(self, error: BaseException) -> None:
        pause = self._client.recovery_seconds
        if pause is None:
            raise error
        _log.warning("The queue %s at %s: %s", self._queue, self._client.address, error)
        self.close()
        self._connect_at = time.monotonic() + pause
        # The server delivers everything again that it has no acknowledgment for.
        self._waiting.clear()
        self._returned.clear()
        self._checkpoints.clear()
        self._ids_of_lost_channels |= self._ids
        self._ids.clear()
        self._acknowledged.clear()

    def _acknowledge(self, count: int) -> None:
        """Acknowledge the first messages in a transaction, so that none of them comes again."""
        done = self._returned[:count]
        if not done or self._channel is None:
            return
        try:
            self._channel.basic_ack(done[-1][0], multiple=True)
            self._channel.tx_commit()
        except _LOST as error:
            self._lose_connection(error)
            return
        if self._uses_ids:
            ids = {one for _, one in done if one is not None}
            self._acknowledged.append((time.monotonic() + _MEMORY_SECONDS, ids))
        del self._returned[:count]
        self._checkpoints = {
            checkpoint: number - count for checkpoint, number in self._checkpoints.items()
        }
