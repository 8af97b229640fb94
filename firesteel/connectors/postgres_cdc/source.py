"""PostgresCdcSource and its builder."""

from __future__ import annotations

import re
from typing import Any

from firesteel.connectors.base import (
    Boundedness,
    ReaderContext,
    Source,
    SourceReader,
    SplitEnumerator,
)
from firesteel.connectors.jdbc.databases import PostgresDatabase
from firesteel.connectors.jdbc.table_source_builder import TableSourceBuilder
from firesteel.connectors.postgres_cdc.settings import CdcSettings
from firesteel.errors import InvalidProgramError
from firesteel.stability import public_evolving

__all__ = ["PostgresCdcSource", "PostgresCdcSourceBuilder"]


@public_evolving
class PostgresCdcSource(Source):
    """Reads a table of PostgreSQL and then follows its changes, as rows with a RowKind. Not in PyFlink.

    The source needs the extra ``postgres``: ``pip install 'firesteel[postgres]'``.

    >>> from firesteel.datastream.connectors.jdbc import JdbcConnectionOptions
    >>> from firesteel.datastream.connectors.postgres_cdc import PostgresCdcSource
    >>> orders = (
    ...     PostgresCdcSource.builder()
    ...     .set_connection_options(
    ...         JdbcConnectionOptions.JdbcConnectionOptionsBuilder()
    ...         .with_url("jdbc:postgresql://localhost:5432/shop")
    ...         .build()
    ...     )
    ...     .set_table("orders")
    ...     .set_type_info(Types.ROW_NAMED(["id", "item"], [Types.INT(), Types.STRING()]))
    ...     .set_slot_name("orders_of_shop")
    ...     .build()
    ... )
    >>> orders
    PostgresCdcSource(public.orders at jdbc:postgresql://localhost:5432/shop)
    """

    side_by_side = True

    def __init__(self, settings: CdcSettings) -> None:
        """Create a source. Programs use ``PostgresCdcSource.builder()``.

        Args:
            settings: The table and the slot.
        """
        self._settings = settings

    @staticmethod
    def builder() -> PostgresCdcSourceBuilder:
        """Start building a source."""
        return PostgresCdcSourceBuilder()

    def get_boundedness(self) -> Boundedness:
        return Boundedness.CONTINUOUS_UNBOUNDED

    def create_enumerator(self, parallelism: int, state: Any = None) -> SplitEnumerator:
        from firesteel.connectors.postgres_cdc.enumerator import SlotEnumerator

        return SlotEnumerator(self._settings, state)

    def create_reader(self, context: ReaderContext) -> SourceReader:
        from firesteel.connectors.postgres_cdc.reader import ChangeReader

        return ChangeReader(self._settings)

    def get_produced_type(self) -> Any:
        return self._settings.type_info

    def __repr__(self) -> str:
        url = self._settings.connection.database.url
        return f"PostgresCdcSource({self._settings.table} at {url})"


@public_evolving
class PostgresCdcSourceBuilder(TableSourceBuilder):
    """Builds a PostgresCdcSource. Database, table, type and slot are required. Not in PyFlink.

    >>> from firesteel.datastream.connectors.jdbc import JdbcConnectionOptions
    >>> from firesteel.datastream.connectors.postgres_cdc import PostgresCdcSourceBuilder
    >>> database = JdbcConnectionOptions.JdbcConnectionOptionsBuilder()
    >>> database = database.with_url("jdbc:postgresql://localhost/shop").build()
    >>> builder = PostgresCdcSourceBuilder().set_connection_options(database)
    >>> builder = builder.set_table("orders").set_slot_name("orders_of_shop")
    >>> builder.set_type_info(Types.ROW_NAMED(["id"], [Types.INT()])).build()
    PostgresCdcSource(public.orders at jdbc:postgresql://localhost/shop)
    >>> PostgresCdcSourceBuilder().set_table("orders").build()
    Traceback (most recent call last):
    firesteel.errors.InvalidProgramError: PostgresCdcSource: set_connection_options was not called
    """

    def __init__(self) -> None:
        super().__init__()
        self._slot: str | None = None
        self._publication: str | None = None
        self._reads_snapshot = True

    def set_slot_name(self, slot: str) -> PostgresCdcSourceBuilder:
        """Set the replication slot. The job creates it if it does not exist.

        Args:
            slot: A name of lower-case letters, digits and underscores that no other job uses. Drop
                the slot when you do not need the job any more: it keeps the server's log.
        """
        if not re.fullmatch(r"[a-z0-9_]{1,63}", slot):
            raise ValueError(
                f"A slot name has up to 63 lower-case letters, digits and underscores, got {slot!r}"
            )
        self._slot = slot
        return self

    def set_publication_name(self, publication: str) -> PostgresCdcSourceBuilder:
        """Set the publication. The default is the name of the slot.

        Args:
            publication: A publication that contains the table. The job creates it if it does not
                exist, for which the user must own the table.

        >>> from firesteel.datastream.connectors.postgres_cdc import PostgresCdcSource
        >>> builder = PostgresCdcSource.builder().set_publication_name("all_tables")
        """
        self._publication = publication
        return self

    def set_snapshot(self, reads_snapshot: bool) -> PostgresCdcSourceBuilder:
        """Choose if the rows that exist already are read first.

        Args:
            reads_snapshot: False reads only changes after the creation of the slot.

        >>> from firesteel.datastream.connectors.postgres_cdc import PostgresCdcSource
        >>> builder = PostgresCdcSource.builder().set_snapshot(False)
        """
        self._reads_snapshot = reads_snapshot
        return self

    def build(self) -> PostgresCdcSource:
        """Create the source.

        Raises:
            InvalidProgramError: A setting is missing.
            ConfigurationError: The driver is not installed.
        """
        self._require("PostgresCdcSource", set_slot_name=self._slot)
        assert self._slot is not None
        if not isinstance(self._connection.database, PostgresDatabase):
            raise InvalidProgramError(
                f"PostgresCdcSource reads PostgreSQL, not {self._connection.database.url}"
            )
        return PostgresCdcSource(
            CdcSettings(
                self._connection,
                self._table if "." in self._table else f"public.{self._table}",
                self._type_info,
                self._slot,
                self._publication or self._slot,
                self._reads_snapshot,
                self._fetch_size,
            )
        )
