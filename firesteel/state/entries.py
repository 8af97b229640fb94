"""Entries of tables and changes of segments, one made of the other."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from typing import Any, NamedTuple

from firesteel.state.changes import ChangeKind, Changes
from firesteel.state.tables import Table, TableDescription, TableKind


class StateEntry(NamedTuple):
    """Everything one table holds for one key: a value, a list or a dictionary.

    ``namespace`` is None in a table without namespaces.
    """

    table: str
    key: Any
    namespace: Any
    value: Any


def entries_of(tables: Mapping[str, Table]) -> Iterator[StateEntry]:
    for name, table in tables.items():
        if table.description.namespaced:
            for (key, namespace), value in table.items():
                yield StateEntry(name, key, namespace, value)
        else:
            for key, value in table.items():
                yield StateEntry(name, key, None, value)


def changes_of(
    entries: Iterable[StateEntry], descriptions: Mapping[str, TableDescription], limit: int
) -> Iterator[Changes]:
    """Changes that put the entries, about ``limit`` elements in each."""
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


def put_changes(name: str, kind: TableKind, keys: list[Any], values: list[Any]) -> Changes:
    """``values`` are values, lists or dictionaries, as the kind of the table says."""
    if kind is TableKind.VALUE:
        return Changes(name, ChangeKind.PUT, keys, values)
    lengths = list(map(len, values))
    if kind is TableKind.LIST:
        elements = [element for value in values for element in value]
        return Changes(name, ChangeKind.PUT, keys, elements, lengths)
    elements = [element for value in values for element in value.values()]
    entries = [entry for value in values for entry in value]
    return Changes(name, ChangeKind.PUT, keys, elements, lengths, entries)
