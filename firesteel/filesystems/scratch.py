"""Scratch directories: private to a process, and swept by a later process if theirs was killed.

The process holds a lock on a file in its directory. The system releases the lock when the process
ends, however it ends. Process ids are not sufficient: containers that share a disk number their
processes independently.
"""

from __future__ import annotations

import fcntl
import os
import platform
import shutil
import stat
import tempfile
import weakref
from contextlib import suppress
from functools import cache
from pathlib import Path

_PREFIX = "firesteel-"
_LOCK = ".lock"


class ScratchDirectory:
    """A new directory that is deleted with this object, or by a later process.

    Args:
        kind: A word for the name of the directory.
        parent: The directory above it. The default is the temporary directory of the system.
    """

    def __init__(self, kind: str, parent: str | Path | None = None) -> None:
        above = Path(parent or tempfile.gettempdir())
        above.mkdir(parents=True, exist_ok=True)
        sweep(above)
        self.path = Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{kind}-", dir=above))
        lock = _locked(self.path)
        self._remove = weakref.finalize(self, _remove, self.path, lock, os.getpid())

    def remove(self) -> None:
        """Delete the directory. Further calls do nothing."""
        self._remove()


@cache
def scratch_of_process(kind: str) -> ScratchDirectory:
    """Return the scratch directory for a purpose that lasts until the process ends."""
    return ScratchDirectory(kind)


def sweep(parent: Path) -> None:
    """Delete the scratch directories of processes that were killed."""
    for directory in parent.glob(f"{_PREFIX}*"):
        with suppress(OSError):
            status = directory.lstat()
            if stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid():
                _sweep(directory)


def _sweep(directory: Path) -> None:
    # A directory without a lock is new, or its file system has no locks.
    with (directory / _LOCK).open("r+") as lock:
        # On a shared file system, a lock may hold on the machine of its owner only.
        if lock.read() == _machine():
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(directory, ignore_errors=True)


def _locked(directory: Path) -> int | None:
    """Lock a directory, and return the descriptor to hold. None if the file system has no locks."""
    new = directory / f"{_LOCK}.new"
    descriptor = os.open(new, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        return None
    os.write(descriptor, _machine().encode())
    # A sweep finds the lock by its name, and then finds it locked.
    new.rename(directory / _LOCK)
    return descriptor


def _remove(directory: Path, lock: int | None, pid: int) -> None:
    """Delete the directory, unless this process is a fork of the one that made it."""
    if os.getpid() == pid:
        shutil.rmtree(directory, ignore_errors=True)
        if lock is not None:
            os.close(lock)


@cache
def _machine() -> str:
    """Return a text that differs between machines, but not between containers of one machine."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return platform.node()
