"""Splits of index ranges, for sources that compute a record from its index."""

from __future__ import annotations

from abc import abstractmethod
from collections import deque
from collections.abc import Sequence
from typing import Any

from firesteel.connectors.base import SourceReader, SourceSplit, SplitEnumerator

__all__ = ["IndexRangeEnumerator", "IndexRangeReader", "split_range"]


def split_range(start: int, stop: int, parts: int) -> list[tuple[int, int]]:
    """Cut ``[start, stop)`` into at most ``parts`` non-empty ranges whose sizes differ by one.

    >>> split_range(0, 10, 3)
    [(0, 4), (4, 7), (7, 10)]
    """
    size, larger = divmod(max(0, stop - start), max(1, parts))
    ranges: list[tuple[int, int]] = []
    for part in range(max(1, parts)):
        end = start + size + (1 if part < larger else 0)
        if end > start:
            ranges.append((start, end))
        start = end
    return ranges


class IndexRangeEnumerator(SplitEnumerator):
    """Returns the parts of ``[start, stop)`` once."""

    def __init__(self, start: int, stop: int, parallelism: int, state: Any = None) -> None:
        self._start = start
        self._stop = stop
        self._parallelism = parallelism
        self._discovered = bool(state and state["discovered"])

    def discover_splits(self) -> Sequence[SourceSplit]:
        if self._discovered:
            return []
        self._discovered = True
        return [
            SourceSplit(str(number), {"start": start, "stop": stop})
            for number, (start, stop) in enumerate(
                split_range(self._start, self._stop, self._parallelism)
            )
        ]

    def is_complete(self) -> bool:
        return self._discovered

    def has_pending(self, splits: Sequence[SourceSplit]) -> bool | None:
        """Return whether one of the splits has an index left."""
        return any(_next_index(split) < split.properties["stop"] for split in splits)

    def snapshot_state(self) -> Any:
        return {"discovered": self._discovered}


class IndexRangeReader(SourceReader):
    """Reads its splits one after the other. A position is the next index to read."""

    def __init__(self) -> None:
        self._splits: deque[SourceSplit] = deque()
        self._current: str | None = None
        self._next = 0
        self._stop = 0

    @abstractmethod
    def fetch(self, start: int, stop: int) -> list[Any] | range:
        """Return all records of ``[start, stop)``."""

    def add_splits(self, splits: Sequence[SourceSplit]) -> None:
        for split in splits:
            if _next_index(split) < split.properties["stop"]:
                self._splits.append(split)
                if len(self._splits) == 1:
                    self._begin()

    def read(self, limit: int) -> list[Any] | range:
        if not self._splits or limit <= 0:
            return []
        self._current = self._splits[0].split_id
        start = self._next
        stop = min(start + limit, self._stop)
        records = self.fetch(start, stop)
        self._next = stop
        if stop == self._stop:
            self._splits.popleft()
            self._begin()
        return records

    def snapshot_splits(self) -> list[SourceSplit]:
        if not self._splits:
            return []
        first, *rest = self._splits
        return [first.at(self._next), *rest]

    def current_split(self) -> str | None:
        return self._current

    def next_read_delay(self) -> float:
        return 0.0 if self._splits else 0.1

    def _begin(self) -> None:
        """Start with the first of the remaining splits."""
        if self._splits:
            split = self._splits[0]
            self._next = _next_index(split)
            self._stop = split.properties["stop"]


def _next_index(split: SourceSplit) -> int:
    index: int = split.properties["start"] if split.position is None else split.position
    return index
