"""Collected records on their way to a client: files that a job writes and the dispatcher sends.

A slow client does not hold the job up before the files are large, and the records outlive the
process of the job.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from firesteel.usercode import pickling

_CLOSED = "closed"
_UNFINISHED = ".unfinished"
_BATCH_RECORDS = 5_000
# Records wait at most this long for others that go into the same file.
_FLUSH_SECONDS = 0.05
_WAIT_SECONDS = 0.1


class ResultWriter:
    """The collector of a stream, in the process of its job.

    Args:
        directory: The directory of the files.
        limit: The size of unread files, in bytes, from which on the job waits for its reader.
    """

    def __init__(self, directory: Path, limit: int) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._directory = directory
        self._limit = limit
        self._number = 0
        self._unread = 0
        self._released = False
        self._changed = threading.Condition()
        self._records: list[Any] = []
        threading.Thread(target=self._write_often, name="firesteel-results", daemon=True).start()

    def add(self, records: list[Any]) -> None:
        self._wait_for_room()
        with self._changed:
            self._records += records
            self._changed.notify_all()
        if len(self._records) >= _BATCH_RECORDS:
            self.flush()

    def release(self) -> None:
        """Wait for the reader no longer: the job is being canceled."""
        self._released = True

    def flush(self) -> None:
        """Write all records that were added."""
        with self._changed:
            records, self._records = self._records, []
            if (self._directory / _CLOSED).exists():
                return
            for start in range(0, len(records), _BATCH_RECORDS):
                self._write(pickling.dumps(records[start : start + _BATCH_RECORDS]))

    def _write_often(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._records)
            time.sleep(_FLUSH_SECONDS)
            self.flush()

    def _wait_for_room(self) -> None:
        while self._unread >= self._limit and not self._released:
            self._unread = sum(file.stat().st_size for file in _files(self._directory))
            if self._unread < self._limit:
                return
            time.sleep(_WAIT_SECONDS)

    def _write(self, payload: bytes) -> None:
        self._number += 1
        self._unread += len(payload)
        file = self._directory / f"{self._number:012d}"
        unfinished = file.with_suffix(_UNFINISHED)
        unfinished.write_bytes(payload)
        unfinished.rename(file)


class ResultReader:
    """Reads the files of a stream, in the process of the dispatcher."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def generation(self) -> int | None:
        """Return None: the numbers of one master's batches never start over."""
        return None

    def read(self, after: int, max_bytes: int) -> list[tuple[int, bytes]]:
        """Return some batches after a number, each with its number, and delete those up to it."""
        found: list[tuple[int, bytes]] = []
        size = 0
        for file in _files(self._directory):
            number = int(file.name)
            if number <= after:
                file.unlink(missing_ok=True)
            elif size < max_bytes:
                found.append((number, file.read_bytes()))
                size += len(found[-1][1])
            else:
                break
        return found

    def close(self) -> None:
        """Drop all records, now and later."""
        self._directory.mkdir(parents=True, exist_ok=True)
        (self._directory / _CLOSED).touch()
        for file in _files(self._directory):
            file.unlink(missing_ok=True)


def _files(directory: Path) -> Iterator[Path]:
    try:
        names = os.listdir(directory)
    except FileNotFoundError:
        # The job has not begun.
        return iter(())
    return (directory / name for name in sorted(names) if name.isdigit())
