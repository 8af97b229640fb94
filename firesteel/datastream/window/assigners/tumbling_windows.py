"""What tumbling windows have in common: a subtask may shift all of its windows."""

from __future__ import annotations

from collections.abc import Collection
from typing import TypeVar

from firesteel.datastream.window.assigners.time_windows import AlignedTimeWindows
from firesteel.datastream.window.window_assigner import WindowAssigner
from firesteel.datastream.window.window_stagger import WindowStagger
from firesteel.datastream.window.windows import TimeWindow
from firesteel.errors import InvalidProgramError, shorten

T = TypeVar("T")


class TumblingWindows(AlignedTimeWindows[T]):
    """``stagger_offset`` is None until the first record decides about it."""

    def __init__(self, size: int, offset: int, window_stagger: WindowStagger) -> None:
        super().__init__(size, size, offset)
        if not isinstance(window_stagger, WindowStagger):
            raise InvalidProgramError(
                f"{type(self).__name__}: the stagger must be a WindowStagger, for example "
                f"WindowStagger.NATURAL, but it is {shorten(window_stagger)}."
            )
        self.window_stagger = window_stagger
        self.stagger_offset = 0 if window_stagger is WindowStagger.ALIGNED else None

    @property
    def is_staggered(self) -> bool:
        return self.window_stagger is not WindowStagger.ALIGNED

    def assign_windows(
        self, element: T, timestamp: int, context: WindowAssigner.WindowAssignerContext
    ) -> Collection[TimeWindow]:
        time, size = self.time_of(timestamp, context), self.size
        shift = self.stagger_offset
        if shift is None:
            now = context.get_current_processing_time()
            shift = self.stagger_offset = self.window_stagger.get_stagger_offset(now, size)
        start = time - (time - self.offset - shift) % size
        return [TimeWindow(start, start + size)]

    def __repr__(self) -> str:
        stagger = f", {self.window_stagger.name}" if self.is_staggered else ""
        return f"{type(self).__name__}({self.size}, {self.offset}{stagger})"
