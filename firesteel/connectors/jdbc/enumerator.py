"""Enumerator of a JdbcSource: ranges of a numeric column."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from typing import Any

from firesteel.connectors.base import SourceSplit, SplitEnumerator
from firesteel.connectors.index_ranges import split_range
from firesteel.connectors.jdbc.options import JdbcConnectionOptions
from firesteel.connectors.jdbc.source import TableQuery
from firesteel.errors import InvalidProgramError

__all__ = ["TableRangeEnumerator"]


class TableRangeEnumerator(SplitEnumerator):
    """Divides the numbers between the smallest and the greatest one of a column, once."""

    def __init__(
        self,
        connection: JdbcConnectionOptions,
        query: TableQuery,
        *,
        splits: int,
        is_continuous: bool,
        state: Any = None,
    ) -> None:
        """Create an enumerator.

        Args:
            connection: The database.
            query: The rows to read.
            splits: The number of ranges.
            is_continuous: True adds a range without an end, for rows that come later.
            state: The result of ``snapshot_state``.
        """
        self._connection = connection
        self._query = query
        self._splits = splits
        self._is_continuous = is_continuous
        self._discovered = bool(state)

    def discover_splits(self) -> Sequence[SourceSplit]:
        if self._discovered:
            return []
        first, last = self._bounds()
        self._discovered = True
        ranges: list[tuple[int | None, int | None]] = []
        if first is not None and last is not None:
            ranges += split_range(first, last + 1, self._splits)
        if self._is_continuous:
            ranges.append((None if last is None else last + 1, None))
        return [
            SourceSplit(f"range-{number}", {"start": start, "stop": stop})
            for number, (start, stop) in enumerate(ranges)
        ]

    def is_complete(self) -> bool:
        return self._discovered

    def snapshot_state(self) -> Any:
        return self._discovered

    def _bounds(self) -> tuple[int | None, int | None]:
        database, query = self._connection.database, self._query
        column = database.quote(query.column)
        where = f" WHERE {query.condition}" if query.condition else ""
        with closing(database.connect(self._connection.check_timeout_seconds)) as connection:
            [(first, last)] = database.query(
                connection,
                f"SELECT min({column}), max({column}) FROM {database.quote(query.table)}{where}",
            )
        if first is None:
            return None, None
        try:
            return int(first), int(last)
        except (TypeError, ValueError):
            raise InvalidProgramError(
                f"JdbcSource: the split column {query.column!r} must have whole numbers, got "
                f"{first!r}"
            ) from None
