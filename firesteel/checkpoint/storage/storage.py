"""A directory that checkpoints live in: files appear whole or not at all, and are checked when read."""

from __future__ import annotations

import contextlib
import posixpath
import uuid
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from firesteel.errors import FiresteelError
from firesteel.filesystems.file_systems import (
    FileStatus,
    FileSystem,
    FileSystemOptions,
    find_file_system,
)

_TEMPORARY_SUFFIX = ".tmp"


class StorageError(FiresteelError, OSError):
    """A file system refused; the message says what was tried, and where.

    ``missing``: because there is no such file.
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
    """A file is not what was written."""

    def __init__(self, location: str, reason: str) -> None:
        super().__init__(f"{location} is damaged: {reason}")
        self.location = location
        self.reason = reason


@dataclass(frozen=True, slots=True)
class FileFacts:
    """What is known of a file that was written: ``name`` is relative to some storage."""

    name: str
    size: int
    checksum: int


class _Counted:
    """Chunks on their way to a file: their size and checksum are known at the end."""

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
    """The storage at a local path, ``file://``, ``s3://`` and so on. It need not exist yet."""
    file_system, root, plain = find_file_system(location, options)
    return Storage(file_system, root, plain)


@dataclass(frozen=True, slots=True)
class Storage:
    """``root`` is the path within the file system, ``location`` what a user would write.

    Names are relative to the root, with slashes, and cannot lead out of it.
    """

    file_system: FileSystem
    root: str
    location: str

    def at(self, name: str) -> Storage:
        """A directory below this one."""
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
        """The name of a location below this one; None if it is elsewhere."""
        prefix = self.location + "/"
        return location.removeprefix(prefix) if location.startswith(prefix) else None

    def write(
        self, name: str, payload: bytes | Iterable[bytes], *, durable: bool = True
    ) -> FileFacts:
        """Write a file atomically: whoever looks sees all of it, or nothing, or what was there.

        Chunks are written as they come. Without ``durable`` the file may be lost with the machine,
        but not with the process; ``sync`` makes up for it.
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
        """An object appears when its upload has ended."""
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
        """Make a file that was not written durably outlast the machine."""
        with self._explained("sync", name):
            self.file_system.sync(self._path(name))

    def read(self, name: str, facts: FileFacts | None = None) -> bytes:
        """The whole file, checked against ``facts`` where they are known."""
        with self._explained("read", name):
            payload = self.file_system.read(self._path(name))
        if facts is not None:
            check_payload(payload, facts, self.location_of(name))
        return payload

    def size(self, name: str) -> int | None:
        """None: there is no such file."""
        with self._explained("look at", name):
            return self.file_system.size(self._path(name))

    def exists(self, name: str) -> bool:
        return self.size(name) is not None

    def list_files(self) -> list[FileStatus]:
        """All files below, by name relative to this storage. Unfinished ones are among them."""
        with self._explained("list", ""):
            found = self.file_system.list_files(self.root)
        start = len(self.root.rstrip("/")) + 1
        return sorted(
            (FileStatus(status.path[start:], status.size, status.modified) for status in found),
            key=lambda status: status.path,
        )

    def delete(self, name: str) -> None:
        """Fine if there is no such file."""
        with self._explained("delete", name):
            self.file_system.delete(self._path(name))

    def delete_directory(self, name: str = "") -> None:
        """With everything in it; without a name, this storage itself."""
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
    """Whether a file is what an interrupted write left behind."""
    base = posixpath.basename(name)
    return base.startswith(".") and base.endswith(_TEMPORARY_SUFFIX)


def check_payload(payload: bytes, facts: FileFacts, location: str) -> None:
    if len(payload) != facts.size:
        raise CorruptFileError(
            location, f"it should have {facts.size} bytes, but it has {len(payload)}"
        )
    if zlib.crc32(payload) != facts.checksum:
        raise CorruptFileError(location, "its checksum is wrong")


def _check(name: str) -> None:
    """A name comes from files that anyone may have written: it must not lead elsewhere."""
    parts = name.split("/")
    if not name or name.startswith("/") or any(part in ("", ".", "..") for part in parts):
        raise ValueError(f"{name!r} is no name within a checkpoint directory")
