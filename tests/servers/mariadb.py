"""MariaDB for tests: a server in a temporary directory."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.servers import leash
from tests.servers.ports import free_ports

# A machine that runs many tests at once may need minutes.
_START_SECONDS = 240


def _program(*names: str) -> str | None:
    path = f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin"
    return next((found for name in names if (found := shutil.which(name, path=path))), None)


def why_not() -> str | None:
    """Return the reason for which a server cannot start, or None if it can."""
    programs = ("mariadbd", "mariadb-install-db", "my_print_defaults")
    if any(_program(name) is None for name in programs):
        return (
            "MariaDB is not installed (Debian: apt install mariadb-server-core mariadb-client-core)"
        )
    return None


@contextmanager
def running_mariadb() -> Iterator[MariadbServer]:
    """A server that answers. The test is skipped if there can be none."""
    if reason := why_not():
        pytest.skip(reason)
    server = MariadbServer()
    try:
        server.start()
        yield server
    finally:
        server.close()


class MariadbServer:
    """A server process, which can be killed and started again."""

    def __init__(self) -> None:
        self._directory = Path(tempfile.mkdtemp(prefix="mariadb-"))
        self._data = self._directory / "data"
        [self.port] = free_ports(1)
        self._process: subprocess.Popen[bytes] | None = None
        install = _program("mariadb-install-db")
        assert install is not None
        command = [install, "--no-defaults", f"--datadir={self._data}", *self._user()]
        command += ["--auth-root-authentication-method=normal", "--skip-test-db"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr

    @property
    def url(self) -> str:
        return f"jdbc:mariadb://127.0.0.1:{self.port}/shop?user=root"

    def _user(self) -> list[str]:
        return ["--user=root"] if os.geteuid() == 0 else []

    def connect(self, database: str | None = "shop") -> Any:
        import pymysql

        return pymysql.connect(
            host="127.0.0.1", port=self.port, user="root", database=database, autocommit=True
        )

    def execute(self, sql: str) -> list[Any]:
        connection = self.connect()
        try:
            with connection.cursor() as cursor:
                cursor.execute(sql)
                return list(cursor.fetchall())
        finally:
            connection.close()

    def table(self, columns: str) -> str:
        """A new table."""
        name = f"table_{uuid.uuid4().hex[:8]}"
        self.execute(f"CREATE TABLE {name} ({columns})")
        return name

    def rows(self, table: str) -> list[Any]:
        return sorted(self.execute(f"SELECT * FROM {table}"), key=repr)

    def start(self) -> None:
        server = _program("mariadbd")
        assert server is not None
        command = [server, "--no-defaults", f"--datadir={self._data}", f"--port={self.port}"]
        command += [f"--socket={self._directory}/socket", "--bind-address=127.0.0.1"]
        command += [f"--pid-file={self._directory}/pid", *self._user()]
        # The tests kill processes, not machines.
        command += ["--innodb-flush-log-at-trx-commit=2", "--innodb-buffer-pool-size=16M"]
        with (self._directory / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, leash.__file__, *command],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
            )
        deadline = time.monotonic() + _START_SECONDS
        while not self._answers():
            log_text = (self._directory / "log").read_text()[-3000:]
            assert self._process.poll() is None, log_text
            assert time.monotonic() < deadline, log_text
            time.sleep(0.05)

    def kill(self) -> None:
        """Kill the server process, as a failure of the machine would."""
        process, self._process = self._process, None
        if process is None:
            return
        assert process.stdin is not None
        process.stdin.close()
        process.wait(timeout=30)

    def restart(self) -> None:
        self.kill()
        self.start()

    def close(self) -> None:
        self.kill()
        shutil.rmtree(self._directory, ignore_errors=True)

    def _answers(self) -> bool:
        import pymysql

        try:
            connection = self.connect(None)
        except pymysql.Error:
            return False
        with connection.cursor() as cursor:
            cursor.execute("CREATE DATABASE IF NOT EXISTS shop")
        connection.close()
        return True


if __name__ == "__main__":
    sys.exit(why_not())
