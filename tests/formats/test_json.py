from __future__ import annotations

import datetime as dt
import gzip
import json
import pickle
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from firesteel.common import Row, Types, WatermarkStrategy
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
