"""Keeps the records of a span of time before the newest one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

from firesteel.common.time import Duration, Time
from firesteel.datastream.window.windows import Window, check_count, to_millis
from firesteel.errors import InvalidProgramError, shorten


class TimestampedValue(NamedTuple):
    """A record in a window. ``timestamp`` is None if it has none."""

    value: Any
    timestamp: int | None


class EvictorContext(Protocol):
    def get_current_processing_time(self) -> int: ...

    def get_current_watermark(self) -> int: ...


class Evictor(ABC):  # noqa: B024 - either method will do
    """Both methods take the records in the order of their arrival and give those that stay."""

    def evict_before(
        self,
        elements: list[TimestampedValue],
        size: int,
        window: Window,
        evictor_context: EvictorContext,
    ) -> list[TimestampedValue]:
        """Called before the window's function."""
        return elements

    def evict_after(
        self,
        elements: list[TimestampedValue],
        size: int,
        window: Window,
        evictor_context: EvictorContext,
    ) -> list[TimestampedValue]:
        """Called after the window's function."""
        return elements


class OneSidedEvictor(Evictor):
    """Does the same either before the function or after it."""

    def __init__(self, do_evict_after: bool) -> None:
        self._after = do_evict_after

    @abstractmethod
    def keep(self, elements: list[TimestampedValue]) -> list[TimestampedValue]:
        """The records that stay."""

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


class CountEvictor(OneSidedEvictor):
    def __init__(self, max_count: int, do_evict_after: bool = False) -> None:
        super().__init__(do_evict_after)
        check_count(max_count, 0, "What a CountEvictor keeps")
        self._max_count = max_count

    @staticmethod
    def of(max_count: int, do_evict_after: bool = False) -> CountEvictor:
        return CountEvictor(max_count, do_evict_after)

    def keep(self, elements: list[TimestampedValue]) -> list[TimestampedValue]:
        surplus = len(elements) - self._max_count
        return elements[surplus:] if surplus > 0 else elements


class DeltaEvictor(OneSidedEvictor):
    """Drops a record if ``delta_function(record, last record)`` is at least ``threshold``."""

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
        return DeltaEvictor(threshold, delta_function, do_evict_after)

    def keep(self, elements: list[TimestampedValue]) -> list[TimestampedValue]:
        if not elements:
            return elements
        last, delta, threshold = elements[-1].value, self._delta, self._threshold
        return [element for element in elements if delta(element.value, last) < threshold]


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
