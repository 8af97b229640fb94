"""A file system that fails, fills up, lies or dawdles where a test wants it to."""

from __future__ import annotations

import errno
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from enum import Enum
from fnmatch import fnmatchcase
from typing import TypeVar

from firesteel.checkpoint.storage.storage import Storage
from firesteel.filesystems.file_systems import FileStatus, FileSystem

__all__ = ["FaultyFileSystem", "StorageFault", "StorageFaultKind", "with_faults"]

T = TypeVar("T")


class StorageFaultKind(Enum):
    """What goes wrong."""

    FAIL = "an I/O error, and nothing has happened"
    FULL = "the disk is full: half of a write is there, then an error"
    LOST_ANSWER = "it was done, but the answer is an error"
    TRUNCATE = "half of a write is there, and nobody says so"
    FLIP_BIT = "one bit of a write is wrong, and nobody says so"
    SLOW = "it takes its time, or waits until the test lets it go on"


@dataclass(frozen=True, slots=True)
class StorageFault:
    """``operation`` is write, rename, sync, read, size, list_files, delete, delete_directory, or ``*``.

    ``path`` is a pattern as in a shell; on a local disk a file is first written under a temporary
    name that contains the final one, so ``*_metadata*`` matches both. ``call`` counts the matching
    calls from 1; None is every one of them. A SLOW fault takes ``seconds``, or until ``gate`` is set.
    """

    kind: StorageFaultKind
    operation: str = "write"
    path: str = "*"
    call: int | None = None
    seconds: float = 0.0
    gate: threading.Event | None = None


class FaultyFileSystem:
    """Passes everything on to ``inner``, but for its faults. ``calls`` is the list of what was asked.

    >>> from firesteel.filesystems.file_systems import LocalFileSystem
    >>> broken = StorageFault(StorageFaultKind.FAIL, "rename", "*_metadata", call=2)
    >>> file_system = FaultyFileSystem(LocalFileSystem(), broken)
    """

    def __init__(
        self,
        inner: FileSystem,
        *faults: StorageFault,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._inner = inner
        self._faults = list(faults)
        self._matches = [0] * len(faults)
        self._sleep = sleep
        self._lock = threading.Lock()
        self.calls: list[tuple[str, str]] = []

    def add(self, fault: StorageFault) -> None:
        with self._lock:
            self._faults.append(fault)
            self._matches.append(0)

    def heal(self) -> None:
        """No fault happens any more."""
        with self._lock:
            self._faults.clear()
            self._matches.clear()

    @property
    def has_atomic_rename(self) -> bool:
        return self._inner.has_atomic_rename

    def write(self, path: str, chunks: Iterable[bytes]) -> None:
        kinds = self._meet("write", path)
        payload = b"".join(chunks)
        if StorageFaultKind.FULL in kinds:
            self._inner.write(path, [payload[: len(payload) // 2]])
            raise OSError(errno.ENOSPC, "No space left on device", path)
        if StorageFaultKind.TRUNCATE in kinds:
            payload = payload[: len(payload) // 2]
        if StorageFaultKind.FLIP_BIT in kinds and payload:
            middle = len(payload) // 2
            payload = payload[:middle] + bytes([payload[middle] ^ 1]) + payload[middle + 1 :]
        self._inner.write(path, [payload])
        _answer(kinds, path)

    def rename(self, source: str, target: str) -> None:
        self._call("rename", target, lambda: self._inner.rename(source, target))

    def sync(self, path: str) -> None:
        self._call("sync", path, lambda: self._inner.sync(path))

    def read(self, path: str) -> bytes:
        return self._call("read", path, lambda: self._inner.read(path))

    def size(self, path: str) -> int | None:
        return self._call("size", path, lambda: self._inner.size(path))

    def list_files(self, directory: str) -> list[FileStatus]:
        return self._call("list_files", directory, lambda: self._inner.list_files(directory))

    def delete(self, path: str) -> None:
        self._call("delete", path, lambda: self._inner.delete(path))

    def delete_directory(self, path: str) -> None:
        self._call("delete_directory", path, lambda: self._inner.delete_directory(path))

    def _call(self, operation: str, path: str, function: Callable[[], T]) -> T:
        kinds = self._meet(operation, path)
        if StorageFaultKind.FULL in kinds:
            raise OSError(errno.ENOSPC, "No space left on device", path)
        result = function()
        _answer(kinds, path)
        return result

    def _meet(self, operation: str, path: str) -> set[StorageFaultKind]:
        """Count the call, wait and fail where due; return what is left for the caller to do."""
        due = self._due(operation, path)
        for fault in due:
            if fault.kind is StorageFaultKind.SLOW:
                self._wait(fault, path)
            if fault.kind is StorageFaultKind.FAIL:
                raise OSError(errno.EIO, "Input/output error", path)
        return {fault.kind for fault in due}

    def _due(self, operation: str, path: str) -> list[StorageFault]:
        with self._lock:
            self.calls.append((operation, path))
            due = []
            for index, fault in enumerate(self._faults):
                if not fnmatchcase(operation, fault.operation) or not fnmatchcase(path, fault.path):
                    continue
                self._matches[index] += 1
                if fault.call is None or fault.call == self._matches[index]:
                    due.append(fault)
            return due

    def _wait(self, fault: StorageFault, path: str) -> None:
        if fault.gate is None:
            self._sleep(fault.seconds)
        elif not fault.gate.wait(timeout=60):
            raise OSError(errno.ETIMEDOUT, "the test never opened the gate of this fault", path)


def _answer(kinds: set[StorageFaultKind], path: str) -> None:
    if StorageFaultKind.LOST_ANSWER in kinds:
        raise OSError(errno.ETIMEDOUT, "Connection timed out", path)


def with_faults(
    storage: Storage, *faults: StorageFault, sleep: Callable[[float], None] = time.sleep
) -> tuple[Storage, FaultyFileSystem]:
    """The same storage behind a faulty file system, and that file system."""
    file_system = FaultyFileSystem(storage.file_system, *faults, sleep=sleep)
    return replace(storage, file_system=file_system), file_system
