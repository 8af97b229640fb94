"""Splits of a queue: each is a consumer, and RabbitMQ shares the messages among them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from firesteel.connectors.base import SourceSplit, SplitEnumerator

__all__ = ["QueueEnumerator"]


class QueueEnumerator(SplitEnumerator):
    """Returns one split per reader. A job with more readers than before gets more splits."""

    def __init__(self, queue: str, readers: int, found: int) -> None:
        """Create an enumerator.

        Args:
            queue: The name of the queue.
            readers: The number of readers.
            found: The number of splits that were found before.
        """
        self._queue = queue
        self._readers = readers
        self._found = found

    def discover_splits(self) -> Sequence[SourceSplit]:
        found, self._found = self._found, max(self._found, self._readers)
        return [SourceSplit(f"{self._queue}-{number}") for number in range(found, self._found)]

    def snapshot_state(self) -> Any:
        return self._found
