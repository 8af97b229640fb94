"""Numbers records as they arrive, and remembers which of them windows that began anew have not seen.

A window that was over is gone, though slices of it are still there for later windows. After a restart that forgot the
watermark it may begin again: then only records that came after the restart are in it.
"""

from __future__ import annotations

from typing import Any

from firesteel.common.typeinfo import Types
from firesteel.datastream.state import ListStateDescriptor
from firesteel.task.operators.base import OperatorContext
from firesteel.task.watermarks import MIN_WATERMARK

_PAIRS = Types.TUPLE([Types.LONG(), Types.LONG()])


class Arrivals:
    def __init__(self, context: OperatorContext) -> None:
        self._context = context
        self._next = 0
        # (watermark, number): windows that were over then hold no record from before this number.
        self._restarts: list[tuple[int, int]] = []

    def take(self, count: int) -> range:
        first = self._next
        self._next += count
        return range(first, self._next)

    def first_that_counts(self, expiry: int) -> int:
        """For a window that is over at this time: the number from which on records are in it."""
        return max((first for over, first in self._restarts if expiry <= over), default=0)

    def load(self, watermark: int) -> None:
        """``watermark`` is that of the snapshot."""
        # The subtasks count each for itself; records may come from any of them.
        self._next = max((first for _, first in self._state().get()), default=0)
        known = {(over, first) for over, first in self._state().get() if over > MIN_WATERMARK}
        if watermark > MIN_WATERMARK:
            known.add((watermark, self._next))
        self._restarts = sorted(known)

    def save(self) -> None:
        watermark = self._context.clock.watermark
        pending = [restart for restart in self._restarts if restart[0] > watermark]
        now = [*pending, (MIN_WATERMARK, self._next)]
        if now != self._state().get():
            self._state().update(now)

    def _state(self) -> Any:
        return self._context.operator_state.get_union_list_state(
            ListStateDescriptor("window-arrivals", _PAIRS)
        )
