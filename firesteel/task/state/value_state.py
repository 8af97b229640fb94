"""ValueState over a table.

Reading gives a copy of what can be changed in place, and writing stores one: state changes by
``update`` only, whatever the backend.
"""

from __future__ import annotations

from typing import Any

from firesteel.datastream.state import ValueState
from firesteel.state.missing import MISSING
from firesteel.state.tables import ValueTable
from firesteel.task.copies import copy_of
from firesteel.task.state.key_context import CurrentKey
from firesteel.task.state.ttl import TtlValueTable


class TaskValueState(ValueState[Any]):
    __slots__ = ("_current", "_table")

    def __init__(self, table: ValueTable | TtlValueTable, current: CurrentKey) -> None:
        self._table = table
        self._current = current

    def value(self) -> Any:
        value = self._table.get(self._current.key)
        return None if value is MISSING else copy_of(value)

    def update(self, value: Any) -> None:
        if value is None:
            self._table.remove(self._current.key)
        else:
            self._table.put(self._current.key, copy_of(value))

    def clear(self) -> None:
        self._table.remove(self._current.key)
