"""Directories of checkpoint storage. Writes are atomic, and reads verify checksums."""

from __future__ import annotations

import contextlib
import fnmatch
import posixpath
import uuid
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from firesteel.errors import FiresteelError
from firesteel.filesystems.file_systems import (
    FileStatus,
    FileSystem,
    FileSystemOptions,
    find_file_system,
    has_wildcard,
)

_TEMPORARY_SUFFIX = ".tmp"
_CHUNK_BYTES = 4 << 20


class StorageError(FiresteelError, OSError):
    """An operation of a file system failed.

    ``missing``: the file does not exist.
    """

    def __init__(
        self, action: str, location: str, reason: object, *, missing: bool = False
    ) -> None:
        super().__init__(f"cannot {action} {location}: {reason}")
        self.action = action
        self.location = location
        self.reason = str(reason)
        self.missing = missing


class CorruptFileError(FiresteelError, RuntimeError):
    """A file is damaged."""

    def __init__(self, location: str, reason: str) -> None:
        super().__init__(f"{location} is damaged: {reason}")
        self.location = location
        self.reason = reason


@dataclass(frozen=True, slots=True)
class FileFacts:
    """Size and checksum of a written file. ``name`` is relative to a storage."""

    name: str
    size: int
    checksum: int


class _Counted:
    """Computes the size and checksum of chunks while they are written."""

    def __init__(self, chunks: Iterable[bytes]) -> None:
        self._chunks = chunks
        self.size = 0
        self.checksum = 0

    def __iter__(self) -> Iterator[bytes]:
        for chunk in self._chunks:
            self.size += len(chunk)
            self.checksum = zlib.crc32(chunk, self.checksum)
            yield chunk


def open_storage(location: str, options: FileSystemOptions | None = None) -> Storage:
    """The storage at a local path or URI. It need not exist yet."""
    file_system, root, plain = find_file_system(location, options)
    return Storage(file_system, root, plain)


@dataclass(frozen=True, slots=True)
class Storage:
    """A directory of a file system.

    ``root``: the path within the file system.
    ``location``: the path or URI for users. Names are relative to it, and cannot leave it.
    """

    file_system: FileSystem
    root: str
    location: str

    def at(self, name: str) -> Storage:
        """A subdirectory."""
        _check(name)
        return Storage(
            self.file_system, posixpath.join(self.root, name), posixpath.join(self.location, name)
        )

    @property
    def parent(self) -> Storage:
        return Storage(
            self.file_system, posixpath.dirname(self.root), posixpath.dirname(self.location)
        )

    @property
    def name(self) -> str:
        return posixpath.basename(self.root)

    def location_of(self, name: str) -> str:
        return posixpath.join(self.location, name)

    def name_of(self, location: str) -> str | None:
        """The name of a location in this storage, or None if it is elsewhere."""
        prefix = self.location + "/"
        return location.removeprefix(prefix) if location.startswith(prefix) else None

    def write(
        self, name: str, payload: bytes | Iterable[bytes], *, durable: bool = True
    ) -> FileFacts:
        """Write a file atomically, chunk by chunk.

        ``durable``: the file survives a crash of the machine. Without it, the file survives a crash
        of the process; ``sync`` makes it durable later.
        """
        counted = _Counted([payload] if isinstance(payload, bytes) else payload)
        path = self._path(name)
        with self._explained("write", name):
            if not self.file_system.has_atomic_rename:
                self._write_at_once(path, counted)
            else:
                self._write_and_rename(path, counted, durable=durable)
        return FileFacts(name, counted.size, counted.checksum)

    def _write_at_once(self, path: str, chunks: Iterable[bytes]) -> None:
        """Write an object, which appears at the end of its upload."""
        try:
            self.file_system.write(path, chunks)
        except BaseException:
            with contextlib.suppress(OSError):
                self.file_system.delete(path)
            raise

    def _write_and_rename(self, path: str, chunks: Iterable[bytes], *, durable: bool) -> None:
        directory, base = posixpath.split(path)
        # Two attempts may write the same name at the same time.
        temporary = posixpath.join(directory, f".{base}.{uuid.uuid4().hex}{_TEMPORARY_SUFFIX}")
        try:
            self.file_system.write(temporary, chunks)
            if durable:
                self.file_system.sync(temporary)
            self.file_system.rename(temporary, path)
        except BaseException:
            with contextlib.suppress(OSError):
                self.file_system.delete(temporary)
            raise
        if durable:
            self.file_system.sync(path)

    def sync(self, name: str) -> None:
        """Make a written file durable."""
        with self._explained("sync", name):
            self.file_system.sync(self._path(name))

    def read(self, name: str, facts: FileFacts | None = None) -> bytes:
        """The content of a file, checked against ``facts`` if given."""
        with self._explained("read", name):
            payload = self.file_system.read(self._path(name))
        if facts is not None:
            check_payload(payload, facts, self.location_of(name))
        return payload

    def check(self, name: str, facts: FileFacts) -> None:
        """Compare a file with ``facts``, chunk by chunk, so that it need not fit into memory."""
        size = checksum = 0
        with self._explained("read", name), self.file_system.open(self._path(name)) as file:
            while chunk := file.read(_CHUNK_BYTES):
                size += len(chunk)
                checksum = zlib.crc32(chunk, checksum)
        _compare(size, checksum, facts, self.location_of(name))

    def copy(self, name: str, facts: FileFacts, target: Path) -> None:
        """Copy a file to a local path, chunk by chunk, and compare it with ``facts``."""
        size = checksum = 0
        with (
            self._explained("read", name),
            self.file_system.open(self._path(name)) as file,
            target.open("wb") as copy,
        ):
            while chunk := file.read(_CHUNK_BYTES):
                copy.write(chunk)
                size += len(chunk)
                checksum = zlib.crc32(chunk, checksum)
        _compare(size, checksum, facts, self.location_of(name))

    def size(self, name: str) -> int | None:
        """The size of a file, or None if it does not exist."""
        with self._explained("look at", name):
            return self.file_system.size(self._path(name))

    def exists(self, name: str) -> bool:
        return self.size(name) is not None

    def list_files(self) -> list[FileStatus]:
        """All files in this storage, sorted by name, with those of unfinished writes."""
        with self._explained("list", ""):
            found = self.file_system.list_files(self.root)
        start = len(self.root.rstrip("/")) + 1
        return sorted(
            (FileStatus(status.path[start:], status.size, status.modified) for status in found),
            key=lambda status: status.path,
        )

    def find(self, pattern: str) -> list[str]:
        """The names of files and directories that match a pattern, such as ``*/chk-*``.

        Only directories that match a part of the pattern are listed.
        """
        if has_wildcard(self.root):
            # Characters of the root would match something else.
            return self._find_below(pattern)
        with self._explained("list", ""):
            found = self.file_system.find(posixpath.join(self.root, pattern))
        start = len(self.root.rstrip("/")) + 1
        return sorted(status.path[start:] for status in found)

    def _find_below(self, pattern: str) -> list[str]:
        depth = pattern.count("/") + 1
        names = {"/".join(file.path.split("/")[:depth]) for file in self.list_files()}
        return sorted(
            name
            for name in names
            if name.count("/") == depth - 1
            and all(map(fnmatch.fnmatchcase, name.split("/"), pattern.split("/")))
        )

    def delete(self, name: str) -> None:
        """Delete a file, if it exists."""
        with self._explained("delete", name):
            self.file_system.delete(self._path(name))

    def delete_directory(self, name: str = "") -> None:
        """Delete a subdirectory, or this storage itself."""
        path = self._path(name) if name else self.root
        with self._explained("delete", name):
            self.file_system.delete_directory(path)

    def _path(self, name: str) -> str:
        _check(name)
        return posixpath.join(self.root, name)

    @contextlib.contextmanager
    def _explained(self, action: str, name: str) -> Iterator[None]:
        try:
            yield
        except StorageError:
            raise
        except OSError as error:
            location = self.location_of(name) if name else self.location
            missing = isinstance(error, FileNotFoundError)
            reason = "there is no such file" if missing else error
            raise StorageError(action, location, reason, missing=missing) from error

    def __str__(self) -> str:
        return self.location


def is_temporary(name: str) -> bool:
    """True for a file of an interrupted write."""
    base = posixpath.basename(name)
    return base.startswith(".") and base.endswith(_TEMPORARY_SUFFIX)


def check_payload(payload: bytes, facts: FileFacts, location: str) -> None:
    _compare(len(payload), zlib.crc32(payload), facts, location)


def _compare(size: int, checksum: int, facts: FileFacts, location: str) -> None:
    if size != facts.size:
        raise CorruptFileError(location, f"it should have {facts.size} bytes, but it has {size}")
    if checksum != facts.checksum:
        raise CorruptFileError(location, "its checksum does not match")


def _check(name: str) -> None:
    """Check a name. It may come from an untrusted file, and must not leave the storage."""
    parts = name.split("/")
    if not name or name.startswith("/") or any(part in ("", ".", "..") for part in parts):
        raise ValueError(f"{name!r} is not a valid name within a checkpoint directory")
