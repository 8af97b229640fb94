"""Files of the records of a cached stream, with their timestamps.

A file is a sequence of buffers. A buffer is a length, followed by a pickle. Firesteel reads only
files that it has written itself.
"""

from __future__ import annotations

import os
import struct
import uuid
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from firesteel.connectors.base import (
    Boundedness,
    Committer,
    ReaderContext,
    Sink,
    SinkWriter,
    Source,
    SourceReader,
    SourceSplit,
    SplitEnumerator,
    WriteContext,
    WriterContext,
)
from firesteel.errors import FiresteelError, WriteFailedError
from firesteel.usercode import pickling

__all__ = ["RecordFileSink", "RecordFileSource"]

_LENGTH = struct.Struct("!Q")
_IN_PROGRESS = ".in-progress"


class RecordFileMissingError(FiresteelError, FileNotFoundError):
    """A reader does not find a file that was written."""


class RecordFileSink(Sink):
    """Writes one file per subtask. A file appears, complete, when the job commits it."""

    def __init__(self, directory: str) -> None:
        self._directory = directory

    def create_writer(self, context: WriterContext, state: Any = None) -> SinkWriter:
        return _Writer(Path(self._directory), context.subtask_index)

    def create_committer(self) -> Committer:
        return _Committer()


class _Writer(SinkWriter):
    def __init__(self, directory: Path, subtask: int) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        # Each attempt of a task writes its own file, and only one of them is committed.
        self._path = directory / f"{subtask:05d}-{uuid.uuid4().hex}{_IN_PROGRESS}"
        self._file = self._path.open("wb")

    def write(self, value: Any, context: WriteContext) -> None:
        timestamp = context.timestamp()
        self._append([value], None if timestamp is None else [timestamp])

    def write_batch(
        self, values: list[Any], timestamps: list[int] | None, context: WriteContext
    ) -> None:
        self._append(values, timestamps)

    def _append(self, values: list[Any], timestamps: list[int] | None) -> None:
        payload = pickling.dumps((values, timestamps))
        with self._naming_the_file():
            self._file.write(_LENGTH.pack(len(payload)))
            self._file.write(payload)

    def flush(self, end_of_input: bool) -> None:
        with self._naming_the_file():
            self._file.flush()

    def prepare_commit(self, end_of_input: bool) -> list[Any]:
        if not end_of_input:
            return []
        with self._naming_the_file():
            self._file.close()
        return [str(self._path)]

    @contextmanager
    def _naming_the_file(self) -> Iterator[None]:
        """Make errors, such as a full disk, name the file."""
        try:
            yield
        except OSError as error:
            raise WriteFailedError.of(self._path, error) from error

    def close(self) -> None:
        self._file.close()


class _Committer(Committer):
    def commit(self, committables: Sequence[Any]) -> None:
        for path in committables:
            if os.path.exists(path):
                os.rename(path, path.removesuffix(_IN_PROGRESS))


class RecordFileSource(Source):
    """Reads the files that a ``RecordFileSink`` has written into ``directory``."""

    side_by_side = False

    def __init__(self, directory: str) -> None:
        self._directory = directory

    def get_boundedness(self) -> Boundedness:
        return Boundedness.BOUNDED

    def create_enumerator(self, parallelism: int, state: Any = None) -> SplitEnumerator:
        return _Enumerator(Path(self._directory), discovered=bool(state))

    def create_reader(self, context: ReaderContext) -> SourceReader:
        return _Reader()


class _Enumerator(SplitEnumerator):
    def __init__(self, directory: Path, *, discovered: bool) -> None:
        self._directory = directory
        self._discovered = discovered

    def discover_splits(self) -> Sequence[SourceSplit]:
        if self._discovered:
            return []
        self._discovered = True
        files = sorted(path for path in self._directory.glob("*") if path.suffix != _IN_PROGRESS)
        return [SourceSplit(path.name, {"path": str(path)}) for path in files]

    def is_complete(self) -> bool:
        return self._discovered

    def snapshot_state(self) -> Any:
        return self._discovered


class _Reader(SourceReader):
    """A position is the offset of a buffer in the file, and the number of its records already read."""

    def __init__(self) -> None:
        self._splits: deque[SourceSplit] = deque()
        self._values: list[Any] = []
        self._stamps: list[int] | None = None
        self._read_stamps: list[int] | None = None
        # For the current buffer: its offset, the offset of the next one, and the records read.
        self._offset = self._next_offset = self._taken = 0

    def add_splits(self, splits: Sequence[SourceSplit]) -> None:
        self._splits.extend(splits)
        if len(self._splits) == len(splits):
            self._begin()

    def read(self, limit: int) -> list[Any]:
        while self._splits and self._taken >= len(self._values):
            self._offset, self._taken = self._next_offset, 0
            if not self._load():
                self._splits.popleft()
                self._begin()
        start, self._taken = self._taken, min(self._taken + limit, len(self._values))
        self._read_stamps = self._stamps and self._stamps[start : self._taken]
        return self._values[start : self._taken]

    def timestamps(self) -> list[int] | None:
        return self._read_stamps

    def snapshot_splits(self) -> list[SourceSplit]:
        if not self._splits:
            return []
        first, *rest = self._splits
        return [first.at([self._offset, self._taken]), *rest]

    def next_read_delay(self) -> float:
        return 0.0 if self._splits else 0.1

    def _begin(self) -> None:
        """Start at the position of the first split."""
        self._values, self._stamps, self._taken = [], None, 0
        self._offset = self._next_offset = 0
        if self._splits and self._splits[0].position is not None:
            self._offset, taken = self._splits[0].position
            self._next_offset = self._offset
            self._load()
            self._taken = taken

    def _load(self) -> bool:
        """Load the buffer at the offset. Return False at the end of the file."""
        path = self._splits[0].properties["path"]
        try:
            file = open(path, "rb")  # noqa: SIM115 - closed below, opening has an error of its own
        except FileNotFoundError as error:
            raise RecordFileMissingError(
                f"{path} of a cached stream does not exist. On a cluster set firesteel.working-dir "
                "to a directory that all machines share."
            ) from error
        with file:
            file.seek(self._offset)
            head = file.read(_LENGTH.size)
            if not head:
                self._values, self._stamps = [], None
                return False
            (length,) = _LENGTH.unpack(head)
            self._values, self._stamps = pickling.loads(file.read(length))
        self._next_offset = self._offset + _LENGTH.size + length
        return True
