"""Keeps the records of a span of time before the newest one."""

from __future__ import annotations

from firesteel.common.time import Duration, Time
from firesteel.datastream.window.arguments import to_millis
from firesteel.datastream.window.evictor import OneSidedEvictor, TimestampedValue


class TimeEvictor(OneSidedEvictor):
    """``window_size`` is in milliseconds. Records without timestamps all stay."""

    def __init__(self, window_size: int, do_evict_after: bool = False) -> None:
        super().__init__(do_evict_after)
        self._window_size = window_size

    @staticmethod
    def of(window_size: Time | Duration, do_evict_after: bool = False) -> TimeEvictor:
        return TimeEvictor(to_millis(window_size, "The span of a TimeEvictor"), do_evict_after)

    def keep(self, elements: list[TimestampedValue]) -> list[TimestampedValue]:
        stamps = [element.timestamp for element in elements if element.timestamp is not None]
        if not stamps:
            return elements
        cutoff = max(stamps) - self._window_size
        return [e for e in elements if e.timestamp is None or e.timestamp > cutoff]
