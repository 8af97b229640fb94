"""A disk that loses everything that was not synced."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


class Disk:
    """Notes each fsync of files and directories below ``root``, which itself is on the disk.

    A file that was synced keeps the bytes it had then. An entry of a directory survives if the
    directory was synced while it had the entry. A deletion reaches the disk at once.
    """

    def __init__(self, root: Path) -> None:
        self._root = root.resolve()
        self._sizes: dict[int, int] = {}
        self._entries: dict[int, dict[str, int]] = {}
        # Open descriptors, so that no inode number is used twice.
        self._held: dict[int, int] = {}

    def fsync(self, descriptor: int) -> None:
        path = Path(os.readlink(f"/proc/self/fd/{descriptor}"))
        if not path.is_relative_to(self._root):
            return
        status = os.fstat(descriptor)
        if status.st_ino not in self._held:
            readable = os.open(f"/proc/self/fd/{descriptor}", os.O_RDONLY)
            self._held[status.st_ino] = readable
        if stat.S_ISDIR(status.st_mode):
            self._entries[status.st_ino] = {one.name: one.stat().st_ino for one in path.iterdir()}
        else:
            self._sizes[status.st_ino] = status.st_size

    def fail(self) -> None:
        """Leave below the root only what a machine would find after its power has failed."""
        linked = {path.stat().st_ino for path in self._root.rglob("*")}
        directories = {path.stat().st_ino for path in self._root.rglob("*") if path.is_dir()}
        survivors = dict(self._survivors(self._root.stat().st_ino, Path(), linked, directories))
        for path in self._root.iterdir():
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink()
        for name, content in survivors.items():
            if content is None:
                (self._root / name).mkdir()
            else:
                (self._root / name).write_bytes(content)
        for path in (self._root, *self._root.rglob("*")):
            descriptor = os.open(path, os.O_RDONLY)
            self.fsync(descriptor)
            os.close(descriptor)

    def _survivors(
        self, directory: int, name: Path, linked: set[int], directories: set[int]
    ) -> Iterator[tuple[Path, bytes | None]]:
        """Yield the paths with their contents, or with None for a directory, parents first."""
        for entry, inode in self._entries.get(directory, {}).items():
            if inode not in linked:
                continue
            if inode in directories:
                yield name / entry, None
                yield from self._survivors(inode, name / entry, linked, directories)
            else:
                size = self._sizes.get(inode, 0)
                yield name / entry, os.pread(self._held[inode], size, 0) if size else b""

    def close(self) -> None:
        for descriptor in self._held.values():
            os.close(descriptor)
        self._held.clear()


@contextmanager
def disk_below(root: Path) -> Iterator[Disk]:
    """Replace fsync for the files below a directory, which exists and is empty."""
    disk = Disk(root)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", disk.fsync)
        try:
            yield disk
        finally:
            disk.close()
