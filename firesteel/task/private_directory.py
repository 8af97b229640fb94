"""Directories that only this user may enter, short enough for the names of Unix sockets."""

from __future__ import annotations

import contextlib
import os
import stat
import tempfile
from pathlib import Path

from firesteel.errors import FiresteelError

# A socket's whole path may have about 100 characters; this leaves room for its directory and name.
_LONGEST_PARENT = 40


class PrivateDirectoryError(FiresteelError, RuntimeError):
    """A directory that should be ours belongs to somebody else."""


def socket_directory(name: str) -> Path:
    """Where the directory of that name is, or will be."""
    parent = tempfile.gettempdir()
    return Path(parent if len(parent) <= _LONGEST_PARENT else "/tmp") / name


def make_private(directory: Path) -> Path:
    with contextlib.suppress(FileExistsError):
        directory.mkdir(mode=0o700)
    status = directory.stat()
    if status.st_uid != os.getuid() or stat.S_IMODE(status.st_mode) & 0o077:
        raise PrivateDirectoryError(
            f"{directory} belongs to somebody else or is open to others; remove it and try again"
        )
    return directory
