"""Numbers records as they arrive, so that windows that begin again leave out older records.

An expired window is gone, although later windows still use some of its slices. After a restart
without a watermark it may begin again. Then it holds only records that came after the restart.
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
        # (watermark, number): windows that had expired by then hold no record below this number.
        self._restarts: list[tuple[int, int]] = []

    def take(self, count: int) -> range:
        first = self._next
        self._next += count
        return range(first, self._next)

    def records(self, tables: Iterable[ListTable], key: Any, expiry: int) -> list[Any]:
        """The records of a key in a window that expires at ``expiry``, in the order of arrival.

        tables: hold pairs of (number, record).
        """
        numbered: list[tuple[int, Any]] = []
        for table in tables:
            numbered += table.get(key) or ()
        # Records mostly come in order, and then sorting costs almost nothing.
        numbered.sort(key=_number)
        first = max((first for over, first in self._restarts if expiry <= over), default=0)
        return [value for number, value in numbered if number >= first]

    def load(self, watermark: int) -> None:
        """Read the state. ``watermark`` is that of the snapshot."""
        # Each subtask counts on its own, and records may come from any of them.
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
    """The type of pairs of a number and a record, or None for any Python object."""
    return None if kind is None or kind.is_pickled else Types.TUPLE([Types.LONG(), kind])


def _number(pair: tuple[int, Any]) -> int:
    return pair[0]
