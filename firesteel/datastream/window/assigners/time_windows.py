"""What tumbling and sliding windows have in common: size, slide, offset, and the clock they obey."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection
from typing import Any, TypeVar

from firesteel.common.constants import MIN_LONG_VALUE
from firesteel.datastream.window.serializers import TimeWindowSerializer
from firesteel.datastream.window.trigger import Trigger
from firesteel.datastream.window.triggers.event_time_trigger import EventTimeTrigger
from firesteel.datastream.window.triggers.processing_time_trigger import ProcessingTimeTrigger
from firesteel.datastream.window.window_assigner import NoTimestampError, WindowAssigner
from firesteel.datastream.window.windows import TimeWindow
from firesteel.errors import InvalidProgramError

T = TypeVar("T")

_new_window = tuple.__new__


class AlignedTimeWindows(WindowAssigner[T, TimeWindow]):
    """Windows whose ends are the same for all keys. Tumbling windows slide by their size."""

    def __init__(self, size: int, slide: int, offset: int) -> None:
        if size <= 0 or slide <= 0 or abs(offset) >= slide:
            slides = "" if slide == size else f", slide {slide}"
            raise InvalidProgramError(
                f"{type(self).__name__}: size {size}{slides} and offset {offset} (milliseconds) do "
                f"not fit: size and slide must be positive, and the offset smaller than the slide."
            )
        self.size = size
        self.slide = slide
        self.offset = offset

    @property
    def is_staggered(self) -> bool:
        """Whether each subtask shifts its windows by another time."""
        return False

    @abstractmethod
    def time_of(self, timestamp: int, context: WindowAssigner.WindowAssignerContext) -> int:
        """The time that decides about a record's windows."""

    def assign_windows(
        self, element: T, timestamp: int, context: WindowAssigner.WindowAssignerContext
    ) -> Collection[TimeWindow]:
        time = self.time_of(timestamp, context)
        size = self.size
        last_start = time - (time - self.offset) % self.slide
        # The newest window comes first, as in Flink.
        return [
            _new_window(TimeWindow, (start, start + size))
            for start in range(last_start, time - size, -self.slide)
        ]

    def get_window_serializer(self) -> TimeWindowSerializer:
        return TimeWindowSerializer()


class EventTimeWindows(AlignedTimeWindows[T]):
    def time_of(self, timestamp: int, context: WindowAssigner.WindowAssignerContext) -> int:
        if timestamp == MIN_LONG_VALUE:
            raise NoTimestampError
        return timestamp

    def get_default_trigger(self, env: Any) -> Trigger[T, TimeWindow]:
        return EventTimeTrigger()

    def is_event_time(self) -> bool:
        return True


class ProcessingTimeWindows(AlignedTimeWindows[T]):
    def time_of(self, timestamp: int, context: WindowAssigner.WindowAssignerContext) -> int:
        return context.get_current_processing_time()

    def get_default_trigger(self, env: Any) -> Trigger[T, TimeWindow]:
        return ProcessingTimeTrigger()

    def is_event_time(self) -> bool:
        return False
