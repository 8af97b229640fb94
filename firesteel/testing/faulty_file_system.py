"""A file system with injected faults, for tests of checkpoint storage."""

from __future__ import annotations

import errno
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from enum import Enum
from fnmatch import fnmatchcase
from typing import BinaryIO, TypeVar

from firesteel.checkpoint.storage.storage import Storage
from firesteel.filesystems.file_systems import FileStatus, FileSystem
from firesteel.stability import public_evolving

__all__ = ["FaultyFileSystem", "StorageFault", "StorageFaultKind", "with_faults"]

T = TypeVar("T")


@public_evolving
class StorageFaultKind(Enum):
    """The effect of a StorageFault. Not in PyFlink.

    >>> from firesteel.testing import StorageFaultKind
    >>> StorageFaultKind.FAIL.value
    'an I/O error; the operation had no effect'
    """

    FAIL = "an I/O error; the operation had no effect"
    FULL = "the disk is full: half of the content is written, then an error"
    LOST_ANSWER = "the operation succeeds, but reports an error"
    TRUNCATE = "half of the content is written, without an error"
    FLIP_BIT = "one bit of the content is wrong, without an error"
    SLOW = "the operation is slow, or waits for the test"


@public_evolving
@dataclass(frozen=True, slots=True)
class StorageFault:
    """A fault of a FaultyFileSystem. Not in PyFlink.

    Args:
        kind: The effect.
        operation: A method, such as ``write`` or ``rename``, or ``*`` for all methods.
        path: A shell pattern. A local file is first written under a temporary name that contains
            the final name, so ``*_metadata*`` matches both.
        call: The number of the matching call that fails, from 1. With None every call fails.
        seconds: The duration of a SLOW fault.
        gate: An event that ends a SLOW fault.

    >>> from firesteel.testing import StorageFault, StorageFaultKind
    >>> StorageFault(StorageFaultKind.FULL, "write", "*_metadata*", call=2).call
    2
    """

    kind: StorageFaultKind
    operation: str = "write"
    path: str = "*"
    call: int | None = None
    seconds: float = 0.0
    gate: threading.Event | None = None


@public_evolving
class FaultyFileSystem:
    """Passes calls to a real file system and injects faults. Not in PyFlink.

    Args:
        inner: The real file system.
        *faults: The faults.
        sleep: Waits for SLOW faults.

    Attributes:
        calls: The operation and path of each call so far.

    >>> from pathlib import Path
    >>> from firesteel.filesystems.file_systems import LocalFileSystem
    >>> from firesteel.testing import FaultyFileSystem, StorageFault, StorageFaultKind
    >>> broken = StorageFault(StorageFaultKind.FAIL, "read", "*.txt")
    >>> file_system = FaultyFileSystem(LocalFileSystem(), broken)
    >>> path = str(Path("words.txt").absolute())
    >>> file_system.write(path, [b"be"])
    >>> file_system.read(path)
    Traceback (most recent call last):
    OSError: [Errno 5] Input/output error: '...words.txt'
    >>> file_system.heal()
    >>> file_system.read(path), file_system.size(path)
    (b'be', 2)
    >>> file_system.delete(path)
    >>> [operation for operation, _ in file_system.calls]
    ['write', 'read', 'read', 'size', 'delete']
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
        """Add a fault.

        Args:
            fault: The fault.

        >>> from firesteel.filesystems.file_systems import LocalFileSystem
        >>> from firesteel.testing import FaultyFileSystem, StorageFault, StorageFaultKind
        >>> file_system = FaultyFileSystem(LocalFileSystem())
        >>> file_system.add(StorageFault(StorageFaultKind.FULL))
        >>> file_system.write("/words.txt", [])
        Traceback (most recent call last):
        OSError: [Errno 28] No space left on device: '/words.txt'
        """
        with self._lock:
            self._faults.append(fault)
            self._matches.append(0)

    def heal(self) -> None:
        """Remove all faults."""
        with self._lock:
            self._faults.clear()
            self._matches.clear()

    @property
    def has_atomic_rename(self) -> bool:
        """True if the real file system renames files atomically.

        >>> from firesteel.filesystems.file_systems import LocalFileSystem
        >>> from firesteel.testing import FaultyFileSystem
        >>> FaultyFileSystem(LocalFileSystem()).has_atomic_rename
        True
        """
        return self._inner.has_atomic_rename

    def write(self, path: str, chunks: Iterable[bytes]) -> None:
        """Write a file.

        Args:
            path: The file.
            chunks: Its content.
        """
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
        """Rename a file.

        Args:
            source: The old name.
            target: The new name, to which the pattern of a fault applies.

        >>> from pathlib import Path
        >>> from firesteel.filesystems.file_systems import LocalFileSystem
        >>> from firesteel.testing import FaultyFileSystem
        >>> size = Path("old").write_text("be")
        >>> old, new = str(Path("old").absolute()), str(Path("new").absolute())
        >>> FaultyFileSystem(LocalFileSystem()).rename(old, new)
        >>> Path("new").exists()
        True
        """
        self._call("rename", target, lambda: self._inner.rename(source, target))

    def sync(self, path: str) -> None:
        """Make a written file survive a crash of the machine.

        Args:
            path: The file.

        >>> from pathlib import Path
        >>> from firesteel.filesystems.file_systems import LocalFileSystem
        >>> from firesteel.testing import FaultyFileSystem
        >>> size = Path("words.txt").write_text("be")
        >>> FaultyFileSystem(LocalFileSystem()).sync(str(Path("words.txt").absolute()))
        """
        self._call("sync", path, lambda: self._inner.sync(path))

    def read(self, path: str) -> bytes:
        """Return the content of a file.

        Args:
            path: The file.
        """
        return self._call("read", path, lambda: self._inner.read(path))

    def size(self, path: str) -> int | None:
        """Return the size of a file in bytes, or None if there is no such file.

        Args:
            path: The file.
        """
        return self._call("size", path, lambda: self._inner.size(path))

    def create(self, path: str) -> BinaryIO:
        """Open a new file for writing.

        >>> from firesteel.filesystems.file_systems import LocalFileSystem
        >>> with FaultyFileSystem(LocalFileSystem()).create("/dev/null") as file:
        ...     file.write(b"be")
        2
        """
        return self._call("create", path, lambda: self._inner.create(path))

    def open(self, path: str) -> BinaryIO:
        """Open a file as a stream.

        >>> from firesteel.filesystems.file_systems import LocalFileSystem
        >>> file_system = FaultyFileSystem(LocalFileSystem())
        >>> with file_system.open("/dev/null") as file:
        ...     file.read()
        b''
        """
        return self._call("open", path, lambda: self._inner.open(path))

    def find(self, path: str) -> list[FileStatus]:
        """Return the file or directory at a path, or all that match the path as a glob.

        >>> from firesteel.filesystems.file_systems import LocalFileSystem
        >>> FaultyFileSystem(LocalFileSystem()).find("/there/is/no/*.txt")
        []
        """
        return self._call("find", path, lambda: self._inner.find(path))

    def list_files(self, directory: str, *, hidden: bool = True) -> list[FileStatus]:
        """Return the files below a directory.

        Args:
            directory: The directory.
            hidden: Whether to include names that begin with ``.`` or ``_``.

        >>> from pathlib import Path
        >>> from firesteel.filesystems.file_systems import LocalFileSystem
        >>> from firesteel.testing import FaultyFileSystem
        >>> size = Path("words.txt").write_text("be")
        >>> len(FaultyFileSystem(LocalFileSystem()).list_files(str(Path.cwd())))
        1
        """
        return self._call(
            "list_files", directory, lambda: self._inner.list_files(directory, hidden=hidden)
        )

    def delete(self, path: str) -> None:
        """Delete a file.

        Args:
            path: The file.
        """
        self._call("delete", path, lambda: self._inner.delete(path))

    def delete_directory(self, path: str) -> None:
        """Delete a directory with all files.

        Args:
            path: The directory.

        >>> from pathlib import Path
        >>> from firesteel.filesystems.file_systems import LocalFileSystem
        >>> from firesteel.testing import FaultyFileSystem
        >>> Path("old").mkdir()
        >>> FaultyFileSystem(LocalFileSystem()).delete_directory(str(Path("old").absolute()))
        >>> Path("old").exists()
        False
        """
        self._call("delete_directory", path, lambda: self._inner.delete_directory(path))

    def _call(self, operation: str, path: str, function: Callable[[], T]) -> T:
        kinds = self._meet(operation, path)
        if StorageFaultKind.FULL in kinds:
            raise OSError(errno.ENOSPC, "No space left on device", path)
        result = function()
        _answer(kinds, path)
        return result

    def _meet(self, operation: str, path: str) -> set[StorageFaultKind]:
        """Count the call. Wait or fail if a fault applies.

        Returns the faults that the caller has to apply.
        """
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
            raise OSError(errno.ETIMEDOUT, "the test did not set the gate of a SLOW fault", path)


def _answer(kinds: set[StorageFaultKind], path: str) -> None:
    if StorageFaultKind.LOST_ANSWER in kinds:
        raise OSError(errno.ETIMEDOUT, "Connection timed out", path)


@public_evolving
def with_faults(
    storage: Storage, *faults: StorageFault, sleep: Callable[[float], None] = time.sleep
) -> tuple[Storage, FaultyFileSystem]:
    """Return a copy of a storage whose file system has faults. Not in PyFlink.

    Args:
        storage: The storage of checkpoints.
        *faults: The faults.
        sleep: Waits for SLOW faults.

    Returns:
        The storage, and its file system.

    >>> from firesteel.checkpoint.storage.storage import open_storage
    >>> from firesteel.testing import JobHarness, StorageFault, StorageFaultKind, with_faults
    >>> full = StorageFault(StorageFaultKind.FULL, path="*_metadata*", call=1)
    >>> storage, file_system = with_faults(open_storage("checkpoints", None), full)
    >>> harness = JobHarness(
    ...     lambda env: env.from_sequence(1, 3),
    ...     records_per_epoch=1,
    ...     checkpoint_every=1,
    ...     storage=storage,
    ... )
    >>> harness.run()
    >>> harness.collected
    [1, 2, 3]
    """
    file_system = FaultyFileSystem(storage.file_system, *faults, sleep=sleep)
    return replace(storage, file_system=file_system), file_system
