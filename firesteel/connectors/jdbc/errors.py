"""Errors of the JDBC connector. They name the database and the setting."""

from __future__ import annotations

from firesteel.errors import FiresteelError, shorten

__all__ = [
    "JdbcConnectionError",
    "JdbcTransactionLostError",
    "JdbcWriteError",
]


class JdbcConnectionError(FiresteelError, ConnectionError):
    """The database does not answer, or does not accept the user."""

    def __init__(self, url: str, reason: str) -> None:
        super().__init__(
            f"{url} cannot be used: {reason}. Check the URL, the user and the password of "
            "JdbcConnectionOptions."
        )
        self.url = url
        self.reason = reason


class JdbcWriteError(FiresteelError, RuntimeError):
    """The database does not take a record."""

    def __init__(self, sql: str, reason: str, record: object = None, remedy: str = "") -> None:
        what = "" if record is None else f" for the parameters {shorten(record)}"
        super().__init__(f"{sql!r} failed{what}: {reason}.{remedy and ' ' + remedy}")
        self.sql = sql
        self.reason = reason
        self.remedy = remedy


class JdbcTransactionLostError(FiresteelError, RuntimeError):
    """A prepared transaction of a checkpoint was rolled back, so its records are lost."""

    def __init__(self, gid: str) -> None:
        super().__init__(
            f"The prepared transaction {gid!r} of the checkpoint does not exist, and the database "
            "says that it was rolled back. Each sink and each job needs its own transaction id "
            "prefix, and only the sink may end its prepared transactions."
        )
        self.gid = gid
