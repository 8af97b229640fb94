"""Changes of tables as data. Segments consist of changes, in the same form for every backend."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from itertools import compress, groupby
from typing import Any, NamedTuple

from firesteel.state.table_descriptions import TableDescription, TableKind


class ChangeKind(Enum):
    """Kinds of changes to keys. ``PUT`` sets a value, replaces a list, or sets entries of a map."""

    DROP = "drop the table"
    REMOVE = "remove"
    PUT = "put"
    APPEND = "append"
    REMOVE_ENTRIES = "remove entries"


@dataclass(frozen=True, slots=True)
class Changes:
    """One kind of change to many keys of one table, in parallel lists.

    ``lengths``: for lists and maps, the number of elements of each key.
    ``entries``: the keys within maps.
    """

    table: str
    kind: ChangeKind
    keys: list[Any]
    elements: list[Any] | None = None
    lengths: list[int] | None = None
    entries: list[Any] | None = None

    def only(self, picks: list[bool]) -> Changes:
        """The changes of the keys whose pick is true."""
        if all(picks):
            return self
        inner = picks
        if self.lengths is not None:
            inner = [
                pick
                for pick, length in zip(picks, self.lengths, strict=True)
                for _ in range(length)
            ]
        return replace(
            self,
            keys=list(compress(self.keys, picks)),
            elements=None if self.elements is None else list(compress(self.elements, inner)),
            lengths=None if self.lengths is None else list(compress(self.lengths, picks)),
            entries=None if self.entries is None else list(compress(self.entries, inner)),
        )

    def without(self, unwanted: Callable[[Any], bool]) -> Changes:
        """The changes without unwanted elements, and without keys that have no element left."""
        if self.elements is None:
            return self
        picks = [not unwanted(element) for element in self.elements]
        if all(picks):
            return self
        elements = list(compress(self.elements, picks))
        if self.lengths is None:
            return replace(self, keys=list(compress(self.keys, picks)), elements=elements)
        lengths = [sum(group) for group in self.groups(picks)]
        return replace(
            self,
            keys=list(compress(self.keys, lengths)),
            elements=elements,
            lengths=[length for length in lengths if length],
            entries=None if self.entries is None else list(compress(self.entries, picks)),
        )

    def groups(self, column: list[Any] | None) -> Iterator[list[Any]]:
        """The part of ``elements`` or ``entries`` that belongs to each key."""
        assert self.lengths is not None
        assert column is not None
        start = 0
        for length in self.lengths:
            yield column[start : start + length]
            start += length


class EncodedRows(NamedTuple):
    """Values of many keys of a table, as rows of the rocksdb backend. None of them has a pickle.

    A row begins with the number of the table in its database, and the key group.
    """

    table: str
    rows: Sequence[bytes]
    values: Sequence[bytes]


class StateEntry(NamedTuple):
    """Everything one table holds for one key: a value, a list or a dictionary.

    ``namespace`` is None in a table without namespaces.
    """

    table: str
    key: Any
    namespace: Any
    value: Any


def changes_of(
    entries: Iterable[StateEntry], descriptions: Mapping[str, TableDescription], limit: int
) -> Iterator[Changes]:
    """Convert entries into PUT changes of about ``limit`` elements each."""
    for table, of_table in groupby(entries, key=lambda entry: entry.table):
        yield from _chunks(table, descriptions[table], of_table, limit)


def _chunks(
    name: str, table: TableDescription, entries: Iterable[StateEntry], limit: int
) -> Iterator[Changes]:
    keys: list[Any] = []
    values: list[Any] = []
    size = 0
    for entry in entries:
        keys.append((entry.key, entry.namespace) if table.namespaced else entry.key)
        values.append(entry.value)
        size += 1 if table.kind is TableKind.VALUE else len(entry.value)
        if size >= limit:
            yield put_changes(name, table.kind, keys, values)
            keys, values, size = [], [], 0
    if keys:
        yield put_changes(name, table.kind, keys, values)


def put_chunks(
    name: str, kind: TableKind, keys: list[Any], values: list[Any], limit: int
) -> Iterator[Changes]:
    """Put ``values`` in chunks of about ``limit`` elements. A key is never divided."""
    if kind is TableKind.VALUE:
        for start in range(0, len(keys), limit):
            end = start + limit
            yield Changes(name, ChangeKind.PUT, keys[start:end], values[start:end])
        return
    start = size = 0
    for index, value in enumerate(values):
        size += len(value)
        if size >= limit:
            yield put_changes(name, kind, keys[start : index + 1], values[start : index + 1])
            start, size = index + 1, 0
    if start < len(keys):
        yield put_changes(name, kind, keys[start:], values[start:])


def put_changes(name: str, kind: TableKind, keys: list[Any], values: list[Any]) -> Changes:
    """Put ``values``, which are values, lists or dictionaries, depending on the kind of table."""
    if kind is TableKind.VALUE:
        return Changes(name, ChangeKind.PUT, keys, values)
    if kind is TableKind.LIST:
        return list_changes(name, ChangeKind.PUT, keys, values)
    return map_changes(name, keys, values)


def list_changes(name: str, kind: ChangeKind, keys: list[Any], lists: list[list[Any]]) -> Changes:
    """Put or append a list for each key."""
    elements = [element for values in lists for element in values]
    return Changes(name, kind, keys, elements, lengths=list(map(len, lists)))


def map_changes(name: str, keys: list[Any], maps: list[dict[Any, Any]]) -> Changes:
    """Put the entries of a map for each key."""
    return Changes(
        name,
        ChangeKind.PUT,
        keys,
        elements=[value for entries in maps for value in entries.values()],
        lengths=list(map(len, maps)),
        entries=[entry for entries in maps for entry in entries],
    )
