"""Databases behind JDBC URLs: their Python drivers, their syntax, and their kinds of errors."""

from __future__ import annotations

import importlib.util
import re
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar
from urllib.parse import parse_qsl, unquote

from firesteel.connectors.jdbc.errors import JdbcConnectionError
from firesteel.connectors.jdbc.statements import Lexicon, Statement, translate
from firesteel.errors import ConfigurationError

__all__ = ["Database", "MysqlDatabase", "PostgresDatabase", "SqliteDatabase", "database_of"]

_PAUSE_SECONDS = 0.2

# Pieces of the expressions for text that contains no placeholders.
_DOUBLED = r"'(?:[^']|'')*'"
_ESCAPED = r"'(?:[^'\\]|\\.|'')*'"
_NAME = r'"(?:[^"]|"")*"'
_LINE_COMMENT = r"--[^\n]*"


class Database(ABC):
    """A database and the way to reach it. It is pickled and sent to the slots."""

    #: The name of the database in messages.
    name: ClassVar[str]
    lexicon: ClassVar[Lexicon]
    #: The package of the driver, and the extra of Firesteel that installs it.
    package: ClassVar[str]
    extra: ClassVar[str] = ""
    #: Locks the rows that a query returns until the end of the transaction.
    for_update: ClassVar[str] = " FOR UPDATE"
    #: True if the database can keep prepared transactions, or a journal, for exactly once.
    prepares_transactions: ClassVar[bool] = False
    keeps_journals: ClassVar[bool] = False

    def __init__(self, url: str) -> None:
        # Without the query, which may contain a password.
        self.url = url.partition("?")[0]

    def require_driver(self, who: str) -> None:
        """Raise an error if the driver is not installed.

        Args:
            who: The class that needs it.
        """
        if importlib.util.find_spec(self.package) is None:
            raise ConfigurationError(
                f"{who} needs the Python package {self.package} for {self.url}, which is not "
                "installed. Install it on every machine that runs tasks: pip install "
                f"'firesteel[{self.extra}]'"
            )

    @abstractmethod
    def open(self) -> Any:
        """Return a new connection, in which statements outside a transaction commit at once."""

    @abstractmethod
    def begin(self, connection: Any) -> None:
        """Begin a transaction."""

    @abstractmethod
    def is_transient(self, error: Exception) -> bool:
        """Return True if a second attempt, in a new connection, may succeed."""

    @abstractmethod
    def is_error(self, error: Exception) -> bool:
        """Return True for errors of the driver."""

    def connect(self, seconds: float = 0.0) -> Any:
        """Return a new connection.

        Args:
            seconds: The time to wait for a database that is starting or cannot be reached.

        Raises:
            JdbcConnectionError: There is no connection in this time.
        """
        deadline = time.monotonic() + seconds
        while True:
            try:
                return self.open()
            except Exception as error:
                if not self.is_error(error):
                    raise
                if not self.is_transient(error) or time.monotonic() >= deadline:
                    raise JdbcConnectionError(self.url, _reason(error)) from error
            time.sleep(_PAUSE_SECONDS)

    def statement(self, sql: str) -> Statement:
        """Translate a statement with JDBC's placeholders."""
        return translate(sql, self.lexicon)

    def execute_many(
        self, connection: Any, statement: Statement, rows: Sequence[Sequence[Any]]
    ) -> None:
        """Run a statement for each row of parameters."""
        cursor = connection.cursor()
        try:
            cursor.executemany(statement.text, rows)
        finally:
            cursor.close()

    def query(self, connection: Any, sql: str, parameters: Sequence[Any] = ()) -> list[Any]:
        """Run a statement with JDBC's placeholders, and return its rows."""
        cursor = connection.cursor()
        try:
            cursor.execute(self.statement(sql).text, tuple(parameters))
            return list(cursor.fetchall()) if cursor.description else []
        finally:
            cursor.close()

    def load(
        self, connection: Any, table: str, columns: str, rows: Sequence[Sequence[Any]]
    ) -> None:
        """Append rows to a table in the fastest way that the driver has."""
        marks = ", ".join("?" * len(rows[0]))
        insert = self.statement(f"INSERT INTO {table} ({columns}) VALUES ({marks})")
        self.execute_many(connection, insert, rows)

    def quote(self, name: str) -> str:
        """Return a name as a quoted identifier. Dots separate the schema from the table."""
        return ".".join('"' + part.replace('"', '""') + '"' for part in name.split("."))

    def upsert(self, table: str, columns: Sequence[str], keys: Sequence[str], rows: str) -> str:
        """Return a statement that inserts rows, or updates those whose keys exist.

        Args:
            table: The quoted name of the table.
            columns: The quoted names of all columns.
            keys: The quoted names of the primary key.
            rows: VALUES or a query.
        """
        changes = [f"{one} = excluded.{one}" for one in columns if one not in keys]
        action = f"UPDATE SET {', '.join(changes)}" if changes else "NOTHING"
        return (
            f"INSERT INTO {table} ({', '.join(columns)}) {rows} "
            f"ON CONFLICT ({', '.join(keys)}) DO {action}"
        )

    def parameter(self, value: Any) -> Any:
        """Convert a value that the driver does not take."""
        return value

    @property
    def converts(self) -> bool:
        """Return True if ``parameter`` is needed."""
        return type(self).parameter is not Database.parameter


class PostgresDatabase(Database):
    """PostgreSQL, through psycopg 3."""

    name = "PostgreSQL"
    package = "psycopg"
    extra = "postgres"
    prepares_transactions = True
    keeps_journals = True
    lexicon = Lexicon(
        "%s",
        re.compile(
            rf"(?<![A-Za-z0-9_$])[eE]{_ESCAPED}|{_DOUBLED}|{_NAME}|{_LINE_COMMENT}"
            r"|(?<![A-Za-z0-9_$])\$(?P<tag>[A-Za-z_]\w*)\$.*?\$(?P=tag)\$"
            r"|(?<![A-Za-z0-9_$])\$\$.*?\$\$",
            re.DOTALL,
        ),
        nests_comments=True,
    )

    def __init__(self, url: str, arguments: Mapping[str, str]) -> None:
        super().__init__(url)
        self.arguments = dict(arguments)

    def open(self) -> Any:
        import psycopg

        return psycopg.connect(**self.arguments, autocommit=True)  # type: ignore[arg-type]

    def begin(self, connection: Any) -> None:
        connection.execute("BEGIN")

    def is_error(self, error: Exception) -> bool:
        import psycopg

        return isinstance(error, psycopg.Error)

    def is_transient(self, error: Exception) -> bool:
        import psycopg

        if not isinstance(error, psycopg.OperationalError | psycopg.InterfaceError):
            return False
        # A failed connection has no SQL state, only the server's text.
        return error.sqlstate is not None or not _REFUSED.search(str(error))

    def load(
        self, connection: Any, table: str, columns: str, rows: Sequence[Sequence[Any]]
    ) -> None:
        with (
            connection.cursor() as cursor,
            cursor.copy(f"COPY {table} ({columns}) FROM STDIN") as copy,
        ):
            for row in rows:
                copy.write_row(row)


class SqliteDatabase(Database):
    """SQLite, through Python's standard library."""

    name = "SQLite"
    package = "sqlite3"
    # SQLite locks the whole database instead.
    for_update = ""
    keeps_journals = True
    lexicon = Lexicon(
        "?", re.compile(rf"{_DOUBLED}|{_NAME}|`(?:[^`]|``)*`|\[[^\]]*\]|{_LINE_COMMENT}", re.DOTALL)
    )

    def __init__(self, url: str, path: str, *, is_uri: bool) -> None:
        super().__init__(url)
        self._path = path
        self._is_uri = is_uri

    def open(self) -> Any:
        import sqlite3

        return sqlite3.connect(
            self._path,
            timeout=60.0,
            isolation_level=None,
            uri=self._is_uri,
            check_same_thread=False,
        )

    def begin(self, connection: Any) -> None:
        # A transaction that reads first could not become one that writes while others write.
        connection.execute("BEGIN IMMEDIATE")

    def is_error(self, error: Exception) -> bool:
        import sqlite3

        return isinstance(error, sqlite3.Error)

    def is_transient(self, error: Exception) -> bool:
        import sqlite3

        return isinstance(error, sqlite3.OperationalError) and bool(
            re.search("locked|busy", str(error))
        )

    def parameter(self, value: Any) -> Any:
        """Convert dates, times and decimals to text, as SQLite's functions expect them."""
        if hasattr(value, "isoformat"):
            return (
                value.isoformat(" ")
                if hasattr(value, "hour") and hasattr(value, "year")
                else (value.isoformat())
            )
        if isinstance(value, (int, float, str, bytes, type(None))):
            return value
        return str(value)


class MysqlDatabase(Database):
    """MySQL or MariaDB, through PyMySQL."""

    name = "MySQL"
    package = "pymysql"
    extra = "mysql"
    lexicon = Lexicon(
        "%s",
        re.compile(
            rf"{_ESCAPED}|\"(?:[^\"\\]|\\.|\"\")*\"|`(?:[^`]|``)*`|--(?=\s)[^\n]*|#[^\n]*",
            re.DOTALL,
        ),
    )

    def __init__(self, url: str, arguments: Mapping[str, Any]) -> None:
        super().__init__(url)
        self.arguments = dict(arguments)

    def open(self) -> Any:
        import pymysql

        return pymysql.connect(**self.arguments, autocommit=True)

    def begin(self, connection: Any) -> None:
        connection.begin()

    def is_error(self, error: Exception) -> bool:
        import pymysql

        return isinstance(error, pymysql.Error)

    def is_transient(self, error: Exception) -> bool:
        import pymysql

        if isinstance(error, pymysql.err.InterfaceError):
            return True
        # 1044, 1045, 1049: no permission, wrong password, no such database.
        final = {1044, 1045, 1049, 1698}
        return isinstance(error, pymysql.err.OperationalError) and error.args[0] not in final

    def quote(self, name: str) -> str:
        return ".".join("`" + part.replace("`", "``") + "`" for part in name.split("."))

    def upsert(self, table: str, columns: Sequence[str], keys: Sequence[str], rows: str) -> str:
        others = [one for one in columns if one not in keys] or list(keys)
        changes = ", ".join(f"{one} = VALUES({one})" for one in others)
        return (
            f"INSERT INTO {table} ({', '.join(columns)}) {rows} ON DUPLICATE KEY UPDATE {changes}"
        )


# Texts of PostgreSQL about a connection that will never be accepted.
_REFUSED = re.compile(
    "authentication failed|does not exist|no pg_hba|no password|permission|SSL|could not translate"
)


def _reason(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__


# JDBC URLs


def database_of(url: str, user: str | None = None, password: str | None = None) -> Database:
    """Return the database of a JDBC URL.

    Args:
        url: The URL, for example ``jdbc:postgresql://host:5432/shop?sslmode=require``.
        user: The user, unless the URL has one.
        password: The password, unless the URL has one.

    Raises:
        ConfigurationError: The URL or one of its properties is not supported.
    """
    found = re.match(r"jdbc:(\w+):(.*)", url, re.DOTALL)
    parse = _SCHEMES.get(found.group(1)) if found else None
    if found is None or parse is None:
        raise ConfigurationError(
            f"{url!r} is not a JDBC URL that Firesteel knows. It must begin with "
            f"{', '.join(f'jdbc:{scheme}:' for scheme in _SCHEMES)}."
        )
    return parse(url, found.group(2), user, password)


def _postgres(url: str, rest: str, user: str | None, password: str | None) -> Database:
    hosts, name, properties = _split(rest)
    arguments = {
        "host": ",".join(host for host, _ in hosts) or "localhost",
        "port": ",".join(port or "5432" for _, port in hosts) or "5432",
    }
    if name:
        arguments["dbname"] = name
    options: list[str] = []
    for key, value in properties.items():
        if key in _POSTGRES_SAME:
            arguments[_POSTGRES_SAME[key]] = value
        elif key == "currentSchema":
            options.append(f"-c search_path={_escape(value)}")
        elif key == "options":
            options.append(value)
        elif key == "ssl":
            if value.lower() in ("", "true"):
                arguments.setdefault("sslmode", "verify-full")
        elif key == "targetServerType":
            arguments["target_session_attrs"] = _SERVER_TYPES.get(value, value)
        elif key == "tcpKeepAlive":
            arguments["keepalives"] = "1" if value.lower() == "true" else "0"
        elif key not in _POSTGRES_TUNING:
            raise _unknown_property(url, key, [*_POSTGRES_SAME, "currentSchema", "ssl"])
    if options:
        arguments["options"] = " ".join(options)
    _add_user(arguments, user, password, "user")
    return PostgresDatabase(url, arguments)


def _sqlite(url: str, rest: str, user: str | None, password: str | None) -> Database:
    path, _, query = rest.partition("?")
    if path in ("", ":memory:"):
        raise ConfigurationError(
            f"{url!r} is a database in the memory of one process. The tasks of a job run in several "
            "processes: name a file."
        )
    if path.startswith("file:"):
        return SqliteDatabase(url, rest, is_uri=True)
    if query:
        raise _unknown_property(url, query.partition("=")[0], [])
    return SqliteDatabase(url, path, is_uri=False)


def _mysql(url: str, rest: str, user: str | None, password: str | None) -> Database:
    hosts, name, properties = _split(rest)
    if len(hosts) > 1:
        raise ConfigurationError(f"{url!r} has several hosts. PyMySQL connects to one.")
    host, port = hosts[0] if hosts else ("localhost", "")
    arguments: dict[str, Any] = {"host": host, "port": int(port or 3306), "charset": "utf8mb4"}
    if name:
        arguments["database"] = name
    for key, value in properties.items():
        if key in ("user", "password"):
            arguments[key] = value
        elif key in _MYSQL_SECONDS:
            seconds = max(1, round(int(value) / 1000))
            for argument in _MYSQL_SECONDS[key]:
                arguments[argument] = seconds
        elif key in ("useSSL", "sslMode", "useSsl"):
            if value.lower() not in ("false", "disabled", "disable"):
                arguments["ssl"] = {"check_hostname": value.lower() == "verify_identity"}
        elif key not in _MYSQL_TUNING:
            raise _unknown_property(url, key, ["user", "password", *_MYSQL_SECONDS, "sslMode"])
    _add_user(arguments, user, password, "user")
    return MysqlDatabase(url, arguments)


_Parser = Callable[[str, str, "str | None", "str | None"], Database]
_SCHEMES: dict[str, _Parser] = {
    "postgresql": _postgres,
    "sqlite": _sqlite,
    "mysql": _mysql,
    "mariadb": _mysql,
}

# Properties of PostgreSQL's JDBC driver with the names of libpq.
_POSTGRES_SAME = {
    "user": "user",
    "password": "password",
    "sslmode": "sslmode",
    "sslrootcert": "sslrootcert",
    "sslcert": "sslcert",
    "sslkey": "sslkey",
    "ApplicationName": "application_name",
    "connectTimeout": "connect_timeout",
    "loginTimeout": "connect_timeout",
    "gssEncMode": "gssencmode",
}
_SERVER_TYPES = {"primary": "read-write", "master": "read-write", "secondary": "standby"}
# Properties that only tune the Java drivers.
_POSTGRES_TUNING = {
    *(
        "reWriteBatchedInserts",
        "prepareThreshold",
        "preparedStatementCacheQueries",
        "binaryTransfer",
    ),
    *("preparedStatementCacheSizeMiB", "defaultRowFetchSize", "socketTimeout", "stringtype"),
    *(
        "loggerLevel",
        "autosave",
        "assumeMinServerVersion",
        "loadBalanceHosts",
        "logUnclosedConnections",
    ),
}
_MYSQL_SECONDS = {
    "connectTimeout": ("connect_timeout",),
    "socketTimeout": ("read_timeout", "write_timeout"),
}
_MYSQL_TUNING = {
    *("rewriteBatchedStatements", "useServerPrepStmts", "cachePrepStmts", "serverTimezone"),
    *("useUnicode", "characterEncoding", "allowPublicKeyRetrieval", "autoReconnect"),
    *("zeroDateTimeBehavior", "useLegacyDatetimeCode", "tinyInt1isBit", "prepStmtCacheSize"),
}


def _split(rest: str) -> tuple[list[tuple[str, str]], str, dict[str, str]]:
    """Return hosts with their ports, the name of the database, and the properties."""
    place, _, query = rest.partition("?")
    properties = dict(parse_qsl(query, keep_blank_values=True))
    if not place.startswith("//"):
        return [], unquote(place), properties
    authority, _, name = place[2:].partition("/")
    hosts = []
    for one in filter(None, authority.split(",")):
        found = re.fullmatch(r"(\[[^\]]*\]|[^:]*)(?::(\d+))?", one)
        if found is None:
            raise ConfigurationError(f"{one!r} is not a host with a port")
        hosts.append((found.group(1).strip("[]") or "localhost", found.group(2) or ""))
    return hosts, unquote(name), properties


def _add_user(arguments: dict[str, Any], user: str | None, password: str | None, key: str) -> None:
    if user is not None:
        arguments.setdefault(key, user)
    if password is not None:
        arguments.setdefault("password", password)


def _escape(value: str) -> str:
    """Return a value for libpq's ``options``, in which spaces separate."""
    return value.replace("\\", "\\\\").replace(" ", "\\ ")


def _unknown_property(url: str, key: str, known: Sequence[str]) -> ConfigurationError:
    which = f" Known ones are {', '.join(known)}." if known else ""
    return ConfigurationError(
        f"{url.partition('?')[0]!r}: Firesteel does not know the property {key!r}.{which}", key=key
    )
