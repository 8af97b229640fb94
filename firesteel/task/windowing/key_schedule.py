"""When to look at which key again. Not part of the state: it can be made from what the keys hold.

Windows of many keys end at the same moments, so keys wait together; a key waits for one moment only.
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heappop, heappush
from typing import Any

from firesteel.task.watermarks import MAX_WATERMARK


class KeySchedule:
    def __init__(self) -> None:
        self._times: list[int] = []
        self._waiting: dict[int, list[Any]] = {}
        # A key that moved to an earlier moment still waits for the later one, in vain.
        self._next_look: dict[Any, int] = {}

    def clear(self) -> None:
        self._times.clear()
        self._waiting.clear()
        self._next_look.clear()

    def look(self, key: Any, time: int) -> None:
        """Look at the key at this time, unless it is looked at earlier."""
        known = self._next_look.get(key)
        if known is None or time < known:
            self.look_next([key], time)

    def due(self, watermark: int) -> Iterator[tuple[int, list[Any]]]:
        """Times with their keys, one after the other.

        Each key must then be given to ``look_next`` or to ``forget``.
        """
        times, next_look = self._times, self._next_look.get
        # At the end of all time everything is due.
        while times and (times[0] <= watermark or watermark == MAX_WATERMARK):
            time = heappop(times)
            waiting = dict.fromkeys(self._waiting.pop(time))
            yield time, [key for key in waiting if next_look(key) == time]

    def look_next(self, keys: list[Any], time: int) -> None:
        """Look at the keys at this time, whatever was known before."""
        self._next_look.update(dict.fromkeys(keys, time))
        waiting = self._waiting.get(time)
        if waiting is None:
            self._waiting[time] = keys
            heappush(self._times, time)
        else:
            waiting += keys

    def forget(self, key: Any) -> None:
        self._next_look.pop(key, None)
