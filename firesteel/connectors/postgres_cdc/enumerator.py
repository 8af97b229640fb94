"""Enumerator of a PostgresCdcSource: it creates the publication and the slot."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import closing
from typing import Any

from firesteel.connectors.base import SourceSplit, SplitEnumerator
from firesteel.connectors.postgres_cdc.errors import ChangeStreamError
from firesteel.connectors.postgres_cdc.settings import CdcSettings

__all__ = ["SlotEnumerator"]

_PAUSE_SECONDS = 0.05


class SlotEnumerator(SplitEnumerator):
    """Returns one split: the table, and then the slot with its changes."""

    def __init__(self, settings: CdcSettings, state: Any = None) -> None:
        """Create an enumerator.

        Args:
            settings: The table and the slot.
            state: The result of ``snapshot_state``.
        """
        self._settings = settings
        self._discovered = bool(state)

    def discover_splits(self) -> Sequence[SourceSplit]:
        if self._discovered:
            return []
        settings = self._settings
        database = settings.connection.database
        with closing(database.connect(settings.connection.check_timeout_seconds)) as connection:
            self._check_server(connection)
            self._create_publication(connection)
            self._create_slot(connection)
            self._wait_for_transactions(connection)
        self._discovered = True
        return [SourceSplit(settings.slot, {"table": settings.table})]

    def is_complete(self) -> bool:
        return self._discovered

    def snapshot_state(self) -> Any:
        return self._discovered

    def _check_server(self, connection: Any) -> None:
        [(level,)] = self._settings.connection.database.query(connection, "SHOW wal_level")
        if level != "logical":
            raise ChangeStreamError(
                self._settings.table,
                f"the server has wal_level = {level}. Set wal_level = logical in postgresql.conf and "
                "restart the server",
            )

    def _create_publication(self, connection: Any) -> None:
        settings = self._settings
        query, quote = settings.connection.database.query, settings.connection.database.quote
        found = query(
            connection,
            "SELECT count(*), bool_or(tablename IS NOT NULL) FROM pg_publication p LEFT JOIN "
            "pg_publication_tables t ON p.pubname = t.pubname "
            "AND t.schemaname = ? AND t.tablename = ? WHERE p.pubname = ?",
            [*settings.table.split(".", 1), settings.publication],
        )
        count, has_table = found[0]
        if not count:
            name = '"' + settings.publication.replace('"', '""') + '"'
            query(connection, f"CREATE PUBLICATION {name} FOR TABLE {quote(settings.table)}")
        elif not has_table:
            raise ChangeStreamError(
                settings.table, f"the publication {settings.publication!r} does not contain it"
            )

    def _create_slot(self, connection: Any) -> None:
        settings = self._settings
        query = settings.connection.database.query
        found = query(
            connection,
            "SELECT plugin FROM pg_replication_slots WHERE slot_name = ?",
            [settings.slot],
        )
        if found and found[0][0] != "pgoutput":
            raise ChangeStreamError(
                settings.table,
                f"the slot {settings.slot!r} belongs to the plugin {found[0][0]!r}, not to pgoutput",
            )
        if not found:
            query(
                connection,
                "SELECT pg_create_logical_replication_slot(?, 'pgoutput')",
                [settings.slot],
            )

    def _wait_for_transactions(self, connection: Any) -> None:
        """Wait for transactions that are not in the slot, and may not be visible yet either."""
        query = self._settings.connection.database.query
        [(end,)] = query(connection, "SELECT txid_snapshot_xmax(txid_current_snapshot())")
        while query(connection, "SELECT txid_snapshot_xmin(txid_current_snapshot())")[0][0] < end:
            # A number of its own, so that a quiet server moves on.
            query(connection, "SELECT txid_current()")
            time.sleep(_PAUSE_SECONDS)
