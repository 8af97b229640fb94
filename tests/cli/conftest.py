"""A session in processes of its own, and the commands that talk to it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from firesteel.cli.main import main
from tests.waiting import wait_until

# A session starts in ten seconds, unless the machine is busy.
_SECONDS = 300
# Commands that only talk to the session run in the process of the test, which saves seconds.
_IN_PROCESS = ("list", "cancel", "stop", "savepoint", "checkpoint", "rescale")


@dataclass(frozen=True)
class Commands:
    """Runs ``firesteel`` with a home of its own."""

    home: Path
    address: str = ""

    @property
    def environment(self) -> dict[str, str]:
        return {**os.environ, "FIRESTEEL_HOME": str(self.home), "PYTHONUNBUFFERED": "1"}

    def __call__(self, *arguments: str, code: int = 0) -> str:
        """Run a command to its end and return its output. ``code`` is the expected exit code."""
        if arguments[0] in _IN_PROCESS:
            return self._invoke(arguments, code)
        done = subprocess.run(
            [sys.executable, "-m", "firesteel", *arguments],
            capture_output=True,
            text=True,
            timeout=_SECONDS,
            env=self.environment,
            cwd=self.home,
            check=False,
        )
        assert done.returncode == code, f"{arguments}\n{done.stdout}\n{done.stderr}"
        return done.stdout if code == 0 else done.stdout + done.stderr

    def _invoke(self, arguments: tuple[str, ...], code: int) -> str:
        result = CliRunner().invoke(main, arguments, env={"FIRESTEEL_HOME": str(self.home)})
        assert result.exit_code == code, f"{arguments}\n{result.output}"
        return result.stdout if code == 0 else result.output

    def start(self, *arguments: str, **options: Any) -> subprocess.Popen[str]:
        """Start a command and return its process."""
        return subprocess.Popen(
            [sys.executable, "-m", "firesteel", *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=self.environment,
            cwd=self.home,
            **options,
        )

    def submit(self, program: Path, *options: str, arguments: tuple[str, ...] = ()) -> str:
        """Submit a program to the session without waiting for it, and return the id of its job."""
        output = self("run", "-m", self.address, "-d", *options, str(program), *arguments)
        return output.partition("Job has been submitted with JobID ")[2].split()[0]

    def jobs(self) -> dict[str, dict[str, Any]]:
        """Return all jobs of the session by id."""
        answer = json.loads(self("list", "-a", "-m", self.address, "--json"))
        return {job["jid"]: job for job in answer["jobs"]}

    def wait_for_state(self, job_id: str, *states: str) -> None:
        from firesteel.client.rest_client import RestClient

        client = RestClient(f"http://{self.address}")

        def state() -> str:
            return str(client.get(f"/jobs/{job_id}/status")["status"])

        wait_until(
            lambda: state() in states,
            lambda: f"{job_id} is {state()}: {client.get(f'/jobs/{job_id}/exceptions')}",
        )


@pytest.fixture(scope="session")
def commands(tmp_path_factory: pytest.TempPathFactory) -> Commands:
    return Commands(tmp_path_factory.mktemp("home"))


@contextmanager
def started_session(home: Path, master: str, *settings: str) -> Iterator[Commands]:
    """Start a session, and stop it at the end of the block."""
    starting = Commands(home)
    arguments = ["--port", "0", "--master", master, *settings]
    started = json.loads(starting("session", "start", "-d", "--json", *arguments))
    yield Commands(home, started["url"].removeprefix("http://"))
    starting("session", "stop", "-m", started["url"])


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Commands]:
    """A session with 12 slots, and the commands for it."""
    home = tmp_path_factory.mktemp("session")
    with started_session(
        home,
        "local[12,4]",
        f"-Djobmanager.archive.fs.dir={home / 'archive'}",
        f"-Dexecution.checkpointing.savepoint-dir={home / 'savepoints'}",
    ) as commands:
        yield commands


@pytest.fixture
def write(tmp_path: Path) -> Any:
    """Writes a program, and returns its path."""

    def write_file(text: str, name: str = "job.py") -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    return write_file
