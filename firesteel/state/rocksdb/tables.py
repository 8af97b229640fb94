"""Tables whose bases are rows in RocksDB: one per value, part of a list, or entry of a map."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

from firesteel.state.changes import ChangeKind, Changes, EncodedRows
from firesteel.state.elements import decode_elements, encode_elements
from firesteel.state.frozen_state import Columns
from firesteel.state.rocksdb.database import Database, View
from firesteel.state.rocksdb.rows import AFTER, RowFormat, group_prefix, key_group_of_row
from firesteel.state.table_descriptions import TableDescription, TableKind
from firesteel.state.tables import MISSING, ListTable, MapTable, ValueTable

# A batch of at least so many keys is read at once.
_FEW_KEYS = 16
# Keys that are encoded at once.
_CHUNK = 5_000


class KeyRound:
    """Visits the keys of a table. Each step skips all rows of a key."""

    def __init__(self, database: Database, rows: RowFormat) -> None:
        self._database = database
        self._rows = rows
        self._position: bytes | None = None

    def all_keys(self) -> Iterator[Any]:
        position = self._rows.table_prefix
        while (found := self._at(position)) is not None:
            key, position = found
            yield key

    def next_keys(self, limit: int) -> list[Any]:
        """Return up to ``limit`` keys, and fewer at the end of a round."""
        position = self._position or self._rows.table_prefix
        keys: list[Any] = []
        while len(keys) < limit:
            found = self._at(position)
            if found is None:
                self._position = None
                break
            key, position = found
            self._position = position
            keys.append(key)
        return keys

    def _at(self, position: bytes) -> tuple[Any, bytes] | None:
        """The first key at or after a position, and the position after all of its rows."""
        found = self._database.first(position)
        if found is None or not found[0].startswith(self._rows.table_prefix):
            return None
        row, value = found
        _, end = self._rows.split(row)
        return self._rows.key(row, value), row[:end] + AFTER


class _Rows:
    """The base of a value table. Hot loops read it directly."""

    def __init__(self, database: Database, rows: RowFormat) -> None:
        self._database = database
        self._rows = rows

    def get(self, key: Any, default: Any, /) -> Any:
        value = self._database.get(self._rows.prefix(key))
        return default if value is None else self._rows.element(value)


class RocksDBValueTable(ValueTable):
    def __init__(
        self, name: str, description: TableDescription, database: Database, rows: RowFormat
    ) -> None:
        super().__init__(name, description)
        self.rows = rows
        self.base = _Rows(database, rows)
        self._database = database
        self._round = KeyRound(database, rows)

    def base_items(self) -> Iterator[tuple[Any, Any]]:
        for row, value in self._database.scan(self.rows.table_prefix):
            yield self.rows.key(row, value), self.rows.element(value)

    def next_keys(self, limit: int) -> list[Any]:
        return self._round.next_keys(limit)

    def reader(self, keys: list[Any]) -> Callable[[Any, Any], Any]:
        wanted = list(set(keys).difference(self.overlay))
        if len(wanted) < _FEW_KEYS:
            return self.base.get
        found = self._database.get_all(self.rows.prefixes(wanted))
        present = [value for value in found if value is not None]
        if len(present) < len(wanted):
            pairs = zip(wanted, found, strict=True)
            wanted = [key for key, value in pairs if value is not None]
        return dict(zip(wanted, self.rows.elements(present), strict=True)).get

    def apply(self, changes: Changes) -> None:
        rows, database, keys = self.rows, self._database, changes.keys
        if changes.kind is ChangeKind.REMOVE:
            database.write((row, None) for row in rows.prefixes(keys))
            return
        assert changes.elements is not None
        for start in range(0, len(keys), _CHUNK):
            chunk, elements = keys[start : start + _CHUNK], changes.elements[start : start + _CHUNK]
            database.put_all(rows.prefixes(chunk), rows.values(chunk, elements))


_NUMBER = struct.Struct(">Q")
_LAST_GROUP = 0xFFFF


class FrozenRows:
    """A table in a view of the database. Its rows are sorted by key group already."""

    def __init__(self, name: str, kind: TableKind, rows: RowFormat, view: View) -> None:
        self.name = name
        self._kind = kind
        self._rows = rows
        self._view = view

    def groups(self) -> Iterator[int]:
        prefix = self._rows.table_prefix
        group = 0
        while group <= _LAST_GROUP:
            found = self._view.first(group_prefix(prefix, group))
            if found is None or not found[0].startswith(prefix):
                return
            group = key_group_of_row(found[0])
            yield group
            group += 1

    def parts_of_group(self, group: int) -> Iterator[Columns | EncodedRows]:
        chunks = self._view.before(group_prefix(self._rows.table_prefix, group + 1))
        if self._kind is not TableKind.VALUE:
            yield self._collected(_pairs(chunks))
        elif self._rows.namespaced:
            yield self._rows.columns(_pairs(chunks))
        else:
            for rows, values in chunks:
                if self._rows.are_plain(rows, values):
                    yield EncodedRows(self.name, rows, values)
                else:
                    yield self._rows.columns(zip(rows, values, strict=True))

    def _collected(self, found: Iterable[tuple[bytes, bytes]]) -> Columns:
        """The lists or maps of keys, each of which has several rows."""
        rows = self._rows
        keys: list[Any] = []
        values: list[Any] = []
        before: bytes | None = None
        for row, value in found:
            _, end = rows.split(row)
            if row[:end] != before:
                before = row[:end]
                keys.append(rows.key(row, value))
                values.append([] if self._kind is TableKind.LIST else {})
            if self._kind is TableKind.LIST:
                values[-1] += decode_elements(rows.content(value))
            else:
                values[-1][rows.entry(row, value)] = rows.element(value)
        return keys, values


def _pairs(
    chunks: Iterable[tuple[Sequence[bytes], Sequence[bytes]]],
) -> Iterator[tuple[bytes, bytes]]:
    return chain.from_iterable(zip(rows, values, strict=True) for rows, values in chunks)


class RocksDBListTable(ListTable):
    """A list table. ``next_number`` returns increasing numbers, which keep list parts in order."""

    def __init__(
        self,
        name: str,
        description: TableDescription,
        database: Database,
        rows: RowFormat,
        next_number: Callable[[], int],
    ) -> None:
        super().__init__(name, description)
        self.rows = rows
        self._database = database
        self._next_number = next_number
        self._round = KeyRound(database, rows)

    def base_list(self, key: Any) -> list[Any] | None:
        elements: list[Any] = []
        for _, value in self._database.scan(self.rows.prefix(key)):
            elements += decode_elements(self.rows.content(value))
        return elements or None

    def base_keys(self) -> Iterator[Any]:
        return self._round.all_keys()

    def next_keys(self, limit: int) -> list[Any]:
        return self._round.next_keys(limit)

    def apply(self, changes: Changes) -> None:
        self._database.write(self._operations(changes))

    def _operations(self, changes: Changes) -> Iterator[tuple[bytes, bytes | None]]:
        rows = self.rows
        if changes.kind is not ChangeKind.APPEND:
            for key in changes.keys:
                for row, _ in self._database.scan(rows.prefix(key)):
                    yield row, None
        if changes.kind is ChangeKind.REMOVE:
            return
        lists = changes.groups(changes.elements)
        for key, elements in zip(changes.keys, lists, strict=True):
            row = rows.prefix(key) + _NUMBER.pack(self._next_number())
            yield row, rows.framed((key,), encode_elements(elements))


class RocksDBMapTable(MapTable):
    def __init__(
        self, name: str, description: TableDescription, database: Database, rows: RowFormat
    ) -> None:
        super().__init__(name, description)
        self.rows = rows
        self._database = database
        self._round = KeyRound(database, rows)

    def base_value(self, key: Any, entry: Any) -> Any:
        rows = self.rows
        value = self._database.get(rows.with_entry(rows.prefix(key), entry))
        return MISSING if value is None else rows.element(value)

    def base_entries(self, key: Any) -> Iterator[tuple[Any, Any]]:
        rows = self.rows
        for row, value in self._database.scan(rows.prefix(key)):
            yield rows.entry(row, value), rows.element(value)

    def base_map(self, key: Any) -> Mapping[Any, Any] | None:
        return dict(self.base_entries(key))

    def base_keys(self) -> Iterator[Any]:
        return self._round.all_keys()

    def next_keys(self, limit: int) -> list[Any]:
        return self._round.next_keys(limit)

    def apply(self, changes: Changes) -> None:
        self._database.write(self._operations(changes))

    def _operations(self, changes: Changes) -> Iterator[tuple[bytes, bytes | None]]:
        rows = self.rows
        if changes.kind is ChangeKind.REMOVE:
            for key in changes.keys:
                for row, _ in self._database.scan(rows.prefix(key)):
                    yield row, None
            return
        groups = changes.groups(changes.entries)
        if changes.kind is ChangeKind.REMOVE_ENTRIES:
            for key, entries in zip(changes.keys, groups, strict=True):
                prefix = rows.prefix(key)
                for entry in entries:
                    yield rows.with_entry(prefix, entry), None
            return
        lists = changes.groups(changes.elements)
        for key, entries, elements in zip(changes.keys, groups, lists, strict=True):
            prefix = rows.prefix(key)
            for entry, element in zip(entries, elements, strict=True):
                yield rows.with_entry(prefix, entry), rows.value((key, entry), element)
