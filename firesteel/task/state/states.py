"""The state objects of user functions, over tables of keyed state."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Any

from firesteel.datastream.functions import AggregateFunction
from firesteel.datastream.state import (
    AggregatingState,
    ListState,
    MapState,
    ReducingState,
    ValueState,
)
from firesteel.errors import InvalidProgramError
from firesteel.state.tables import MISSING, ListTable, MapTable, ValueTable
from firesteel.task.copies import copy_of
from firesteel.task.key_context import CurrentKey
from firesteel.task.state.ttl import TtlListTable, TtlMapTable, TtlValueTable


def own_value_getter(table: ValueTable | TtlValueTable) -> Callable[[Any], Any]:
    """Return a ``get(key)`` whose value may be changed in place, if it is put back afterwards.

    Values written in this epoch are not shared. A value from the base is copied once.
    """
    if isinstance(table, TtlValueTable):
        return table.get_own

    overlay, base = table.overlay, table.base

    def get_own(key: Any) -> Any:
        value = overlay.get(key, MISSING)
        if value is not MISSING or key in overlay:
            return value
        value = base.get(key, MISSING)
        return value if value is MISSING else copy_of(value)

    return get_own


def element_copy(value: Any) -> Any:
    """Return the copy of a new element that list state keeps. As in Flink, it must not be None."""
    if value is None:
        raise InvalidProgramError(
            "None cannot be an element of list state, as in Flink. Leave it out, or add a value of "
            "your own that stands for it."
        )
    return copy_of(value)


class Mergeable(ABC):
    """State that windows can bring together when they merge."""

    __slots__ = ()

    @abstractmethod
    def take(self) -> Any:
        """Remove the content and return it."""

    @abstractmethod
    def merge(self, taken: Any) -> None:
        """Add content that ``take`` returned for a different window."""


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


class TaskListState(ListState[Any], Mergeable):
    """A list per key. Mutable elements are copied on their way in and out."""

    __slots__ = ("_current", "_table")

    def __init__(self, table: ListTable | TtlListTable, current: CurrentKey) -> None:
        self._table = table
        self._current = current

    def get(self) -> list[Any]:
        """Return a new list. As in PyFlink, it is empty if there is no state."""
        return list(map(copy_of, self._table.get(self._current.key) or ()))

    def add(self, value: Any) -> None:
        self._table.append(self._current.key, element_copy(value))

    def add_all(self, values: list[Any]) -> None:
        self._table.extend(self._current.key, map(element_copy, values))

    def update(self, values: list[Any]) -> None:
        self._table.replace(self._current.key, map(element_copy, values))

    def clear(self) -> None:
        self._table.remove(self._current.key)

    def take(self) -> list[Any]:
        values = self.get()
        self.clear()
        return values

    def merge(self, taken: list[Any]) -> None:
        self._table.extend(self._current.key, taken)


class TaskMapState(MapState[Any, Any]):
    """A map per key. An iterator shows the map as it was when the iteration began."""

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


class TaskReducingState(ReducingState[Any], Mergeable):
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
        """Reduce the value with the present one. As in PyFlink, None clears the state."""
        key = self._current.key
        if value is None:
            self._table.remove(key)
            return
        reduced = self._get_own(key)
        # The function may return the new value itself, which the user may still change.
        value = copy_of(value)
        self._table.put(key, value if reduced is MISSING else self._reduce(reduced, value))

    def clear(self) -> None:
        self._table.remove(self._current.key)

    def take(self) -> Any:
        value = self.get()
        self.clear()
        return value

    def merge(self, taken: Any) -> None:
        if taken is not None:
            self.add(taken)


class TaskAggregatingState(AggregatingState[Any, Any], Mergeable):
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
        """Add the value. As in PyFlink, None clears the state."""
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

    def take(self) -> Any:
        accumulator = self._get_own(self._current.key)
        self.clear()
        return accumulator

    def merge(self, taken: Any) -> None:
        if taken is MISSING:
            return
        key = self._current.key
        mine = self._get_own(key)
        self._table.put(key, taken if mine is MISSING else self._function.merge(mine, taken))
