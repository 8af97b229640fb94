"""Rows of a stream as parameters of a statement."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from firesteel.common.typeinfo import RowTypeInfo
from firesteel.common.types import Row, field_names_of, values_of
from firesteel.connectors.jdbc.databases import Database
from firesteel.errors import shorten

__all__ = ["RowParameters"]


class RowParameters:
    """Converts records to tuples of parameters, in the order of the fields of a row type."""

    def __init__(self, type_info: RowTypeInfo, database: Database) -> None:
        """Create a converter.

        Args:
            type_info: The type of the records.
            database: The database, which may not take all Python values.
        """
        self._names = type_info.get_field_names()
        self._width = len(self._names)
        self._convert: Callable[[Any], Any] | None = (
            database.parameter if database.converts else None
        )

    def of(self, records: list[Any]) -> list[tuple[Any, ...]]:
        """Return the parameters of each record."""
        names, width, convert = self._names, self._width, self._convert
        found = []
        for record in records:
            if isinstance(record, Row):
                own = field_names_of(record)
                values = (
                    values_of(record)
                    if own is None or own == names
                    else record.get_fields_by_names(names)
                )
            elif isinstance(record, (tuple, list)):
                values = record
            elif isinstance(record, dict):
                values = [record[name] for name in names]
            else:
                raise TypeError(
                    f"JdbcSink expects rows with the fields {names}, got {shorten(record)}"
                )
            if len(values) != width:
                raise ValueError(
                    f"JdbcSink expects rows with the fields {names}, got {shorten(record)}"
                )
            found.append(tuple(values) if convert is None else tuple(map(convert, values)))
        return found
