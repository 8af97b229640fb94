"""Tables that come and go: one for each slice.

A table is dropped as a whole, so a key that sends nothing costs nothing, and the end of a window costs
its keys nothing but computing their results.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Generic, TypeVar

from firesteel.state.backend import KeyedStateBackend
from firesteel.state.tables import ListTable, Table, ValueTable

T = TypeVar("T", bound=Table)


class SliceTables(Generic[T]):
    """Tables by number: the start of a slice."""

    def __init__(self, backend: KeyedStateBackend, prefix: str, element_type: Any) -> None:
        self._backend = backend
        # No state of the user begins like this.
        self._prefix = f"_{prefix}/"
        self._element_type = element_type
        self._tables: dict[int, T] = {}

    def _declare(self, name: str) -> T:
        raise NotImplementedError

    def get(self, number: int) -> T | None:
        return self._tables.get(number)

    def create(self, number: int) -> T:
        table = self._tables[number] = self._declare(f"{self._prefix}{number}")
        return table

    def drop(self, number: int) -> None:
        if self._tables.pop(number, None) is not None:
            self._backend.drop_table(f"{self._prefix}{number}")

    def restore(self) -> None:
        """The backend has become another one: find the tables that it has."""
        self._tables.clear()
        for name in list(self._backend.descriptions()):
            if name.startswith(self._prefix):
                number = int(name.removeprefix(self._prefix))
                if next(self.create(number).keys(), None) is None:
                    # Left behind by an attempt that broke off.
                    self.drop(number)

    def __iter__(self) -> Iterator[int]:
        return iter(self._tables)


class AccumulatorTables(SliceTables[ValueTable]):
    """One accumulator for each key."""

    def _declare(self, name: str) -> ValueTable:
        return self._backend.value_table(name, element_type=self._element_type)


class RecordTables(SliceTables[ListTable]):
    """All records of each key."""

    def _declare(self, name: str) -> ListTable:
        return self._backend.list_table(name, element_type=self._element_type)


def accumulators(table: ValueTable) -> dict[Any, Any]:
    """All entries of a table from which nothing is ever removed; not to be changed."""
    base, overlay = table.base, table.overlay
    if not isinstance(base, dict):
        return dict(table.items())
    if not overlay:
        return base
    return base | overlay if base else overlay
