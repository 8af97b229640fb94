"""A value for each key: one row."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from firesteel.state.changes import ChangeKind, Changes
from firesteel.state.overlay.value_table import OverlayValueTable
from firesteel.state.rocksdb.database import Database
from firesteel.state.rocksdb.key_round import KeyRound
from firesteel.state.rocksdb.rows import RowFormat
from firesteel.state.tables import TableDescription


class _Rows:
    """The base, as hot loops read it."""

    def __init__(self, database: Database, rows: RowFormat) -> None:
        self._database = database
        self._rows = rows

    def get(self, key: Any, default: Any, /) -> Any:
        value = self._database.get(self._rows.prefix(key))
        return default if value is None else self._rows.element(value)


class RocksDBValueTable(OverlayValueTable):
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

    def operations(self, changes: Changes) -> Iterator[tuple[bytes, bytes | None]]:
        """What the changes are to the database."""
        rows = self.rows
        if changes.kind is ChangeKind.REMOVE:
            for key in changes.keys:
                yield rows.prefix(key), None
            return
        assert changes.elements is not None
        for key, element in zip(changes.keys, changes.elements, strict=True):
            yield rows.prefix(key), rows.value((key,), element)
