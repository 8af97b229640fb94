"""JdbcSource and its builder."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from firesteel.common.time import Duration
from firesteel.common.typeinfo import RowTypeInfo
from firesteel.connectors.base import (
    Boundedness,
    ReaderContext,
    Source,
    SourceReader,
    SplitEnumerator,
)
from firesteel.connectors.jdbc.options import JdbcConnectionOptions
from firesteel.connectors.jdbc.table_source_builder import TableSourceBuilder
from firesteel.stability import public_evolving

__all__ = ["JdbcSource", "JdbcSourceBuilder", "TableQuery"]


@dataclass(frozen=True, slots=True)
class TableQuery:
    """The rows to read: a table, its columns, and the column that orders them.

    Args:
        table: The name of the table.
        type_info: The type of the rows. The names of its fields are the columns.
        column: A unique numeric column. Positions are its values.
        condition: A condition of SQL for the rows, or None.
        fetch_size: The rows of one query.
    """

    table: str
    type_info: RowTypeInfo
    column: str
    condition: str | None
    fetch_size: int


@public_evolving
class JdbcSource(Source):
    """Reads a table, in parallel by ranges of a numeric column. Not in PyFlink.

    >>> import os, sqlite3
    >>> from firesteel.datastream.connectors.jdbc import JdbcConnectionOptions, JdbcSource
    >>> file = os.path.abspath("shop.db")
    >>> with sqlite3.connect(file) as database:
    ...     _ = database.execute("CREATE TABLE orders (id INT PRIMARY KEY, item TEXT)")
    ...     _ = database.execute("INSERT INTO orders VALUES (1, 'tea'), (2, 'milk')")
    >>> orders = (
    ...     JdbcSource.builder()
    ...     .set_connection_options(
    ...         JdbcConnectionOptions.JdbcConnectionOptionsBuilder()
    ...         .with_url(f"jdbc:sqlite:{file}")
    ...         .build()
    ...     )
    ...     .set_table("orders")
    ...     .set_type_info(Types.ROW_NAMED(["id", "item"], [Types.INT(), Types.STRING()]))
    ...     .set_split_column("id")
    ...     .build()
    ... )
    >>> stream = env.from_source(orders, WatermarkStrategy.no_watermarks(), "orders")
    >>> list(stream.execute_and_collect())
    [Row(id=1, item='tea'), Row(id=2, item='milk')]
    """

    side_by_side = False

    def __init__(
        self,
        connection: JdbcConnectionOptions,
        query: TableQuery,
        splits: int | None,
        poll_seconds: float | None,
    ) -> None:
        """Create a source. Programs use ``JdbcSource.builder()``.

        Args:
            connection: The database.
            query: The rows to read.
            splits: The number of ranges, or None for four per subtask.
            poll_seconds: The time between two looks for new rows, or None for a bounded source.
        """
        self._connection = connection
        self._query = query
        self._splits = splits
        self._poll_seconds = poll_seconds

    @staticmethod
    def builder() -> JdbcSourceBuilder:
        """Start building a source."""
        return JdbcSourceBuilder()

    def get_boundedness(self) -> Boundedness:
        if self._poll_seconds is None:
            return Boundedness.BOUNDED
        return Boundedness.CONTINUOUS_UNBOUNDED

    def create_enumerator(self, parallelism: int, state: Any = None) -> SplitEnumerator:
        from firesteel.connectors.jdbc.enumerator import TableRangeEnumerator

        return TableRangeEnumerator(
            self._connection,
            self._query,
            splits=self._splits or 4 * parallelism,
            is_continuous=self._poll_seconds is not None,
            state=state,
        )

    def create_reader(self, context: ReaderContext) -> SourceReader:
        from firesteel.connectors.jdbc.reader import TableRangeReader

        return TableRangeReader(self._connection, self._query, self._poll_seconds or 0.1)

    def get_produced_type(self) -> Any:
        return self._query.type_info

    def __repr__(self) -> str:
        return f"JdbcSource({self._query.table} at {self._connection.database.url})"


@public_evolving
class JdbcSourceBuilder(TableSourceBuilder):
    """Builds a JdbcSource. All settings but the last three are required. Not in PyFlink.

    >>> from firesteel.datastream.connectors.jdbc import JdbcConnectionOptions, JdbcSourceBuilder
    >>> database = JdbcConnectionOptions.JdbcConnectionOptionsBuilder()
    >>> database = database.with_url("jdbc:sqlite:shop.db").build()
    >>> builder = JdbcSourceBuilder().set_connection_options(database).set_table("orders")
    >>> builder = builder.set_type_info(Types.ROW_NAMED(["id"], [Types.INT()]))
    >>> builder.set_split_column("id").build()
    JdbcSource(orders at jdbc:sqlite:shop.db)
    >>> JdbcSourceBuilder().set_table("orders").build()
    Traceback (most recent call last):
    firesteel.errors.InvalidProgramError: JdbcSource: set_connection_options was not called
    """

    def __init__(self) -> None:
        super().__init__()
        self._column: str | None = None
        self._condition: str | None = None
        self._splits: int | None = None
        self._poll_seconds: float | None = None

    def set_split_column(self, column: str) -> JdbcSourceBuilder:
        """Set the column that divides the table.

        Args:
            column: A column of whole numbers without duplicates and nulls, with an index: the
                primary key as a rule. Positions in checkpoints are its values.
        """
        self._column = column
        return self

    def set_split_count(self, count: int) -> JdbcSourceBuilder:
        """Set the number of ranges that are read in parallel.

        Args:
            count: The number. The default is four per subtask.

        >>> from firesteel.datastream.connectors.jdbc import JdbcSource
        >>> builder = JdbcSource.builder().set_split_count(16)
        """
        if count < 1:
            raise ValueError(f"set_split_count expects at least 1, got {count}")
        self._splits = count
        return self

    def set_condition(self, condition: str) -> JdbcSourceBuilder:
        """Read only some rows.

        Args:
            condition: A condition of SQL, without placeholders.

        >>> from firesteel.datastream.connectors.jdbc import JdbcSource
        >>> builder = JdbcSource.builder().set_condition("item <> 'tea'")
        """
        self._condition = condition
        return self

    def monitor_continuously(self, interval: Duration) -> JdbcSourceBuilder:
        """Keep reading rows whose split column is greater than all before.

        Rows must become visible in the order of the column. A transaction that takes a number and
        commits after a greater number was read is missed. Use PostgresCdcSource where this matters.

        Args:
            interval: The time between two looks for new rows.

        >>> from firesteel.datastream.connectors.jdbc import JdbcSource
        >>> builder = JdbcSource.builder().monitor_continuously(Duration.of_seconds(1))
        """
        self._poll_seconds = interval.to_millis() / 1000
        return self

    def build(self) -> JdbcSource:
        """Create the source.

        Raises:
            InvalidProgramError: A setting is missing.
            ConfigurationError: The driver is not installed.
        """
        self._require("JdbcSource", set_split_column=self._column)
        assert self._column is not None
        query = TableQuery(
            self._table, self._type_info, self._column, self._condition, self._fetch_size
        )
        return JdbcSource(self._connection, query, self._splits, self._poll_seconds)
