"""The records of one side of an interval join, by key and time.

The records are a list for each key and timestamp, in keyed state. Which timestamps a key has, in their
order, follows from that and is not stored: it is found again on restore. So a record is only compared
with those in its interval, however many its key has, and cleaning up needs no timers.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from heapq import heapify, heappop, heappush
from typing import Any

from firesteel.state.backend import KeyedStateBackend
from firesteel.task.copies import copy_of, is_immutable


class IntervalBuffer:
    """``keep`` is how long a record is of use: it goes when the watermark is so far behind it."""

    def __init__(self, backend: KeyedStateBackend, name: str, element_type: Any, keep: int) -> None:
        self._table = backend.list_table(
            name, namespaced=True, element_type=None if element_type.is_pickled else element_type
        )
        self._keep = keep
        # Of each key, in ascending order.
        self._timestamps: dict[Any, list[int]] = {}
        # Of each timestamp, and a heap of those.
        self._keys: dict[int, list[Any]] = {}
        self._heap: list[int] = []

    def load(self) -> None:
        """The keyed state has become another one."""
        self._timestamps, self._keys = {}, {}
        for key, timestamp in self._table.keys():  # noqa: SIM118 - a table is no mapping
            self._timestamps.setdefault(key, []).append(timestamp)
            self._keys.setdefault(timestamp, []).append(key)
        for timestamps in self._timestamps.values():
            timestamps.sort()
        self._heap = list(self._keys)
        heapify(self._heap)

    def add(self, values: list[Any], keys: list[Any], timestamps: list[int]) -> None:
        # What is handed to the user's function must not be what is stored, if it can be changed.
        stored = values if is_immutable(values[0]) else map(copy_of, values)
        self._table.append_all(zip(keys, timestamps, strict=True), stored)
        timestamps_of, keys_at, heap = self._timestamps, self._keys, self._heap
        for key, timestamp in zip(keys, timestamps, strict=True):
            known = timestamps_of.get(key)
            if known is None:
                timestamps_of[key] = [timestamp]
            elif timestamp > known[-1]:
                known.append(timestamp)
            else:
                position = bisect_left(known, timestamp)
                if known[position] == timestamp:
                    continue
                known.insert(position, timestamp)
            there = keys_at.get(timestamp)
            if there is None:
                keys_at[timestamp] = [key]
                heappush(heap, timestamp)
            else:
                there.append(key)

    def find(self, key: Any, start: int, end: int) -> list[tuple[int, list[Any]]]:
        """The records of a key from ``start`` to ``end``, both included, by their timestamps."""
        known = self._timestamps.get(key)
        if known is None or known[-1] < start or known[0] > end:
            return []
        found: list[tuple[int, list[Any]]] = []
        for timestamp in known[bisect_left(known, start) : bisect_right(known, end)]:
            records = self._table.get((key, timestamp)) or []
            if not is_immutable(records[0]):
                records = list(map(copy_of, records))
            found.append((timestamp, records))
        return found

    def advance(self, watermark: int) -> None:
        """Forget what no record can be joined with any more that is not late."""
        heap, remove = self._heap, self._table.remove
        last = watermark - self._keep
        gone: dict[Any, int] = {}
        while heap and heap[0] <= last:
            timestamp = heappop(heap)
            for key in self._keys.pop(timestamp):
                remove((key, timestamp))
                gone[key] = gone.get(key, 0) + 1
        for key, count in gone.items():
            known = self._timestamps[key]
            if count == len(known):
                del self._timestamps[key]
            else:
                del known[:count]
