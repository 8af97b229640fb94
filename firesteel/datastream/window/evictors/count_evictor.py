"""Keeps the last records, up to a number of them."""

from __future__ import annotations

from firesteel.datastream.window.arguments import check_count
from firesteel.datastream.window.evictor import OneSidedEvictor, TimestampedValue


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
