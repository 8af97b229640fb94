"""Keys that wait for the end of a window or session."""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heappop, heappush
from typing import Any

from firesteel.common.constants import MAX_WATERMARK


class KeySchedule:
    """The next time at which each key is looked at. Keys wait together for their time."""

    def __init__(self) -> None:
        self._times: list[int] = []
        self._waiting: dict[int, list[Any]] = {}
        # A key that moved to an earlier time is still in the list of the later one, without effect.
        self._next_look: dict[Any, int] = {}

    def __bool__(self) -> bool:
        return bool(self._next_look)

    def clear(self) -> None:
        self._times.clear()
        self._waiting.clear()
        self._next_look.clear()

    def look(self, key: Any, time: int) -> None:
        """Schedule the key for this time, unless it is scheduled earlier."""
        known = self._next_look.get(key)
        if known is None or time < known:
            self._next_look[key] = time
            waiting = self._waiting.get(time)
            if waiting is None:
                self._waiting[time] = [key]
                heappush(self._times, time)
            else:
                waiting.append(key)

    def due(self, watermark: int) -> Iterator[tuple[int, list[Any]]]:
        """Yield the times that are due, with their keys.

        Each key must then be given to ``look_next`` or to ``forget``.
        """
        times, next_look = self._times, self._next_look.get
        # With the last watermark everything is due.
        while times and (times[0] <= watermark or watermark == MAX_WATERMARK):
            time = heappop(times)
            waiting = dict.fromkeys(self._waiting.pop(time))
            yield time, [key for key in waiting if next_look(key) == time]

    def look_next(self, keys: list[Any], time: int) -> None:
        """Schedule the keys for this time, and forget earlier schedules."""
        self._next_look.update(dict.fromkeys(keys, time))
        waiting = self._waiting.get(time)
        if waiting is None:
            self._waiting[time] = keys
            heappush(self._times, time)
        else:
            waiting += keys

    def forget(self, key: Any) -> None:
        self._next_look.pop(key, None)

    def some_of(self, keys: list[Any]) -> set[Any]:
        """Return those of the keys that are scheduled."""
        scheduled = self._next_look
        if not scheduled or scheduled.keys().isdisjoint(keys):
            return set()
        return {key for key in keys if key in scheduled}
