"""A map for each key: a row for every entry."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from firesteel.state.changes import ChangeKind, Changes
from firesteel.state.missing import MISSING
from firesteel.state.overlay.map_table import OverlayMapTable
from firesteel.state.rocksdb.database import Database
from firesteel.state.rocksdb.key_round import KeyRound
from firesteel.state.rocksdb.rows import RowFormat
from firesteel.state.tables import TableDescription


class RocksDBMapTable(OverlayMapTable):
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

    def operations(self, changes: Changes) -> Iterator[tuple[bytes, bytes | None]]:
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
