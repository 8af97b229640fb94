"""Parquet and ORC: one suite for both formats."""

from __future__ import annotations

import datetime as dt
import io
import pickle
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import orc

from firesteel.common import Row, Types, WatermarkStrategy
from firesteel.common.time import Instant
from firesteel.datastream.connectors.file_system import BrokenRecordError, FileSink, FileSource
from firesteel.datastream.formats.orc import OrcBulkWriters, OrcColumnarRowInputFormat
from firesteel.datastream.formats.parquet import (
    ParquetBulkWriters,
    ParquetColumnarRowInputFormat,
)
from firesteel.errors import TypeMismatchError
from firesteel.table import DataTypes
from firesteel.testing import JobHarness
from tests.connectors.conftest import Driver
from tests.formats.conftest import RecordFileReader
from tests.thoroughness import examples

NUMBERS = Types.ROW_NAMED(["n", "text"], [Types.LONG(), Types.STRING()])


def _write_parquet(table: pa.Table, path: Path, unit: int) -> None:
    pq.write_table(table, path, row_group_size=unit)


def _write_orc(table: pa.Table, path: Path, unit: int) -> None:
    with orc.ORCWriter(path, stripe_size=1, batch_size=unit) as writer:
        for start in range(0, table.num_rows, unit):
            writer.write(table.slice(start, unit))
        if not table.num_rows:
            writer.write(table)


class Format(NamedTuple):
    name: str
    reads: Callable[..., Any]
    writers: Callable[..., Any]
    write_table: Callable[[pa.Table, Path, int], None]
    read_table: Callable[[Path], pa.Table]


FORMATS = [
    Format(
        "Parquet",
        ParquetColumnarRowInputFormat,
        ParquetBulkWriters.for_row_type,
        _write_parquet,
        pq.read_table,
    ),
    Format(
        "ORC", OrcColumnarRowInputFormat, OrcBulkWriters.for_row_type, _write_orc, orc.read_table
    ),
]
formats = pytest.mark.parametrize("kind", FORMATS, ids=[one.name for one in FORMATS])


def _table(count: int) -> pa.Table:
    texts = [None if n % 7 == 3 else f"text {n}" for n in range(count)]
    schema = pa.schema([("text", pa.string()), ("unused", pa.float64()), ("n", pa.int64())])
    return pa.table([texts, [1.5] * count, list(range(count))], schema=schema)


def _rows(count: int) -> list[Row]:
    return [Row(n=n, text=None if n % 7 == 3 else f"text {n}") for n in range(count)]


@settings(deadline=None, max_examples=examples(60))
@given(
    st.sampled_from(FORMATS),
    st.integers(0, 60),
    st.integers(1, 20),
    st.integers(1, 9),
    st.integers(1, 5),
    st.lists(st.integers(0, 7)),
)
def test_each_row_is_read_once(files, tmp_path_factory, kind, count, unit, batch, parts, steps):
    path = tmp_path_factory.getbasetemp() / f"rows.{kind.name}"
    kind.write_table(_table(count), path, unit)
    reads = pickle.loads(pickle.dumps(kind.reads(NUMBERS, batch_size=batch)))
    read = files.read(reads, path, parts, steps)
    assert sorted(read, key=lambda row: row.n) == _rows(count)


@formats
def test_units_are_shared(files, tmp_path, kind):
    path = tmp_path / "rows"
    kind.write_table(_table(20_000), path, 5000)
    shares = []
    for split in files.splits(path, 2):
        reader = RecordFileReader(kind.reads(NUMBERS))
        reader.add_splits([split])
        shares.append(len(Driver.drain(reader, 1000)))
    assert sum(shares) == 20_000
    assert min(shares) >= 5000


COLUMNS = [
    ("truth", DataTypes.BOOLEAN(), [True, None]),
    ("tiny", DataTypes.TINYINT(), [-128, 127]),
    ("int", DataTypes.INT(), [-(2**31), None]),
    ("long", DataTypes.BIGINT(), [2**63 - 1, None]),
    ("float", DataTypes.FLOAT(), [1.5, None]),
    ("double", DataTypes.DOUBLE(), [1.1, None]),
    ("exact", DataTypes.DECIMAL(10, 2), [Decimal("12.30"), None]),
    ("text", DataTypes.STRING(), ["ä", ""]),
    ("data", DataTypes.BYTES(), [b"\0\xff", None]),
    ("day", DataTypes.DATE(), [dt.date(2024, 3, 9), None]),
    (
        "moment",
        DataTypes.TIMESTAMP(),
        [dt.datetime.fromisoformat("2024-03-09T07:30:00.123000"), None],
    ),
    ("instant", DataTypes.TIMESTAMP_LTZ(), [Instant(1, 5000), None]),
    ("list", DataTypes.ARRAY(DataTypes.INT()), [[1, None], None]),
    ("map", DataTypes.MAP(DataTypes.STRING(), DataTypes.DATE()), [{"a": None}, None]),
    (
        "row",
        DataTypes.ROW([DataTypes.FIELD("x", DataTypes.DECIMAL(5, 1))]),
        [Row(x=Decimal("1.5")), None],
    ),
]


@formats
def test_typed_columns_out_and_rows_in(files, tmp_path, kind):
    row_type = DataTypes.ROW([DataTypes.FIELD(name, one) for name, one, _ in COLUMNS])
    path = tmp_path / "rows"
    rows = [Row(*values) for values in zip(*[values for _, _, values in COLUMNS], strict=True)]
    factory = pickle.loads(pickle.dumps(kind.writers(row_type)))
    with path.open("wb") as out:
        writer = factory.create(out)
        writer.add_elements(rows)
        writer.add_element(rows[0])
        writer.finish()
    table = kind.read_table(path)
    assert table.column_names == [name for name, _, _ in COLUMNS]
    assert table.schema.field("exact").type == pa.decimal128(10, 2)
    assert table.schema.field("int").type == pa.int32()
    read = files.read(kind.reads(row_type), path)
    assert [[*row] for row in read] == [[*row] for row in [*rows, rows[0]]]
    assert str(read[0].exact) == "12.30"


def test_times_in_parquet(files, tmp_path):
    path = tmp_path / "rows"
    pq.write_table(pa.table({"t": pa.array([dt.time(7, 30)], pa.time32("ms"))}), path)
    row_type = DataTypes.ROW([DataTypes.FIELD("t", DataTypes.TIME())])
    assert files.read(ParquetColumnarRowInputFormat(row_type), path) == [Row(t=dt.time(7, 30))]


@formats
def test_columns_that_differ(files, tmp_path, kind):
    path = tmp_path / "rows"
    kind.write_table(pa.table({"N": pa.array([1], pa.int16())}), path, 10)
    exact = files.read(kind.reads(NUMBERS), path)
    assert exact == [Row(n=None, text=None)]
    assert files.read(kind.reads(NUMBERS, is_case_sensitive=False), path) == [Row(n=1, text=None)]
    kind.write_table(pa.table({"n": ["x"]}), path, 10)
    reason = f"{path}: the {kind.name} file does not fit .* the column 'n' has the type string"
    with pytest.raises(BrokenRecordError, match=reason):
        files.read(kind.reads(NUMBERS), path)
    records, broken = files.broken(kind.reads(NUMBERS), path)
    assert (records, len(broken)) == ([], 1)


@formats
@pytest.mark.parametrize("kept", [0, 3, 0.5, 0.999])
def test_a_truncated_file_names_itself(files, tmp_path, kind, kept):
    path = tmp_path / "rows"
    kind.write_table(_table(1000), path, 100)
    data = path.read_bytes()
    path.write_bytes(data[: int(kept if kept == 3 else kept * len(data))])
    with pytest.raises(BrokenRecordError, match=f"{path}: the file is not a whole {kind.name}"):
        files.read(kind.reads(NUMBERS), path)
    records, broken = files.broken(kind.reads(NUMBERS), path, parts=3 if kept == 0.5 else 1)
    assert (records, len(broken)) == ([], 1)


def test_a_damaged_row_group_is_reported_and_the_others_are_read(files, tmp_path):
    path = tmp_path / "rows"
    pq.write_table(_table(1000), path, row_group_size=100, compression="snappy")
    start = pq.ParquetFile(path).metadata.row_group(1).column(2).data_page_offset
    data = bytearray(path.read_bytes())
    data[start : start + 40] = b"\xff" * 40
    path.write_bytes(data)
    records, broken = files.broken(ParquetColumnarRowInputFormat(NUMBERS), path)
    assert len(broken) == 1
    assert "the Parquet file is damaged" in broken[0].reason
    assert len(records) == 900


@formats
def test_a_value_that_does_not_fit_fails_the_writer(kind):
    writer = kind.writers(NUMBERS).create(io.BytesIO())
    writer.add_elements([Row("x", "y")])
    with pytest.raises(TypeMismatchError):
        writer.finish()


@formats
def test_a_job_writes_files_at_checkpoints_and_reads_them(tmp_path, kind):
    directory = str(tmp_path / "out")

    def write(env):
        numbers = env.from_sequence(0, 99).map(lambda n: Row(n, f"text {n}"), NUMBERS)
        numbers.sink_to(FileSink.for_bulk_format(directory, kind.writers(NUMBERS)).build())

    harness = JobHarness(write, parallelism=2, records_per_epoch=10, checkpoint_every=2)
    harness.run()
    parts = [path for path in Path(directory).rglob("*") if path.is_file()]
    assert len(parts) > 2
    assert not [path for path in parts if path.name.startswith(".")]

    def read(env):
        source = FileSource.for_bulk_file_format(kind.reads(NUMBERS), directory).build()
        return env.from_source(source, WatermarkStrategy.no_watermarks(), "rows")

    reading = JobHarness(read, parallelism=2)
    reading.run()
    assert sorted(row.n for row in reading.collected) == list(range(100))


def test_compressions(tmp_path):
    from firesteel.common import Configuration
    from firesteel.errors import ConfigurationError

    config = Configuration.from_dict({"parquet.compression": "ZSTD"})
    path = tmp_path / "rows"
    with path.open("wb") as out:
        writer = ParquetBulkWriters.for_row_type(NUMBERS, config).create(out)
        writer.add_element(Row(1, "a"))
        writer.finish()
    assert pq.ParquetFile(path).metadata.row_group(0).column(0).compression == "ZSTD"
    with pytest.raises(ConfigurationError, match=r"parquet\.compression"):
        ParquetBulkWriters.for_row_type(
            NUMBERS, Configuration.from_dict({"parquet.compression": "RAR"})
        )
    with pytest.raises(ConfigurationError, match=r"orc\.compress"):
        OrcBulkWriters.for_row_type(NUMBERS, Configuration.from_dict({"orc.compress": "RAR"}))
