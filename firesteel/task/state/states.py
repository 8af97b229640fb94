"""The state objects of user functions, over tables of keyed state."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from firesteel.common.typeinfo import TypeInformation
from firesteel.datastream.functions import AggregateFunction
from firesteel.datastream.state import (
    AggregatingState,
    ListState,
    MapState,
    ReducingState,
    ValueState,
)
from firesteel.errors import InvalidProgramError, TypeMismatchError
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


Convert = Callable[[Any], Any]


def row_converter(type_info: TypeInformation | None) -> Convert | None:
    """Return a function that gives rows the field names of their type, or None without rows.

    Values of other types are converted when the epoch ends. Functions use rows by name, and must
    find the names in the same epoch, too.
    """
    if type_info is None or not type_info.contains_rows:
        return None

    def convert(value: Any) -> Any:
        try:
            return type_info.convert_batch([value], nullable=True)[0]
        except TypeMismatchError:
            # The end of the epoch raises it, with the name of the state.
            return value

    return convert


def copier(type_info: TypeInformation | None) -> Convert:
    """Return a function that makes the copy of a value that a state of this type keeps."""
    convert = row_converter(type_info)
    return copy_of if convert is None else lambda value: copy_of(convert(value))


def none_element() -> InvalidProgramError:
    """Return the error about None in list state."""
    return InvalidProgramError(
        "None cannot be an element of list state, as in Flink. Leave it out, or add a value of your "
        "own that stands for it."
    )


def element_copies(values: Iterable[Any], copy: Convert) -> list[Any]:
    """Return copies of new elements of list state."""
    elements = list(values)
    if any(element is None for element in elements):
        raise none_element()
    return list(map(copy, elements))


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
    __slots__ = ("_copy", "_current", "_table")

    def __init__(
        self,
        table: ValueTable | TtlValueTable,
        current: CurrentKey,
        value_type: TypeInformation | None,
    ) -> None:
        self._table = table
        self._current = current
        self._copy = copier(value_type)

    def value(self) -> Any:
        value = self._table.get(self._current.key)
        return None if value is MISSING else copy_of(value)

    def update(self, value: Any) -> None:
        if value is None:
            self._table.remove(self._current.key)
        else:
            self._table.put(self._current.key, self._copy(value))

    def clear(self) -> None:
        self._table.remove(self._current.key)


class TaskListState(ListState[Any], Mergeable):
    """A list per key. Mutable elements are copied on their way in and out."""

    __slots__ = ("_copy", "_current", "_table")

    def __init__(
        self,
        table: ListTable | TtlListTable,
        current: CurrentKey,
        element_type: TypeInformation | None,
    ) -> None:
        self._table = table
        self._current = current
        self._copy = copier(element_type)

    def get(self) -> list[Any]:
        """Return a new list. As in PyFlink, it is empty if there is no state."""
        return list(map(copy_of, self._table.get(self._current.key) or ()))

    def add(self, value: Any) -> None:
        if value is None:
            raise none_element()
        self._table.append(self._current.key, self._copy(value))

    def add_all(self, values: list[Any]) -> None:
        self._table.extend(self._current.key, element_copies(values, self._copy))

    def update(self, values: list[Any]) -> None:
        self._table.replace(self._current.key, element_copies(values, self._copy))

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

    __slots__ = ("_copy", "_current", "_table")

    def __init__(
        self,
        table: MapTable | TtlMapTable,
        current: CurrentKey,
        value_type: TypeInformation | None,
    ) -> None:
        self._table = table
        self._current = current
        self._copy = copier(value_type)

    def get(self, key: Any) -> Any:
        value = self._table.get(self._current.key, key)
        return None if value is MISSING else copy_of(value)

    def put(self, key: Any, value: Any) -> None:
        self._table.put(self._current.key, key, self._copy(value))

    def put_all(self, dict_value: dict[Any, Any]) -> None:
        for key, value in dict_value.items():
            self.put(key, value)

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


class RowKeyedMapState(TaskMapState):
    """A map whose keys are or contain rows. A row without names finds the row with names."""

    __slots__ = ("_convert",)

    def __init__(
        self,
        table: MapTable | TtlMapTable,
        current: CurrentKey,
        value_type: TypeInformation | None,
        convert: Convert,
    ) -> None:
        super().__init__(table, current, value_type)
        self._convert = convert

    def get(self, key: Any) -> Any:
        return super().get(self._convert(key))

    def put(self, key: Any, value: Any) -> None:
        super().put(copy_of(self._convert(key)), value)

    def remove(self, key: Any) -> None:
        super().remove(self._convert(key))

    def contains(self, key: Any) -> bool:
        return super().contains(self._convert(key))


class TaskReducingState(ReducingState[Any], Mergeable):
    __slots__ = ("_convert", "_copy", "_current", "_get_own", "_reduce", "_table")

    def __init__(
        self,
        table: ValueTable | TtlValueTable,
        current: CurrentKey,
        value_type: TypeInformation | None,
        reduce: Callable[[Any, Any], Any],
    ) -> None:
        self._table = table
        self._current = current
        self._reduce = reduce
        self._convert = row_converter(value_type)
        self._copy = copier(value_type)
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
        value = self._copy(value)
        if reduced is not MISSING:
            value = self._reduce(reduced, value)
            if self._convert is not None:
                value = self._convert(value)
        self._table.put(key, value)

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
    __slots__ = ("_convert", "_current", "_function", "_get_own", "_table")

    def __init__(
        self,
        table: ValueTable | TtlValueTable,
        current: CurrentKey,
        accumulator_type: TypeInformation | None,
        function: AggregateFunction,
    ) -> None:
        self._table = table
        self._current = current
        self._function = function
        self._convert = row_converter(accumulator_type)
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
        self._put(key, self._function.add(copy_of(value), accumulator))

    def _put(self, key: Any, accumulator: Any) -> None:
        convert = self._convert
        self._table.put(key, accumulator if convert is None else convert(accumulator))

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
        self._put(key, taken if mine is MISSING else self._function.merge(mine, taken))
