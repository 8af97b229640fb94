"""ListState over a table."""

from __future__ import annotations

from typing import Any

from firesteel.datastream.state import ListState
from firesteel.state.tables import ListTable
from firesteel.task.copies import copy_of
from firesteel.task.state.key_context import CurrentKey
from firesteel.task.state.ttl import TtlListTable


class TaskListState(ListState[Any]):
    """Elements are copied on their way in and out, if they can be changed in place."""

    __slots__ = ("_current", "_table")

    def __init__(self, table: ListTable | TtlListTable, current: CurrentKey) -> None:
        self._table = table
        self._current = current

    def get(self) -> list[Any]:
        """A list of its own; empty where there is nothing, as in PyFlink."""
        return list(map(copy_of, self._table.get(self._current.key) or ()))

    def add(self, value: Any) -> None:
        self._table.append(self._current.key, copy_of(value))

    def add_all(self, values: list[Any]) -> None:
        self._table.extend(self._current.key, map(copy_of, values))

    def update(self, values: list[Any]) -> None:
        self._table.replace(self._current.key, map(copy_of, values))

    def clear(self) -> None:
        self._table.remove(self._current.key)
