"""Settings of a PostgresCdcSource."""

from __future__ import annotations

from dataclasses import dataclass

from firesteel.common.typeinfo import RowTypeInfo
from firesteel.connectors.jdbc.options import JdbcConnectionOptions

__all__ = ["CdcSettings"]


@dataclass(frozen=True, slots=True)
class CdcSettings:
    """The table to follow, and the way to it.

    Args:
        connection: The database.
        table: The name of the table with its schema.
        type_info: The type of the rows. The names of its fields are the columns.
        slot: The name of the replication slot.
        publication: The name of the publication.
        reads_snapshot: True if the rows that exist already are read first.
        fetch_size: The rows of the table that are fetched at a time.
    """

    connection: JdbcConnectionOptions
    table: str
    type_info: RowTypeInfo
    slot: str
    publication: str
    reads_snapshot: bool
    fetch_size: int
