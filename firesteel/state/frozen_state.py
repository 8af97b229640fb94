"""Keyed state of a subtask at one moment, as savepoints contain it.

Freezing is fast. A different thread reads the state while the subtask continues to change it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

from firesteel.state.changelog import Segment, SegmentStore
from firesteel.state.changes import EncodedRows, StateEntry
from firesteel.state.key_groups import key_groups_of
from firesteel.state.table_descriptions import TableDescription

__all__ = [
    "Columns",
    "FrozenFiles",
    "FrozenState",
    "FrozenTable",
    "GroupedTable",
    "grouped_entries",
]

Columns = tuple[list[Any], list[Any]]
"""Table keys, and the value, list or dictionary of each."""


class FrozenTable(Protocol):
    """A table at one moment."""

    @property
    def name(self) -> str: ...

    def groups(self) -> Iterable[int]:
        """The key groups that have entries, in order."""

    def parts_of_group(self, group: int) -> Iterable[Columns | EncodedRows]:
        """The entries of a key group. Those of a namespaced table are one part.

        Groups are asked for in order, each once. A part is read before the next one.
        """


@dataclass(frozen=True, slots=True)
class FrozenState:
    """All tables of a backend at one moment.

    ``release``: called once, in the thread of the backend, when the entries are no longer read.
    """

    tables: Sequence[FrozenTable]
    descriptions: Mapping[str, TableDescription]
    release: Callable[[], None] = lambda: None


@dataclass(frozen=True, slots=True)
class FrozenFiles:
    """The own files of a backend at one moment, for a native savepoint.

    ``copy``: writes copies of all files to a store. It calls its second argument now and then, which
    raises an exception if the copies are no longer wanted.
    ``release``: called once, in the thread of the backend, when the files are no longer read.
    """

    descriptions: Mapping[str, TableDescription]
    copy: Callable[[SegmentStore, Callable[[], None]], Segment]
    release: Callable[[], None]


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

    def parts_of_group(self, group: int) -> Iterable[Columns]:
        # Each group is read once, and its references are not needed any longer.
        return [self._sorted().pop(group, ([], []))]

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
