"""Options of JdbcSink and JdbcSource, with their builders."""

from __future__ import annotations

from dataclasses import dataclass

from firesteel.connectors.jdbc.databases import Database, database_of
from firesteel.errors import InvalidProgramError
from firesteel.stability import public_evolving

__all__ = ["JdbcConnectionOptions", "JdbcExactlyOnceOptions", "JdbcExecutionOptions"]

_BATCH_SIZE = 5000
_MAX_RETRIES = 3
_MAX_COMMIT_ATTEMPTS = 3
_CHECK_SECONDS = 60
# PostgreSQL allows names of 199 bytes, and the sink appends its own part.
_LONGEST_PREFIX = 120


class JdbcConnectionOptions:
    """The database of a JdbcSink. Build it with ``JdbcConnectionOptionsBuilder``.

    >>> from firesteel.datastream.connectors.jdbc import JdbcConnectionOptions
    >>> options = (
    ...     JdbcConnectionOptions.JdbcConnectionOptionsBuilder()
    ...     .with_url("jdbc:postgresql://localhost:5432/shop")
    ...     .with_driver_name("org.postgresql.Driver")
    ...     .with_user_name("ann")
    ...     .with_password("secret")
    ...     .build()
    ... )
    >>> options.get_db_url(), options.get_user_name()
    ('jdbc:postgresql://localhost:5432/shop', 'ann')
    """

    def __init__(
        self,
        url: str,
        driver_name: str | None,
        user_name: str | None,
        password: str | None,
        check_timeout_seconds: int,
    ) -> None:
        """Create options. Programs use the builder.

        Args:
            url: The JDBC URL.
            driver_name: The Java class of the driver, which Firesteel does not need.
            user_name: The user.
            password: The password.
            check_timeout_seconds: The time to wait for a database that cannot be reached.
        """
        self._url = url
        self._driver_name = driver_name
        self._user_name = user_name
        self._password = password
        self.check_timeout_seconds = check_timeout_seconds
        self.database: Database = database_of(url, user_name, password)

    def get_db_url(self) -> str:
        """Return the JDBC URL."""
        return self._url

    def get_driver_name(self) -> str | None:
        """Return the Java class of the driver. Firesteel chooses a Python driver by the URL.

        >>> from firesteel.datastream.connectors.jdbc import JdbcConnectionOptions
        >>> builder = JdbcConnectionOptions.JdbcConnectionOptionsBuilder()
        >>> builder = builder.with_url("jdbc:sqlite:shop.db").with_driver_name("org.sqlite.JDBC")
        >>> builder.build().get_driver_name()
        'org.sqlite.JDBC'
        """
        return self._driver_name

    def get_user_name(self) -> str | None:
        """Return the user."""
        return self._user_name

    def get_password(self) -> str | None:
        """Return the password.

        >>> from firesteel.datastream.connectors.jdbc import JdbcConnectionOptions
        >>> builder = JdbcConnectionOptions.JdbcConnectionOptionsBuilder()
        >>> builder.with_url("jdbc:sqlite:shop.db").with_password("secret").build().get_password()
        'secret'
        """
        return self._password

    def __repr__(self) -> str:
        return f"JdbcConnectionOptions({self.database.url})"

    class JdbcConnectionOptionsBuilder:
        """Builds JdbcConnectionOptions. The URL is required.

        >>> from firesteel.datastream.connectors.jdbc import JdbcConnectionOptions
        >>> JdbcConnectionOptions.JdbcConnectionOptionsBuilder().build()
        Traceback (most recent call last):
        firesteel.errors.InvalidProgramError: JdbcConnectionOptions: with_url was not called
        """

        def __init__(self) -> None:
            self._url: str | None = None
            self._driver_name: str | None = None
            self._user_name: str | None = None
            self._password: str | None = None
            self._check_timeout_seconds = _CHECK_SECONDS

        def with_url(self, url: str) -> JdbcConnectionOptions.JdbcConnectionOptionsBuilder:
            """Set the JDBC URL.

            Args:
                url: A URL that begins with ``jdbc:postgresql:``, ``jdbc:sqlite:``, ``jdbc:mysql:``
                    or ``jdbc:mariadb:``.
            """
            self._url = url
            return self

        def with_driver_name(
            self, driver_name: str
        ) -> JdbcConnectionOptions.JdbcConnectionOptionsBuilder:
            """Set the Java class of the driver. Firesteel chooses a Python driver by the URL.

            Args:
                driver_name: The name of the class.
            """
            self._driver_name = driver_name
            return self

        def with_user_name(
            self, user_name: str
        ) -> JdbcConnectionOptions.JdbcConnectionOptionsBuilder:
            """Set the user.

            Args:
                user_name: The name of the user.
            """
            self._user_name = user_name
            return self

        def with_password(
            self, password: str
        ) -> JdbcConnectionOptions.JdbcConnectionOptionsBuilder:
            """Set the password.

            Args:
                password: The password.
            """
            self._password = password
            return self

        @public_evolving
        def with_connection_check_timeout_seconds(
            self, seconds: int
        ) -> JdbcConnectionOptions.JdbcConnectionOptionsBuilder:
            """Set the time to wait for a database that cannot be reached. Not in PyFlink.

            Args:
                seconds: The time. The default is 60.

            >>> from firesteel.datastream.connectors.jdbc import JdbcConnectionOptions
            >>> builder = JdbcConnectionOptions.JdbcConnectionOptionsBuilder()
            >>> builder = builder.with_connection_check_timeout_seconds(10)
            """
            self._check_timeout_seconds = seconds
            return self

        def build(self) -> JdbcConnectionOptions:
            """Create the options.

            Raises:
                InvalidProgramError: The URL is missing.
                ConfigurationError: The URL is not supported.
            """
            if self._url is None:
                raise InvalidProgramError("JdbcConnectionOptions: with_url was not called")
            return JdbcConnectionOptions(
                self._url,
                self._driver_name,
                self._user_name,
                self._password,
                self._check_timeout_seconds,
            )


class JdbcExecutionOptions:
    """Batches and retries of a JdbcSink.

    >>> from firesteel.datastream.connectors.jdbc import JdbcExecutionOptions
    >>> builder = JdbcExecutionOptions.builder().with_batch_interval_ms(200)
    >>> options = builder.with_batch_size(1000).with_max_retries(5).build()
    >>> options.get_batch_interval_ms(), options.get_batch_size(), options.get_max_retries()
    (200, 1000, 5)
    >>> JdbcExecutionOptions.defaults().get_batch_size()
    5000
    """

    def __init__(self, batch_interval_ms: int, batch_size: int, max_retries: int) -> None:
        """Create options. Programs use ``JdbcExecutionOptions.builder()``.

        Args:
            batch_interval_ms: The longest time that a record waits, or 0.
            batch_size: The number of records after which a batch is written.
            max_retries: The number of further attempts for a batch.
        """
        self._batch_interval_ms = batch_interval_ms
        self._batch_size = batch_size
        self._max_retries = max_retries

    def get_batch_interval_ms(self) -> int:
        """Return the longest time in milliseconds that a record waits, or 0."""
        return self._batch_interval_ms

    def get_batch_size(self) -> int:
        """Return the number of records after which a batch is written."""
        return self._batch_size

    def get_max_retries(self) -> int:
        """Return the number of further attempts for a batch."""
        return self._max_retries

    @staticmethod
    def defaults() -> JdbcExecutionOptions:
        """Return the options of a sink without options: 5000 records, no interval, 3 retries."""
        return JdbcExecutionOptions.builder().build()

    @staticmethod
    def builder() -> JdbcExecutionOptions.Builder:
        """Start building options."""
        return JdbcExecutionOptions.Builder()

    class Builder:
        """Builds JdbcExecutionOptions.

        >>> from firesteel.datastream.connectors.jdbc import JdbcExecutionOptions
        >>> JdbcExecutionOptions.Builder().with_batch_size(0)
        Traceback (most recent call last):
        ValueError: with_batch_size expects at least 1, got 0
        """

        def __init__(self) -> None:
            self._batch_interval_ms = 0
            self._batch_size = _BATCH_SIZE
            self._max_retries = _MAX_RETRIES

        def with_batch_interval_ms(self, batch_interval_ms: int) -> JdbcExecutionOptions.Builder:
            """Set the longest time that a record waits.

            Args:
                batch_interval_ms: Milliseconds. Records are written at the end of each epoch in any
                    case.
            """
            self._batch_interval_ms = _at_least(0, "with_batch_interval_ms", batch_interval_ms)
            return self

        def with_batch_size(self, batch_size: int) -> JdbcExecutionOptions.Builder:
            """Set the number of records after which a batch is written.

            Args:
                batch_size: The number.
            """
            self._batch_size = _at_least(1, "with_batch_size", batch_size)
            return self

        def with_max_retries(self, max_retries: int) -> JdbcExecutionOptions.Builder:
            """Set the number of further attempts for a batch, after errors that may go away.

            Args:
                max_retries: The number.
            """
            self._max_retries = _at_least(0, "with_max_retries", max_retries)
            return self

        def build(self) -> JdbcExecutionOptions:
            """Create the options."""
            return JdbcExecutionOptions(
                self._batch_interval_ms, self._batch_size, self._max_retries
            )


@public_evolving
@dataclass(frozen=True, slots=True)
class JdbcExactlyOnceOptions:
    """Transactions of a JdbcSink that writes exactly once. Not in PyFlink.

    Args:
        transaction_id_prefix: A text that no other sink of the database uses. Keep it when you
            restore the job.
        max_commit_attempts: The number of attempts to commit a transaction.
        lock_timeout_seconds: The time after which a statement that waits for a lock fails.

    >>> from firesteel.datastream.connectors.jdbc import JdbcExactlyOnceOptions
    >>> options = JdbcExactlyOnceOptions.builder().with_transaction_id_prefix("totals").build()
    >>> options
    JdbcExactlyOnceOptions(transaction_id_prefix='totals', max_commit_attempts=3, lock_timeout_seconds=60)
    """

    transaction_id_prefix: str
    max_commit_attempts: int = _MAX_COMMIT_ATTEMPTS
    lock_timeout_seconds: int = 60

    @staticmethod
    def builder() -> JdbcExactlyOnceOptions.Builder:
        """Start building options."""
        return JdbcExactlyOnceOptions.Builder()

    class Builder:
        """Builds JdbcExactlyOnceOptions. The prefix is required.

        >>> from firesteel.datastream.connectors.jdbc import JdbcExactlyOnceOptions
        >>> JdbcExactlyOnceOptions.Builder().build()
        Traceback (most recent call last):
        firesteel.errors.InvalidProgramError: ... with_transaction_id_prefix was not called
        """

        def __init__(self) -> None:
            self._prefix: str | None = None
            self._max_commit_attempts = _MAX_COMMIT_ATTEMPTS
            self._lock_timeout_seconds = 60

        def with_transaction_id_prefix(
            self, transaction_id_prefix: str
        ) -> JdbcExactlyOnceOptions.Builder:
            """Set the prefix of the names of transactions.

            Args:
                transaction_id_prefix: A text of at most 120 bytes that no other sink of the
                    database uses.
            """
            size = len(transaction_id_prefix.encode())
            if not 1 <= size <= _LONGEST_PREFIX:
                raise ValueError(
                    f"A transaction id prefix must have 1 to {_LONGEST_PREFIX} bytes, got {size}"
                )
            self._prefix = transaction_id_prefix
            return self

        def with_max_commit_attempts(
            self, max_commit_attempts: int
        ) -> JdbcExactlyOnceOptions.Builder:
            """Set the number of attempts to commit a transaction.

            Args:
                max_commit_attempts: The number.

            >>> from firesteel.datastream.connectors.jdbc import JdbcExactlyOnceOptions
            >>> builder = JdbcExactlyOnceOptions.builder().with_max_commit_attempts(10)
            """
            self._max_commit_attempts = _at_least(
                1, "with_max_commit_attempts", max_commit_attempts
            )
            return self

        def with_lock_timeout_seconds(self, seconds: int) -> JdbcExactlyOnceOptions.Builder:
            """Set the time after which a statement that waits for a lock fails.

            Args:
                seconds: The time. The default is 60.

            >>> from firesteel.datastream.connectors.jdbc import JdbcExactlyOnceOptions
            >>> builder = JdbcExactlyOnceOptions.builder().with_lock_timeout_seconds(10)
            """
            self._lock_timeout_seconds = _at_least(1, "with_lock_timeout_seconds", seconds)
            return self

        def build(self) -> JdbcExactlyOnceOptions:
            """Create the options.

            Raises:
                InvalidProgramError: The prefix is missing.
            """
            if self._prefix is None:
                raise InvalidProgramError(
                    "JdbcExactlyOnceOptions: with_transaction_id_prefix was not called"
                )
            return JdbcExactlyOnceOptions(
                self._prefix, self._max_commit_attempts, self._lock_timeout_seconds
            )


def _at_least(least: int, method: str, value: int) -> int:
    if value < least:
        raise ValueError(f"{method} expects at least {least}, got {value}")
    return value
