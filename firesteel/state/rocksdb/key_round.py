"""A round through the keys of a table that changes meanwhile."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from firesteel.state.rocksdb.database import Database
from firesteel.state.rocksdb.rows import BEHIND, RowFormat


class KeyRound:
    """Goes from key to key, however many rows a key has."""

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
        """Up to ``limit`` keys; the end of a round may give fewer."""
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
        """The first key at a position, and the position behind all of its rows."""
        found = self._database.first(position)
        if found is None or not found[0].startswith(self._rows.table_prefix):
            return None
        row, value = found
        _, end = self._rows.split(row)
        return self._rows.key(row, value), row[:end] + BEHIND
