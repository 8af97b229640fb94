"""Finds files in the driver and cuts them into splits."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from firesteel.connectors.base import SourceSplit, SplitEnumerator
from firesteel.connectors.files.paths import FilePaths
from firesteel.connectors.index_ranges import split_range
from firesteel.errors import NotYetSupportedError
from firesteel.filesystems.file_systems import FileStatus, has_wildcard
from firesteel.formats.base import FileFormat
from firesteel.formats.lines import compression_of

__all__ = ["FileSplitEnumerator"]

# A smaller part is not worth a split of its own.
_MIN_SPLIT_BYTES = 1024 * 1024


class FileSplitEnumerator(SplitEnumerator):
    """Lists the paths once, or periodically. It recognizes a file by its path.

    It lists the paths when it is created, so that a missing path fails the job at its start.
    """

    def __init__(
        self,
        paths: FilePaths,
        file_format: FileFormat,
        *,
        parallelism: int,
        split_files: bool,
        discovery_interval: float | None,
        state: Any = None,
        min_split_bytes: int = _MIN_SPLIT_BYTES,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._paths = paths
        self._parallelism = parallelism
        self._format = file_format
        self._split_files = split_files and file_format.is_splittable
        self._discovery_interval = discovery_interval
        self._min_split_bytes = min_split_bytes
        self._clock = clock
        self._complete = bool(state and state["complete"])
        self._known: set[str] = set(state["files"]) if state else set()
        self._listed: list[FileStatus] | None = None if self._complete else self._list()
        self._next_listing = clock()

    def discover_splits(self) -> Sequence[SourceSplit]:
        if self._complete or self._clock() < self._next_listing:
            return []
        files = self._list() if self._listed is None else self._listed
        self._listed = None
        new_files = [file for file in files if file.path not in self._known]
        self._known.update(file.path for file in new_files)
        if self._discovery_interval is None:
            self._complete = True
        else:
            self._next_listing = self._clock() + self._discovery_interval
        return self._cut(new_files)

    def is_complete(self) -> bool:
        return self._complete

    def next_discovery_delay(self) -> float:
        return max(0.0, self._next_listing - self._clock())

    def has_pending(self, splits: Sequence[SourceSplit]) -> bool | None:
        """Return True if there is a split, because an unfinished split always has data to read."""
        return bool(splits)

    def snapshot_state(self) -> Any:
        # A static set of files needs no list, because it is not listed again.
        files = [] if self._complete else sorted(self._known)
        return {"complete": self._complete, "files": files}

    def _list(self) -> list[FileStatus]:
        watching = self._discovery_interval is not None
        found: dict[str, FileStatus] = {}
        for path in self._paths.paths:
            # A glob may wait for its first match.
            must_exist = not (watching and has_wildcard(path))
            for file in self._paths.list_files(path, must_exist=must_exist):
                found.setdefault(file.path, file)
        return list(found.values())

    def _cut(self, files: Sequence[FileStatus]) -> list[SourceSplit]:
        total = sum(file.size for file in files)
        part_bytes = max(self._min_split_bytes, -(-total // self._parallelism))
        splits: list[SourceSplit] = []
        for file in files:
            compression = self._compression_of(file.path)
            counted = not self._format.has_byte_positions or compression is not None
            parts = 1
            if self._split_files and not counted:
                parts = min(self._parallelism, -(-file.size // part_bytes))
            ranges = split_range(0, file.size, parts)
            if not file.size and not self._format.allows_empty_files:
                ranges = [(0, 0)]
            splits += [
                SourceSplit(
                    f"{file.path}:{start}",
                    {
                        "path": file.path,
                        "size": file.size,
                        "start": start,
                        "stop": stop,
                        "compression": compression,
                        "counted": counted,
                    },
                )
                for start, stop in ranges
            ]
        return splits

    def _compression_of(self, path: str) -> str | None:
        if not self._format.decompresses:
            return None
        if path.lower().endswith(".deflate"):
            raise NotYetSupportedError(f"Reading the .deflate file {path}")
        return compression_of(path)
