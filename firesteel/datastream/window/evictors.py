"""Evictors: they remove records from a window before or after its function is called. Not in PyFlink."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

from firesteel.common.time import Duration, Time
from firesteel.datastream.window.windows import Window, check_count, to_millis
from firesteel.errors import InvalidProgramError, shorten
from firesteel.stability import public_evolving


@public_evolving
class TimestampedValue(NamedTuple):
    """A record in a window, as evictors see it. Not in PyFlink.

    Attributes:
        value: The record.
        timestamp: Its timestamp in milliseconds, or None if it has none.

    >>> TimestampedValue("a", 1000).value
    'a'
    """

    value: Any
    timestamp: int | None


class EvictorContext(Protocol):
    """The clock and the watermark that an evictor may ask for."""

    def get_current_processing_time(self) -> int:
        """Return the clock of the subtask, in milliseconds since 1970."""

    def get_current_watermark(self) -> int:
        """Return the watermark in milliseconds."""


@public_evolving
class Evictor(ABC):  # noqa: B024 - either method will do
    """Removes records from a window that fires. Not in PyFlink.

    Both methods get the records in the order of their arrival, and return those that stay. A window
    with an evictor keeps all its records, also for ``reduce`` and ``aggregate``.

    >>> class NoNegatives(Evictor):
    ...     def evict_before(self, elements, size, window, evictor_context):
    ...         return [element for element in elements if element.value >= 0]
    ...     def evict_after(self, elements, size, window, evictor_context):
    ...         return elements
    >>> numbers = env.from_collection([1, -5, 2])
    >>> windows = numbers.window_all(CountTumblingWindowAssigner.of(3)).evictor(NoNegatives())
    >>> list(windows.reduce(lambda a, b: a + b).execute_and_collect())
    [3]
    """

    def evict_before(
        self,
        elements: list[TimestampedValue],
        size: int,
        window: Window,
        evictor_context: EvictorContext,
    ) -> list[TimestampedValue]:
        """Return the records that the window's function gets.

        Args:
            elements: The records of the window, in the order of their arrival.
            size: Their number.
            window: The window.
            evictor_context: The clock and the watermark.
        """
        return elements

    def evict_after(
        self,
        elements: list[TimestampedValue],
        size: int,
        window: Window,
        evictor_context: EvictorContext,
    ) -> list[TimestampedValue]:
        """Return the records that stay in the window after its function was called.

        Args:
            elements: The records of the window, in the order of their arrival.
            size: Their number.
            window: The window.
            evictor_context: The clock and the watermark.
        """
        return elements


class OneSidedEvictor(Evictor):
    """Base of evictors that remove records either before the function or after it."""

    def __init__(self, do_evict_after: bool) -> None:
        self._after = do_evict_after

    @abstractmethod
    def keep(self, elements: list[TimestampedValue]) -> list[TimestampedValue]:
        """Return the records that stay.

        >>> CountEvictor.of(1).keep([TimestampedValue("a", 1), TimestampedValue("b", 2)])
        [TimestampedValue(value='b', timestamp=2)]
        """

    def evict_before(
        self,
        elements: list[TimestampedValue],
        size: int,
        window: Window,
        evictor_context: EvictorContext,
    ) -> list[TimestampedValue]:
        return elements if self._after else self.keep(elements)

    def evict_after(
        self,
        elements: list[TimestampedValue],
        size: int,
        window: Window,
        evictor_context: EvictorContext,
    ) -> list[TimestampedValue]:
        return self.keep(elements) if self._after else elements


@public_evolving
class CountEvictor(OneSidedEvictor):
    """Keeps the newest records of a window. Not in PyFlink.

    Args:
        max_count: The number of records to keep.
        do_evict_after: Remove records after the function is called, not before.

    >>> numbers = env.from_collection([1, 2, 3, 4])
    >>> windows = numbers.window_all(GlobalWindows.create()).trigger(CountTrigger.of(1))
    >>> last_two = windows.evictor(CountEvictor.of(2)).reduce(lambda a, b: a + b)
    >>> list(last_two.execute_and_collect())
    [1, 3, 5, 7]
    """

    def __init__(self, max_count: int, do_evict_after: bool = False) -> None:
        super().__init__(do_evict_after)
        check_count(max_count, 0, "The max_count of a CountEvictor")
        self._max_count = max_count

    @staticmethod
    def of(max_count: int, do_evict_after: bool = False) -> CountEvictor:
        """Make an evictor.

        Args:
            max_count: The number of records to keep.
            do_evict_after: Remove records after the function is called, not before.
        """
        return CountEvictor(max_count, do_evict_after)

    def keep(self, elements: list[TimestampedValue]) -> list[TimestampedValue]:
        surplus = len(elements) - self._max_count
        return elements[surplus:] if surplus > 0 else elements


@public_evolving
class DeltaEvictor(OneSidedEvictor):
    """Keeps the records that differ little from the newest one. Not in PyFlink.

    Args:
        threshold: A record whose difference is at least this is removed.
        delta_function: Called with a record and the newest record; returns the difference.
        do_evict_after: Remove records after the function is called, not before.

    >>> numbers = env.from_collection([1, 7, 8])
    >>> windows = numbers.window_all(CountTumblingWindowAssigner.of(3))
    >>> near = windows.evictor(DeltaEvictor.of(5, lambda value, last: last - value))
    >>> list(near.reduce(lambda a, b: f"{a} {b}").execute_and_collect())
    ['7 8']
    """

    def __init__(
        self,
        threshold: float,
        delta_function: Callable[[Any, Any], float],
        do_evict_after: bool = False,
    ) -> None:
        super().__init__(do_evict_after)
        if not callable(delta_function):
            raise InvalidProgramError(
                f"The delta function must be callable, but it is {shorten(delta_function)}."
            )
        self._threshold = threshold
        self._delta = delta_function

    @staticmethod
    def of(
        threshold: float,
        delta_function: Callable[[Any, Any], float],
        do_evict_after: bool = False,
    ) -> DeltaEvictor:
        """Make an evictor.

        Args:
            threshold: A record whose difference is at least this is removed.
            delta_function: Called with a record and the newest record; returns the difference.
            do_evict_after: Remove records after the function is called, not before.
        """
        return DeltaEvictor(threshold, delta_function, do_evict_after)

    def keep(self, elements: list[TimestampedValue]) -> list[TimestampedValue]:
        if not elements:
            return elements
        last, delta, threshold = elements[-1].value, self._delta, self._threshold
        return [element for element in elements if delta(element.value, last) < threshold]


@public_evolving
class TimeEvictor(OneSidedEvictor):
    """Keeps the records of a span of time before the newest one. Not in PyFlink.

    If no record has a timestamp, all of them stay.

    Args:
        window_size: The span in milliseconds.
        do_evict_after: Remove records after the function is called, not before.

    >>> strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(
    ...     lambda second, _: second * 1000
    ... )
    >>> seconds = env.from_collection([1, 7, 8]).assign_timestamps_and_watermarks(strategy)
    >>> windows = seconds.window_all(TumblingEventTimeWindows.of(Time.seconds(10)))
    >>> recent = windows.evictor(TimeEvictor.of(Time.seconds(5)))
    >>> list(recent.reduce(lambda a, b: f"{a} {b}").execute_and_collect())
    ['7 8']
    """

    def __init__(self, window_size: int, do_evict_after: bool = False) -> None:
        super().__init__(do_evict_after)
        self._window_size = window_size

    @staticmethod
    def of(window_size: Time | Duration, do_evict_after: bool = False) -> TimeEvictor:
        """Make an evictor.

        Args:
            window_size: The span of time before the newest record.
            do_evict_after: Remove records after the function is called, not before.
        """
        return TimeEvictor(to_millis(window_size, "The span of a TimeEvictor"), do_evict_after)

    def keep(self, elements: list[TimestampedValue]) -> list[TimestampedValue]:
        stamps = [element.timestamp for element in elements if element.timestamp is not None]
        if not stamps:
            return elements
        cutoff = max(stamps) - self._window_size
        return [e for e in elements if e.timestamp is None or e.timestamp > cutoff]
