from __future__ import annotations

import datetime as dt
import io
import json
import pickle
from decimal import Decimal
from pathlib import Path
from typing import Any

import fastavro
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from firesteel.common import Row, Types, WatermarkStrategy
from firesteel.connectors.files.paths import FilePaths
from firesteel.connectors.files.reader import FileReader
from firesteel.datastream.connectors.file_system import BrokenRecordError, FileSink, FileSource
from firesteel.datastream.formats.avro import (
    AvroBulkWriters,
    AvroInputFormat,
    AvroReaderFormat,
    AvroRowDeserializationSchema,
    AvroRowSerializationSchema,
    AvroSchema,
    GenericRecordAvroTypeInfo,
)
from firesteel.datastream.formats.parquet import AvroParquetReaders, AvroParquetWriters
from firesteel.errors import NeverSupportedError
from firesteel.testing import JobHarness
from tests.connectors.conftest import Driver
from tests.thoroughness import examples

NUMBER: dict[str, Any] = {
    "type": "record",
    "name": "Number",
    "fields": [{"name": "n", "type": "long"}, {"name": "text", "type": ["null", "string"]}],
}
NUMBERS = AvroSchema(NUMBER)
READS = AvroReaderFormat.for_generic_record(NUMBERS)


def _records(count):
    return [{"n": n, "text": None if n % 3 else f"text {n}"} for n in range(count)]


def _write(path: Path, count: int, sync_interval: int = 50, codec: str = "null") -> Path:
    with path.open("wb") as out:
        fastavro.writer(out, NUMBER, _records(count), codec=codec, sync_interval=sync_interval)
    return path


@settings(deadline=None, max_examples=examples(60))
@given(
    st.integers(0, 60),
    st.integers(1, 200),
    st.sampled_from(["null", "deflate"]),
    st.integers(1, 6),
    st.lists(st.integers(0, 7)),
)
def test_each_record_is_read_once(files, tmp_path_factory, count, interval, codec, parts, steps):
    path = tmp_path_factory.getbasetemp() / "records.avro"
    _write(path, count, interval, codec)
    read = files.read(pickle.loads(pickle.dumps(READS)), path, parts, steps)
    assert read == _records(count)


def test_blocks_are_shared(files, tmp_path):
    path = _write(tmp_path / "in.avro", 1000)
    shares = []
    for split in files.splits(path, 3):
        reader = FileReader(READS, FilePaths(()))
        reader.add_splits([split])
        shares.append(len(Driver.drain(reader)))
    assert sum(shares) == 1000
    assert min(shares) > 250


def test_a_newer_schema(files, tmp_path):
    path = _write(tmp_path / "in.avro", 2)
    newer = {**NUMBER, "fields": [NUMBER["fields"][0], {"name": "x", "type": "int", "default": 7}]}
    reads = AvroReaderFormat.for_generic_record(AvroSchema(newer))
    assert files.read(reads, path) == [{"n": 0, "x": 7}, {"n": 1, "x": 7}]


@pytest.mark.parametrize("kept", [0, 3, 40, 0.5])
def test_a_truncated_file_names_itself(files, tmp_path, kept):
    path = _write(tmp_path / "in.avro", 100)
    data = path.read_bytes()
    path.write_bytes(data[: int(kept if kept != 0.5 else len(data) // 2)])
    with pytest.raises(BrokenRecordError, match=rf"{path}: .* Avro file"):
        files.read(READS, path)
    records, broken = files.broken(READS, path)
    assert len(broken) == 1
    assert records == _records(100)[: len(records)]
    assert (len(records) > 0) == (kept == 0.5)


def test_a_damaged_block_is_reported_and_the_others_are_read(files, tmp_path):
    path = _write(tmp_path / "in.avro", 100, 200, "deflate")
    data = bytearray(path.read_bytes())
    sync = bytes(data[-16:])
    second = data.find(sync, data.find(sync) + 16) + 16
    data[second + 6 : second + 20] = b"\xff" * 14
    path.write_bytes(data)
    records, broken = files.broken(READS, path)
    assert len(broken) == 1
    assert "a block of the Avro file is damaged" in broken[0].reason
    assert 0 < len(records) < 100


@pytest.mark.parametrize(
    ("writers", "reads"),
    [
        (AvroBulkWriters, lambda: FileSource.for_bulk_file_format(READS, "out")),
        (
            AvroParquetWriters,
            lambda: FileSource.for_record_stream_format(
                AvroParquetReaders.for_generic_record(NUMBERS), "out"
            ),
        ),
    ],
)
def test_a_job_writes_files_at_checkpoints_and_reads_them(tmp_path, monkeypatch, writers, reads):
    monkeypatch.chdir(tmp_path)
    type_info = GenericRecordAvroTypeInfo(NUMBERS)

    def write(env):
        records = env.from_collection(_records(50)).map(lambda record: record, type_info)
        records.sink_to(
            FileSink.for_bulk_format("out", writers.for_generic_record(NUMBERS)).build()
        )

    JobHarness(write, records_per_epoch=10, checkpoint_every=2).run()

    def read(env):
        return env.from_source(reads().build(), WatermarkStrategy.no_watermarks(), "records")

    harness = JobHarness(read, parallelism=2)
    harness.run()
    assert sorted(harness.collected, key=lambda record: record["n"]) == _records(50)


def test_create_input(tmp_path):
    path = _write(tmp_path / "in.avro", 5)
    assert AvroInputFormat(str(path), NUMBERS).get_produced_type() == GenericRecordAvroTypeInfo(
        NUMBERS
    )
    harness = JobHarness(lambda env: env.create_input(AvroInputFormat(str(path), NUMBERS)))
    harness.run()
    assert harness.collected == _records(5)


MESSAGE: dict[str, Any] = {
    "type": "record",
    "name": "Message",
    "fields": [
        {"name": "truth", "type": "boolean"},
        {"name": "int", "type": ["null", "int"]},
        {"name": "text", "type": "string"},
        {"name": "color", "type": {"type": "enum", "name": "Color", "symbols": ["RED", "BLUE"]}},
        {"name": "data", "type": "bytes"},
        {
            "name": "exact",
            "type": {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2},
        },
        {"name": "day", "type": {"type": "int", "logicalType": "date"}},
        {"name": "moment", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "list", "type": {"type": "array", "items": "int"}},
        {"name": "map", "type": {"type": "map", "values": "double"}},
        {
            "name": "nested",
            "type": [
                "null",
                {
                    "type": "record",
                    "name": "Nested",
                    "fields": [{"name": "x", "type": "float"}],
                },
            ],
        },
        {"name": "again", "type": ["null", "Nested"]},
    ],
}


def test_messages():
    text = json.dumps(MESSAGE)
    row = Row(
        True,
        None,
        "ä",
        "BLUE",
        b"\0\xff",
        Decimal("12.30"),
        dt.date(2024, 3, 9),
        dt.datetime.fromisoformat("2024-03-09T07:30:00.123"),
        [1, 2],
        {"a": 1.5},
        Row(x=2.5),
        None,
    )
    writer = pickle.loads(pickle.dumps(AvroRowSerializationSchema(avro_schema_string=text)))
    message = writer.serialize(row)
    # A different implementation reads the same.
    other: Any = fastavro.schemaless_reader(io.BytesIO(message), MESSAGE, None)
    assert other["moment"] == dt.datetime.fromisoformat("2024-03-09T07:30:00.123+00:00")
    reader = pickle.loads(pickle.dumps(AvroRowDeserializationSchema(avro_schema_string=text)))
    read = reader.deserialize(message)
    assert [*read] == [*row]
    type_info = reader.get_produced_type()
    assert type_info.get_field_names() == [one["name"] for one in MESSAGE["fields"]]
    assert type_info.get_field_types()[7] == Types.SQL_TIMESTAMP()
    with pytest.raises(ValueError, match="is not an Avro record"):
        reader.deserialize(message[:5])


def test_refused():
    with pytest.raises(NeverSupportedError, match="Java class"):
        AvroRowDeserializationSchema(record_class="com.example.Person")
    with pytest.raises(TypeError, match="avro_schema_string"):
        AvroRowSerializationSchema()
    with pytest.raises(TypeError, match="schema of a record"):
        AvroRowSerializationSchema(avro_schema_string='"int"')
    with pytest.raises(TypeError, match="schema of a record"):
        AvroParquetWriters.for_generic_record(AvroSchema("int"))
