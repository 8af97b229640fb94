"""Slices that aligned windows share, and their tables.

A slice is the longest time span that lies within each window completely or not at all. Tumbling
windows are slices themselves. A window of a minute that slides by a second has sixty slices.

    windows   [-----------------)
                    [-----------------)
                          [-----------------)
    slices    |-----|-----|-----|-----|-----|
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from math import gcd
from typing import Any, Generic, TypeVar

from firesteel.state.backend import KeyedStateBackend
from firesteel.state.tables import ListTable, Table, ValueTable


@dataclass(frozen=True, slots=True)
class SliceLayout:
    """Computes slices and windows. Windows are identified by their ends, slices by their starts."""

    size: int
    slide: int
    offset: int
    width: int = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "width", gcd(self.size, self.slide))

    @property
    def is_tumbling(self) -> bool:
        return self.size == self.slide

    def slice_of(self, timestamp: int) -> int:
        return timestamp - (timestamp - self.offset) % self.width

    def slices_of(self, timestamps: list[int]) -> list[int]:
        width, offset = self.width, self.offset
        return [timestamp - (timestamp - offset) % width for timestamp in timestamps]

    def last_end(self, start: int) -> int:
        """The end of the last window that holds the slice."""
        return start - (start - self.offset) % self.slide + self.size

    def ends(self, start: int) -> range:
        """The ends of all windows that hold the slice. As in Flink, the last window comes first."""
        return range(self.last_end(start), start, -self.slide)

    def slices(self, end: int) -> range:
        """The slices of a window, in the order of time."""
        return range(end - self.size, end, self.width)


def positions_of(starts: list[int]) -> dict[int, list[int]]:
    """Return the positions of the records of each slice, given the slices of all records."""
    positions: dict[int, list[int]] = {}
    for index, start in enumerate(starts):
        if start in positions:
            positions[start].append(index)
        else:
            positions[start] = [index]
    return positions


def pick(chosen: list[int], *columns: list[Any]) -> list[list[Any]]:
    """Return the chosen positions of each column."""
    return [[column[index] for index in chosen] for column in columns]


T = TypeVar("T", bound=Table)


class SliceTables(Generic[T]):
    """One table per slice, by the start of the slice."""

    def __init__(self, backend: KeyedStateBackend, prefix: str, element_type: Any) -> None:
        self._backend = backend
        # No name of a user's state begins like this.
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
        """Find the tables of the backend after its state was replaced."""
        self._tables.clear()
        for name in list(self._backend.descriptions()):
            if name.startswith(self._prefix):
                number = int(name.removeprefix(self._prefix))
                if next(self.create(number).keys(), None) is None:
                    # An abandoned attempt has left it.
                    self.drop(number)

    def __iter__(self) -> Iterator[int]:
        return iter(self._tables)


class AccumulatorTables(SliceTables[ValueTable]):
    """Tables with one accumulator per key."""

    def _declare(self, name: str) -> ValueTable:
        return self._backend.value_table(name, element_type=self._element_type)


class RecordTables(SliceTables[ListTable]):
    """Tables with all records of each key."""

    def _declare(self, name: str) -> ListTable:
        return self._backend.list_table(name, element_type=self._element_type)


def accumulators(table: ValueTable) -> dict[Any, Any]:
    """All entries of a table from which nothing is removed. The caller must not change them."""
    base, overlay = table.base, table.overlay
    if not isinstance(base, dict):
        return dict(table.items())
    if not overlay:
        return base
    return base | overlay if base else overlay
