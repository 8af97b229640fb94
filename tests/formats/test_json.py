from __future__ import annotations

import datetime as dt
import gzip
import io
import json
import pickle
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from firesteel.common import Row, Types, WatermarkStrategy
from firesteel.common.columns import ColumnLayout
from firesteel.common.time import Instant
from firesteel.datastream import OutputTag
from firesteel.datastream.connectors.file_system import (
    BrokenRecordError,
    BucketAssigner,
    FileSink,
    FileSource,
)
from firesteel.datastream.formats.json import (
    JsonEncoder,
    JsonReaderFormat,
    JsonRowDeserializationSchema,
    JsonRowSerializationSchema,
)
from firesteel.formats.base import BrokenRecord, BrokenRecords, FilePart
from firesteel.formats.json import JsonColumns
from firesteel.testing import JobHarness
from tests.thoroughness import examples

PERSON = Types.ROW_NAMED(["name", "age"], [Types.STRING(), Types.INT()])
PEOPLE = JsonReaderFormat.for_type_info(PERSON)

EVERYTHING = Types.ROW_NAMED(
    [
        *("text", "truth", "byte", "long", "double", "huge", "exact", "data", "day", "time"),
        *("moment", "instant", "list", "map", "nested", "pair", "any"),
    ],
    [
        Types.STRING(),
        Types.BOOLEAN(),
        Types.BYTE(),
        Types.LONG(),
        Types.DOUBLE(),
        Types.BIG_INT(),
        Types.BIG_DEC(),
        Types.PRIMITIVE_ARRAY(Types.BYTE()),
        Types.SQL_DATE(),
        Types.SQL_TIME(),
        Types.SQL_TIMESTAMP(),
        Types.INSTANT(),
        Types.LIST(Types.SQL_DATE()),
        Types.MAP(Types.STRING(), Types.BIG_DEC()),
        Types.ROW_NAMED(["x"], [Types.DOUBLE()]),
        Types.TUPLE([Types.INT(), Types.STRING()]),
        Types.PICKLED_BYTE_ARRAY(),
    ],
)


def _deserializer(type_info, **options):
    builder = JsonRowDeserializationSchema.builder().type_info(type_info)
    for option in options:
        getattr(builder, option)()
    return pickle.loads(pickle.dumps(builder.build()))


def _serializer(type_info):
    schema = JsonRowSerializationSchema.builder().with_type_info(type_info).build()
    return pickle.loads(pickle.dumps(schema))


nullable = st.none()
everything = st.builds(
    Row,
    nullable | st.text(),
    nullable | st.booleans(),
    nullable | st.integers(-128, 127),
    nullable | st.integers(-(2**63), 2**63 - 1),
    nullable | st.floats(allow_nan=False, allow_infinity=False),
    nullable | st.integers(-(2**100), 2**100),
    nullable | st.decimals(allow_nan=False, allow_infinity=False),
    nullable | st.binary(),
    nullable | st.dates(),
    nullable | st.times(),
    nullable | st.datetimes(),
    nullable
    | st.builds(Instant, st.integers(0, 2**31), st.integers(0, 999_999).map(lambda n: n * 1000)),
    nullable | st.lists(nullable | st.dates()),
    nullable | st.dictionaries(st.text(), st.decimals(allow_nan=False, allow_infinity=False)),
    nullable | st.builds(Row, st.floats(allow_nan=False, allow_infinity=False)),
    nullable | st.tuples(st.integers(0, 9), st.text()),
    nullable | st.lists(st.booleans()),
)


@settings(deadline=None)
@given(everything)
def test_what_is_written_is_read(row):
    read = _deserializer(EVERYTHING).deserialize(_serializer(EVERYTHING).serialize(row))
    assert [*read] == [Row(x=value[0]) if isinstance(value, Row) else value for value in row]
    assert json.loads(_serializer(EVERYTHING).serialize(row)).keys() == set(
        EVERYTHING.get_field_names()
    )


@pytest.mark.parametrize(
    ("type_info", "text", "value"),
    [
        (Types.INT(), '"12"', 12),
        (Types.INT(), "12.0", 12),
        (Types.DOUBLE(), "1", 1.0),
        (Types.DOUBLE(), '"1.5"', 1.5),
        (
            Types.BIG_DEC(),
            "0.1000000000000000000000000001",
            Decimal("0.1000000000000000000000000001"),
        ),
        (Types.BIG_INT(), str(2**80), 2**80),
        (Types.BOOLEAN(), '"TRUE"', True),
        (Types.STRING(), '{"a": 1}', '{"a": 1}'),
        (
            Types.SQL_TIMESTAMP(),
            '"2024-03-09T07:30:00+01:00"',
            dt.datetime.fromisoformat("2024-03-09T06:30:00"),
        ),
        (Types.INT(), "null", None),
    ],
)
def test_values_that_become_the_type(type_info, text, value):
    row_type = Types.ROW_NAMED(["v"], [type_info])
    (read,) = _deserializer(row_type).deserialize(f'{{"v": {text}}}'.encode())
    assert (read, type(read)) == (value, type(value))


@pytest.mark.parametrize(
    ("type_info", "text", "reason"),
    [
        (Types.INT(), "2147483648", "does not fit into"),
        (Types.INT(), "true", "expected an integer"),
        (Types.INT(), '"1_0"', "expected an integer"),
        (Types.LONG(), "1.5", "expected an integer"),
        (Types.DOUBLE(), '"x"', "expected a number"),
        (Types.BOOLEAN(), "1", "expected true or false"),
        (Types.SQL_DATE(), '"9.3.2024"', "expected a date"),
        (Types.LIST(Types.INT()), "{}", "expected an array"),
        (Types.MAP(Types.STRING(), Types.INT()), "[]", "expected an object"),
        (Types.ROW_NAMED(["x"], [Types.INT()]), '{"x": "y"}', "field 'x': expected an integer"),
    ],
)
def test_values_that_do_not_fit(type_info, text, reason):
    row_type = Types.ROW_NAMED(["v"], [type_info])
    message = f'{{"v": {text}}}'.encode()
    with pytest.raises(ValueError, match=f"field 'v': .*{reason}"):
        _deserializer(row_type).deserialize(message)
    assert _deserializer(row_type, ignore_parse_errors=True).deserialize(message) is None


def test_missing_fields_and_messages_that_are_no_objects():
    assert _deserializer(PERSON).deserialize(b"{}") == Row(name=None, age=None)
    strict = _deserializer(PERSON, fail_on_missing_field=True)
    with pytest.raises(ValueError, match="'age' is missing"):
        strict.deserialize(b'{"name": "ada"}')
    for message in (b"[1]", b"{", b"\xff"):
        with pytest.raises(ValueError, match="is not a JSON object of the type"):
            _deserializer(PERSON).deserialize(message)


def test_a_json_schema():
    schema = {
        "type": "object",
        "properties": {
            "a": {"type": ["string", "null"]},
            "b": {"type": "string", "format": "date-time"},
            "c": {"type": "array", "items": {"type": "number"}},
            "d": {"type": "object", "properties": {"e": {"type": "boolean"}}},
        },
    }
    built = JsonRowDeserializationSchema.builder().json_schema(json.dumps(schema)).build()
    assert built.get_produced_type() == Types.ROW_NAMED(
        ["a", "b", "c", "d"],
        [
            Types.STRING(),
            Types.SQL_TIMESTAMP(),
            Types.OBJECT_ARRAY(Types.BIG_DEC()),
            Types.ROW_NAMED(["e"], [Types.BOOLEAN()]),
        ],
    )
    with pytest.raises(ValueError, match="no type that Firesteel knows"):
        JsonRowDeserializationSchema.builder().json_schema('{"type": "void"}')
    with pytest.raises(TypeError, match="needs type_info"):
        JsonRowDeserializationSchema.builder().build()


# Files

people = st.lists(st.tuples(st.text(max_size=8), st.none() | st.integers(0, 99)), max_size=30)


@settings(deadline=None, max_examples=examples(60))
@given(
    people,
    st.lists(st.integers(0, 5)),
    st.integers(1, 4),
    st.sampled_from(["\n", "\r\n", "\n\n"]),
    st.booleans(),
)
def test_each_line_is_read_once(files, scratch_file, people, steps, parts, end, zipped):
    lines = [json.dumps({"name": name, "age": age}) + end for name, age in people]
    data = "".join(lines).encode()
    path = scratch_file(gzip.compress(data) if zipped else data)
    if zipped:
        read = files.read(PEOPLE, path, steps=steps, compression="gzip")
    else:
        read = files.read(PEOPLE, path, parts, steps)
    assert read == [Row(name=name, age=age) for name, age in people]


def test_objects_without_a_type(files, tmp_path):
    path = tmp_path / "in.json"
    path.write_text('{"a": [1]}\n"text"\n3\n')
    assert files.read(JsonReaderFormat.for_objects(), path) == [{"a": [1]}, "text", 3]


BROKEN = b'{"name": "a", "age": 1}\n\n{"name": \r\n{"name": "c", "age": "x"}\n[]\n{"age": 5}'


@pytest.mark.parametrize("parts", [1, 2, 3, 5])
def test_broken_lines_have_their_numbers_and_reasons(files, tmp_path, parts):
    path = tmp_path / "in.json"
    path.write_bytes(BROKEN)
    records, broken = files.broken(PEOPLE, path, parts)
    assert records == [Row(name="a", age=1), Row(name=None, age=5)]
    assert [(one.line, one.data) for one in broken] == [
        (3, b'{"name": '),
        (4, b'{"name": "c", "age": "x"}'),
        (5, b"[]"),
    ]
    assert "is not JSON" in broken[0].reason
    assert "field 'age': expected an integer" in broken[1].reason
    assert "expected an object" in broken[2].reason


def test_the_first_broken_line_fails_by_default(files, tmp_path):
    path = tmp_path / "in.json"
    path.write_bytes(BROKEN)
    with pytest.raises(BrokenRecordError, match=rf"{path}, line 3: the line is not JSON") as caught:
        files.read(PEOPLE, path)
    assert pickle.loads(pickle.dumps(caught.value)).record.line == 3


def test_a_job_skips_counts_or_diverts(tmp_path):
    path = tmp_path / "in.json"
    path.write_bytes(BROKEN)
    tag = OutputTag("broken")

    def program(build):
        def run(env):
            builder = FileSource.for_record_stream_format(PEOPLE, str(path))
            stream = env.from_source(
                build(builder).build(), WatermarkStrategy.no_watermarks(), "people"
            )
            return stream, stream.get_side_output(tag)

        return JobHarness(run, parallelism=2, records_per_epoch=1)

    for build in (
        lambda builder: builder.skip_broken_records(),
        lambda builder: builder.side_output_broken_records(tag),
    ):
        harness = program(build)
        harness.run()
        rows, broken = harness.collected_by_stream
        assert [row.age for row in rows] == [1, 5]
        (errors,) = (
            metric["count"]
            for name, metric in harness.metrics().items()
            if name.endswith("numRecordsInErrors")
        )
        assert errors == 3
    assert [record.line for record in broken] == [3, 4, 5]


def test_lines_written_by_a_sink_are_read_by_a_source(tmp_path):
    def write(env):
        sink = (
            FileSink.for_row_format(str(tmp_path), JsonEncoder())
            .with_bucket_assigner(BucketAssigner.base_path_bucket_assigner())
            .build()
        )
        env.from_collection([Row("ada", 36), Row("bob", None)], PERSON).sink_to(sink)

    JobHarness(write).run()

    def read(env):
        source = FileSource.for_record_stream_format(PEOPLE, str(tmp_path)).build()
        return env.from_source(source, WatermarkStrategy.no_watermarks(), "people")

    harness = JobHarness(read)
    harness.run()
    assert harness.collected == [Row(name="ada", age=36), Row(name="bob", age=None)]
    assert JsonEncoder().encode({"a": Decimal("1.50")}) == b'{"a":1.50}\n'
    with pytest.raises(TypeError):
        JsonEncoder().encode({"a": object()})


# Columns

_COLUMNAR = Types.ROW_NAMED(
    ["s", "n", "i", "d", "b"],
    [Types.STRING(), Types.LONG(), Types.BYTE(), Types.DOUBLE(), Types.BOOLEAN()],
)
_TOKENS = [
    b"null", b"1", b"-0", b"0.5", b"-0.0", b"1.0", b"1e2", b"1e400", b"200", b"9223372036854775808",
    b"123456789012345678901234567890", b"true", b'"a"', b'"7"', b'"\xc3\x9f"', b'"\xff"',
    rb'"\ud800"', rb'"\u00df\n"', b'"}"', b'"{"', b"[]", b'{"x": 1}', b"{", b"", b"NaN", b"01",
]  # fmt: skip
_fitting = st.fixed_dictionaries(
    {
        "s": st.none() | st.text(max_size=4),
        "n": st.none() | st.integers(-(2**63), 2**63 - 1),
        "i": st.integers(-128, 127),
        "d": st.none() | st.floats(allow_nan=False, allow_infinity=False) | st.integers(-9, 9),
        "b": st.booleans(),
    }
).map(lambda fields: json.dumps(fields, ensure_ascii=False).encode("utf-8", "replace"))
_strange = st.lists(
    st.tuples(st.sampled_from(["s", "n", "i", "d", "b", "other", "s"]), st.sampled_from(_TOKENS)),
    max_size=3,
).map(lambda fields: b"{" + b",".join(b'"%b":%b' % (n.encode(), v) for n, v in fields) + b"}")
_raw = st.sampled_from([b"", b" ", b"[1]", b"{}", b"{} {}", b'{"n":1}{"n":2}', b'{"n":', b"1}"])
_files = st.lists(
    st.tuples(
        st.one_of(_fitting, _fitting, _fitting, _strange, _raw),
        st.sampled_from([b"\n"] * 9 + [b"\r\n", b"\r", b"\n\n"]),
    ),
    max_size=12,
).map(lambda lines: b"".join(line + end for line, end in lines))


def _all_of(data: bytes, *, in_columns: bool, limit: int, fail_on_missing: bool) -> Any:
    """The records, the broken ones, and both again from each position in between."""
    json_format = JsonReaderFormat.for_type_info(_COLUMNAR, fail_on_missing)
    layout = ColumnLayout(_COLUMNAR)
    assert json_format.gives_columns

    def read(position: Any) -> tuple[list[str], list[BrokenRecord], list[Any]]:
        broken = BrokenRecords(fail=False)
        part = FilePart("in.json", len(data), 0, len(data))
        reader = json_format.create_reader(io.BytesIO(data), part, position, broken)
        records: list[str] = []
        seen = []
        while not reader.at_end():
            if in_columns:
                found = reader.read_columns(limit)
                assert found is None or isinstance(found, pa.RecordBatch)
                records += map(repr, [] if found is None else layout.values_of(found))
            else:
                records += map(repr, reader.read(limit))
            seen.append((reader.position(), len(records), len(broken)))
        return records, broken.take(), seen

    records, broken, positions = read(None)
    for position, count, broken_count in positions:
        later, later_broken, _ = read(position)
        assert (later, later_broken) == (records[count:], broken[broken_count:])
    return records, broken


@given(
    data=_files,
    limit=st.integers(1, 15),
    fail_on_missing=st.booleans(),
)
@settings(max_examples=examples(600), deadline=None)
def test_columns_of_json_are_those_of_its_rows(
    data: bytes, limit: int, fail_on_missing: bool
) -> None:
    by_rows = _all_of(data, in_columns=False, limit=limit, fail_on_missing=fail_on_missing)
    by_columns = _all_of(data, in_columns=True, limit=limit, fail_on_missing=fail_on_missing)
    assert by_columns == by_rows


def test_fitting_lines_are_read_by_arrow() -> None:
    columns = JsonColumns(_COLUMNAR, allows_null=True)
    line = b'{"s": "a[{", "n": 1, "i": 2, "d": 3, "b": true, "x": {"y": [null]}}\n'
    found = columns.of_block(line * 3)
    assert found is not None
    assert found.to_pylist() == [{"s": "a[{", "n": 1, "i": 2, "d": 3.0, "b": True}] * 3
    assert columns.of_block(b'{"s": "' + b"[" * 2000 + b'"}') is None


@pytest.mark.parametrize(
    "type_info",
    [
        Types.ROW_NAMED(["f"], [Types.FLOAT()]),
        Types.ROW_NAMED(["a"], [Types.LIST(Types.INT())]),
        Types.ROW([]),
    ],
)
def test_some_types_have_no_columns_in_json(type_info: Any) -> None:
    assert not JsonReaderFormat.for_type_info(type_info).gives_columns
    assert not JsonReaderFormat.for_objects().gives_columns
