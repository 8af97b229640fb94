"""Committer of a file sink: finishes part files with an atomic rename."""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from typing import Any

from firesteel.connectors.base import Committer
from firesteel.connectors.files.part_files import PartFileMissingError
from firesteel.errors import WriteFailedError

__all__ = ["FileCommitter"]

_log = logging.getLogger("firesteel")


class FileCommitter(Committer):
    """Renames finished files, and removes obsolete ones. A second commit has no effect."""

    def commit(self, committables: Sequence[Any]) -> None:
        directories: set[str] = set()
        for committable in committables:
            if committable["kind"] == "finish":
                _finish(committable)
                directories.add(os.path.dirname(committable["final"]))
        for directory in directories:
            _sync_directory(directory)
        for committable in committables:
            if committable["kind"] == "remove" and os.path.exists(committable["path"]):
                os.unlink(committable["path"])


def _finish(committable: dict[str, Any]) -> None:
    in_progress, final, size = (committable[key] for key in ("in_progress", "final", "size"))
    try:
        actual = os.path.getsize(in_progress)
    except FileNotFoundError:
        if not os.path.exists(final):
            # A restored job commits again, and a reader may have consumed the finished file.
            _log.warning(
                "FileSink: %s does not exist. Either it was finished before and then moved away, "
                "or %s was deleted.",
                final,
                in_progress,
            )
        return
    if actual != size:
        raise PartFileMissingError(in_progress, size, f"it has {actual}")
    try:
        os.replace(in_progress, final)
    except OSError as error:
        raise WriteFailedError.of(final, error) from error


def _sync_directory(directory: str) -> None:
    """Make renames survive a power failure."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
