"""Tables that a changelog is applied to, with the journal that makes this exact."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Any

from firesteel.connectors.jdbc.databases import Database

__all__ = ["ChangelogTable", "is_name_of"]

_BATCH, _DELETED = "firesteel_batch", "firesteel_deleted"


def is_name_of(prefix: str, name: str) -> bool:
    """Return True if a sink with this prefix has named a transaction or a batch."""
    return re.fullmatch(re.escape(prefix) + r"/\d+/[0-9a-f]{32}", name) is not None


class ChangelogTable:
    """A table with a primary key, and the statements that change it.

    The journal is a table next to it, with the same columns. A batch of the journal has at most one
    row for each key. To apply a batch, one transaction changes the table and empties the batch: a
    second one finds nothing to do.
    """

    def __init__(
        self, database: Database, table: str, columns: Sequence[str], keys: Sequence[str]
    ) -> None:
        """Create the statements.

        Args:
            database: The database.
            table: The name of the table, with or without its schema.
            columns: The names of its columns, in the order of the fields.
            keys: The names of the columns of its primary key.
        """
        self._database = database
        self._table = database.quote(table)
        self._journal = database.quote(f"{table}_firesteel_journal")
        self._index = database.quote(f"{table.rpartition('.')[2]}_firesteel_batches")
        quote = database.quote
        self._columns = [quote(name) for name in columns]
        self._keys = [quote(name) for name in keys]
        positions = [list(columns).index(name) for name in keys]
        self._key_positions = positions
        marks = ", ".join("?" * len(columns))
        journal_columns = ", ".join([*self._columns, _BATCH, _DELETED])
        self._journal_columns = journal_columns
        self.upsert_one = database.statement(
            database.upsert(self._table, self._columns, self._keys, f"VALUES ({marks})")
        )
        condition = " AND ".join(f"{key} = ?" for key in self._keys)
        self.delete_one = database.statement(f"DELETE FROM {self._table} WHERE {condition}")
        self.append_one = database.statement(
            f"INSERT INTO {self._journal} ({journal_columns}) VALUES ({marks}, ?, ?)"
        )

    @property
    def key_of(self) -> Callable[[tuple[Any, ...]], tuple[Any, ...]]:
        """A function that returns the primary key of a row."""
        positions = self._key_positions
        if len(positions) == 1:
            [position] = positions
            return lambda row: (row[position],)
        return itemgetter(*positions)

    def append(self, connection: Any, rows: Sequence[Sequence[Any]]) -> None:
        """Write rows to the journal."""
        self._database.load(connection, self._journal, self._journal_columns, rows)

    def create_journal(self, connection: Any) -> None:
        """Create the journal, unless it exists."""
        columns = ", ".join(self._columns)
        connection.cursor().execute(
            f"CREATE TABLE IF NOT EXISTS {self._journal} AS SELECT {columns}, "
            f"CAST('' AS VARCHAR(200)) AS {_BATCH}, 0 AS {_DELETED} FROM {self._table} WHERE 1 = 0"
        )
        connection.cursor().execute(
            f"CREATE INDEX IF NOT EXISTS {self._index} ON {self._journal} ({_BATCH})"
        )

    def apply(self, connection: Any, batches: Sequence[str]) -> None:
        """Apply batches to the table, in order, in the transaction of the connection."""
        query, journal = self._database.query, self._journal
        keys = ", ".join(self._keys)
        columns = ", ".join(self._columns)
        upsert = self._database.upsert(
            self._table,
            self._columns,
            self._keys,
            f"SELECT {columns} FROM {journal} WHERE {_BATCH} = ? AND {_DELETED} = 0",
        )
        for batch in batches:
            # A second committer of the same batch waits here, and then finds it empty.
            query(
                connection,
                f"SELECT 1 FROM {journal} WHERE {_BATCH} = ?{self._database.for_update}",
                [batch],
            )
            query(
                connection,
                f"DELETE FROM {self._table} WHERE ({keys}) IN (SELECT {keys} FROM {journal} "
                f"WHERE {_BATCH} = ? AND {_DELETED} = 1)",
                [batch],
            )
            query(connection, upsert, [batch])
            query(connection, f"DELETE FROM {journal} WHERE {_BATCH} = ?", [batch])

    def batches(self, connection: Any, prefix: str) -> list[str]:
        """Return the names of the batches of a sink that are in the journal."""
        found = self._database.query(connection, f"SELECT DISTINCT {_BATCH} FROM {self._journal}")
        return [batch for (batch,) in found if is_name_of(prefix, batch)]

    def drop(self, connection: Any, batches: Sequence[str]) -> None:
        """Delete batches that no checkpoint contains."""
        for batch in batches:
            self._database.query(
                connection, f"DELETE FROM {self._journal} WHERE {_BATCH} = ?", [batch]
            )
