"""Windows of a number of records: one after the other, or sliding.

Which window a record is in follows from a count that is kept for each key.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from firesteel.common.typeinfo import Types
from firesteel.datastream.state import ValueStateDescriptor
from firesteel.datastream.window.arguments import check_count
from firesteel.datastream.window.serializers import CountWindowSerializer
from firesteel.datastream.window.trigger import Trigger
from firesteel.datastream.window.triggers.count_trigger import CountTrigger
from firesteel.datastream.window.triggers.purging_trigger import PurgingTrigger
from firesteel.datastream.window.window_assigner import WindowAssigner
from firesteel.datastream.window.windows import CountWindow


class CountTumblingWindowAssigner(WindowAssigner[Any, CountWindow]):
    """Records 0 to n - 1 of a key, records n to 2 n - 1, and so on."""

    def __init__(self, window_size: int) -> None:
        check_count(window_size, 1, "The size of a count window")
        self._window_size = window_size
        self._count_descriptor = ValueStateDescriptor("tumble-count-assigner", Types.LONG())

    @staticmethod
    def of(window_size: int) -> CountTumblingWindowAssigner:
        return CountTumblingWindowAssigner(window_size)

    def assign_windows(
        self, element: Any, timestamp: int, context: WindowAssigner.WindowAssignerContext
    ) -> Collection[CountWindow]:
        number = _next_number(self._count_descriptor, context)
        return [CountWindow(number // self._window_size)]

    def get_default_trigger(self, env: Any) -> Trigger[Any, CountWindow]:
        """A full window gets no more records, so it need not be kept."""
        return PurgingTrigger(CountTrigger(self._window_size))

    def get_window_serializer(self) -> CountWindowSerializer:
        return CountWindowSerializer()

    def is_event_time(self) -> bool:
        return False

    def __repr__(self) -> str:
        return f"CountTumblingWindowAssigner({self._window_size})"


class CountSlidingWindowAssigner(WindowAssigner[Any, CountWindow]):
    """A window of n records begins with each slide; it fires when it is full, as in PyFlink."""

    def __init__(self, window_size: int, window_slide: int) -> None:
        check_count(window_size, 1, "The size of a count window")
        check_count(window_slide, 1, "The slide of a count window")
        self._window_size = window_size
        self._window_slide = window_slide
        self._count_descriptor = ValueStateDescriptor("slide-count-assigner", Types.LONG())

    @staticmethod
    def of(window_size: int, window_slide: int) -> CountSlidingWindowAssigner:
        return CountSlidingWindowAssigner(window_size, window_slide)

    def assign_windows(
        self, element: Any, timestamp: int, context: WindowAssigner.WindowAssignerContext
    ) -> Collection[CountWindow]:
        number = _next_number(self._count_descriptor, context)
        newest = number // self._window_slide
        # The oldest window whose last record is not before this one.
        oldest = max(0, -((self._window_size - 1 - number) // self._window_slide))
        return [CountWindow(window) for window in range(newest, oldest - 1, -1)]

    def get_default_trigger(self, env: Any) -> Trigger[Any, CountWindow]:
        return PurgingTrigger(CountTrigger(self._window_size))

    def get_window_serializer(self) -> CountWindowSerializer:
        return CountWindowSerializer()

    def is_event_time(self) -> bool:
        return False

    def __repr__(self) -> str:
        return f"CountSlidingWindowAssigner({self._window_size}, {self._window_slide})"


def _next_number(
    descriptor: ValueStateDescriptor, context: WindowAssigner.WindowAssignerContext
) -> int:
    """The number of this record among those of its key, from 0."""
    count = context.get_runtime_context().get_state(descriptor)
    number: int = count.value() or 0
    count.update(number + 1)
    return number
