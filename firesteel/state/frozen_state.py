"""Keyed state of a subtask at one moment, by key group, as savepoints contain it.

Freezing is fast. A different thread reads the entries while the subtask continues to change them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

from firesteel.state.changes import StateEntry
from firesteel.state.key_groups import key_groups_of
from firesteel.state.table_descriptions import TableDescription

__all__ = ["Columns", "FrozenState", "FrozenTable", "GroupedTable", "grouped_entries"]

Columns = tuple[list[Any], list[Any]]
"""Table keys, and the value, list or dictionary of each."""


class FrozenTable(Protocol):
    """A table at one moment."""

    @property
    def name(self) -> str: ...

    def groups(self) -> Iterable[int]:
        """The key groups that have entries, in order."""

    def of_group(self, group: int) -> Columns:
        """The entries of a key group."""


@dataclass(frozen=True, slots=True)
class FrozenState:
    """All tables of a backend at one moment.

    ``release``: called once, in the thread of the backend, when the entries are no longer read.
    """

    tables: Sequence[FrozenTable]
    descriptions: Mapping[str, TableDescription]
    release: Callable[[], None] = lambda: None


class GroupedTable:
    """Entries in memory. The first question sorts them by key group.

    ``read``: returns the entries in any order.
    """

    def __init__(
        self, name: str, namespaced: bool, read: Callable[[], Columns], max_parallelism: int
    ) -> None:
        self.name = name
        self._namespaced = namespaced
        self._read = read
        self._max_parallelism = max_parallelism
        self._groups: dict[int, Columns] | None = None

    def groups(self) -> Iterable[int]:
        return sorted(self._sorted())

    def of_group(self, group: int) -> Columns:
        # Each group is read once, and its references are not needed any longer.
        return self._sorted().pop(group, ([], []))

    def _sorted(self) -> dict[int, Columns]:
        if self._groups is None:
            keys, values = self._read()
            bare = [key for key, _ in keys] if self._namespaced else keys
            numbers = key_groups_of(bare, self._max_parallelism)
            found: dict[int, Columns] = {number: ([], []) for number in set(numbers)}
            for number, key, value in zip(numbers, keys, values, strict=True):
                of_group = found[number]
                of_group[0].append(key)
                of_group[1].append(value)
            self._groups = found
        return self._groups


def grouped_entries(
    entries: Iterable[StateEntry],
    descriptions: Mapping[str, TableDescription],
    max_parallelism: int,
) -> FrozenState:
    """Entries of any tables, which are read now."""
    columns: dict[str, Columns] = {}
    for entry in entries:
        keys, values = columns.setdefault(entry.table, ([], []))
        namespaced = descriptions[entry.table].namespaced
        keys.append((entry.key, entry.namespace) if namespaced else entry.key)
        values.append(entry.value)
    tables = [
        GroupedTable(
            name, descriptions[name].namespaced, partial(columns.__getitem__, name), max_parallelism
        )
        for name in sorted(columns)
    ]
    return FrozenState(tables, descriptions)
