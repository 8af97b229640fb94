"""Reader of a file source: reads its splits one after the other, with the format of the source."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from firesteel.connectors.base import SourceReader, SourceSplit
from firesteel.connectors.files.paths import FilePaths
from firesteel.errors import FiresteelError
from firesteel.filesystems.file_systems import without_password
from firesteel.formats.base import BrokenRecords, FileFormat, FilePart, RecordReader

__all__ = ["FileReader"]

# A read ends after this many broken records, so that they do not fill the memory.
_MOST_BROKEN = 10_000


class FileReader(SourceReader):
    """Reads its splits one after the other. Errors name the file."""

    def __init__(
        self, file_format: FileFormat, paths: FilePaths, *, fail_on_broken_records: bool = True
    ) -> None:
        self._format = file_format
        self._paths = paths
        self._broken = BrokenRecords(fail=fail_on_broken_records)
        self._splits: deque[SourceSplit] = deque()
        self._records: RecordReader | None = None
        self._current: str | None = None

    def add_splits(self, splits: Sequence[SourceSplit]) -> None:
        self._splits.extend(splits)

    def read(self, limit: int) -> list[Any] | pa.RecordBatch:
        try:
            return self._read(limit)
        except (EOFError, OSError) as error:
            # Errors with a number come from a disk, and name the file.
            if isinstance(error, FiresteelError) or getattr(error, "errno", None) is not None:
                raise
            path = without_password(self._splits[0].properties["path"])
            kind = EOFError if isinstance(error, EOFError) else OSError
            raise kind(f"{path}: {error}") from error

    def _read(self, limit: int) -> list[Any] | pa.RecordBatch:
        while self._splits and limit > 0 and len(self._broken) < _MOST_BROKEN:
            if self._records is None:
                self._records = self._open(self._splits[0])
            records: Any
            if self._format.gives_columns:
                records = self._records.read_columns(limit)
            else:
                records = self._records.read(limit)
            self._current = self._splits[0].split_id
            if self._records.at_end():
                self.close()
                self._splits.popleft()
            if records:
                return records
        return []

    def broken_records(self) -> list[Any]:
        return self._broken.take()

    def snapshot_splits(self) -> list[SourceSplit]:
        if self._records is None:
            return list(self._splits)
        first, *rest = self._splits
        return [first.at(self._records.position()), *rest]

    def current_split(self) -> str | None:
        return self._current

    def next_read_delay(self) -> float:
        return 0.0 if self._splits else 0.1

    def close(self) -> None:
        if self._records is not None:
            self._records.close()
            self._records = None

    def _open(self, split: SourceSplit) -> RecordReader:
        properties = split.properties
        path = properties["path"]
        part = FilePart(
            without_password(path),
            properties["size"],
            properties["start"],
            properties["stop"],
            properties["compression"],
            properties["counted"],
        )
        file = self._broken.watch(self._paths.open(path))
        try:
            return self._format.create_reader(file, part, split.position, self._broken)
        except BaseException:
            file.close()
            raise
