"""Committer of a file sink: makes part files visible, each byte once.

A part file is hidden until it is published. Usually the file gets its final name. A restored job
publishes only the bytes that its checkpoint contains, in a copy: the file may have more bytes, and
its writer may still be alive. The hidden file stays if a different checkpoint or a savepoint may
contain more of it. Its new name tells the number of published bytes, and a later commit publishes
the bytes after them in a file of their own.
"""

from __future__ import annotations

import logging
import os
import re
import uuid
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from firesteel.connectors.base import Committer
from firesteel.connectors.files.part_files import PartFileMissingError, has_writer
from firesteel.connectors.files.paths import FilePaths
from firesteel.errors import WriteFailedError
from firesteel.filesystems.file_systems import is_uri, sync_path

__all__ = ["FileCommitter", "unpublished"]

_log = logging.getLogger("firesteel")

_COPY_BYTES = 1024 * 1024
_PUBLISHED = re.compile(r"\.published-(\d+)")
_STAGED = re.compile(r"\.staged-(\d+)-(\d+)-[0-9a-f]+")
# The unique id and the counter in the name of a part file.
_NUMBER = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}-\d+")


class FileCommitter(Committer):
    """Publishes part files. A second commit has no effect."""

    def __init__(self, paths: FilePaths) -> None:
        self._paths = paths

    def commit(self, committables: Sequence[Any]) -> None:
        directories: set[str] = set()
        for committable in committables:
            # Firesteel 0.1 also removed files, which other checkpoints may need.
            if committable["kind"] == "finish" and is_uri(committable["final"]):
                _finish_remote(committable, self._paths)
            elif committable["kind"] == "finish":
                try:
                    _finish(committable)
                except OSError as error:
                    if isinstance(error, PartFileMissingError):
                        raise
                    raise WriteFailedError.of(committable["final"], error) from error
                directories.add(os.path.dirname(committable["final"]))
            for merged in committable.get("merged", ()):
                self._forget(merged)
        for directory in directories:
            # The new names survive a power failure.
            sync_path(directory)

    def _forget(self, merged: dict[str, Any]) -> None:
        """Remove a hidden file whose bytes are visible in the file that it was merged into.

        A file with further bytes, which a different checkpoint may contain, gets a new name instead.
        """
        path, size = merged["in_progress"], merged["size"]
        if not merged.get("restored") or merged["disposable"]:
            file_system, inner, _ = self._paths.locate(path)
            file_system.delete(inner)
        elif (remains := unpublished(path, size)) is not None:
            os.rename(remains[0], f"{path}.published-{size}")


def unpublished(path: str, size: int) -> tuple[str, int] | None:
    """Find the bytes of a local hidden file, up to a size, that are not visible yet.

    Return the file that has them and the place of the first one, or None if all are visible.
    """
    if os.path.exists(path):
        return path, 0
    for name, match in _hidden_files(path, _PUBLISHED):
        if int(match[1]) < size:
            return name, int(match[1])
    return None


def _finish_remote(committable: dict[str, Any], paths: FilePaths) -> None:
    """Give a hidden object its final name: the store copies it, and the hidden one goes.

    The copy appears at once and whole. An interrupted commit is repeated.
    """
    hidden, final, size = (committable[key] for key in ("in_progress", "final", "size"))
    file_system, source, _ = paths.locate(hidden)
    target = paths.locate(final).path
    try:
        found = file_system.size(source)
        if found is None:
            # A commit of this object has ended before. A reader may have consumed the result.
            if file_system.size(target) is None:
                _log.warning(
                    "FileSink: %s does not exist. Either it was finished before and then moved "
                    "away, or %s was deleted.",
                    final,
                    hidden,
                )
            return
        if found != size:
            raise PartFileMissingError(hidden, size, f"the object has {found} bytes")
        file_system.rename(source, target)
    except OSError as error:
        if isinstance(error, PartFileMissingError):
            raise
        raise WriteFailedError.of(final, error) from error


def _finish(committable: dict[str, Any]) -> None:
    """Publish the first bytes of a hidden file, as far as they are not published yet.

    ``restored``: the file may have more bytes, and its writer may still be alive.
    ``disposable``: nothing needs the other bytes.
    """
    path, final, size = (committable[key] for key in ("in_progress", "final", "size"))
    source, published = path, 0
    if not os.path.exists(path):
        # A commit of this file has begun or ended before.
        remains = _complete(path, final)
        if remains is None:
            return
        source, published = remains
    if published >= size:
        return
    actual = os.path.getsize(source)
    if actual < size:
        raise PartFileMissingError(source, size, f"the file has only {actual} bytes")
    if actual == size and not published and not committable.get("restored"):
        os.replace(source, final)
        return
    staged = f"{path}.staged-{published}-{size}-{uuid.uuid4().hex}"
    _copy(source, staged, published, size)
    for other in _hidden_files(path, _STAGED):
        if other[0] != staged:
            os.unlink(other[0])
    # From the next step on, only the staged file has the bytes that are published here.
    sync_path(os.path.dirname(path))
    try:
        if committable.get("disposable") or (actual == size and not has_writer(source)):
            os.unlink(source)
        else:
            os.rename(source, f"{path}.published-{size}")
    except FileNotFoundError:
        # A different attempt of this commit was faster.
        os.unlink(staged)
        return
    os.replace(staged, _final_path(final, published))


def _complete(path: str, final: str) -> tuple[str, int] | None:
    """Complete an interrupted commit. Return the file with further bytes, and where they begin."""
    remains = None
    for name, match in _hidden_files(path, _PUBLISHED):
        remains = name, int(match[1])
    staged = list(_hidden_files(path, _STAGED))
    for name, match in staged:
        if remains is None or int(match[2]) <= remains[1]:
            os.replace(name, _final_path(final, int(match[1])))
    if remains is None and not staged and not os.path.exists(final):
        # A restored job commits again, and a reader may have consumed the finished file.
        _log.warning(
            "FileSink: %s does not exist. Either it was finished before and then moved away, "
            "or %s was deleted.",
            final,
            path,
        )
    return remains


def _hidden_files(path: str, suffix: re.Pattern[str]) -> list[tuple[str, re.Match[str]]]:
    """The files whose names are that of a hidden file with a suffix."""
    directory, base = os.path.split(path)
    if not os.path.isdir(directory):
        return []
    return [
        (os.path.join(directory, name), match)
        for name in os.listdir(directory)
        if name.startswith(base) and (match := suffix.fullmatch(name, len(base)))
    ]


def _final_path(final: str, start: int) -> str:
    """The path of a finished file that begins at a byte of its part file."""
    if start == 0:
        return final
    directory, name = os.path.split(final)
    number = _NUMBER.search(name)
    end = len(name) if number is None else number.end()
    return os.path.join(directory, f"{name[:end]}-{start}{name[end:]}")


def _copy(source: str, target: str, start: int, end: int) -> None:
    """Copy a range of bytes to a new file on the disk."""
    try:
        with open(source, "rb") as reader, open(target, "xb") as writer:
            reader.seek(start)
            left = end - start
            while left and (data := reader.read(min(_COPY_BYTES, left))):
                left -= writer.write(data)
            writer.flush()
            os.fsync(writer.fileno())
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(target)
        raise
