"""Keeps the records that differ little from the last one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from firesteel.datastream.window.evictor import OneSidedEvictor, TimestampedValue
from firesteel.errors import InvalidProgramError, shorten


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
