"""Committers of a JdbcSink: prepared transactions, and batches of the journal."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from firesteel.connectors.base import Committer
from firesteel.connectors.jdbc.errors import JdbcTransactionLostError, JdbcWriteError
from firesteel.connectors.jdbc.options import JdbcConnectionOptions, JdbcExactlyOnceOptions
from firesteel.connectors.jdbc.tables import ChangelogTable, is_name_of
from firesteel.connectors.jdbc.writer import writer_name

__all__ = ["JdbcCommitter", "JournalCommitter", "PreparedTransactionCommitter"]

_log = logging.getLogger("firesteel")

_UNKNOWN_TRANSACTION = "42704"
_PAUSE_SECONDS = 0.5


class JdbcCommitter(Committer):
    """A connection, in which work is repeated after errors that may go away."""

    def __init__(
        self, connection: JdbcConnectionOptions, exactly_once: JdbcExactlyOnceOptions
    ) -> None:
        """Create a committer. It connects at the first commit.

        Args:
            connection: The database.
            exactly_once: The prefix of names, and the number of attempts.
        """
        self._database = connection.database
        self._seconds = connection.check_timeout_seconds
        self._prefix = exactly_once.transaction_id_prefix
        self._attempts = exactly_once.max_commit_attempts
        self._connection: Any = None

    def recover(self, committables: Sequence[Any], check: Callable[[], None]) -> None:
        """Commit what a checkpoint contains, and remove all else that the sink has prepared.

        Args:
            committables: The committables of the checkpoint.
            check: Is called once the work to remove is known, and raises an error if it must stay.
        """
        raise NotImplementedError

    def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(Exception):
                connection.close()

    def _repeat(self, work: Callable[[Any], None]) -> None:
        for attempt in range(1, self._attempts + 1):
            if self._connection is None:
                self._connection = self._database.connect(self._seconds)
            try:
                work(self._connection)
            except Exception as error:
                if not self._database.is_error(error):
                    raise
                self.close()
                if not self._database.is_transient(error) or attempt == self._attempts:
                    raise JdbcWriteError("commit", " ".join(str(error).split())) from error
                _log.warning("A commit in %s failed and is repeated: %s", self._database.url, error)
                time.sleep(_PAUSE_SECONDS)
            else:
                return


class PreparedTransactionCommitter(JdbcCommitter):
    """Commits prepared transactions of PostgreSQL. A second commit has no effect."""

    def commit(self, committables: Sequence[Any]) -> None:
        for one in committables:
            self._repeat(lambda connection: self._commit(connection, one))  # noqa: B023 - at once

    def recover(self, committables: Sequence[Any], check: Callable[[], None]) -> None:
        check()
        self._repeat(self._end_writers)
        self.commit(committables)
        self._repeat(lambda connection: self._roll_back_others(connection, check))

    def _end_writers(self, connection: Any) -> None:
        """Close the connections of writers of earlier attempts, which may hold locks."""
        name = writer_name(self._prefix)
        self._database.query(
            connection,
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = ? "
            "AND usename = current_user AND pid <> pg_backend_pid()",
            [name],
        )

    def _commit(self, connection: Any, one: dict[str, Any]) -> None:
        gid = one["gid"]
        try:
            connection.execute(f"COMMIT PREPARED {_literal(gid)}")
        except Exception as error:
            if getattr(error, "sqlstate", None) != _UNKNOWN_TRANSACTION:
                raise
            [(status,)] = self._database.query(
                connection, "SELECT txid_status(?)", [one["transaction"]]
            )
            # A transaction that the database has forgotten is old, and was committed long ago.
            if status == "aborted":
                raise JdbcTransactionLostError(gid) from error

    def _roll_back_others(self, connection: Any, check: Callable[[], None]) -> None:
        found = self._database.query(
            connection, "SELECT gid FROM pg_prepared_xacts WHERE database = current_database()"
        )
        check()
        for (gid,) in found:
            if is_name_of(self._prefix, gid):
                try:
                    connection.execute(f"ROLLBACK PREPARED {_literal(gid)}")
                except Exception as error:
                    if getattr(error, "sqlstate", None) != _UNKNOWN_TRANSACTION:
                        raise


class JournalCommitter(JdbcCommitter):
    """Applies batches of a journal to their table. A second commit finds them empty."""

    def __init__(
        self,
        table: ChangelogTable,
        connection: JdbcConnectionOptions,
        exactly_once: JdbcExactlyOnceOptions,
    ) -> None:
        """Create a committer. It connects at the first commit.

        Args:
            table: The table.
            connection: The database.
            exactly_once: The prefix of names, and the number of attempts.
        """
        super().__init__(connection, exactly_once)
        self._table = table

    def commit(self, committables: Sequence[Any]) -> None:
        batches = [name for one in committables for name in one["batches"]]
        dropped = [name for one in committables for name in one.get("dropped", ())]

        def apply(connection: Any) -> None:
            self._database.begin(connection)
            self._table.apply(connection, batches)
            # Batches of earlier checkpoints may be among them, and have been applied by now.
            self._table.drop(connection, dropped)
            connection.commit()

        self._repeat(apply)

    def recover(self, committables: Sequence[Any], check: Callable[[], None]) -> None:
        self._repeat(self._table.create_journal)
        if committables:
            self.commit(committables)
        self._repeat(lambda connection: self._drop_others(connection, check))

    def _drop_others(self, connection: Any, check: Callable[[], None]) -> None:
        """Delete the batches that no checkpoint contains.

        ``check`` is called once they are known, and raises an error if they must stay.
        """
        found = self._table.batches(connection, self._prefix)
        check()
        self._table.drop(connection, found)


def _literal(text: str) -> str:
    """Return a text as an SQL literal. PREPARE TRANSACTION takes no parameters."""
    return "'" + text.replace("'", "''") + "'"
