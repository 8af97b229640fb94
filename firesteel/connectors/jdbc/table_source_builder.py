"""The settings that the builders of all sources of tables have."""

from __future__ import annotations

from typing import Any, Self

from firesteel.common.typeinfo import RowTypeInfo
from firesteel.connectors.jdbc.options import JdbcConnectionOptions
from firesteel.errors import InvalidProgramError, shorten

__all__ = ["TableSourceBuilder"]

_FETCH_SIZE = 2000


class TableSourceBuilder:
    """Builds a source that reads a table of a database."""

    _connection: JdbcConnectionOptions
    _table: str
    _type_info: RowTypeInfo

    def __init__(self) -> None:
        self._fetch_size = _FETCH_SIZE

    def set_connection_options(self, connection_options: JdbcConnectionOptions) -> Self:
        """Set the database.

        Args:
            connection_options: The database. Change data capture needs a PostgreSQL, and a user
                with the attribute REPLICATION.
        """
        self._connection = connection_options
        return self

    def set_table(self, table: str) -> Self:
        """Set the table.

        Args:
            table: The name of a table, with or without its schema. Change data capture needs a
                table with a primary key, and looks in the schema ``public`` if none is given.
        """
        self._table = table
        return self

    def set_type_info(self, type_info: RowTypeInfo) -> Self:
        """Set the columns and their types.

        Args:
            type_info: The type of the rows. The names of its fields are columns of the table.
                Change data capture needs the primary key among them.
        """
        if not isinstance(type_info, RowTypeInfo):
            raise TypeError(f"set_type_info expects a row type, got {shorten(type_info)}")
        self._type_info = type_info
        return self

    def set_fetch_size(self, fetch_size: int) -> Self:
        """Set the number of rows that are fetched at a time.

        Args:
            fetch_size: The number. The default is 2000.

        >>> from firesteel.datastream.connectors.jdbc import JdbcSource
        >>> builder = JdbcSource.builder().set_fetch_size(100)
        """
        if fetch_size < 1:
            raise ValueError(f"set_fetch_size expects at least 1, got {fetch_size}")
        self._fetch_size = fetch_size
        return self

    def _require(self, source: str, **further: Any) -> None:
        """Raise an error if a setting is missing, or if the driver is not installed.

        Args:
            source: The name of the source, for errors.
            **further: Values of more settings, by the names of their methods.
        """
        settings = {
            "set_connection_options": getattr(self, "_connection", None),
            "set_table": getattr(self, "_table", None),
            "set_type_info": getattr(self, "_type_info", None),
            **further,
        }
        for method, value in settings.items():
            if value is None:
                raise InvalidProgramError(f"{source}: {method} was not called")
        self._connection.database.require_driver(source)
