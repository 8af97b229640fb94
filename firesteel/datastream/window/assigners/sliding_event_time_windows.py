"""Sliding windows of event time: of one size, a new one after each slide."""

from __future__ import annotations

from typing import Any

from firesteel.common.time import Duration, Time
from firesteel.datastream.window.arguments import to_millis
from firesteel.datastream.window.assigners.time_windows import EventTimeWindows


class SlidingEventTimeWindows(EventTimeWindows[Any]):
    """A record is in as many windows as slides fit into the size.

    >>> SlidingEventTimeWindows.of(Time.minutes(10), Time.minutes(1))
    SlidingEventTimeWindows(600000, 60000, 0)
    """

    def __init__(self, size: int, slide: int, offset: int) -> None:
        super().__init__(size, slide, offset)

    @staticmethod
    def of(
        size: Time | Duration, slide: Time | Duration, offset: Time | Duration | None = None
    ) -> SlidingEventTimeWindows:
        """Windows of ``size``, one of them beginning at each multiple of ``slide`` plus ``offset``."""
        return SlidingEventTimeWindows(
            to_millis(size, "The size"),
            to_millis(slide, "The slide"),
            0 if offset is None else to_millis(offset, "The offset"),
        )

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.size}, {self.slide}, {self.offset})"
