from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from firesteel.common.columns import column_layout
from firesteel.common.typeinfo import Types
from firesteel.connectors.files.paths import FilePaths
from firesteel.connectors.files.reader import FileReader
from firesteel.connectors.index_ranges import split_range
from firesteel.datastream.connectors.base import SourceSplit
from firesteel.formats.base import FileFormat
from tests.connectors.conftest import Driver


class RecordFileReader(FileReader):
    """Returns records, also of formats that give columns."""

    def __init__(self, file_format: FileFormat, **settings: Any) -> None:
        super().__init__(file_format, FilePaths(()), **settings)
        self._layout = column_layout(file_format.get_produced_type() or Types.PICKLED_BYTE_ARRAY())

    def read(self, limit: int) -> list[Any]:
        records = super().read(limit)
        if isinstance(records, list):
            return records
        assert self._layout is not None
        return self._layout.values_of(records)


class Files:
    """Reads files with a format the way a FileSource does, in parts and with restarts."""

    @staticmethod
    def splits(path: Path, parts: int = 1, compression: str | None = None) -> list[SourceSplit]:
        size = path.stat().st_size
        return [
            SourceSplit(
                f"{path}:{start}",
                {
                    "path": str(path),
                    "size": size,
                    "start": start,
                    "stop": stop,
                    "compression": compression,
                    "counted": compression is not None,
                },
            )
            for start, stop in split_range(0, size, parts) or [(0, 0)]
        ]

    def read(
        self,
        file_format: FileFormat,
        path: Path,
        parts: int = 1,
        steps: list[int] | None = None,
        compression: str | None = None,
    ) -> list[Any]:
        def new_reader() -> FileReader:
            return RecordFileReader(file_format)

        splits = self.splits(path, parts, compression)
        return Driver.read_with_restarts(new_reader, splits, steps or [])

    def broken(self, file_format: FileFormat, path: Path, parts: int = 1) -> tuple[list, list]:
        """The records and the broken records of a file."""
        reader = RecordFileReader(file_format, fail_on_broken_records=False)
        reader.add_splits(self.splits(path, parts))
        return Driver.drain(reader), reader.broken_records()


@pytest.fixture(scope="session")
def files() -> Files:
    return Files()


@pytest.fixture(scope="session")
def scratch_file(tmp_path_factory: pytest.TempPathFactory) -> Callable[[bytes], Path]:
    """Writes data to a file that the next call replaces."""
    path = tmp_path_factory.mktemp("formats") / "data"

    def write(data: bytes) -> Path:
        path.write_bytes(data)
        return path

    return write
