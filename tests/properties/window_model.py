"""A model of event-time windows that handles one record at a time, as the rules are written."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

MIN_WATERMARK = -(2**63)

Record = tuple[str, Any, int]
"""(key, value, timestamp)"""

Window = tuple[int, int]


@dataclass
class WindowModel:
    """Flink's rules. ``assign`` gives the windows of a timestamp; sessions merge (``merges``)."""

    assign: Callable[[int], list[Window]]
    lateness: int
    compute: Callable[[list[Any]], Any]
    merges: bool = False
    watermark: int = MIN_WATERMARK
    contents: dict[tuple[str, Window], list[Any]] = field(default_factory=dict)
    # (time, key, window) of future events.
    timers: set[tuple[int, str, Window]] = field(default_factory=set)
    output: list[tuple[Any, int]] = field(default_factory=list)
    late: list[tuple[str, Any]] = field(default_factory=list)
    # "on time", "accepted late" or "late" for each record, in the order of arrival.
    fates: list[str] = field(default_factory=list)

    def add(self, record: Record) -> None:
        key, value, timestamp = record
        fate = "late"
        for window in self.assign(timestamp):
            if self.merges:
                window = self._merged(key, window)
            last = window[1] - 1
            if last + self.lateness <= self.watermark:
                continue
            fate = "accepted late" if last <= self.watermark else fate
            fate = "on time" if last > self.watermark and fate == "late" else fate
            self.contents.setdefault((key, window), []).append(value)
            if last <= self.watermark:
                self._fire(key, window)
            else:
                self.timers.add((last, key, window))
            self.timers.add((last + self.lateness, key, window))
        self.fates.append(fate)
        if fate == "late":
            self.late.append((key, value))

    def _merged(self, key: str, new: Window) -> Window:
        """The window that the new one becomes part of; what it takes in moves there."""
        mine = [window for other, window in self.contents if other == key]
        touching = [window for window in mine if window[0] <= new[1] and window[1] >= new[0]]
        if not touching:
            return new
        cover = (min(w[0] for w in [*touching, new]), max(w[1] for w in [*touching, new]))
        if touching == [cover]:
            return cover
        moved = [value for window in touching for value in self.contents.pop((key, window))]
        self.timers = {t for t in self.timers if t[1] != key or t[2] not in touching}
        self.contents[key, cover] = moved
        last = cover[1] - 1
        if last > self.watermark:
            self.timers.add((last, key, cover))
        self.timers.add((last + self.lateness, key, cover))
        return cover

    def advance(self, watermark: int) -> None:
        self.watermark = watermark
        while due := [timer for timer in self.timers if timer[0] <= watermark]:
            timer = min(due)
            self.timers.remove(timer)
            time, key, window = timer
            if (key, window) not in self.contents:
                continue
            if time == window[1] - 1:
                self._fire(key, window)
            if time == window[1] - 1 + self.lateness:
                del self.contents[key, window]

    def _fire(self, key: str, window: Window) -> None:
        result = (key, *window, self.compute(self.contents[key, window]))
        self.output.append((result, window[1] - 1))

    def take(self) -> list[tuple[Any, int]]:
        output, self.output = self.output, []
        return output


def aligned(size: int, slide: int, offset: int) -> Callable[[int], list[Window]]:
    def assign(timestamp: int) -> list[Window]:
        last = timestamp - (timestamp - offset) % slide
        return [(start, start + size) for start in range(last, timestamp - size, -slide)]

    return assign


def sessions(gap: int) -> Callable[[int], list[Window]]:
    return lambda timestamp: [(timestamp, timestamp + gap)]
