"""Segments in checkpoint storage. Checkpoints refer to them without a copy."""

from __future__ import annotations

import contextlib
import posixpath
import uuid
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path

from firesteel.checkpoint.storage.storage import (
    CorruptFileError,
    FileFacts,
    Storage,
    StorageError,
    open_storage,
)
from firesteel.errors import WriteFailedError
from firesteel.filesystems.file_systems import FileSystemOptions
from firesteel.state.changelog import (
    CorruptSegmentError,
    Segment,
    SegmentFile,
    SegmentStore,
    check_version,
)

__all__ = ["StorageSegmentStore"]

_CHUNK_BYTES = 4 * 1024 * 1024


class StorageSegmentStore(SegmentStore):
    """Writes large segments as files of ``shared``. Segments have full locations.

    A restored job also reads segments of other directories, with ``options``. Writes are not
    durable, so that epochs do not wait for the disk. The writer of a checkpoint syncs its files.
    """

    def __init__(
        self,
        shared: Storage | None,
        inline_threshold: int,
        options: FileSystemOptions | None = None,
    ) -> None:
        super().__init__(None, inline_threshold)
        self._shared = shared
        self._options = options
        self._others: dict[str, Storage] = {}

    def write(
        self, payload: Iterable[bytes], *, epoch: int, full: bool, inline_bytes: int = 0
    ) -> Segment:
        shared = self._shared
        if shared is None:
            return super().write(payload, epoch=epoch, full=full, inline_bytes=inline_bytes)
        chunks: list[bytes] = []
        remaining = iter(payload)
        room = self.inline_threshold - inline_bytes
        for chunk in remaining:
            chunks.append(chunk)
            room -= len(chunk)
            if room < 0:
                break
        else:
            return super().write(chunks, epoch=epoch, full=full, inline_bytes=inline_bytes)
        name = _unique(f"segment-{epoch}")
        location = shared.location_of(name)
        with _explained(location):
            facts = shared.write(name, chain(_drained(chunks), remaining), durable=False)
        return Segment(epoch, full, facts.size, path=location, checksum=facts.checksum)

    def read(self, segment: Segment) -> bytes:
        if segment.path is None:
            return super().read(segment)
        check_version(segment)
        what = f"state segment of epoch {segment.epoch}"
        return self._read(segment.path, segment.size, segment.checksum, what)

    def write_file(self, source: Path) -> SegmentFile:
        if self._shared is None:
            return super().write_file(source)
        name = _unique(source.name)
        location = self._shared.location_of(name)
        with _explained(location):
            facts = self._shared.write(name, _chunks_of(source), durable=False)
        return SegmentFile(source.name, facts.size, facts.checksum, path=location)

    def read_file(self, file: SegmentFile, target: Path) -> None:
        if file.path is None:
            super().read_file(file, target)
            return
        directory, name = posixpath.split(file.path)
        facts = FileFacts(name, file.size, file.checksum)
        with _named(file.path, f"state file {file.name}"):
            self._storage_of(directory).copy(name, facts, target)

    def _read(self, location: str, size: int, checksum: int, what: str) -> bytes:
        directory, name = posixpath.split(location)
        with _named(location, what):
            return self._storage_of(directory).read(name, FileFacts(name, size, checksum))

    def _storage_of(self, directory: str) -> Storage:
        if self._shared is not None and self._shared.location == directory:
            return self._shared
        storage = self._others.get(directory)
        if storage is None:
            storage = self._others[directory] = open_storage(directory, self._options)
        return storage


def segment_facts(segment: Segment) -> Iterator[tuple[str, FileFacts]]:
    """The directory and the facts of each file of a segment."""
    if segment.path is not None:
        directory, name = posixpath.split(segment.path)
        yield directory, FileFacts(name, segment.size, segment.checksum)
    for file in segment.files:
        if file.path is not None:
            directory, name = posixpath.split(file.path)
            yield directory, FileFacts(name, file.size, file.checksum)


@contextlib.contextmanager
def _named(location: str, what: str) -> Iterator[None]:
    """Turn errors about damaged and missing files into CorruptSegmentError."""
    try:
        yield
    except CorruptFileError as error:
        raise CorruptSegmentError(f"the {what} is damaged: {error}") from error
    except StorageError as error:
        if not error.missing:
            raise
        raise CorruptSegmentError(f"the {what} is missing: there is no file {location}") from None


@contextlib.contextmanager
def _explained(location: str) -> Iterator[None]:
    """Turn a StorageError into a WriteFailedError, to which the operator adds its name."""
    try:
        yield
    except StorageError as error:
        cause = error.__cause__ if isinstance(error.__cause__, OSError) else error
        reason = cause.strerror or error.reason
        raise WriteFailedError(location, cause.errno, reason) from error


def _unique(name: str) -> str:
    # Two attempts of one task may write at the same time.
    return f"{name}-{uuid.uuid4().hex}"


def _drained(chunks: list[bytes]) -> Iterator[bytes]:
    """The chunks, which are released one by one."""
    chunks.reverse()
    while chunks:
        yield chunks.pop()


def _chunks_of(source: Path) -> Iterator[bytes]:
    with source.open("rb") as file:
        while chunk := file.read(_CHUNK_BYTES):
            yield chunk
