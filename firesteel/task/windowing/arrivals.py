"""Numbers records as they arrive, and remembers which of them windows that began anew have not seen.

A window that was over is gone, though slices of it are still there for later windows. After a restart that forgot the
watermark it may begin again: then only records that came after the restart are in it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from firesteel.common.constants import MIN_WATERMARK
from firesteel.common.typeinfo import TypeInformation, Types
from firesteel.datastream.state import ListStateDescriptor
from firesteel.state.tables import ListTable
from firesteel.task.operators.base import OperatorContext

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

    def records(self, tables: Iterable[ListTable], key: Any, expiry: int) -> list[Any]:
        """Those of a key in a window that is over at ``expiry``, in the order in which they came.

        The tables hold pairs: (number, record).
        """
        numbered: list[tuple[int, Any]] = []
        for table in tables:
            numbered += table.get(key) or ()
        # What came in order is found in order, which costs next to nothing.
        numbered.sort(key=_number)
        first = max((first for over, first in self._restarts if expiry <= over), default=0)
        return [value for number, value in numbered if number >= first]

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


def numbered_type(kind: TypeInformation | None) -> TypeInformation | None:
    """That of the pairs of a number and a record; None for any Python object."""
    return None if kind is None or kind.is_pickled else Types.TUPLE([Types.LONG(), kind])


def _number(pair: tuple[int, Any]) -> int:
    return pair[0]
