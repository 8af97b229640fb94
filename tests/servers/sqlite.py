"""SQLite with the methods of a server for tests."""

from __future__ import annotations

import sqlite3
import time
from pathlib import Path
from typing import Any


class SqliteServer:
    """SQLite with the methods of a server."""

    def __init__(self, directory: Path) -> None:
        self.file = directory / "test.db"
        self.url = f"jdbc:sqlite:{self.file}"

    def execute(self, sql: str) -> list[Any]:
        connection = sqlite3.connect(self.file, timeout=60, isolation_level=None)
        try:
            return connection.execute(sql).fetchall()
        finally:
            connection.close()

    def table(self, columns: str) -> str:
        name = f"table_{time.monotonic_ns()}"
        self.execute(f"CREATE TABLE {name} ({columns})")
        return name

    def rows(self, table: str) -> list[Any]:
        return sorted(self.execute(f"SELECT * FROM {table}"), key=repr)
