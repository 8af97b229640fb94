"""JdbcSink: statements, prepared transactions, and changelogs."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from firesteel.common.typeinfo import RowTypeInfo
from firesteel.connectors.base import Committer, Sink, SinkWriter, WriterContext
from firesteel.connectors.jdbc.options import (
    JdbcConnectionOptions,
    JdbcExactlyOnceOptions,
    JdbcExecutionOptions,
)
from firesteel.connectors.jdbc.parameters import RowParameters
from firesteel.connectors.jdbc.tables import ChangelogTable
from firesteel.errors import InvalidProgramError, shorten
from firesteel.stability import public_evolving

if TYPE_CHECKING:
    from firesteel.connectors.jdbc.committer import JdbcCommitter

__all__ = ["JdbcSink"]


class JdbcSink(Sink):
    """Writes rows to a table of a database. ``add_sink`` and ``sink_to`` take it.

    PostgreSQL needs the extra ``postgres``, MySQL and MariaDB need ``mysql``, SQLite needs none.

    >>> import os, sqlite3
    >>> from firesteel.datastream.connectors.jdbc import JdbcConnectionOptions, JdbcSink
    >>> file = os.path.abspath("shop.db")
    >>> database = sqlite3.connect(file)
    >>> _ = database.execute("CREATE TABLE words (word TEXT, length INT)")
    >>> words = Types.ROW_NAMED(["word", "length"], [Types.STRING(), Types.INT()])
    >>> sink = JdbcSink.sink(
    ...     "INSERT INTO words (word, length) VALUES (?, ?)",
    ...     words,
    ...     JdbcConnectionOptions.JdbcConnectionOptionsBuilder()
    ...     .with_url(f"jdbc:sqlite:{file}")
    ...     .build(),
    ... )
    >>> _ = env.from_collection([("to", 2), ("be", 2)], words).add_sink(sink)
    >>> result = env.execute()
    >>> database.execute("SELECT * FROM words").fetchall()
    [('to', 2), ('be', 2)]
    """

    is_sink_function = True

    def __init__(
        self,
        type_info: RowTypeInfo,
        connection_options: JdbcConnectionOptions,
        execution_options: JdbcExecutionOptions | None,
    ) -> None:
        """Create a sink. Programs use the static methods.

        Args:
            type_info: The type of the rows.
            connection_options: The database.
            execution_options: The size of batches, and retries. The default is 5000 rows.
        """
        if not isinstance(type_info, RowTypeInfo):
            raise TypeError(f"JdbcSink expects a row type, got {shorten(type_info)}")
        if not isinstance(connection_options, JdbcConnectionOptions):
            raise TypeError(
                f"JdbcSink expects JdbcConnectionOptions, got {shorten(connection_options)}"
            )
        self._type_info = type_info
        self._connection = connection_options
        self._execution = execution_options or JdbcExecutionOptions.defaults()
        self._database = connection_options.database
        self._database.require_driver("JdbcSink")

    @staticmethod
    def sink(
        sql: str,
        type_info: RowTypeInfo,
        jdbc_connection_options: JdbcConnectionOptions,
        jdbc_execution_options: JdbcExecutionOptions | None = None,
    ) -> JdbcSink:
        """Return a sink that runs a statement for each row, at least once.

        Args:
            sql: The statement, with a placeholder ``?`` for each field.
            type_info: The type of the rows.
            jdbc_connection_options: The database.
            jdbc_execution_options: The size of batches, and retries.

        Raises:
            InvalidProgramError: The statement does not have a placeholder for each field.
            ConfigurationError: The driver is not installed.
        """
        return _StatementSink(sql, type_info, jdbc_connection_options, jdbc_execution_options)

    @staticmethod
    @public_evolving
    def exactly_once_sink(
        sql: str,
        type_info: RowTypeInfo,
        jdbc_connection_options: JdbcConnectionOptions,
        jdbc_execution_options: JdbcExecutionOptions | None = None,
        jdbc_exactly_once_options: JdbcExactlyOnceOptions | None = None,
    ) -> JdbcSink:
        """Return a sink that runs a statement for each row, exactly once. Not in PyFlink.

        The rows between two checkpoints are a prepared transaction of PostgreSQL. It is committed
        when the checkpoint is complete.

        Args:
            sql: The statement, with a placeholder ``?`` for each field.
            type_info: The type of the rows.
            jdbc_connection_options: The database, a PostgreSQL with ``max_prepared_transactions``
                above 0.
            jdbc_execution_options: The size of batches.
            jdbc_exactly_once_options: The names of transactions. They are required.

        Raises:
            InvalidProgramError: The database has no prepared transactions, options are missing, or
                the statement does not have a placeholder for each field.

        >>> from firesteel.datastream.connectors.jdbc import (
        ...     JdbcConnectionOptions,
        ...     JdbcExactlyOnceOptions,
        ...     JdbcSink,
        ... )
        >>> JdbcSink.exactly_once_sink(
        ...     "INSERT INTO words (word) VALUES (?)",
        ...     Types.ROW([Types.STRING()]),
        ...     JdbcConnectionOptions.JdbcConnectionOptionsBuilder()
        ...     .with_url("jdbc:postgresql://localhost/shop")
        ...     .build(),
        ...     None,
        ...     JdbcExactlyOnceOptions.builder().with_transaction_id_prefix("words").build(),
        ... )
        JdbcSink(INSERT INTO words (word) VALUES (?) at jdbc:postgresql://localhost/shop, exactly once)
        """
        return _ExactlyOnceSink(
            sql,
            type_info,
            jdbc_connection_options,
            jdbc_execution_options,
            jdbc_exactly_once_options,
        )

    @staticmethod
    @public_evolving
    def changelog_sink(
        table: str,
        type_info: RowTypeInfo,
        primary_key: Sequence[str],
        jdbc_connection_options: JdbcConnectionOptions,
        jdbc_execution_options: JdbcExecutionOptions | None = None,
        jdbc_exactly_once_options: JdbcExactlyOnceOptions | None = None,
    ) -> JdbcSink:
        """Return a sink that applies rows with a RowKind to a table. Not in PyFlink.

        INSERT and UPDATE_AFTER write the row of their primary key, UPDATE_BEFORE and DELETE remove
        it. All rows with the same primary key must come from one subtask, in order: use ``key_by``
        before the sink, unless the operator before it has this key.

        Args:
            table: The name of the table, with or without its schema. Its primary key, or a unique
                constraint, must have the columns ``primary_key``.
            type_info: The type of the rows. The names of its fields are the columns.
            primary_key: The columns of the primary key.
            jdbc_connection_options: The database.
            jdbc_execution_options: The size of batches, and retries.
            jdbc_exactly_once_options: Options for exactly once, on PostgreSQL and SQLite. Changes
                then wait in a journal, a table that the sink creates next to the table. The default
                is at least once.

        >>> import os, sqlite3
        >>> from firesteel.datastream.connectors.jdbc import JdbcConnectionOptions, JdbcSink
        >>> file = os.path.abspath("shop.db")
        >>> database = sqlite3.connect(file)
        >>> _ = database.execute("CREATE TABLE totals (user TEXT PRIMARY KEY, total INT)")
        >>> totals = Types.ROW_NAMED(["user", "total"], [Types.STRING(), Types.INT()])
        >>> changes = [
        ...     Row.of_kind(RowKind.INSERT, "ann", 1),
        ...     Row.of_kind(RowKind.INSERT, "bob", 5),
        ...     Row.of_kind(RowKind.UPDATE_BEFORE, "ann", 1),
        ...     Row.of_kind(RowKind.UPDATE_AFTER, "ann", 4),
        ...     Row.of_kind(RowKind.DELETE, "bob", 5),
        ... ]
        >>> sink = JdbcSink.changelog_sink(
        ...     "totals",
        ...     totals,
        ...     ["user"],
        ...     JdbcConnectionOptions.JdbcConnectionOptionsBuilder()
        ...     .with_url(f"jdbc:sqlite:{file}")
        ...     .build(),
        ... )
        >>> _ = env.from_collection(changes, totals).sink_to(sink)
        >>> result = env.execute()
        >>> database.execute("SELECT * FROM totals").fetchall()
        [('ann', 4)]
        """
        arguments = (table, type_info, primary_key, jdbc_connection_options, jdbc_execution_options)
        if jdbc_exactly_once_options is None:
            return _ChangelogSink(*arguments)
        return _JournaledChangelogSink(*arguments, jdbc_exactly_once_options)

    @abstractmethod
    def create_writer(self, context: WriterContext, state: Any = None) -> SinkWriter: ...

    def _parameters(self) -> RowParameters:
        return RowParameters(self._type_info, self._database)

    def _described(self, what: str, guarantee: str) -> str:
        return f"JdbcSink({what} at {self._database.url}, {guarantee})"


class _StatementSink(JdbcSink):
    """Runs a statement for each row, at least once."""

    _guarantee = "at least once"

    def __init__(
        self,
        sql: str,
        type_info: RowTypeInfo,
        connection_options: JdbcConnectionOptions,
        execution_options: JdbcExecutionOptions | None,
    ) -> None:
        super().__init__(type_info, connection_options, execution_options)
        self._statement = self._database.statement(sql)
        fields = len(type_info.get_field_names())
        if self._statement.parameters != fields:
            raise InvalidProgramError(
                f"JdbcSink: {sql!r} has {self._statement.parameters} placeholders, but the rows "
                f"have {fields} fields"
            )

    def create_writer(self, context: WriterContext, state: Any = None) -> SinkWriter:
        from firesteel.connectors.jdbc.writer import JdbcWriter

        return JdbcWriter(self._statement, self._parameters(), self._connection, self._execution)

    def __repr__(self) -> str:
        return self._described(self._statement.sql, self._guarantee)


class _RecoveringSink(JdbcSink):
    """A sink that writes in two phases."""

    def create_committer(self) -> Committer:
        return self._committer()

    def recover(self, committables: Sequence[Any]) -> None:
        self.recover_in_term(committables, lambda: None)

    def recover_in_term(self, committables: Sequence[Any], check: Callable[[], None]) -> None:
        committer = self._committer()
        try:
            committer.recover(committables, check)
        finally:
            committer.close()

    @abstractmethod
    def _committer(self) -> JdbcCommitter: ...


class _ExactlyOnceSink(_StatementSink, _RecoveringSink):
    """Runs a statement for each row, in prepared transactions."""

    _guarantee = "exactly once"

    def __init__(
        self,
        sql: str,
        type_info: RowTypeInfo,
        connection_options: JdbcConnectionOptions,
        execution_options: JdbcExecutionOptions | None,
        exactly_once_options: JdbcExactlyOnceOptions | None,
    ) -> None:
        super().__init__(sql, type_info, connection_options, execution_options)
        self._exactly_once = _required(exactly_once_options)
        if not self._database.prepares_transactions:
            raise InvalidProgramError(
                f"JdbcSink.exactly_once_sink needs prepared transactions of PostgreSQL, got "
                f"{self._database.url}. Use JdbcSink.sink with a statement that may be repeated, or "
                "JdbcSink.changelog_sink."
            )

    def create_writer(self, context: WriterContext, state: Any = None) -> SinkWriter:
        from firesteel.connectors.jdbc.writer import TransactionalJdbcWriter

        return TransactionalJdbcWriter(
            self._statement,
            self._parameters(),
            self._connection,
            self._execution,
            self._exactly_once,
            context,
        )

    def _committer(self) -> JdbcCommitter:
        from firesteel.connectors.jdbc.committer import PreparedTransactionCommitter

        return PreparedTransactionCommitter(self._connection, self._exactly_once)


class _ChangelogSink(JdbcSink):
    """Applies rows with a RowKind to a table, at least once."""

    _guarantee = "at least once"

    def __init__(
        self,
        table: str,
        type_info: RowTypeInfo,
        primary_key: Sequence[str],
        connection_options: JdbcConnectionOptions,
        execution_options: JdbcExecutionOptions | None,
    ) -> None:
        super().__init__(type_info, connection_options, execution_options)
        columns = type_info.get_field_names()
        keys = [primary_key] if isinstance(primary_key, str) else list(primary_key)
        unknown = [name for name in keys if name not in columns]
        if unknown or not keys:
            raise InvalidProgramError(
                f"JdbcSink.changelog_sink: the primary key {keys} must consist of fields of the "
                f"rows, which are {columns}"
            )
        self._name = table
        self._table = ChangelogTable(self._database, table, columns, keys)

    def create_writer(self, context: WriterContext, state: Any = None) -> SinkWriter:
        from firesteel.connectors.jdbc.writer import ChangelogWriter

        return ChangelogWriter(self._table, self._parameters(), self._connection, self._execution)

    def __repr__(self) -> str:
        return self._described(f"changes of {self._name}", self._guarantee)


class _JournaledChangelogSink(_ChangelogSink, _RecoveringSink):
    """Applies rows with a RowKind to a table, exactly once."""

    _guarantee = "exactly once"

    def __init__(
        self,
        table: str,
        type_info: RowTypeInfo,
        primary_key: Sequence[str],
        connection_options: JdbcConnectionOptions,
        execution_options: JdbcExecutionOptions | None,
        exactly_once_options: JdbcExactlyOnceOptions,
    ) -> None:
        super().__init__(table, type_info, primary_key, connection_options, execution_options)
        self._exactly_once = _required(exactly_once_options)
        if not self._database.keeps_journals:
            raise InvalidProgramError(
                f"JdbcSink.changelog_sink writes exactly once to PostgreSQL and SQLite, not to "
                f"{self._database.url}. Leave out jdbc_exactly_once_options."
            )

    def create_writer(self, context: WriterContext, state: Any = None) -> SinkWriter:
        from firesteel.connectors.jdbc.writer import JournaledChangelogWriter

        return JournaledChangelogWriter(
            self._table,
            self._parameters(),
            self._connection,
            self._execution,
            self._exactly_once.transaction_id_prefix,
            context,
            state,
        )

    def _committer(self) -> JdbcCommitter:
        from firesteel.connectors.jdbc.committer import JournalCommitter

        return JournalCommitter(self._table, self._connection, self._exactly_once)


def _required(options: JdbcExactlyOnceOptions | None) -> JdbcExactlyOnceOptions:
    if not isinstance(options, JdbcExactlyOnceOptions):
        raise InvalidProgramError(
            "JdbcSink: exactly once needs JdbcExactlyOnceOptions with a transaction id prefix, got "
            f"{shorten(options)}"
        )
    return options
