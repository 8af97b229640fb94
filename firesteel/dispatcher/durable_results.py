"""Collected records of a session with several masters: files that outlive the leader.

A batch is stored before the checkpoint that it belongs to is complete, and the pointer of the
checkpoint says which batches there are. So a client that has read some batches from one leader
reads the rest from the next one, without loss and without doubles.
"""

from __future__ import annotations

import json
import threading
import time
from typing import Any

from firesteel.checkpoint.storage.storage import CorruptFileError, Storage, StorageError
from firesteel.leader.job_ledger import ResultRanges
from firesteel.usercode import pickling

_BATCH_RECORDS = 5_000
_WAIT_SECONDS = 0.1
_READS = 10
_CLOSED = "closed"
_PUBLISHED = "published-"


def _published_name(term: int) -> str:
    return f"{_PUBLISHED}{term}"


def _batch_name(term: int, number: int) -> str:
    # Masters of different terms never write to the same file.
    return f"{number:012d}-{term}"


class DurableResultWriter:
    """The collector of a stream, in the process of its job.

    Args:
        storage: The directory of the stream.
        term: The term of the master.
        ranges: The batches of the restored checkpoint.
        limit: The size of unread batches, in bytes, from which on the job waits for its reader.
    """

    def __init__(self, storage: Storage, term: int, ranges: ResultRanges, limit: int) -> None:
        self._storage = storage
        self._term = term
        self._limit = limit
        self._lock = threading.Lock()
        self._published = ranges
        self._last = ranges[-1][2] if ranges else 0
        # The last batch that is stored, the records of batches that are not published, and those of
        # published batches that the job will hand over once more.
        self._stored_last = self._last
        self._stored_records = 0
        self._known_records = 0
        self._released = False
        self._write_published()

    def store(self, records: list[Any]) -> ResultRanges:
        """Write records, in place of those that were stored and not published."""
        with self._lock:
            self._stored_last = self._write(records)
            self._stored_records = len(records)
            return self._ranges(self._stored_last)

    def publish(self) -> None:
        """Let the reader see what was stored."""
        with self._lock:
            self._published = self._ranges(self._stored_last)
            self._last = self._stored_last
            self._known_records += self._stored_records
            self._stored_records = 0
            self._write_published()

    def add(self, records: list[Any]) -> None:
        """Take records that may leave now. Those of a checkpoint are published already."""
        with self._lock:
            known = min(self._known_records, len(records))
            self._known_records -= known
            new = records[known:]
            if new:
                self._last = self._stored_last = self._write(new)
                self._published = self._ranges(self._last)
                self._write_published()
        self._wait_for_room()

    def release(self) -> None:
        """Wait for the reader no longer: the job is being canceled."""
        self._released = True

    def flush(self) -> None:
        """Nothing waits in memory."""

    def _write(self, records: list[Any]) -> int:
        """Write batches after the last published one, and return the number of the last."""
        number = self._last
        if self._storage.exists(_CLOSED):
            return number
        for start in range(0, len(records), _BATCH_RECORDS):
            number += 1
            payload = pickling.dumps(records[start : start + _BATCH_RECORDS])
            self._storage.write(_batch_name(self._term, number), payload)
        return number

    def _ranges(self, last: int) -> ResultRanges:
        before = tuple(one for one in self._published if one[0] != self._term)
        first = before[-1][2] + 1 if before else 1
        return before if last < first else (*before, (self._term, first, last))

    def _write_published(self) -> None:
        payload = json.dumps(self._published).encode()
        self._storage.write(_published_name(self._term), payload)

    def _wait_for_room(self) -> None:
        while not self._released:
            files = self._storage.list_files()
            if sum(file.size for file in files) < self._limit:
                return
            time.sleep(_WAIT_SECONDS)


class DurableResultReader:
    """Reads the batches of a stream, in the process of the dispatcher."""

    def __init__(self, storage: Storage, term: int) -> None:
        self._storage = storage
        self._term = term
        self._deleted = 0

    def generation(self) -> int | None:
        """Return the term that wrote the first batch, or None if there is none.

        Without checkpoints a new leader starts over, in a new generation.
        """
        ranges = self._ranges()
        return ranges[0][0] if ranges else None

    def read(self, after: int, max_bytes: int) -> list[tuple[int, bytes]]:
        """Return some batches after a number, each with its number, and delete those up to it."""
        if self._storage.exists(_CLOSED):
            return []
        return self._take(after, max_bytes)

    def _take(self, after: int, max_bytes: int) -> list[tuple[int, bytes]]:
        found: list[tuple[int, bytes]] = []
        size = 0
        for term, first, last in self._ranges():
            for number in range(max(first, self._deleted + 1), min(last, after) + 1):
                self._storage.delete(_batch_name(term, number))
            for number in range(max(first, after + 1), last + 1):
                if size >= max_bytes:
                    break
                found.append((number, self._storage.read(_batch_name(term, number))))
                size += len(found[-1][1])
        self._deleted = max(self._deleted, after)
        return found

    def close(self) -> None:
        """Drop all records, now and later."""
        self._storage.write(_CLOSED, b"")
        self._take(2**62, 0)

    def _ranges(self) -> ResultRanges:
        name = _published_name(self._term)
        for _ in range(_READS):
            try:
                payload = self._storage.read(name)
            except StorageError as error:
                if error.missing:
                    # The job has not begun.
                    return ()
                raise
            try:
                return tuple((term, first, last) for term, first, last in json.loads(payload))
            except ValueError:
                # An object that is replaced while it is read arrives cut off at its former size.
                continue
        raise CorruptFileError(self._storage.location_of(name), "it is no list of batches")


def reader_of_ended_job(storage: Storage) -> DurableResultReader | None:
    """Return the reader for the batches of the last master that ran a job, if there are any."""
    terms = [
        int(term)
        for file in storage.list_files()
        if (term := file.path.removeprefix(_PUBLISHED)) != file.path and term.isdigit()
    ]
    return DurableResultReader(storage, max(terms)) if terms else None
