"""Storage that fails is no broken record, in all formats."""

from __future__ import annotations

import gzip
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO, cast

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import orc

from firesteel.common import Types
from firesteel.connectors.base import SourceReader
from firesteel.datastream.connectors.file_system import StreamFormat
from firesteel.datastream.formats.avro import AvroReaderFormat, AvroSchema
from firesteel.datastream.formats.csv import CsvReaderFormat, CsvSchema
from firesteel.datastream.formats.json import JsonReaderFormat
from firesteel.datastream.formats.orc import OrcColumnarRowInputFormat
from firesteel.datastream.formats.parquet import ParquetColumnarRowInputFormat
from firesteel.formats.base import FileFormat
from tests.formats.conftest import Files, RecordFileReader

ROWS = 300
NUMBERS = Types.ROW_NAMED(["n", "text"], [Types.LONG(), Types.STRING()])
_TABLE = pa.table({"n": range(ROWS), "text": [f"text {n}" for n in range(ROWS)]})
_AVRO = {
    "type": "record",
    "name": "Number",
    "fields": [{"name": "n", "type": "long"}, {"name": "text", "type": "string"}],
}


def _json(path: Path) -> None:
    path.write_bytes(b"".join(b'{"n":%d,"text":"text %d"}\n' % (n, n) for n in range(ROWS)))


def _gzip(path: Path) -> None:
    _json(path)
    path.write_bytes(gzip.compress(path.read_bytes()))


def _csv(path: Path) -> None:
    path.write_bytes(b"".join(b"%d,text %d\n" % (n, n) for n in range(ROWS)))


def _avro(path: Path) -> None:
    with path.open("wb") as file:
        records = [{"n": n, "text": f"text {n}"} for n in range(ROWS)]
        fastavro.writer(file, _AVRO, records, sync_interval=500)


def _parquet(path: Path) -> None:
    pq.write_table(_TABLE, path, row_group_size=100)


def _orc(path: Path) -> None:
    orc.write_table(_TABLE, path)


_SCHEMA = AvroSchema.parse_string(json.dumps(_AVRO))
_COLUMNS = CsvSchema.builder().add_number_column("n").add_string_column("text").build()

KINDS: dict[str, tuple[Callable[[Path], None], Callable[[], FileFormat], str | None]] = {
    "text": (_json, StreamFormat.text_line_format, None),
    "json": (_json, lambda: JsonReaderFormat.for_type_info(NUMBERS), None),
    "json.gz": (_gzip, lambda: JsonReaderFormat.for_type_info(NUMBERS), "gzip"),
    "csv": (_csv, lambda: CsvReaderFormat.for_schema(_COLUMNS), None),
    "avro": (_avro, lambda: AvroReaderFormat.for_generic_record(_SCHEMA), None),
    "parquet": (_parquet, lambda: ParquetColumnarRowInputFormat(NUMBERS), None),
    "orc": (_orc, lambda: OrcColumnarRowInputFormat(NUMBERS), None),
}


class FlakyFile(io.BytesIO):
    """A file in a store that does not answer one of the requests."""

    def __init__(self, data: bytes, fails_at: int) -> None:
        super().__init__(data)
        self.left = fails_at

    def _count(self) -> None:
        self.left -= 1
        if self.left == 0:
            raise OSError("AWS Error NETWORK_CONNECTION during GetObject operation")

    def read(self, size: int | None = -1) -> bytes:
        self._count()
        return super().read(size)

    def readinto(self, buffer: Any) -> int:
        self._count()
        return super().readinto(buffer)


class FlakyReader(RecordFileReader):
    """Opens files that fail."""

    def __init__(self, file_format: FileFormat, fails_at: int, **settings: Any) -> None:
        super().__init__(file_format, **settings)
        self.fails_at = fails_at
        self.files: list[FlakyFile] = []
        self._paths = cast(Any, self)

    def open(self, path: str) -> BinaryIO:
        file = FlakyFile(Path(path).read_bytes(), self.fails_at)
        self.files.append(file)
        return file


def drained(reader: SourceReader) -> list[Any]:
    found: list[Any] = []
    while reader.snapshot_splits():
        found += reader.read(50)
    return found


@pytest.mark.parametrize("parts", [1, 3])
@pytest.mark.parametrize("fails", [True, False], ids=["fail", "skip"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_store_that_does_not_answer_loses_no_record(
    files: Files, tmp_path: Path, kind: str, fails: bool, parts: int
) -> None:
    """The job fails, and reads the records after its restart. They are not skipped as broken."""
    write, new_format, compression = KINDS[kind]
    path = tmp_path / "numbers"
    write(path)
    if compression:
        # Only one part reads a compressed file.
        parts = 1
    failures = []
    for fails_at in range(1, 100):
        reader = FlakyReader(new_format(), fails_at, fail_on_broken_records=fails)
        reader.add_splits(files.splits(path, parts, compression))
        try:
            found = drained(reader)
        except OSError as error:
            failures.append(str(error))
        else:
            assert len(found) == ROWS
            if all(file.left > 0 for file in reader.files):
                break
        assert reader.broken_records() == []
    assert failures
    assert all(str(path) in failure and "AWS Error" in failure for failure in failures)


@pytest.mark.parametrize("kept", [0.3, 0.999])
@pytest.mark.parametrize("kind", ["json", "csv", "text"])
def test_a_compressed_file_that_was_cut_short(
    files: Files, tmp_path: Path, kind: str, kept: float
) -> None:
    write, new_format, _ = KINDS[kind]
    path = tmp_path / "numbers.gz"
    write(path)
    path.write_bytes(gzip.compress(path.read_bytes()))
    whole = files.read(new_format(), path, compression="gzip")
    path.write_bytes(path.read_bytes()[: int(kept * path.stat().st_size)])
    with pytest.raises(ValueError, match=f"{path}, line .*cut short or damaged: Compressed file"):
        files.read(new_format(), path, compression="gzip")
    reader = RecordFileReader(new_format(), fail_on_broken_records=False)
    reader.add_splits(files.splits(path, 1, "gzip"))
    found = drained(reader)
    [broken] = reader.broken_records()
    assert found == whole[: len(found)]
    assert broken.line == len(found) + 1
    # The lines before the end of the data are there.
    assert len(found) > (ROWS // 10 if kept < 0.5 else ROWS - 30)


@pytest.mark.parametrize("compression", ["gzip", "bzip2", "xz", "zstd"])
def test_a_file_that_is_not_compressed(files: Files, tmp_path: Path, compression: str) -> None:
    path = tmp_path / "numbers"
    _json(path)
    reader = RecordFileReader(KINDS["json"][1](), fail_on_broken_records=False)
    reader.add_splits(files.splits(path, 1, compression))
    assert drained(reader) == []
    [broken] = reader.broken_records()
    assert (broken.path, broken.line) == (str(path), 1)
