"""Writers of a JdbcSink: batches, prepared transactions, and changes by primary key."""

from __future__ import annotations

import hashlib
import logging
import time
import uuid
from abc import abstractmethod
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from firesteel.common.types import Row, RowKind
from firesteel.connectors.base import SinkWriter, WriteContext, WriterContext
from firesteel.connectors.jdbc.databases import Database
from firesteel.connectors.jdbc.errors import JdbcWriteError
from firesteel.connectors.jdbc.options import (
    JdbcConnectionOptions,
    JdbcExactlyOnceOptions,
    JdbcExecutionOptions,
)
from firesteel.connectors.jdbc.parameters import RowParameters
from firesteel.connectors.jdbc.statements import Statement
from firesteel.connectors.jdbc.tables import ChangelogTable

__all__ = [
    "ChangelogWriter",
    "JdbcWriter",
    "JournaledChangelogWriter",
    "TransactionalJdbcWriter",
    "transaction_name",
    "writer_name",
]

_log = logging.getLogger("firesteel")

_DELETIONS = (RowKind.UPDATE_BEFORE, RowKind.DELETE)
_LONGEST_PAUSE = 10.0
# They are turned off, or there are too many.
_NO_PREPARED_TRANSACTIONS = ("55000", "53200")
# The batches that may wait for the commit of the previous transaction.
_DEFERRED_BATCHES = 20


class _BatchWriter(SinkWriter):
    """Collects records, and writes them in batches in one connection."""

    def __init__(self, connection: JdbcConnectionOptions, execution: JdbcExecutionOptions) -> None:
        self._database: Database = connection.database
        self._connection_seconds = connection.check_timeout_seconds
        self._batch_size = execution.get_batch_size()
        self._interval = execution.get_batch_interval_ms() / 1000
        self._retries = execution.get_max_retries()
        self._connection: Any = None
        # When the oldest record that waits has come.
        self._waits_since: float | None = None

    @abstractmethod
    def _add(self, values: list[Any]) -> int:
        """Keep records, and return the number that waits."""

    @abstractmethod
    def _write_waiting(self) -> None:
        """Write all records that wait."""

    def write(self, value: Any, context: WriteContext) -> None:
        self.write_batch([value], None, context)

    def write_batch(
        self, values: list[Any], timestamps: list[int] | None, context: WriteContext
    ) -> None:
        waiting = self._add(values)
        if self._interval and self._waits_since is None:
            self._waits_since = time.monotonic()
        if waiting >= self._batch_size or self._is_overdue():
            self._write_waiting()
            self._waits_since = None

    def flush(self, end_of_input: bool) -> None:
        self._write_waiting()
        self._waits_since = None

    def next_flush_delay(self) -> float | None:
        return self._interval or None

    def close(self) -> None:
        self._disconnect()

    def _is_overdue(self) -> bool:
        since = self._waits_since
        return since is not None and time.monotonic() - since >= self._interval

    # Connections and attempts

    def _connected(self) -> Any:
        if self._connection is None:
            self._connection = self._database.connect(self._connection_seconds)
        return self._connection

    def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(Exception):
                connection.close()

    def _in_transaction(self, work: Callable[[Any], None]) -> None:
        """Do work in a transaction and commit it, with retries after errors that may go away."""
        database = self._database
        for attempt in range(self._retries + 1):
            connection = self._connected()
            try:
                database.begin(connection)
                work(connection)
                connection.commit()
            except Exception as error:
                if not database.is_error(error):
                    self._disconnect()
                    raise
                if not database.is_transient(error) or attempt == self._retries:
                    self._roll_back(connection)
                    raise
                _log.warning("A batch for %s failed and is repeated: %s", database.url, error)
                self._disconnect()
                time.sleep(min(float(attempt), _LONGEST_PAUSE))
            else:
                return

    def _roll_back(self, connection: Any) -> None:
        try:
            connection.rollback()
        except Exception as error:
            if not self._database.is_error(error):
                raise
            self._disconnect()

    def _execute(
        self, connection: Any, statement: Statement, rows: Sequence[Sequence[Any]]
    ) -> None:
        self._database.execute_many(connection, statement, rows)

    def _explained(
        self, error: Exception, statement: Statement, rows: Sequence[Sequence[Any]]
    ) -> JdbcWriteError:
        """Find the record that the database does not take, and return an error that names it."""
        record, reason = None, error
        if not self._database.is_transient(error):
            with suppress(Exception):
                connection = self._connected()
                self._roll_back(connection)
                connection = self._connected()
                self._database.begin(connection)
                for record in rows:
                    try:
                        self._execute(connection, statement, [record])
                    except Exception as one:  # noqa: BLE001 - only one of the driver is explained
                        reason = one
                        break
                else:
                    record = None
                self._roll_back(connection)
        return JdbcWriteError(statement.sql, " ".join(str(reason).split()), record)


class JdbcWriter(_BatchWriter):
    """Runs a statement for each record, at least once."""

    def __init__(
        self,
        statement: Statement,
        parameters: RowParameters,
        connection: JdbcConnectionOptions,
        execution: JdbcExecutionOptions,
    ) -> None:
        """Create a writer. It connects at the first record.

        Args:
            statement: The statement.
            parameters: Makes parameters of records.
            connection: The database.
            execution: The size of batches, and retries.
        """
        super().__init__(connection, execution)
        self._statement = statement
        self._parameters = parameters
        self._waiting: list[tuple[Any, ...]] = []

    def _add(self, values: list[Any]) -> int:
        self._waiting += self._parameters.of(values)
        return len(self._waiting)

    def _write_waiting(self) -> None:
        rows, self._waiting = self._waiting, []
        if not rows:
            return
        try:
            self._in_transaction(
                lambda connection: self._execute(connection, self._statement, rows)
            )
        except Exception as error:
            if not self._database.is_error(error):
                raise
            raise self._explained(error, self._statement, rows) from error


class TransactionalJdbcWriter(JdbcWriter):
    """Writes the records between two checkpoints in one transaction, and prepares it.

    A prepared transaction keeps its locks until it is committed. Records wait in memory while one
    is not committed, so that a statement does not wait for a lock that this subtask would release.
    """

    def __init__(
        self,
        statement: Statement,
        parameters: RowParameters,
        connection: JdbcConnectionOptions,
        execution: JdbcExecutionOptions,
        exactly_once: JdbcExactlyOnceOptions,
        context: WriterContext,
    ) -> None:
        """Create a writer. It connects at the first record.

        Args:
            statement: The statement.
            parameters: Makes parameters of records.
            connection: The database.
            execution: The size of batches. A batch of a transaction is never repeated.
            exactly_once: The names of transactions.
            context: The place of the writer.
        """
        super().__init__(statement, parameters, connection, execution)
        self._exactly_once = exactly_once
        self._subtask = context.subtask_index
        self._is_open = False
        self._checkpoint: int | None = None
        # The checkpoints that contain prepared transactions, as far as they are not committed.
        self._outstanding: set[int] = set()
        self._epochs = 0

    def has_open_transaction(self) -> bool:
        return self._is_open or bool(self._waiting)

    def flush(self, end_of_input: bool) -> None:
        """Run what may run now. Only ``prepare_commit`` has to write everything."""
        if not self._outstanding or len(self._waiting) > _DEFERRED_BATCHES * self._batch_size:
            super().flush(end_of_input)

    def write_batch(
        self, values: list[Any], timestamps: list[int] | None, context: WriteContext
    ) -> None:
        if self._outstanding and len(self._waiting) < _DEFERRED_BATCHES * self._batch_size:
            self._add(values)
            return
        super().write_batch(values, timestamps, context)

    def begin_checkpoint(self, checkpoint_id: int) -> None:
        self._checkpoint = checkpoint_id

    def prepare_commit(self, end_of_input: bool) -> list[Any]:
        checkpoint, self._checkpoint = self._checkpoint, None
        if checkpoint is None:
            # Without checkpoints the driver has confirmed the previous epoch by now.
            self._outstanding.clear()
            self._epochs += 1
            checkpoint = self._epochs
        self._write_waiting()
        if not self._is_open:
            return []
        name = transaction_name(self._exactly_once.transaction_id_prefix, self._subtask)
        connection = self._connected()
        try:
            [(number,)] = self._database.query(connection, "SELECT txid_current()")
            connection.execute(f"PREPARE TRANSACTION '{name.replace(chr(39), chr(39) * 2)}'")
        except Exception as error:
            if not self._database.is_error(error):
                raise
            self._disconnect()
            lacks_room = getattr(error, "sqlstate", None) in _NO_PREPARED_TRANSACTIONS
            raise JdbcWriteError(
                "PREPARE TRANSACTION",
                " ".join(str(error).split()),
                remedy="Prepared transactions need max_prepared_transactions > 0 in "
                "postgresql.conf: at least two for each subtask of each sink."
                if lacks_room
                else "",
            ) from error
        self._is_open = False
        self._outstanding.add(checkpoint)
        return [{"gid": name, "transaction": number}]

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        self._outstanding = {one for one in self._outstanding if one > checkpoint_id}

    def _connected(self) -> Any:
        is_new = self._connection is None
        connection = super()._connected()
        if is_new:
            name = writer_name(self._exactly_once.transaction_id_prefix)
            connection.execute(f"SET application_name = '{name}'")
        return connection

    def close(self) -> None:
        # PostgreSQL rolls back the open transaction of a closed connection.
        self._is_open = False
        super().close()

    def _write_waiting(self) -> None:
        rows, self._waiting = self._waiting, []
        if not rows:
            return
        connection = self._connected()
        try:
            if not self._is_open:
                self._database.begin(connection)
                seconds = self._exactly_once.lock_timeout_seconds
                connection.execute(f"SET LOCAL lock_timeout = '{seconds}s'")
                self._is_open = True
            self._execute(connection, self._statement, rows)
        except Exception as error:
            if not self._database.is_error(error):
                raise
            self._is_open = False
            raise self._explained_in_transaction(error, rows) from error

    def _explained_in_transaction(
        self, error: Exception, rows: Sequence[Sequence[Any]]
    ) -> JdbcWriteError:
        if getattr(error, "sqlstate", None) == "55P03":
            self._disconnect()
            return JdbcWriteError(
                self._statement.sql,
                "it waited for a lock of a prepared transaction",
                remedy="Two transactions write the same row: key the stream by the primary key, or "
                "use JdbcSink.changelog_sink, which holds no locks between checkpoints.",
            )
        return self._explained(error, self._statement, rows)


class ChangelogWriter(_BatchWriter):
    """Applies rows with a RowKind to a table by its primary key, at least once."""

    def __init__(
        self,
        table: ChangelogTable,
        parameters: RowParameters,
        connection: JdbcConnectionOptions,
        execution: JdbcExecutionOptions,
    ) -> None:
        """Create a writer. It connects at the first record.

        Args:
            table: The table.
            parameters: Makes parameters of records.
            connection: The database.
            execution: The size of batches, and retries.
        """
        super().__init__(connection, execution)
        self._table = table
        self._parameters = parameters
        self._key_of = table.key_of
        # The last change of each key: the row, and if it is deleted.
        self._changes: dict[tuple[Any, ...], tuple[tuple[Any, ...], bool]] = {}

    def _add(self, values: list[Any]) -> int:
        changes, key_of = self._changes, self._key_of
        for value, row in zip(values, self._parameters.of(values), strict=True):
            deleted = isinstance(value, Row) and value.get_row_kind() in _DELETIONS
            changes[key_of(row)] = (row, deleted)
        return len(changes)

    def _write_waiting(self) -> None:
        changes, self._changes = self._changes, {}
        if not changes:
            return
        deleted = [key for key, (_, is_deleted) in changes.items() if is_deleted]
        rows = [row for row, is_deleted in changes.values() if not is_deleted]
        try:
            self._in_transaction(lambda connection: self._apply(connection, deleted, rows))
        except Exception as error:
            if not self._database.is_error(error):
                raise
            raise self._explained(error, self._table.upsert_one, rows) from error

    def _apply(self, connection: Any, deleted: list[Any], rows: list[Any]) -> None:
        if deleted:
            self._execute(connection, self._table.delete_one, deleted)
        if rows:
            self._execute(connection, self._table.upsert_one, rows)


class JournaledChangelogWriter(ChangelogWriter):
    """Writes changes to a journal table. The committer applies them to the table.

    Each flush is a batch of the journal with a name of its own. Checkpoints contain the names. A
    writer whose task is lost leaves batches that no checkpoint contains. The first and the last
    committable of its successor tell the committer to drop them. They do so only if their
    checkpoint is complete, so a writer that is lost itself drops nothing.
    """

    def __init__(
        self,
        table: ChangelogTable,
        parameters: RowParameters,
        connection: JdbcConnectionOptions,
        execution: JdbcExecutionOptions,
        prefix: str,
        context: WriterContext,
        state: Any = None,
    ) -> None:
        """Create a writer. It connects at the first record.

        Args:
            table: The table.
            parameters: Makes parameters of records.
            connection: The database.
            execution: The size of batches, and retries.
            prefix: The prefix of the names of batches.
            context: The place of the writer.
            state: The names of batches that are in no committable yet, or lists of such names.
        """
        super().__init__(table, parameters, connection, execution)
        self._prefix = prefix
        self._subtask = context.subtask_index
        self._looks_for_leftovers = True
        self._written: list[str] = []
        for one in state or ():
            self._written += [one] if isinstance(one, str) else one

    def prepare_commit(self, end_of_input: bool) -> list[Any]:
        self._write_waiting()
        written, self._written = self._written, []
        committable = {"batches": written}
        if self._looks_for_leftovers or end_of_input:
            if leftovers := self._leftovers(written):
                committable["dropped"] = leftovers
            self._looks_for_leftovers = False
        return [committable] if any(committable.values()) else []

    def snapshot_state(self) -> Any:
        return list(self._written)

    def _write_waiting(self) -> None:
        changes, self._changes = self._changes, {}
        if not changes:
            return
        name = transaction_name(self._prefix, self._subtask)
        rows = [(*row, name, int(deleted)) for row, deleted in changes.values()]
        try:
            self._in_transaction(lambda connection: self._table.append(connection, rows))
        except Exception as error:
            if not self._database.is_error(error):
                raise
            raise self._explained(error, self._table.append_one, rows) from error
        self._written.append(name)

    def _leftovers(self, written: list[str]) -> list[str]:
        """Return the batches of this subtask that are not among those of this checkpoint."""
        found: list[str] = []

        def look(connection: Any) -> None:
            found[:] = self._table.batches(connection, self._prefix)

        try:
            self._in_transaction(look)
        except Exception as error:
            if not self._database.is_error(error):
                raise
            raise self._explained(error, self._table.append_one, []) from error
        own = f"{self._prefix}/{self._subtask}/"
        return [name for name in found if name.startswith(own) and name not in written]


def writer_name(prefix: str) -> str:
    """Return the name of the connections in which a sink has open transactions."""
    return f"firesteel-{hashlib.sha256(prefix.encode()).hexdigest()[:32]}"


def transaction_name(prefix: str, subtask: int) -> str:
    """Return a new name for a transaction of a sink. ``is_name_of`` recognizes it."""
    return f"{prefix}/{subtask}/{uuid.uuid4().hex}"
