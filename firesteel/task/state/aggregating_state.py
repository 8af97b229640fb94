"""AggregatingState over a table of accumulators."""

from __future__ import annotations

from typing import Any

from firesteel.datastream.functions import AggregateFunction
from firesteel.datastream.state import AggregatingState
from firesteel.state.missing import MISSING
from firesteel.state.tables import ValueTable
from firesteel.task.copies import copy_of
from firesteel.task.state.accumulators import own_value_getter
from firesteel.task.state.key_context import CurrentKey
from firesteel.task.state.ttl import TtlValueTable


class TaskAggregatingState(AggregatingState[Any, Any]):
    __slots__ = ("_current", "_function", "_get_own", "_table")

    def __init__(
        self,
        table: ValueTable | TtlValueTable,
        current: CurrentKey,
        function: AggregateFunction,
    ) -> None:
        self._table = table
        self._current = current
        self._function = function
        self._get_own = own_value_getter(table)

    def get(self) -> Any:
        accumulator = self._table.get(self._current.key)
        if accumulator is MISSING:
            return None
        # The result may be the accumulator itself, or a part of it.
        return self._function.get_result(copy_of(accumulator))

    def add(self, value: Any) -> None:
        """Add to what is there; None clears, as in PyFlink."""
        key = self._current.key
        if value is None:
            self._table.remove(key)
            return
        accumulator = self._get_own(key)
        if accumulator is MISSING:
            accumulator = self._function.create_accumulator()
        self._table.put(key, self._function.add(copy_of(value), accumulator))

    def clear(self) -> None:
        self._table.remove(self._current.key)

    # Windows that merge

    def take_accumulator(self) -> Any:
        """Remove the accumulator and return it, or MISSING."""
        accumulator = self._get_own(self._current.key)
        self.clear()
        return accumulator

    def merge_accumulator(self, accumulator: Any) -> None:
        if accumulator is MISSING:
            return
        key = self._current.key
        mine = self._get_own(key)
        merged = accumulator if mine is MISSING else self._function.merge(mine, accumulator)
        self._table.put(key, merged)
