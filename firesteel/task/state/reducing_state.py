"""ReducingState over a table of values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from firesteel.datastream.state import ReducingState
from firesteel.state.missing import MISSING
from firesteel.state.tables import ValueTable
from firesteel.task.copies import copy_of
from firesteel.task.state.accumulators import own_value_getter
from firesteel.task.state.key_context import CurrentKey
from firesteel.task.state.ttl import TtlValueTable


class TaskReducingState(ReducingState[Any]):
    __slots__ = ("_current", "_get_own", "_reduce", "_table")

    def __init__(
        self,
        table: ValueTable | TtlValueTable,
        current: CurrentKey,
        reduce: Callable[[Any, Any], Any],
    ) -> None:
        self._table = table
        self._current = current
        self._reduce = reduce
        self._get_own = own_value_getter(table)

    def get(self) -> Any:
        value = self._table.get(self._current.key)
        return None if value is MISSING else copy_of(value)

    def add(self, value: Any) -> None:
        """Reduce with what is there; None clears, as in PyFlink."""
        key = self._current.key
        if value is None:
            self._table.remove(key)
            return
        reduced = self._get_own(key)
        # The function may give back the new value itself, which belongs to the user.
        value = copy_of(value)
        self._table.put(key, value if reduced is MISSING else self._reduce(reduced, value))

    def clear(self) -> None:
        self._table.remove(self._current.key)
