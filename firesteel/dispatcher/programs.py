"""Programs that were uploaded to a session: their files, and runs of them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from firesteel.common.job_id import JobID
from firesteel.errors import FiresteelError, InvalidProgramError

_RUN_SECONDS = 300.0
# Programs that run up to their execute() at the same time.
_RUNS = 2
# A program has its last words in an error.
_SHOWN_CHARACTERS = 4000
_SUBMITTED = re.compile(r"^Job has been submitted with JobID ([0-9a-f]{32})$", re.MULTILINE)
_NAME = re.compile(r"[\w.-]{1,100}\.py", re.ASCII)


class TooManyRunsError(FiresteelError, RuntimeError):
    """Other uploaded programs have not reached their execute() yet."""


@dataclass(frozen=True, slots=True)
class UploadedProgram:
    """A program. ``uploaded`` is in epoch milliseconds."""

    id: str
    name: str
    uploaded: int
    path: Path


class Programs:
    """The uploaded programs, one file each.

    Args:
        directory: The directory for the files.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._runs = threading.BoundedSemaphore(_RUNS)

    def add(self, name: str, content: bytes) -> UploadedProgram:
        """Keep a program. Raises InvalidProgramError if it is no program in Python."""
        if not _NAME.fullmatch(name):
            raise InvalidProgramError(
                f"The program must be a file such as job.py, with letters and digits, not {name!r}."
            )
        try:
            compile(content, name, "exec", dont_inherit=True)
        except (SyntaxError, ValueError) as error:
            raise InvalidProgramError(f"{name} is no Python program: {error}.") from error
        self._directory.mkdir(exist_ok=True)
        path = self._directory / f"{JobID.generate()}_{name}"
        path.write_bytes(content)
        return _described(path)

    def all(self) -> list[UploadedProgram]:
        """Return the programs, the newest first."""
        found = [_described(path) for path in self._directory.glob("*.py")]
        return sorted(found, key=lambda one: one.uploaded, reverse=True)

    def find(self, program_id: str) -> UploadedProgram | None:
        return next((one for one in self.all() if one.id == program_id), None)

    def delete(self, program: UploadedProgram) -> None:
        program.path.unlink(missing_ok=True)

    def run(
        self,
        program: UploadedProgram,
        address: str,
        options: Sequence[str],
        arguments: Sequence[str],
    ) -> str:
        """Run a program up to its ``execute``, and return the id of its job.

        Args:
            program: The program.
            address: The URL of the session, which gets the job.
            options: Options of ``firesteel run``.
            arguments: Arguments of the program.

        Raises:
            InvalidProgramError: The program failed, or has no job.
            TooManyRunsError: Others are running.
        """
        if not self._runs.acquire(blocking=False):
            raise TooManyRunsError(f"{_RUNS} programs are being started. Try again later.")
        command = [sys.executable, "-m", "firesteel", "run", "-m", address, "-d", *options]
        try:
            done = subprocess.run(
                [*command, "-py", str(program.path), "--", *arguments],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                env={**os.environ, "PYTHONUNBUFFERED": "1"},
                cwd=self._directory,
                timeout=_RUN_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise InvalidProgramError(
                f"{program.name} did not reach its execute() within {_RUN_SECONDS:.0f} s."
            ) from None
        finally:
            self._runs.release()
        submitted = _SUBMITTED.search(done.stdout)
        if submitted is None or done.returncode:
            raise InvalidProgramError(
                f"{program.name} ended with exit code {done.returncode}:\n"
                f"{done.stdout[-_SHOWN_CHARACTERS:]}"
            )
        return submitted[1]


def _described(path: Path) -> UploadedProgram:
    _, _, name = path.name.partition("_")
    return UploadedProgram(path.name, name, int(path.stat().st_mtime * 1000), path)
