"""MapState over a table."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from firesteel.datastream.state import MapState
from firesteel.state.missing import MISSING
from firesteel.state.tables import MapTable
from firesteel.task.copies import copy_of
from firesteel.task.state.key_context import CurrentKey
from firesteel.task.state.ttl import TtlMapTable


class TaskMapState(MapState[Any, Any]):
    """An iterator shows the map as it was when it was asked for; the map may change meanwhile."""

    __slots__ = ("_current", "_table")

    def __init__(self, table: MapTable | TtlMapTable, current: CurrentKey) -> None:
        self._table = table
        self._current = current

    def get(self, key: Any) -> Any:
        value = self._table.get(self._current.key, key)
        return None if value is MISSING else copy_of(value)

    def put(self, key: Any, value: Any) -> None:
        self._table.put(self._current.key, key, copy_of(value))

    def put_all(self, dict_value: dict[Any, Any]) -> None:
        table, current = self._table, self._current.key
        for key, value in dict_value.items():
            table.put(current, key, copy_of(value))

    def remove(self, key: Any) -> None:
        self._table.remove_entry(self._current.key, key)

    def contains(self, key: Any) -> bool:
        return self._table.get(self._current.key, key) is not MISSING

    def items(self) -> Iterator[tuple[Any, Any]]:
        entries = self._table.entries(self._current.key)
        return ((key, copy_of(value)) for key, value in entries)

    def keys(self) -> Iterator[Any]:
        return (key for key, _ in self._table.entries(self._current.key))

    def values(self) -> Iterator[Any]:
        return (value for _, value in self.items())

    def is_empty(self) -> bool:
        return not self._table.contains(self._current.key)

    def clear(self) -> None:
        self._table.remove(self._current.key)
