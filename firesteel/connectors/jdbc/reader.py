"""Reader of a JdbcSource: one query after the other, each after the last number of the previous."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from firesteel.connectors.base import SourceReader, SourceSplit
from firesteel.connectors.jdbc.options import JdbcConnectionOptions
from firesteel.connectors.jdbc.source import TableQuery

__all__ = ["TableRangeReader"]

_ATTEMPTS = 3


class TableRangeReader(SourceReader):
    """Reads its ranges one after the other. A position is the last number that was returned.

    A range without an end waits until all others are read, and is asked again and again.
    """

    def __init__(
        self, connection: JdbcConnectionOptions, query: TableQuery, poll_seconds: float
    ) -> None:
        """Create a reader. It connects at the first read.

        Args:
            connection: The database.
            query: The rows to read.
            poll_seconds: The time between two queries that found nothing.
        """
        self._options = connection
        self._database = connection.database
        self._query = query
        self._poll_seconds = poll_seconds
        self._connection: Any = None
        self._splits: deque[SourceSplit] = deque()
        # Rows of the first split that were fetched and not returned, with the number at the end.
        self._fetched: deque[Any] = deque()
        self._is_exhausted = False
        self._next_poll = 0.0

    def add_splits(self, splits: Sequence[SourceSplit]) -> None:
        current = [self._splits.popleft()] if self._splits and self._fetched else []
        waiting = sorted([*self._splits, *splits], key=lambda one: one.properties["stop"] is None)
        self._splits = deque([*current, *waiting])

    def read(self, limit: int) -> list[Any]:
        while self._splits and limit > 0:
            if not self._fetched:
                if not self._fetch():
                    return []
                continue
            rows = [self._fetched.popleft() for _ in range(min(limit, len(self._fetched)))]
            self._splits[0] = self._splits[0].at(rows[-1][-1])
            if not self._fetched and self._is_exhausted:
                self._finish_split()
            return self._query.type_info.convert_batch([row[:-1] for row in rows])
        return []

    def snapshot_splits(self) -> list[SourceSplit]:
        return list(self._splits)

    def next_read_delay(self) -> float:
        return max(0.0, self._next_poll - time.monotonic()) if self._splits else 0.1

    def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(Exception):
                connection.close()

    def _fetch(self) -> bool:
        """Ask for more rows of the first split. Return False if there is nothing to read now."""
        split = self._splits[0]
        is_endless = split.properties["stop"] is None
        if is_endless and time.monotonic() < self._next_poll:
            return False
        rows = self._rows_after(split)
        self._fetched.extend(rows)
        self._is_exhausted = not is_endless and len(rows) < self._query.fetch_size
        if rows:
            return True
        if is_endless:
            self._next_poll = time.monotonic() + self._poll_seconds
            return False
        self._finish_split()
        return bool(self._splits)

    def _finish_split(self) -> None:
        self._splits.popleft()
        self._is_exhausted = False

    def _rows_after(self, split: SourceSplit) -> list[Any]:
        query, database = self._query, self._database
        column = database.quote(query.column)
        columns = ", ".join(database.quote(name) for name in query.type_info.get_field_names())
        conditions, parameters = [], []
        if query.condition:
            conditions.append(f"({query.condition})")
        bounds = [
            (">", split.position),
            (">=", split.properties["start"] if split.position is None else None),
            ("<", split.properties["stop"]),
        ]
        for operator, bound in bounds:
            if bound is not None:
                conditions.append(f"{column} {operator} ?")
                parameters.append(bound)
        where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        sql = (
            f"SELECT {columns}, {column} FROM {database.quote(query.table)}{where} "
            f"ORDER BY {column} LIMIT {query.fetch_size}"
        )
        rows = self._run(sql, parameters)
        return [(*row[:-1], int(row[-1])) for row in rows]

    def _run(self, sql: str, parameters: Sequence[Any]) -> list[Any]:
        attempt = 1
        while True:
            if self._connection is None:
                self._connection = self._database.connect(self._options.check_timeout_seconds)
            try:
                return self._database.query(self._connection, sql, parameters)
            except Exception as error:
                self.close()
                if not self._database.is_error(error) or not self._database.is_transient(error):
                    raise
                if attempt == _ATTEMPTS:
                    raise
            attempt += 1
