"""PostgreSQL for tests: a cluster in a temporary directory, with logical decoding."""

from __future__ import annotations

import os
import shutil
import signal
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
_USER = "firesteel"


def binaries() -> Path | None:
    """The directory of initdb and postgres, of the newest version that is installed."""
    found = sorted(
        Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[-3])
    )
    if found:
        return found[-1].parent
    initdb = shutil.which("initdb")
    return None if initdb is None else Path(initdb).resolve().parent


def why_not() -> str | None:
    """Return the reason for which a server cannot start, or None if it can."""
    if binaries() is None:
        return "PostgreSQL is not installed (Debian: apt install postgresql)"
    if os.geteuid() == 0 and (_other_user() is None or shutil.which("setpriv") is None):
        return "PostgreSQL does not run as root, and there is no other user for it"
    return None


def _other_user() -> str | None:
    import pwd

    for name in ("postgres", "nobody"):
        try:
            pwd.getpwnam(name)
        except KeyError:
            continue
        return name
    return None


@contextmanager
def running_postgres(**settings: Any) -> Iterator[PostgresServer]:
    """A server that answers. The test is skipped if there can be none."""
    if reason := why_not():
        pytest.skip(reason)
    server = PostgresServer(**settings)
    try:
        server.start()
        yield server
    finally:
        server.close()


class PostgresServer:
    """A cluster and its server process, which can be killed and started again."""

    def __init__(self, **settings: Any) -> None:
        found = binaries()
        assert found is not None
        self._binaries = found
        self._user = _other_user() if os.geteuid() == 0 else None
        # Not below pytest's directory, which other users must not enter.
        self._directory = Path(tempfile.mkdtemp(prefix="postgres-"))
        self._data = self._directory / "data"
        if self._user is not None:
            shutil.chown(self._directory, self._user)
        [self.port] = free_ports(1)
        self._process: subprocess.Popen[bytes] | None = None
        self._settings = {
            "listen_addresses": "127.0.0.1",
            "port": self.port,
            "unix_socket_directories": "",
            # Jobs that a test has killed keep theirs until Python collects them.
            "max_connections": 300,
            "max_prepared_transactions": 40,
            "wal_level": "logical",
            "wal_sender_timeout": "10s",
            # The tests kill processes, not machines.
            "fsync": "off",
            "shared_buffers": "16MB",
            **settings,
        }
        self._run("initdb", "-D", str(self._data), "-U", _USER, "-A", "trust", "-E", "UTF8", "-N")
        self.database = "postgres"

    @property
    def url(self) -> str:
        return f"jdbc:postgresql://127.0.0.1:{self.port}/{self.database}?user={_USER}"

    def connect(self, **arguments: Any) -> Any:
        import psycopg

        return psycopg.connect(
            host="127.0.0.1",
            port=self.port,
            dbname=self.database,
            user=_USER,
            autocommit=arguments.pop("autocommit", True),
            **arguments,
        )

    def execute(self, sql: str, *parameters: Any) -> list[Any]:
        with self.connect() as connection:
            cursor = connection.execute(sql, parameters or None)
            return list(cursor.fetchall()) if cursor.description else []

    def table(self, columns: str, name: str | None = None) -> str:
        """A new table."""
        name = name or f"table_{uuid.uuid4().hex[:8]}"
        self.execute(f"CREATE TABLE {name} ({columns})")
        return name

    def rows(self, table: str) -> list[Any]:
        return sorted(self.execute(f"SELECT * FROM {table}"), key=repr)

    def prepared(self, prefix: str = "") -> list[str]:
        """The names of prepared transactions."""
        found = self.execute("SELECT gid FROM pg_prepared_xacts ORDER BY gid")
        return [gid for (gid,) in found if gid.startswith(prefix)]

    def start(self) -> None:
        command = [str(self._binaries / "postgres"), "-D", str(self._data)]
        for name, value in self._settings.items():
            command += ["-c", f"{name}={value}"]
        deadline = time.monotonic() + _START_SECONDS
        while True:
            log = (self._directory / "log").open("ab")
            self._process = subprocess.Popen(
                [sys.executable, leash.__file__, *self._as_user(), *command],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
            )
            log.close()
            if self._answers(deadline):
                return
            # Processes of a killed server may still hold its shared memory.
            assert time.monotonic() < deadline, (self._directory / "log").read_text()[-3000:]
            self._wait()
            time.sleep(0.1)

    def kill(self) -> None:
        """Kill the server process, as a failure of the machine would."""
        pid = int((self._data / "postmaster.pid").read_text().split()[0])
        os.kill(pid, signal.SIGKILL)
        self._wait()

    def restart(self) -> None:
        self.kill()
        self.start()

    def close(self) -> None:
        process = self._process
        if process is not None and process.poll() is None:
            pid = int((self._data / "postmaster.pid").read_text().split()[0])
            os.kill(pid, signal.SIGINT)  # without waiting for clients
            self._wait()
        shutil.rmtree(self._directory, ignore_errors=True)

    def _answers(self, deadline: float) -> bool:
        import psycopg

        assert self._process is not None
        while self._process.poll() is None and time.monotonic() < deadline:
            try:
                self.connect(connect_timeout=5).close()
            except psycopg.OperationalError:
                time.sleep(0.05)
            else:
                return True
        return False

    def _wait(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        try:
            process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        assert process.stdin is not None
        process.stdin.close()

    def _as_user(self) -> list[str]:
        if self._user is None:
            return []
        return [
            "setpriv",
            f"--reuid={self._user}",
            f"--regid={_group(self._user)}",
            "--clear-groups",
        ]

    def _run(self, program: str, *arguments: str) -> None:
        command = [*self._as_user(), str(self._binaries / program), *arguments]
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, cwd=self._directory
        )
        assert done.returncode == 0, done.stderr


def _group(user: str) -> int:
    import pwd

    return pwd.getpwnam(user).pw_gid


if __name__ == "__main__":
    sys.exit(why_not())
