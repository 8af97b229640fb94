from __future__ import annotations

import csv
import datetime as dt
import gzip
import io
import pickle
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from firesteel.common import Row, Types, WatermarkStrategy
from firesteel.datastream.connectors.file_system import BrokenRecordError, FileSink, FileSource
from firesteel.datastream.formats.csv import (
    CsvBulkWriters,
    CsvReaderFormat,
    CsvRowDeserializationSchema,
    CsvRowSerializationSchema,
    CsvSchema,
)
from firesteel.table import DataTypes
from firesteel.testing import JobHarness
from tests.thoroughness import examples


def _people(**settings):
    builder = CsvSchema.builder().add_string_column("name").add_number_column("age")
    for name, value in settings.items():
        getattr(builder, name)(*([] if value is None else [value]))
    return builder


def _format(builder):
    return pickle.loads(pickle.dumps(CsvReaderFormat.for_schema(builder.build())))


people = st.lists(
    st.tuples(
        st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=8),
        st.integers(-99, 99),
    ),
    max_size=30,
)


@settings(deadline=None, max_examples=examples(80))
@given(people, st.lists(st.integers(0, 5)), st.sampled_from(["\n", "\r\n"]), st.booleans())
def test_each_row_is_read_once(files, scratch_file, people, steps, end, zipped):
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator=end, quoting=csv.QUOTE_ALL).writerows(
        [("name", "age"), *people]
    )
    data = text.getvalue().encode()
    path = scratch_file(gzip.compress(data) if zipped else data)
    compression = "gzip" if zipped else None
    csv_format = _format(_people(set_use_header=True, set_strict_headers=True))
    read = files.read(csv_format, path, steps=steps, compression=compression)
    assert read == [Row(name=name, age=age) for name, age in people]


@settings(deadline=None, max_examples=examples(40))
@given(
    st.lists(st.tuples(st.text("abc", min_size=1, max_size=8), st.integers(0, 99)), max_size=30),
    st.lists(st.integers(0, 5)),
    st.integers(1, 4),
)
def test_subtasks_share_a_file_without_quotes(files, scratch_file, people, steps, parts):
    path = scratch_file(
        ("name,age\n" + "".join(f"{name},{age}\n" for name, age in people)).encode()
    )
    csv_format = _format(_people(set_use_header=True, disable_quote_char=None))
    assert csv_format.is_splittable
    assert not _format(_people()).is_splittable
    read = files.read(csv_format, path, parts, steps)
    assert read == [Row(name=name, age=age) for name, age in people]


def test_columns_and_signs(files, tmp_path):
    path = tmp_path / "in.csv"
    path.write_text(
        "# a comment\n'x;y'';z';1;1.5;true;12.345;1/2\nn/a;n/a;n/a;n/a;n/a;n/a\n\na\\;b;2;2;FALSE;1;\n"
    )
    builder = (
        CsvSchema.builder()
        .add_string_column("text")
        .add_number_column("number", DataTypes.INT())
        .add_number_column("double", DataTypes.DOUBLE())
        .add_boolean_column("truth")
        .add_number_column("exact", DataTypes.DECIMAL(10, 2))
        .add_array_column("list", "/", DataTypes.BIGINT())
        .set_column_separator(";")
        .set_quote_char("'")
        .set_escape_char("\\")
        .set_null_value("n/a")
        .set_allow_comments()
    )
    assert [[*row] for row in files.read(_format(builder), path)] == [
        ["x;y';z", 1, 1.5, True, Decimal("12.35"), [1, 2]],
        [None] * 6,
        ["a;b", 2, 2.0, False, Decimal("1.00"), []],
    ]


def test_headers(files, tmp_path):
    path = tmp_path / "in.csv"
    path.write_text("who,years\nada,36\nbob,40\n")
    assert len(files.read(_format(_people(set_use_header=True)), path)) == 2
    skipping = _people(set_use_header=True, set_skip_first_data_row=True)
    assert files.read(_format(skipping), path) == [Row(name="bob", age=40)]
    strict = _people(set_use_header=True, set_strict_headers=True)
    with pytest.raises(ValueError, match=rf"{path}: the header has the columns \['who', 'years'\]"):
        files.read(_format(strict), path)


BROKEN = (
    'ada,36\n"two\nlines",1,2\nbob,\neve,x\n"never closed,1\n\ngus,1_0\n'
    '"a"b,1\nhal,99999999999999999999\nida,7\n'
)


def test_broken_rows_have_their_lines_and_reasons(files, tmp_path):
    path = tmp_path / "in.csv"
    path.write_text(BROKEN)
    records, broken = files.broken(_format(_people()), path)
    assert records == [Row(name="ada", age=36), Row(name="ida", age=7)]
    by_line = {one.line: one.reason for one in broken}
    assert sorted(by_line) == [2, 4, 5, 6, 8, 9, 10]
    assert "has 3 fields, but the schema has 2 columns" in by_line[2]
    assert "field 'age': '' is not an integer; set_null_value('')" in by_line[4]
    assert "field 'age': 'x' is not an integer" in by_line[5]
    assert "is not CSV" in by_line[6]
    assert "is not CSV" in by_line[9]
    assert "does not fit into" in by_line[10]
    with pytest.raises(BrokenRecordError, match=rf"{path}, line 2: the row has 3 fields"):
        files.read(_format(_people()), path)


def test_rows_with_more_fields_than_columns(files, tmp_path):
    path = tmp_path / "in.csv"
    path.write_text("ada,36,London\n")
    lenient = _people(set_any_property_name="others")
    assert files.read(_format(lenient), path) == [Row(name="ada", age=36)]


def test_files_written_by_a_sink_are_read_by_a_source(tmp_path):
    schema = (
        CsvSchema.builder()
        .add_string_column("text")
        .add_number_column("number")
        .add_boolean_column("truth")
        .add_array_column("list", "/", DataTypes.INT())
        .set_use_header()
        .set_strict_headers()
        .set_null_value("")
        .build()
    )
    rows = [Row('a,"b"\nc', 1, True, [1, 2]), Row("x", None, None, None)]

    def write(env):
        sink = FileSink.for_bulk_format(str(tmp_path), CsvBulkWriters.for_schema(schema)).build()
        env.from_collection(rows, schema.get_type_info()).sink_to(sink)

    JobHarness(write).run()

    def read(env):
        source = FileSource.for_record_stream_format(
            CsvReaderFormat.for_schema(schema), str(tmp_path)
        ).build()
        return env.from_source(source, WatermarkStrategy.no_watermarks(), "csv")

    harness = JobHarness(read)
    harness.run()
    assert [[*row] for row in harness.collected] == [[*row] for row in rows]


MESSAGE = Types.ROW_NAMED(
    ["text", "number", "day", "moment", "list", "nested"],
    [
        Types.STRING(),
        Types.LONG(),
        Types.SQL_DATE(),
        Types.SQL_TIMESTAMP(),
        Types.LIST(Types.INT()),
        Types.ROW_NAMED(["a", "b"], [Types.INT(), Types.STRING()]),
    ],
)


def test_messages():
    row = Row(
        "a;b",
        1,
        dt.date(2024, 3, 9),
        dt.datetime.fromisoformat("2024-03-09T07:30:00"),
        [1, 2],
        Row(3, "c"),
    )
    writer = (
        CsvRowSerializationSchema.Builder(MESSAGE)
        .set_field_delimiter(";")
        .set_array_element_delimiter("/")
        .set_line_delimiter("")
        .build()
    )
    message = pickle.loads(pickle.dumps(writer)).serialize(row)
    assert message == b'"a;b";1;2024-03-09;2024-03-09 07:30:00;1/2;3/c'
    builder = CsvRowDeserializationSchema.Builder(MESSAGE).set_field_delimiter(";")
    schema = pickle.loads(pickle.dumps(builder.set_array_element_delimiter("/").build()))
    read = schema.deserialize(message)
    assert [*read][:5] == [*row][:5]
    assert [*read.nested] == [3, "c"]
    assert schema.get_produced_type() == MESSAGE
    with pytest.raises(ValueError, match=r"is not a CSV row of the type .*has 2 fields"):
        schema.deserialize(b"a;b")
    with pytest.raises(ValueError, match="2 rows"):
        schema.deserialize(b"a\nb")
    lenient = builder.set_ignore_parse_errors(True).set_allow_comments(True).build()
    assert lenient.deserialize(b"a;b") is None
    assert lenient.deserialize(b"# a") is None


def test_refused_settings():
    for call in (
        lambda: CsvSchema.builder().set_column_separator("||"),
        lambda: CsvSchema.builder().set_quote_char(""),
        lambda: CsvRowSerializationSchema.Builder(MESSAGE).set_escape_character("ab"),
    ):
        with pytest.raises(ValueError, match="must be a single char"):
            call()
    with pytest.raises(TypeError, match="row type"):
        CsvRowDeserializationSchema.Builder(Types.INT())
    with pytest.raises(TypeError, match="CsvSchema"):
        CsvReaderFormat.for_schema(None)  # type: ignore[arg-type]  # refused
