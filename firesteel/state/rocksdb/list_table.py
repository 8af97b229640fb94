"""A list for each key: a row for every epoch that appended to it."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from typing import Any

from firesteel.state.changes import ChangeKind, Changes
from firesteel.state.elements import decode_elements, encode_elements
from firesteel.state.overlay.list_table import OverlayListTable
from firesteel.state.rocksdb.database import Database
from firesteel.state.rocksdb.key_round import KeyRound
from firesteel.state.rocksdb.rows import RowFormat
from firesteel.state.tables import TableDescription

_NUMBER = struct.Struct(">Q")


class RocksDBListTable(OverlayListTable):
    """``next_number`` gives ever greater numbers: the parts of a list lie in their order."""

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

    def operations(self, changes: Changes) -> Iterator[tuple[bytes, bytes | None]]:
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
