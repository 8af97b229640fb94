"""CSV: files of rows, and messages that are rows."""

from __future__ import annotations

import csv
import datetime as dt
import io
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from decimal import ROUND_HALF_UP, Decimal, InvalidOperation
from itertools import repeat
from operator import attrgetter
from typing import Any, BinaryIO, NamedTuple

from firesteel.common.serialization import (
    BulkWriter,
    BulkWriterFactory,
    DeserializationSchema,
    SerializationSchema,
)
from firesteel.common.typeinfo import (
    BasicArrayTypeInfo,
    BasicType,
    BasicTypeInfo,
    DateTypeInfo,
    ListTypeInfo,
    ObjectArrayTypeInfo,
    PrimitiveArrayTypeInfo,
    RowTypeInfo,
    TimestampTypeInfo,
    TimeTypeInfo,
    TypeInformation,
    Types,
)
from firesteel.common.types import Row, RowKind, new_rows
from firesteel.errors import shorten
from firesteel.formats.base import (
    BrokenRecord,
    BrokenRecords,
    FilePart,
    RecordReader,
    StreamFormat,
)
from firesteel.formats.lines import Lines, open_raw_lines
from firesteel.table.types import DataType, DataTypes, NumericType, RowField, RowType

__all__ = [
    "CsvBulkWriters",
    "CsvReaderFormat",
    "CsvRowDeserializationSchema",
    "CsvRowSerializationSchema",
    "CsvSchema",
    "CsvSchemaBuilder",
]

# A quote that is never closed makes a field of the rest of the file. It is broken at this length.
_LONGEST_FIELD = 8 * 1024 * 1024
_LINES_AT_ONCE = 1024

_SEQUENCES = (ListTypeInfo, BasicArrayTypeInfo, ObjectArrayTypeInfo, PrimitiveArrayTypeInfo)


# Schemas


@dataclass(frozen=True, slots=True)
class _Dialect:
    """The signs of a CSV file."""

    column_separator: str = ","
    quote_char: str | None = '"'
    escape_char: str | None = None
    line_separator: str = "\n"
    # None: no text stands for a null. Nulls are written as nothing.
    null_value: str | None = None
    allow_comments: bool = False

    def arguments(self) -> dict[str, Any]:
        """Return the arguments of Python's readers and writers."""
        return {
            "delimiter": self.column_separator,
            "quotechar": self.quote_char or '"',
            "quoting": csv.QUOTE_MINIMAL if self.quote_char else csv.QUOTE_NONE,
            "escapechar": self.escape_char,
            "doublequote": True,
            "strict": True,
        }


@dataclass(frozen=True, slots=True)
class _Column:
    name: str
    data_type: DataType
    element_separator: str | None = None


@dataclass(frozen=True, slots=True)
class _Layout:
    """The settings of a CsvSchemaBuilder."""

    columns: tuple[_Column, ...] = ()
    dialect: _Dialect = field(default_factory=_Dialect)
    use_header: bool = False
    strict_headers: bool = False
    skip_first_data_row: bool = False
    any_property_name: str | None = None

    def row_type(self) -> RowType:
        return DataTypes.ROW([RowField(one.name, one.data_type) for one in self.columns])

    def rows(self) -> _Rows:
        type_info = self.row_type().to_type_info()
        assert isinstance(type_info, RowTypeInfo)
        separators = [one.element_separator or "" for one in self.columns]
        scales = [_scale(one.data_type) for one in self.columns]
        more_fields = self.any_property_name is not None
        return _Rows(type_info, self.dialect, separators, scales, more_fields=more_fields)


def _scale(data_type: DataType) -> int | None:
    """Return the number of decimals of a DECIMAL."""
    arrow_type = data_type.to_arrow_type()
    is_decimal = data_type.to_type_info() == Types.BIG_DEC()
    return int(arrow_type.scale) if is_decimal else None


class CsvSchema:
    """The columns of a CSV file, and its signs.

    >>> from firesteel.datastream.formats.csv import CsvSchema
    >>> from firesteel.table import DataTypes
    >>> schema = (
    ...     CsvSchema.builder()
    ...     .add_number_column("id", number_type=DataTypes.INT())
    ...     .add_string_column("name")
    ...     .add_array_column("tags", ";")
    ...     .set_column_separator("|")
    ...     .build()
    ... )
    >>> schema.size()
    3
    >>> schema.get_type_info()
    RowTypeInfo(id: Integer, name: String, tags: ObjectArrayTypeInfo<String>)
    """

    def __init__(self, layout: _Layout) -> None:
        self._layout = layout

    @staticmethod
    def builder() -> CsvSchemaBuilder:
        """Start building a schema."""
        return CsvSchemaBuilder()

    def get_type_info(self) -> TypeInformation:
        """Return the type of the rows."""
        return self._layout.row_type().to_type_info()

    def size(self) -> int:
        """Return the number of columns."""
        return len(self._layout.columns)

    def __len__(self) -> int:
        return self.size()

    def __repr__(self) -> str:
        return f"CsvSchema({self._layout.row_type()})"


_layout_of: Callable[[CsvSchema], _Layout] = attrgetter("_layout")


class CsvSchemaBuilder:
    r"""Builds a CsvSchema.

    >>> from firesteel.datastream.formats.csv import CsvSchema
    >>> from firesteel.table import DataTypes
    >>> base = CsvSchema.builder().add_boolean_column("adult").build()
    >>> builder = CsvSchema.builder().add_string_column("unused").clear_columns()
    >>> builder = builder.add_number_column("age", DataTypes.INT()).add_columns_from(base)
    >>> builder = builder.add_array_column("tags", element_type=DataTypes.BIGINT())
    >>> builder = builder.set_array_element_separator("/").remove_array_element_separator(2)
    >>> builder = builder.disable_array_element_separator().set_any_property_name("others")
    >>> builder = builder.set_column_separator(";").set_line_separator("\r\n")
    >>> builder = builder.set_quote_char("'").set_escape_char("\\").set_null_value("n/a")
    >>> builder = builder.disable_quote_char().disable_escape_char()
    >>> builder = builder.set_use_header().set_strict_headers().set_skip_first_data_row()
    >>> builder = builder.set_allow_comments()
    >>> builder.size(), len(builder.build())
    (3, 3)
    """

    def __init__(self) -> None:
        self._layout = _Layout()

    def build(self) -> CsvSchema:
        """Create the schema."""
        return CsvSchema(self._layout)

    def add_array_column(
        self, name: str, separator: str = ";", element_type: DataType | None = None
    ) -> CsvSchemaBuilder:
        """Add a column of lists.

        Args:
            name: The name of the column.
            separator: The text between two elements.
            element_type: The type of the elements. The default is STRING.
        """
        data_type = DataTypes.ARRAY(element_type or DataTypes.STRING())
        return self._add(_Column(name, data_type, separator))

    def add_boolean_column(self, name: str) -> CsvSchemaBuilder:
        """Add a column of ``true`` and ``false``.

        Args:
            name: The name of the column.
        """
        return self._add(_Column(name, DataTypes.BOOLEAN()))

    def add_number_column(
        self, name: str, number_type: NumericType | None = None
    ) -> CsvSchemaBuilder:
        """Add a column of numbers.

        Args:
            name: The name of the column.
            number_type: The type of the numbers. The default is BIGINT.
        """
        return self._add(_Column(name, number_type or DataTypes.BIGINT()))

    def add_string_column(self, name: str) -> CsvSchemaBuilder:
        """Add a column of texts.

        Args:
            name: The name of the column.
        """
        return self._add(_Column(name, DataTypes.STRING()))

    def add_columns_from(self, schema: CsvSchema) -> CsvSchemaBuilder:
        """Add the columns of a different schema.

        Args:
            schema: The schema.
        """
        for column in _layout_of(schema).columns:
            self._add(column)
        return self

    def _add(self, column: _Column) -> CsvSchemaBuilder:
        return self._set(columns=(*self._layout.columns, column))

    def _set(self, **values: Any) -> CsvSchemaBuilder:
        self._layout = replace(self._layout, **values)
        return self

    def _set_sign(self, **values: Any) -> CsvSchemaBuilder:
        return self._set(dialect=replace(self._layout.dialect, **values))

    def clear_columns(self) -> CsvSchemaBuilder:
        """Remove all columns."""
        return self._set(columns=())

    def set_allow_comments(self, allow: bool = True) -> CsvSchemaBuilder:
        """Skip lines that begin with ``#``.

        Args:
            allow: True to skip them.
        """
        return self._set_sign(allow_comments=allow)

    def set_any_property_name(self, name: str) -> CsvSchemaBuilder:
        """Accept rows with more fields than columns. The other fields are dropped, as in Flink.

        Args:
            name: A name for the other fields. Nothing reads it.
        """
        return self._set(any_property_name=name)

    def disable_array_element_separator(self) -> CsvSchemaBuilder:
        """Read the lists of all columns as a single element."""
        return self.set_array_element_separator("")

    def remove_array_element_separator(self, index: int) -> CsvSchemaBuilder:
        """Read the lists of a column as a single element.

        Args:
            index: The position of the column, from 0.
        """
        columns = list(self._layout.columns)
        columns[index] = replace(columns[index], element_separator="")
        return self._set(columns=tuple(columns))

    def set_array_element_separator(self, separator: str) -> CsvSchemaBuilder:
        """Set the text between two elements, for the lists of all columns so far.

        Args:
            separator: The text. The default is ``;``.
        """
        return self._set(
            columns=tuple(
                column
                if column.element_separator is None
                else replace(column, element_separator=separator)
                for column in self._layout.columns
            )
        )

    def set_column_separator(self, char: str) -> CsvSchemaBuilder:
        """Set the sign between two fields.

        Args:
            char: One character. The default is ``,``.
        """
        return self._set_sign(column_separator=_single("Column separator", char))

    def disable_escape_char(self) -> CsvSchemaBuilder:
        """Read all signs as they are. This is the default."""
        return self._set_sign(escape_char=None)

    def set_escape_char(self, char: str) -> CsvSchemaBuilder:
        """Set the sign that takes the meaning from the next one.

        Args:
            char: One character.
        """
        return self._set_sign(escape_char=_single("Escape char", char))

    def set_line_separator(self, separator: str) -> CsvSchemaBuilder:
        r"""Set the end of lines for writing. Reading knows ``\n``, ``\r`` and ``\r\n``.

        Args:
            separator: The text. The default is a line feed.
        """
        return self._set_sign(line_separator=separator)

    def set_null_value(self, null_value: str) -> CsvSchemaBuilder:
        """Set the text of None. By default None is written as nothing and never read.

        Args:
            null_value: The text. It may be empty.
        """
        return self._set_sign(null_value=null_value)

    def disable_quote_char(self) -> CsvSchemaBuilder:
        """Read quotes as they are. A line is then always a row, so subtasks can share a file."""
        return self._set_sign(quote_char=None)

    def set_quote_char(self, char: str) -> CsvSchemaBuilder:
        """Set the sign around fields that contain other signs.

        Args:
            char: One character. The default is ``"``.
        """
        return self._set_sign(quote_char=_single("Quote char", char))

    def set_skip_first_data_row(self, skip: bool = True) -> CsvSchemaBuilder:
        """Skip the first row of a file.

        Args:
            skip: True to skip it.
        """
        return self._set(skip_first_data_row=skip)

    def set_strict_headers(self, strict: bool = True) -> CsvSchemaBuilder:
        """Fail if the names in the header of a file are not those of the columns.

        Args:
            strict: True to compare them.
        """
        return self._set(strict_headers=strict)

    def set_use_header(self, use: bool = True) -> CsvSchemaBuilder:
        """Expect the first line of a file to be a header, and write one.

        Args:
            use: True if files have a header.
        """
        return self._set(use_header=use)

    def size(self) -> int:
        """Return the number of columns."""
        return len(self._layout.columns)

    def __len__(self) -> int:
        return self.size()


def _single(name: str, char: str) -> str:
    if len(char) != 1:
        raise ValueError(f"{name} must be a single char, got {char!r}")
    return char


# From texts to values, and back


class MisfitError(ValueError):
    """A field does not fit its column. The message says where and why."""


_INTEGERS = {BasicType.BYTE: 8, BasicType.SHORT: 16, BasicType.INT: 32, BasicType.LONG: 64}


class _Rows:
    """Makes rows of lists of texts."""

    def __init__(
        self,
        type_info: RowTypeInfo,
        dialect: _Dialect,
        separators: Sequence[str],
        scales: Sequence[int | None] | None = None,
        *,
        more_fields: bool = False,
    ) -> None:
        self.names = type_info.get_field_names()
        self.dialect = dialect
        self._null = dialect.null_value
        types = type_info.get_field_types()
        self._parsers = [
            _parser(kind, separator, scale)
            for kind, separator, scale in zip(
                types, separators, scales or [None] * len(types), strict=True
            )
        ]
        self._writers = [
            _writer(kind, separator) for kind, separator in zip(types, separators, strict=True)
        ]
        self._more_fields = more_fields

    def rows(self, records: list[list[str]]) -> list[Row]:
        """Return rows. A record that does not fit raises MisfitError."""
        if not records:
            return []
        width = len(self.names)
        if self._more_fields:
            records = [record[:width] for record in records]
        if set(map(len, records)) != {width}:
            count = next(len(record) for record in records if len(record) != width)
            raise MisfitError(f"the row has {count} fields, but the schema has {width} columns")
        columns: list[Sequence[Any]] = list(zip(*records, strict=True))
        changed = False
        for index, parse in enumerate(self._parsers):
            if parse is None and (self._null is None or self._null not in columns[index]):
                continue
            changed = True
            columns[index] = self._column(index, parse, columns[index])
        lists = map(list, zip(*columns, strict=True)) if changed else records
        return new_rows(lists, self.names, repeat(RowKind.INSERT))

    def _column(
        self, index: int, parse: Callable[[str], Any] | None, texts: Sequence[str]
    ) -> list[Any]:
        null = self._null
        try:
            if null is None or null not in texts:
                return list(map(parse or str, texts))
            return [None if text == null else (parse or str)(text) for text in texts]
        except (ValueError, ArithmeticError) as error:
            reason = f"field {self.names[index]!r}: {error}"
            if null is None and "" in texts:
                reason += "; set_null_value('') reads empty fields as None"
            raise MisfitError(reason) from error

    def texts(self, row: Any) -> list[str]:
        """Return the texts of a row."""
        values = row.get_fields_by_names(self.names) if isinstance(row, Row) else row
        null = self._null or ""
        return [
            null if value is None else write(value)
            for write, value in zip(self._writers, values, strict=True)
        ]


def _parser(
    type_info: TypeInformation, separator: str, scale: int | None = None
) -> Callable[[str], Any] | None:
    """Return the function that makes a value of a text. None for texts."""
    match type_info:
        case BasicTypeInfo():
            return _basic_parser(type_info.basic_type, scale)
        case DateTypeInfo():
            return lambda text: dt.date.fromisoformat(text.strip())
        case TimeTypeInfo():
            return lambda text: dt.time.fromisoformat(text.strip()).replace(tzinfo=None)
        case TimestampTypeInfo():
            return _to_timestamp
        case PrimitiveArrayTypeInfo() if type_info.get_element_type() == Types.BYTE():
            return str.encode
    if isinstance(type_info, _SEQUENCES):
        element = _parser(type_info.get_element_type(), "") or str
        return lambda text: list(map(element, _split(text, separator)))
    if isinstance(type_info, RowTypeInfo):
        return _nested_row_parser(type_info, separator)
    raise TypeError(f"CSV has no values of the type {type_info}")


def _nested_row_parser(type_info: RowTypeInfo, separator: str) -> Callable[[str], Any]:
    rows = _Rows(type_info, _Dialect(), [""] * len(type_info.get_field_names()))
    return lambda text: rows.rows([_split(text, separator)])[0]


def _split(text: str, separator: str) -> list[str]:
    if not text:
        return []
    return text.split(separator) if separator else [text]


def _basic_parser(basic_type: BasicType, scale: int | None) -> Callable[[str], Any] | None:
    if basic_type in _INTEGERS:
        return _integer_parser(basic_type)
    match basic_type:
        case BasicType.STRING | BasicType.CHAR:
            return None
        case BasicType.BOOLEAN:
            return _to_boolean
        case BasicType.FLOAT | BasicType.DOUBLE:
            return _to_float
        case BasicType.BIG_INT:
            return _to_integer
        case BasicType.BIG_DEC:
            return lambda text: _to_decimal(text, scale)
        case _:
            raise TypeError(f"CSV has no values of the type {basic_type.value}")


def _integer_parser(basic_type: BasicType) -> Callable[[str], int]:
    lowest = -(2 ** (_INTEGERS[basic_type] - 1))

    def parse(text: str) -> int:
        number = _to_integer(text)
        if not lowest <= number < -lowest:
            raise ValueError(f"{number} does not fit into {basic_type.value}")
        return number

    return parse


def _to_integer(text: str) -> int:
    try:
        number = int(text)
    except ValueError:
        raise ValueError(f"{text!r} is not an integer") from None
    if "_" in text:
        raise ValueError(f"{text!r} is not an integer")
    return number


def _to_float(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        raise ValueError(f"{text!r} is not a number") from None
    if "_" in text:
        raise ValueError(f"{text!r} is not a number")
    return number


def _to_decimal(text: str, scale: int | None) -> Decimal:
    try:
        number = Decimal(text.strip())
    except InvalidOperation:
        raise ValueError(f"{text!r} is not a number") from None
    return number if scale is None else number.quantize(Decimal(1).scaleb(-scale), ROUND_HALF_UP)


def _to_boolean(text: str) -> bool:
    match text.strip().lower():
        case "true":
            return True
        case "false":
            return False
    raise ValueError(f"{text!r} is neither true nor false")


def _to_timestamp(text: str) -> dt.datetime:
    moment = dt.datetime.fromisoformat(text.strip())
    return moment if moment.tzinfo is None else moment.astimezone(dt.UTC).replace(tzinfo=None)


def _writer(type_info: TypeInformation, separator: str) -> Callable[[Any], str]:
    if (
        isinstance(type_info, PrimitiveArrayTypeInfo)
        and type_info.get_element_type() == Types.BYTE()
    ):
        return bytes.decode
    if isinstance(type_info, _SEQUENCES):
        write = _writer(type_info.get_element_type(), "")
        return lambda values: separator.join(map(write, values))
    if isinstance(type_info, RowTypeInfo):
        rows = _Rows(type_info, _Dialect(), [""] * len(type_info.get_field_names()))
        return lambda row: separator.join(rows.texts(row))
    if type_info == Types.BOOLEAN():
        return lambda value: "true" if value else "false"
    if isinstance(type_info, TimestampTypeInfo):
        return lambda value: str(value.isoformat(" "))
    return str


# Files


class CsvReaderFormat(StreamFormat):
    r"""The format of CSV files.

    One subtask reads a file, because a quoted field may contain line ends. Without quotes
    (``CsvSchemaBuilder.disable_quote_char``) several subtasks can share one.

    >>> from pathlib import Path
    >>> from firesteel.datastream.connectors.file_system import FileSource
    >>> from firesteel.datastream.formats.csv import CsvReaderFormat, CsvSchema
    >>> size = Path("people.csv").write_text("name,age\nada,36\n")
    >>> schema = CsvSchema.builder().add_string_column("name").add_number_column("age")
    >>> csv = CsvReaderFormat.for_schema(schema.set_use_header().build())
    >>> source = FileSource.for_record_stream_format(csv, "people.csv").build()
    >>> stream = env.from_source(source, WatermarkStrategy.no_watermarks(), "people")
    >>> list(stream.execute_and_collect())
    [Row(name='ada', age=36)]
    """

    def __init__(self, schema: CsvSchema) -> None:
        self._schema = schema
        self.is_splittable = _layout_of(schema).dialect.quote_char is None

    @staticmethod
    def for_schema(schema: CsvSchema) -> CsvReaderFormat:
        """Return the format of files with these columns.

        Args:
            schema: The columns and signs.
        """
        if not isinstance(schema, CsvSchema):
            raise TypeError(f"CsvReaderFormat.for_schema needs a CsvSchema, got {schema!r}")
        return CsvReaderFormat(schema)

    def create_reader(
        self, file: BinaryIO, part: FilePart, position: Any, broken: BrokenRecords
    ) -> RecordReader:
        return _CsvReader(file, part, position, _layout_of(self._schema), broken)

    def get_produced_type(self) -> TypeInformation:
        return self._schema.get_type_info()

    def __repr__(self) -> str:
        return f"CsvReaderFormat.for_schema({self._schema})"


class _Record(NamedTuple):
    """A row with its place in the file, or lines that are no row, with the reason."""

    fields: list[str] | None
    position: int
    data: bytes
    problem: str = ""


def _fields(record: _Record) -> list[str]:
    if record.fields is None:
        raise MisfitError(record.problem)
    return record.fields


class _CsvReader(RecordReader):
    """Reads rows from lines. A row may have several lines, which stay together.

    ``_buffer`` holds lines that were read from the file. ``_next`` is the first of them that is in
    no row yet, and ``_position`` is its place in the file.
    """

    def __init__(
        self,
        file: BinaryIO,
        part: FilePart,
        position: int | None,
        layout: _Layout,
        broken: BrokenRecords,
    ) -> None:
        csv.field_size_limit(_LONGEST_FIELD)
        self._part = part
        self._layout = layout
        self._broken = broken
        self._rows = layout.rows()
        self._lines: Lines = open_raw_lines(file, part, position, broken)
        self._position: int = self._lines.position()
        self._buffer: list[bytes] = []
        self._next = 0
        # The line that the parser takes next. It is ahead of ``_next`` within a row.
        self._index = 0
        self._parser = self._new_parser()
        if position is None and part.start == 0:
            self._read_header()

    def _read_header(self) -> None:
        layout = self._layout
        if layout.use_header:
            header = self._next_record()
            names = [column.name for column in layout.columns]
            if layout.strict_headers and header is not None and header.fields != names:
                raise MisfitError(
                    f"{self._part.path}: the header has the columns {header.fields}, but the schema "
                    f"has {names}"
                )
        if layout.skip_first_data_row:
            self._next_record()

    def read(self, limit: int) -> list[Any]:
        records: list[_Record] = []
        while len(records) < limit:
            record = self._next_record()
            if record is None:
                break
            records.append(record)
        try:
            return self._rows.rows([_fields(record) for record in records])
        except MisfitError:
            return self._one_by_one(records)

    def _one_by_one(self, records: list[_Record]) -> list[Any]:
        """Return the rows of a batch with a broken row."""
        rows = []
        for record in records:
            try:
                rows += self._rows.rows([_fields(record)])
            except MisfitError as error:
                number = self._lines.number_at(record.position)
                data = record.data.rstrip(b"\r\n")
                self._broken.add(BrokenRecord(self._part.path, number, str(error), data))
        return rows

    def _next_record(self) -> _Record | None:
        """Return the next row. None at the end."""
        while self._next < len(self._buffer) or self._fill():
            first = self._next
            line = self._buffer[first]
            if not line.strip() or (self._layout.dialect.allow_comments and line[:1] == b"#"):
                self._advance(1)
                continue
            position = self._position
            lines_before = self._parser.line_num
            try:
                fields = next(self._parser)
            except (csv.Error, UnicodeDecodeError) as error:
                # The next line may begin a row again.
                self._advance(1)
                self._parser = self._new_parser()
                return _Record(None, position, line, f"the line is not CSV: {error}")
            self._advance(self._parser.line_num - lines_before)
            return _Record(fields, position, b"".join(self._buffer[first : self._next]))
        return None

    def _new_parser(self) -> Any:
        return csv.reader(self._texts(), **self._layout.dialect.arguments())

    def _texts(self) -> Iterator[str]:
        """Return the lines for the parser. A row with many lines reads more of them."""
        while self._index < len(self._buffer) or self._fill():
            line = self._buffer[self._index]
            self._index += 1
            yield line.decode()

    def _fill(self) -> bool:
        """Read more lines. Lines that are in rows are forgotten first, if no row is open."""
        if self._next == len(self._buffer):
            self._buffer, self._next, self._index = [], 0, 0
        while not self._lines.at_end():
            lines = self._lines.read(_LINES_AT_ONCE)
            if lines:
                self._buffer += lines
                return True
        return False

    def _advance(self, count: int) -> None:
        used = self._buffer[self._next : self._next + count]
        self._position += len(used) if self._part.counted else sum(map(len, used))
        self._next += len(used)
        self._index = self._next

    def at_end(self) -> bool:
        return self._next == len(self._buffer) and self._lines.at_end()

    def position(self) -> int:
        return self._position

    def close(self) -> None:
        self._lines.close()


class CsvBulkWriters:
    """Writers of CSV files, for ``FileSink.for_bulk_format``.

    >>> from pathlib import Path
    >>> from firesteel.datastream.connectors.file_system import BucketAssigner, FileSink
    >>> from firesteel.datastream.formats.csv import CsvBulkWriters, CsvSchema
    >>> schema = CsvSchema.builder().add_string_column("name").add_number_column("age").build()
    >>> sink = (
    ...     FileSink.for_bulk_format("out", CsvBulkWriters.for_schema(schema))
    ...     .with_bucket_assigner(BucketAssigner.base_path_bucket_assigner())
    ...     .build()
    ... )
    >>> stream = env.from_collection([Row("ada", 36)], schema.get_type_info()).sink_to(sink)
    >>> result = env.execute()
    >>> [path.read_text().strip() for path in Path("out").glob("part-*")]
    ['ada,36']
    """

    @staticmethod
    def for_schema(schema: CsvSchema) -> BulkWriterFactory:
        """Return the factory of writers for files with these columns.

        Args:
            schema: The columns and signs.
        """
        return _CsvWriterFactory(schema)


class _CsvWriterFactory(BulkWriterFactory):
    def __init__(self, schema: CsvSchema) -> None:
        self._schema = schema

    def create(self, out: BinaryIO) -> BulkWriter:
        return _CsvWriter(out, _layout_of(self._schema))


class _CsvWriter(BulkWriter):
    def __init__(self, out: BinaryIO, layout: _Layout) -> None:
        self._out = out
        self._rows = layout.rows()
        self._format = _CsvText(layout.dialect)
        if layout.use_header:
            self._out.write(self._format.line(self._rows.names))

    def add_element(self, element: Any) -> None:
        self._out.write(self._format.line(self._rows.texts(element)))

    def finish(self) -> None:
        """Do nothing, because each row is written at once."""


class _CsvText:
    """Makes a line of texts."""

    def __init__(self, dialect: _Dialect, line_separator: str | None = None) -> None:
        self._buffer = io.StringIO()
        end = dialect.line_separator if line_separator is None else line_separator
        self._writer = csv.writer(self._buffer, **dialect.arguments(), lineterminator=end)

    def line(self, texts: Sequence[str]) -> bytes:
        self._writer.writerow(texts)
        line = self._buffer.getvalue()
        self._buffer.seek(0)
        self._buffer.truncate()
        return line.encode()


# Messages


@dataclass(frozen=True, slots=True)
class _MessageSettings:
    type_info: RowTypeInfo
    dialect: _Dialect = field(default_factory=_Dialect)
    element_separator: str = ";"
    ignore_parse_errors: bool = False
    line_separator: str = "\n"

    def rows(self) -> _Rows:
        separators = [self.element_separator] * len(self.type_info.get_field_names())
        return _Rows(self.type_info, self.dialect, separators)


def _settings(user: str, type_info: TypeInformation) -> _MessageSettings:
    if not isinstance(type_info, RowTypeInfo):
        raise TypeError(f"{user} needs a row type, got {type_info!r}")
    return _MessageSettings(type_info)


class CsvRowDeserializationSchema(DeserializationSchema):
    """Makes a row of a message that is a line of CSV.

    >>> from firesteel.datastream.formats.csv import CsvRowDeserializationSchema
    >>> person = Types.ROW_NAMED(["name", "age"], [Types.STRING(), Types.INT()])
    >>> schema = CsvRowDeserializationSchema.Builder(person).set_field_delimiter("|").build()
    >>> schema.deserialize(b"ada|36")
    Row(name='ada', age=36)
    """

    def __init__(self, settings: _MessageSettings) -> None:
        self._settings = settings
        self._rows = settings.rows()

    def deserialize(self, message: bytes) -> Row | None:
        dialect = self._settings.dialect
        if dialect.allow_comments and message[:1] == b"#":
            return None
        try:
            text = message.decode()
            records = list(csv.reader(io.StringIO(text, newline=""), **dialect.arguments()))
            if len(records) != 1:
                raise MisfitError(f"the message has {len(records)} rows, but must have one")
            return self._rows.rows(records)[0]
        except (ValueError, csv.Error) as error:
            if self._settings.ignore_parse_errors:
                return None
            raise ValueError(
                f"The message {shorten(message)} is not a CSV row of the type "
                f"{self._settings.type_info}: {error}"
            ) from error

    def get_produced_type(self) -> TypeInformation:
        return self._settings.type_info

    def __reduce__(self) -> tuple[Any, ...]:
        return CsvRowDeserializationSchema, (self._settings,)

    class Builder:
        r"""Builds a CsvRowDeserializationSchema.

        Args:
            type_info: The type of the rows.

        >>> from firesteel.datastream.formats.csv import CsvRowDeserializationSchema
        >>> row = Types.ROW_NAMED(["a", "b"], [Types.LIST(Types.INT()), Types.STRING()])
        >>> schema = (
        ...     CsvRowDeserializationSchema.Builder(row)
        ...     .set_field_delimiter(";")
        ...     .set_array_element_delimiter("/")
        ...     .set_quote_character("'")
        ...     .set_escape_character("\\")
        ...     .set_null_literal("n/a")
        ...     .set_allow_comments(True)
        ...     .set_ignore_parse_errors(True)
        ...     .build()
        ... )
        >>> schema.deserialize(b"1/2;n/a")
        Row(a=[1, 2], b=None)
        """

        def __init__(self, type_info: TypeInformation) -> None:
            self._settings = _settings("CsvRowDeserializationSchema", type_info)

        def _set_sign(self, **values: Any) -> CsvRowDeserializationSchema.Builder:
            dialect = replace(self._settings.dialect, **values)
            self._settings = replace(self._settings, dialect=dialect)
            return self

        def set_field_delimiter(self, delimiter: str) -> CsvRowDeserializationSchema.Builder:
            """Set the sign between two fields.

            Args:
                delimiter: One character. The default is ``,``.
            """
            return self._set_sign(column_separator=_single("Field delimiter", delimiter))

        def set_allow_comments(self, allow_comments: bool) -> CsvRowDeserializationSchema.Builder:
            """Skip messages that begin with ``#``.

            Args:
                allow_comments: True to skip them.
            """
            return self._set_sign(allow_comments=allow_comments)

        def set_array_element_delimiter(
            self, delimiter: str
        ) -> CsvRowDeserializationSchema.Builder:
            """Set the text between two elements of a list.

            Args:
                delimiter: The text. The default is ``;``.
            """
            self._settings = replace(self._settings, element_separator=delimiter)
            return self

        def set_quote_character(self, c: str) -> CsvRowDeserializationSchema.Builder:
            """Set the sign around fields that contain other signs.

            Args:
                c: One character. The default is ``"``.
            """
            return self._set_sign(quote_char=_single("Quote character", c))

        def set_escape_character(self, c: str) -> CsvRowDeserializationSchema.Builder:
            """Set the sign that takes the meaning from the next one.

            Args:
                c: One character.
            """
            return self._set_sign(escape_char=_single("Escape character", c))

        def set_null_literal(self, null_literal: str) -> CsvRowDeserializationSchema.Builder:
            """Set the text of None.

            Args:
                null_literal: The text.
            """
            return self._set_sign(null_value=null_literal)

        def set_ignore_parse_errors(
            self, ignore_parse_errors: bool
        ) -> CsvRowDeserializationSchema.Builder:
            """Skip messages that cannot be read. By default they fail the job.

            Args:
                ignore_parse_errors: True to skip them.
            """
            self._settings = replace(self._settings, ignore_parse_errors=ignore_parse_errors)
            return self

        def build(self) -> CsvRowDeserializationSchema:
            """Create the schema."""
            return CsvRowDeserializationSchema(self._settings)


class CsvRowSerializationSchema(SerializationSchema):
    r"""Makes a line of CSV of a row.

    >>> from firesteel.datastream.formats.csv import CsvRowSerializationSchema
    >>> person = Types.ROW_NAMED(["name", "age"], [Types.STRING(), Types.INT()])
    >>> CsvRowSerializationSchema.Builder(person).build().serialize(Row("ada", 36))
    b'ada,36\n'
    """

    def __init__(self, settings: _MessageSettings) -> None:
        self._settings = settings
        self._rows = settings.rows()
        self._format = _CsvText(settings.dialect, settings.line_separator)

    def serialize(self, element: Any) -> bytes:
        return self._format.line(self._rows.texts(element))

    def __reduce__(self) -> tuple[Any, ...]:
        return CsvRowSerializationSchema, (self._settings,)

    class Builder:
        r"""Builds a CsvRowSerializationSchema.

        Args:
            type_info: The type of the rows.

        >>> from firesteel.datastream.formats.csv import CsvRowSerializationSchema
        >>> row = Types.ROW_NAMED(["a", "b"], [Types.LIST(Types.INT()), Types.STRING()])
        >>> schema = (
        ...     CsvRowSerializationSchema.Builder(row)
        ...     .set_field_delimiter(";")
        ...     .set_line_delimiter("")
        ...     .set_array_element_delimiter("/")
        ...     .set_quote_character("'")
        ...     .set_escape_character("\\")
        ...     .set_null_literal("n/a")
        ...     .disable_quote_character()
        ...     .build()
        ... )
        >>> schema.serialize(Row([1, 2], None))
        b'1/2;n/a'
        """

        def __init__(self, type_info: TypeInformation) -> None:
            self._settings = _settings("CsvRowSerializationSchema", type_info)

        def _set_sign(self, **values: Any) -> CsvRowSerializationSchema.Builder:
            dialect = replace(self._settings.dialect, **values)
            self._settings = replace(self._settings, dialect=dialect)
            return self

        def set_field_delimiter(self, c: str) -> CsvRowSerializationSchema.Builder:
            """Set the sign between two fields.

            Args:
                c: One character. The default is ``,``.
            """
            return self._set_sign(column_separator=_single("Field delimiter", c))

        def set_line_delimiter(self, delimiter: str) -> CsvRowSerializationSchema.Builder:
            """Set the end of the line.

            Args:
                delimiter: The text. The default is a line feed.
            """
            self._settings = replace(self._settings, line_separator=delimiter)
            return self

        def set_array_element_delimiter(self, delimiter: str) -> CsvRowSerializationSchema.Builder:
            """Set the text between two elements of a list.

            Args:
                delimiter: The text. The default is ``;``.
            """
            self._settings = replace(self._settings, element_separator=delimiter)
            return self

        def disable_quote_character(self) -> CsvRowSerializationSchema.Builder:
            """Write fields without quotes. Fields with other signs then need an escape character."""
            return self._set_sign(quote_char=None)

        def set_quote_character(self, c: str) -> CsvRowSerializationSchema.Builder:
            """Set the sign around fields that contain other signs.

            Args:
                c: One character. The default is ``"``.
            """
            return self._set_sign(quote_char=_single("Quote character", c))

        def set_escape_character(self, c: str) -> CsvRowSerializationSchema.Builder:
            """Set the sign that takes the meaning from the next one.

            Args:
                c: One character.
            """
            return self._set_sign(escape_char=_single("Escape character", c))

        def set_null_literal(self, s: str) -> CsvRowSerializationSchema.Builder:
            """Set the text of None.

            Args:
                s: The text. The default is nothing.
            """
            return self._set_sign(null_value=s)

        def build(self) -> CsvRowSerializationSchema:
            """Create the schema."""
            return CsvRowSerializationSchema(self._settings)
