"""JSON: lines of objects in files, and messages that are objects.

Records are rows of a declared type, or the parsed objects themselves. A batch is converted column by
column. A column whose values already have the right class is left alone.
"""

from __future__ import annotations

import base64
import datetime as dt
import json
from collections.abc import Callable, Sequence
from decimal import Decimal, InvalidOperation
from itertools import repeat
from operator import itemgetter
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

import orjson
import pyarrow as pa
import pyarrow.json

from firesteel.common.columns import ColumnLayout, fields_of, reason_for_rows
from firesteel.common.serialization import DeserializationSchema, Encoder, SerializationSchema
from firesteel.common.time import Instant
from firesteel.common.typeinfo import (
    BasicArrayTypeInfo,
    BasicType,
    BasicTypeInfo,
    DateTypeInfo,
    ListTypeInfo,
    MapTypeInfo,
    ObjectArrayTypeInfo,
    PickledBytesTypeInfo,
    PrimitiveArrayTypeInfo,
    RowTypeInfo,
    TimestampTypeInfo,
    TimeTypeInfo,
    TupleTypeInfo,
    TypeInformation,
    Types,
)
from firesteel.common.types import Row, RowKind, new_row, new_rows
from firesteel.errors import shorten
from firesteel.formats.base import (
    BrokenRecord,
    BrokenRecords,
    FilePart,
    RecordReader,
    StreamFormat,
)
from firesteel.formats.lines import Lines, open_raw_lines
from firesteel.stability import public_evolving

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
else:
    from firesteel.common import numpy_on_demand as np

__all__ = [
    "JsonEncoder",
    "JsonReaderFormat",
    "JsonRowDeserializationSchema",
    "JsonRowSerializationSchema",
    "schema_of_type",
]

# Errors of values that do not fit their type.
_MISFITS = (TypeError, ValueError, KeyError, ArithmeticError, AttributeError, InvalidOperation)


class MisfitError(ValueError):
    """A value does not fit its declared type. The message says where and why."""


# From JSON to values


class _Converter(NamedTuple):
    """Makes values of a type. Values of the ``accepted`` classes need no conversion.

    ``in_range`` checks a column of accepted values at once.
    """

    accepted: frozenset[type]
    convert: Callable[[Any], Any]
    in_range: Callable[[Sequence[Any]], bool] | None = None

    def column(self, values: Sequence[Any]) -> Sequence[Any]:
        kinds = set(map(type, values))
        if kinds <= self.accepted and (self.in_range is None or self.in_range(values)):
            return values
        convert = self.convert
        return [None if value is None else convert(value) for value in values]


_NONE = type(None)
_INTEGERS = {
    BasicType.BYTE: 8,
    BasicType.SHORT: 16,
    BasicType.INT: 32,
    BasicType.LONG: 64,
}


def _converter(type_info: TypeInformation) -> _Converter:  # noqa: PLR0911 - a line per type
    match type_info:
        case BasicTypeInfo():
            return _basic_converter(type_info.basic_type)
        case RowTypeInfo():
            rows = JsonRows(type_info)
            return _Converter(frozenset({_NONE}), rows.row)
        case TupleTypeInfo():
            return _Converter(frozenset({_NONE}), _tuple_converter(type_info))
        case PrimitiveArrayTypeInfo() if type_info.get_element_type() == Types.BYTE():
            return _Converter(frozenset({_NONE}), _to_bytes)
        case (
            PrimitiveArrayTypeInfo() | BasicArrayTypeInfo() | ObjectArrayTypeInfo() | ListTypeInfo()
        ):
            return _Converter(frozenset({_NONE}), _list_converter(type_info.get_element_type()))
        case MapTypeInfo():
            return _Converter(frozenset({_NONE}), _map_converter(type_info))
        case DateTypeInfo():
            return _Converter(frozenset({_NONE}), _to_date)
        case TimeTypeInfo():
            return _Converter(frozenset({_NONE}), _to_time)
        case TimestampTypeInfo():
            return _Converter(frozenset({_NONE}), _to_timestamp)
        case PickledBytesTypeInfo():
            return _Converter(frozenset({_NONE}), lambda value: value)
        case _:
            raise TypeError(f"JSON has no values of the type {type_info}")


def _basic_converter(basic_type: BasicType) -> _Converter:
    if basic_type in _INTEGERS:
        lowest = -(2 ** (_INTEGERS[basic_type] - 1))
        highest = -lowest - 1

        def to_integer(value: Any) -> int:
            number = _to_integer(value)
            if not lowest <= number <= highest:
                raise MisfitError(f"{number} does not fit into {basic_type.value}")
            return number

        def in_range(values: Sequence[Any]) -> bool:
            try:
                return bool(min(values) >= lowest and max(values) <= highest)
            except TypeError:  # a None
                return False

        return _Converter(frozenset({int}), to_integer, in_range)
    match basic_type:
        case BasicType.STRING | BasicType.CHAR:
            return _Converter(frozenset({str, _NONE}), _to_text)
        case BasicType.BOOLEAN:
            return _Converter(frozenset({bool, _NONE}), _to_boolean)
        case BasicType.FLOAT | BasicType.DOUBLE:
            return _Converter(frozenset({float, _NONE}), _to_float)
        case BasicType.BIG_INT:
            return _Converter(frozenset({int, _NONE}), _to_integer)
        case BasicType.BIG_DEC:
            return _Converter(frozenset({Decimal, _NONE}), _to_decimal)
        case _:
            return _Converter(frozenset({_NONE}), _to_instant)


def _expected(what: str, value: Any) -> MisfitError:
    return MisfitError(f"expected {what}, but it is {shorten(value)}")


def _to_integer(value: Any) -> int:
    if type(value) is int:
        return value
    if isinstance(value, float | Decimal) and value == int(value):
        return int(value)
    if isinstance(value, str) and "_" not in value:
        try:
            return int(value)
        except ValueError:
            pass
    raise _expected("an integer", value)


def _to_float(value: Any) -> float:
    if isinstance(value, int | float | Decimal) and not isinstance(value, bool):
        return float(value)
    if isinstance(value, str) and "_" not in value:
        try:
            return float(value)
        except ValueError:
            pass
    raise _expected("a number", value)


def _to_decimal(value: Any) -> Decimal:
    if isinstance(value, int | Decimal | str) and not isinstance(value, bool):
        try:
            return Decimal(value)
        except InvalidOperation:
            pass
    raise _expected("a number", value)


def _to_boolean(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and value.lower() in {"true", "false"}:
        return value.lower() == "true"
    raise _expected("true or false", value)


def _to_text(value: Any) -> str:
    """Return the text, or the JSON of any other value, as Flink does."""
    return value if isinstance(value, str) else json.dumps(value, default=str)


def _to_bytes(value: Any) -> bytes:
    if not isinstance(value, str):
        raise _expected("bytes in base 64", value)
    return base64.b64decode(value, validate=True)


def _to_date(value: Any) -> dt.date:
    try:
        return dt.date.fromisoformat(value)
    except (TypeError, ValueError):
        raise _expected("a date such as 2024-03-09", value) from None


def _to_time(value: Any) -> dt.time:
    try:
        return dt.time.fromisoformat(value).replace(tzinfo=None)
    except (TypeError, ValueError):
        raise _expected("a time such as 07:30:00Z", value) from None


def _to_timestamp(value: Any) -> dt.datetime:
    try:
        moment = dt.datetime.fromisoformat(value)
    except (TypeError, ValueError):
        raise _expected("a timestamp such as 2024-03-09T07:30:00Z", value) from None
    return moment if moment.tzinfo is None else moment.astimezone(dt.UTC).replace(tzinfo=None)


def _to_instant(value: Any) -> Instant:
    since = _to_timestamp(value).replace(tzinfo=dt.UTC) - dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
    return Instant(since.days * 86400 + since.seconds, since.microseconds * 1000)


def _list_converter(element_type: TypeInformation) -> Callable[[Any], list[Any]]:
    column = _converter(element_type).column

    def convert(value: Any) -> list[Any]:
        if not isinstance(value, list):
            raise _expected("an array", value)
        return list(column(value))

    return convert


def _map_converter(type_info: MapTypeInfo) -> Callable[[Any], dict[Any, Any]]:
    keys = _converter(type_info.get_key_type()).column
    values = _converter(type_info.get_value_type()).column

    def convert(value: Any) -> dict[Any, Any]:
        if not isinstance(value, dict):
            raise _expected("an object", value)
        return dict(zip(keys(list(value)), values(list(value.values())), strict=True))

    return convert


def _tuple_converter(type_info: TupleTypeInfo) -> Callable[[Any], tuple[Any, ...]]:
    converters = list(map(_converter, type_info.get_field_types()))

    def convert(value: Any) -> tuple[Any, ...]:
        if not isinstance(value, list) or len(value) != len(converters):
            raise _expected(f"an array of {len(converters)} values", value)
        return tuple(one.column([field])[0] for one, field in zip(converters, value, strict=True))

    return convert


class JsonRows:
    """Makes rows of parsed objects."""

    def __init__(self, type_info: RowTypeInfo, *, fail_on_missing_field: bool = False) -> None:
        self._names = type_info.get_field_names()
        self._converters = list(map(_converter, type_info.get_field_types()))
        self._fail_on_missing_field = fail_on_missing_field
        # For one name, itemgetter returns the value itself instead of a tuple.
        get = itemgetter(*self._names) if self._names else lambda value: ()
        self._get = get if len(self._names) != 1 else lambda value: (get(value),)

    def rows(self, objects: list[Any]) -> list[Row]:
        """Return the rows of many objects. An object that does not fit raises an error."""
        if not objects:
            return []
        try:
            records: list[Any] = list(map(self._get, objects))
        except KeyError:
            if self._fail_on_missing_field:
                raise
            names = self._names
            records = [[value.get(name) for name in names] for value in objects]
        columns = list(zip(*records, strict=True))
        fitting = [
            converter.column(column)
            for converter, column in zip(self._converters, columns, strict=True)
        ]
        if any(new is not old for new, old in zip(fitting, columns, strict=True)):
            records = list(zip(*fitting, strict=True))
        return new_rows(map(list, records), self._names, repeat(RowKind.INSERT))

    def row(self, value: Any) -> Row:
        """Return the row of one object. The error of one that does not fit names the field."""
        if not isinstance(value, dict):
            raise _expected("an object", value)
        fields: list[Any] = []
        for name, converter in zip(self._names, self._converters, strict=True):
            if self._fail_on_missing_field and name not in value:
                raise MisfitError(f"the field {name!r} is missing")
            try:
                fields += converter.column([value.get(name)])
            except _MISFITS as error:
                raise MisfitError(f"field {name!r}: {error}") from error
        return new_row(fields, self._names, RowKind.INSERT)


_NEWLINE, _OPEN, _CLOSE, _BRACKET = map(ord, "\n{}[")
# orjson refuses deeper values.
_DEPTH = 1000


def _line_ends(block: bytes) -> npt.NDArray[np.int64]:
    return np.flatnonzero(np.frombuffer(block, np.uint8) == _NEWLINE)


def _has_columns(type_info: RowTypeInfo) -> bool:
    """Return True if Arrow can read the fields: primitives, but no FLOAT, which it rounds."""
    if reason_for_rows(type_info) is not None:
        return False
    names = [name for name, _ in fields_of(type_info)]
    return len(set(names)) == len(names) and all(
        isinstance(kind, BasicTypeInfo) and kind.basic_type is not BasicType.FLOAT
        for _, kind in fields_of(type_info)
    )


class JsonColumns:
    """Makes columns of blocks of lines, if they are those of the rows that JsonRows makes.

    Arrow reads objects, regardless of lines. It is more lenient than orjson with text, and less
    lenient with numbers. A block for which that could matter is left to rows.
    """

    def __init__(self, type_info: RowTypeInfo, *, allows_null: bool) -> None:
        self._layout = ColumnLayout(type_info)
        self._allows_null = allows_null
        self._options = pyarrow.json.ParseOptions(
            explicit_schema=self._layout.schema, unexpected_field_behavior="ignore"
        )

    def of_block(self, block: bytes) -> pa.RecordBatch | None:
        """Return the columns, or None if the lines must be read one by one."""
        count = _objects_in(block)
        if not count:
            return None
        options = pyarrow.json.ReadOptions(use_threads=False, block_size=len(block) + 1)
        try:
            table = pyarrow.json.read_json(pa.BufferReader(block), options, self._options)
        except pa.ArrowException:
            return None
        if table.num_rows != count:
            return None
        arrays = [pa.concat_arrays(table.column(name).chunks) for name in self._layout.schema.names]
        if not all(map(self._is_exact, arrays)):
            return None
        return pa.RecordBatch.from_arrays(arrays, schema=self._layout.schema)

    def _is_exact(self, array: pa.Array) -> bool:
        """False for an infinite number, and for -0, which may have been an integer."""
        if array.null_count and not self._allows_null:
            return False
        if not pa.types.is_floating(array.type):
            return True
        numbers = array.drop_null().to_numpy()
        is_negative_zero = (numbers == 0) & np.signbit(numbers)
        return bool(np.isfinite(numbers).all() and not is_negative_zero.any())

    def of_rows(self, rows: list[Any]) -> pa.RecordBatch | list[Any]:
        """Return the columns of rows, or the rows if they have none."""
        try:
            return self._layout.columns_of(rows)
        except TypeError:
            return rows


def _objects_in(block: bytes) -> int:
    """Return the number of lines, if each is one object, as far as that can be seen; otherwise 0.

    No object has a line that ends with } before one that begins with {, so objects do not cross
    lines. Then Arrow finds more objects than lines if a line has two.
    """
    if not block.startswith(b"{") or not block.endswith((b"}", b"}\n")) or b"\r" in block:
        return 0
    # Half a pair of surrogates is broken. Bytes that are not UTF-8 are broken, too.
    if b"\\" in block and (b"\\ud" in block or b"\\uD" in block):
        return 0
    if not block.isascii():
        try:
            block.decode()
        except UnicodeDecodeError:
            return 0
    codes = np.frombuffer(block, np.uint8)
    ends = _line_ends(block[:-1])
    if (codes[ends - 1] != _CLOSE).any() or (codes[ends + 1] != _OPEN).any():
        return 0
    count = len(ends) + 1
    opened = np.count_nonzero(codes == _OPEN) + np.count_nonzero(codes == _BRACKET)
    return 0 if opened - count > _DEPTH else count


def _parser(type_info: TypeInformation | None) -> Callable[[bytes], Any]:
    """Return the parser for a type. orjson is faster, but rounds numbers of more than 64 bits."""
    return _parse_exactly if type_info is not None and _needs_exact(type_info) else orjson.loads


def _parse_exactly(data: bytes) -> Any:
    return json.loads(data, parse_float=Decimal)


def _needs_exact(type_info: TypeInformation) -> bool:
    if isinstance(type_info, RowTypeInfo | TupleTypeInfo):
        return any(map(_needs_exact, type_info.get_field_types()))
    if isinstance(type_info, MapTypeInfo):
        return _needs_exact(type_info.get_value_type())
    if isinstance(type_info, BasicTypeInfo):
        return type_info.basic_type in {BasicType.BIG_INT, BasicType.BIG_DEC}
    if isinstance(type_info, ListTypeInfo | ObjectArrayTypeInfo):
        return _needs_exact(type_info.get_element_type())
    return False


# From values to JSON


def _writer(type_info: TypeInformation) -> Callable[[Any], Any] | None:  # noqa: PLR0911 - a line per type
    """Return the function that makes a value that orjson can write. None if all values are."""
    match type_info:
        case BasicTypeInfo():
            return _BASIC_WRITERS.get(type_info.basic_type)
        case RowTypeInfo():
            return _row_writer(type_info)
        case TupleTypeInfo():
            writers = [_null_safe(_writer(field)) for field in type_info.get_field_types()]
            return lambda value: [write(one) for write, one in zip(writers, value, strict=True)]
        case PrimitiveArrayTypeInfo() if type_info.get_element_type() == Types.BYTE():
            return lambda value: base64.b64encode(value).decode()
        case (
            PrimitiveArrayTypeInfo() | BasicArrayTypeInfo() | ObjectArrayTypeInfo() | ListTypeInfo()
        ):
            write = _writer(type_info.get_element_type())
            return None if write is None else lambda value: list(map(_null_safe(write), value))
        case MapTypeInfo():
            of_value = _null_safe(_writer(type_info.get_value_type()))
            return lambda value: {str(key): of_value(one) for key, one in value.items()}
        case DateTypeInfo():
            return dt.date.isoformat
        case TimeTypeInfo():
            return lambda value: f"{value.isoformat()}Z"
        case TimestampTypeInfo():
            return lambda value: f"{value.isoformat()}Z"
        case PickledBytesTypeInfo():
            return None
        case _:
            raise TypeError(f"JSON has no values of the type {type_info}")


def _null_safe(write: Callable[[Any], Any] | None) -> Callable[[Any], Any]:
    if write is None:
        return lambda value: value
    return lambda value: None if value is None else write(value)


def _write_exact(value: Any) -> Any:
    return orjson.Fragment(str(value))


def _write_instant(value: Any) -> str:
    moment = dt.datetime(1970, 1, 1, tzinfo=dt.UTC) + dt.timedelta(
        seconds=value.seconds, microseconds=value.nanos // 1000
    )
    return moment.isoformat().replace("+00:00", "Z")


_BASIC_WRITERS: dict[BasicType, Callable[[Any], Any]] = {
    BasicType.BIG_INT: _write_exact,
    BasicType.BIG_DEC: _write_exact,
    BasicType.INSTANT: _write_instant,
}


def _row_writer(type_info: RowTypeInfo) -> Callable[[Any], dict[str, Any]]:
    names = type_info.get_field_names()
    special = [
        (name, write)
        for name, write in zip(names, map(_writer, type_info.get_field_types()), strict=True)
        if write is not None
    ]

    def write_row(value: Any) -> dict[str, Any]:
        fields = value.get_fields_by_names(names) if isinstance(value, Row) else value
        written = dict(zip(names, fields, strict=True))
        for name, write in special:
            if written[name] is not None:
                written[name] = write(written[name])
        return written

    return write_row


# Files


@public_evolving
class JsonReaderFormat(StreamFormat):
    r"""The format of files with a JSON value per line. Not in PyFlink.

    Several subtasks share a large file. Blank lines are skipped.

    >>> from pathlib import Path
    >>> from firesteel.datastream.connectors.file_system import FileSource
    >>> from firesteel.datastream.formats.json import JsonReaderFormat
    >>> size = Path("people.json").write_text('{"name": "ada", "age": 36}')
    >>> person = Types.ROW_NAMED(["name", "age"], [Types.STRING(), Types.INT()])
    >>> source = FileSource.for_record_stream_format(
    ...     JsonReaderFormat.for_type_info(person), "people.json"
    ... ).build()
    >>> stream = env.from_source(source, WatermarkStrategy.no_watermarks(), "people")
    >>> list(stream.execute_and_collect())
    [Row(name='ada', age=36)]
    """

    is_splittable = splits_by_default = True

    def __init__(self, type_info: RowTypeInfo | None, *, fail_on_missing_field: bool) -> None:
        self._type_info = type_info
        self._fail_on_missing_field = fail_on_missing_field
        self.gives_columns = type_info is not None and _has_columns(type_info)

    @staticmethod
    def for_type_info(
        type_info: RowTypeInfo, fail_on_missing_field: bool = False
    ) -> JsonReaderFormat:
        """Return the format whose records are rows of a type.

        Args:
            type_info: The type of the rows. The names of its fields are those of the objects.
                Other fields of the objects are ignored.
            fail_on_missing_field: True if an object without one of the fields is broken. Otherwise
                the field is None.
        """
        if not isinstance(type_info, RowTypeInfo):
            raise TypeError(f"JsonReaderFormat needs a row type, got {type_info!r}")
        return JsonReaderFormat(type_info, fail_on_missing_field=fail_on_missing_field)

    @staticmethod
    def for_objects() -> JsonReaderFormat:
        """Return the format whose records are the parsed values: dicts, lists, texts, numbers.

        >>> from firesteel.datastream.formats.json import JsonReaderFormat
        >>> JsonReaderFormat.for_objects()
        JsonReaderFormat.for_objects()
        """
        return JsonReaderFormat(None, fail_on_missing_field=False)

    def create_reader(
        self, file: BinaryIO, part: FilePart, position: Any, broken: BrokenRecords
    ) -> RecordReader:
        lines = open_raw_lines(file, part, position, broken)
        rows = columns = None
        if self._type_info is not None:
            rows = JsonRows(self._type_info, fail_on_missing_field=self._fail_on_missing_field)
            if self.gives_columns:
                columns = JsonColumns(self._type_info, allows_null=not self._fail_on_missing_field)
        return _JsonLines(lines, _parser(self._type_info), rows, columns, part, broken)

    def get_produced_type(self) -> TypeInformation | None:
        return self._type_info

    def __repr__(self) -> str:
        if self._type_info is None:
            return "JsonReaderFormat.for_objects()"
        return f"JsonReaderFormat.for_type_info({self._type_info})"


class _JsonLines(RecordReader):
    def __init__(
        self,
        lines: Lines,
        parse: Callable[[bytes], Any],
        rows: JsonRows | None,
        columns: JsonColumns | None,
        part: FilePart,
        broken: BrokenRecords,
    ) -> None:
        self._to_columns = columns
        # The columns of a block, its bytes, and the number of records that were taken.
        self._columns: pa.RecordBatch | None = None
        self._block = b""
        self._taken = 0
        self._lines = lines
        self._parse = parse
        self._rows = rows
        self._part = part
        self._broken = broken

    def read(self, limit: int) -> list[Any]:
        lines = self._lines.read(limit)
        try:
            objects = list(map(self._parse, lines))
            return objects if self._rows is None else self._rows.rows(objects)
        except _MISFITS:
            return self._one_by_one(lines)

    def read_columns(self, limit: int) -> pa.RecordBatch | list[Any] | None:
        to_columns = self._to_columns
        assert to_columns is not None
        if self._columns is None:
            self._block = self._lines.next_block()
            self._columns, self._taken = to_columns.of_block(self._block), 0
        if self._columns is None:
            rows = self.read(limit)
            return to_columns.of_rows(rows) if rows else None
        part = self._columns.slice(self._taken, limit)
        self._taken += part.num_rows
        if self._taken == self._columns.num_rows:
            self._lines.skip_block()
            self._columns = None
        return part

    def _one_by_one(self, lines: list[bytes]) -> list[Any]:
        """Return the records of a batch with a blank or broken line."""
        records = []
        for index, line in enumerate(lines):
            if not line.strip():
                continue
            try:
                value = self._parse(line)
            except ValueError as error:
                reason = f"the line is not JSON: {error}"
            else:
                try:
                    records.append(value if self._rows is None else self._rows.row(value))
                    continue
                except MisfitError as error:
                    reason = str(error)
            self._broken.add(self._record(lines, index, reason))
        return records

    def _record(self, lines: list[bytes], index: int, reason: str) -> BrokenRecord:
        later = lines[index:]
        if self._part.counted:
            position = self._lines.position() - len(later)
        else:
            position = self._lines.position() - sum(map(len, later))
        number = self._lines.number_at(position)
        return BrokenRecord(self._part.path, number, reason, lines[index].rstrip(b"\r\n"))

    def at_end(self) -> bool:
        return self._lines.at_end()

    def position(self) -> Any:
        position = self._lines.position()
        if self._columns is None or not self._taken:
            return position
        return position + int(_line_ends(self._block)[self._taken - 1]) + 1

    def close(self) -> None:
        self._lines.close()


@public_evolving
class JsonEncoder(Encoder):
    r"""Writes a JSON object per line, for ``FileSink.for_row_format``. Not in PyFlink.

    Args:
        type_info: The type of the records. Without it the sink takes the type of the stream, and
            records of a stream without a type are dicts.

    >>> from firesteel.datastream.formats.json import JsonEncoder
    >>> person = Types.ROW_NAMED(["name", "age"], [Types.STRING(), Types.INT()])
    >>> JsonEncoder(person).encode(Row("ada", 36))
    b'{"name":"ada","age":36}\n'
    """

    def __init__(self, type_info: TypeInformation | None = None) -> None:
        self._type_info = type_info
        self._write = None if type_info is None else _writer(type_info)

    def encode(self, element: Any) -> bytes:
        value = element if self._write is None else self._write(element)
        return orjson.dumps(value, default=_plain, option=orjson.OPT_APPEND_NEWLINE)

    def with_type(self, type_info: TypeInformation) -> Encoder:
        return self if self._type_info is not None else JsonEncoder(type_info)

    def __reduce__(self) -> tuple[Any, ...]:
        return JsonEncoder, (self._type_info,)


def _plain(value: Any) -> Any:
    """Return JSON of a value without a declared type."""
    if isinstance(value, Row):
        return value.as_dict()
    if isinstance(value, Decimal):
        return orjson.Fragment(str(value))
    raise TypeError(f"JSON has no values of the class {type(value).__qualname__}")


# Messages


class JsonRowDeserializationSchema(DeserializationSchema):
    """Makes a row of a message that is a JSON object.

    >>> from firesteel.datastream.formats.json import JsonRowDeserializationSchema
    >>> person = Types.ROW_NAMED(["name", "age"], [Types.STRING(), Types.INT()])
    >>> schema = JsonRowDeserializationSchema.builder().type_info(person).build()
    >>> schema.deserialize(b'{"name": "ada", "age": 36}')
    Row(name='ada', age=36)
    """

    def __init__(
        self, type_info: RowTypeInfo, fail_on_missing_field: bool, ignore_parse_errors: bool
    ) -> None:
        self._type_info = type_info
        self._fail_on_missing_field = fail_on_missing_field
        self._ignore_parse_errors = ignore_parse_errors
        self._parse = _parser(type_info)
        self._rows = JsonRows(type_info, fail_on_missing_field=fail_on_missing_field)

    @staticmethod
    def builder() -> JsonRowDeserializationSchema.Builder:
        """Start building a schema."""
        return JsonRowDeserializationSchema.Builder()

    def deserialize(self, message: bytes) -> Row | None:
        try:
            return self._rows.row(self._parse(message))
        except ValueError as error:
            if self._ignore_parse_errors:
                return None
            raise ValueError(
                f"The message {shorten(message)} is not a JSON object of the type "
                f"{self._type_info}: {error}"
            ) from error

    def get_produced_type(self) -> TypeInformation:
        return self._type_info

    def __reduce__(self) -> tuple[Any, ...]:
        arguments = (self._type_info, self._fail_on_missing_field, self._ignore_parse_errors)
        return JsonRowDeserializationSchema, arguments

    class Builder:
        """Builds a JsonRowDeserializationSchema.

        >>> from firesteel.datastream.formats.json import JsonRowDeserializationSchema
        >>> schema = (
        ...     JsonRowDeserializationSchema.builder()
        ...     .type_info(Types.ROW_NAMED(["name"], [Types.STRING()]))
        ...     .fail_on_missing_field()
        ...     .ignore_parse_errors()
        ...     .build()
        ... )
        >>> schema.deserialize(b"{}") is None
        True
        """

        def __init__(self) -> None:
            self._type_info: TypeInformation | None = None
            self._fail_on_missing_field = False
            self._ignore_parse_errors = False

        def type_info(self, type_info: TypeInformation) -> JsonRowDeserializationSchema.Builder:
            """Set the type of the rows. The names of its fields are those of the objects.

            Args:
                type_info: A row type.
            """
            self._type_info = type_info
            return self

        def json_schema(self, json_schema: str) -> JsonRowDeserializationSchema.Builder:
            """Set the type of the rows as a JSON Schema.

            Args:
                json_schema: The schema of an object.

            >>> from firesteel.datastream.formats.json import JsonRowDeserializationSchema
            >>> text = '{"type": "object", "properties": {"age": {"type": "integer"}}}'
            >>> schema = JsonRowDeserializationSchema.builder().json_schema(text).build()
            >>> schema.get_produced_type()
            RowTypeInfo(age: BigInteger)
            """
            if json_schema is None:
                raise TypeError("The json_schema must not be None.")
            self._type_info = _type_of_schema(json.loads(json_schema))
            return self

        def fail_on_missing_field(self) -> JsonRowDeserializationSchema.Builder:
            """Fail if an object lacks a field. By default the field is None."""
            self._fail_on_missing_field = True
            return self

        def ignore_parse_errors(self) -> JsonRowDeserializationSchema.Builder:
            """Skip messages that cannot be read. By default they fail the job."""
            self._ignore_parse_errors = True
            return self

        def build(self) -> JsonRowDeserializationSchema:
            """Create the schema."""
            if not isinstance(self._type_info, RowTypeInfo):
                raise TypeError(
                    "JsonRowDeserializationSchema needs type_info() or json_schema() of a row, got "
                    f"{self._type_info!r}"
                )
            return JsonRowDeserializationSchema(
                self._type_info, self._fail_on_missing_field, self._ignore_parse_errors
            )


def _type_of_schema(schema: dict[str, Any]) -> TypeInformation:  # noqa: PLR0911 - a line per type
    """Return the type for a JSON Schema, with the choices of Flink."""
    kind = schema.get("type")
    if isinstance(kind, list):
        kinds = [one for one in kind if one != "null"]
        kind = kinds[0] if len(kinds) == 1 else None
    match kind:
        case "object":
            properties = schema.get("properties", {})
            return Types.ROW_NAMED(
                list(properties), list(map(_type_of_schema, properties.values()))
            )
        case "array":
            items = schema.get("items")
            if isinstance(items, list):
                return Types.ROW(list(map(_type_of_schema, items)))
            if isinstance(items, dict):
                return Types.OBJECT_ARRAY(_type_of_schema(items))
        case "string":
            match schema.get("format"):
                case "date":
                    return Types.SQL_DATE()
                case "time":
                    return Types.SQL_TIME()
                case "date-time":
                    return Types.SQL_TIMESTAMP()
            if schema.get("contentEncoding") == "base64":
                return Types.PRIMITIVE_ARRAY(Types.BYTE())
            return Types.STRING()
        case "boolean":
            return Types.BOOLEAN()
        case "integer":
            return Types.BIG_INT()
        case "number":
            return Types.BIG_DEC()
    raise ValueError(f"The JSON Schema {shorten(schema)} has no type that Firesteel knows")


def schema_of_type(type_info: TypeInformation) -> dict[str, Any]:  # noqa: PLR0911 - a line per type
    """Return the JSON Schema of the values that JsonRowSerializationSchema writes for a type."""
    match type_info:
        case BasicTypeInfo():
            return _SCHEMAS_OF_BASIC_TYPES[type_info.basic_type]
        case RowTypeInfo():
            fields = zip(type_info.get_field_names(), type_info.get_field_types(), strict=True)
            properties = {name: _or_null(schema_of_type(field)) for name, field in fields}
            return {"type": "object", "properties": properties}
        case TupleTypeInfo():
            return {
                "type": "array",
                "items": [_or_null(schema_of_type(one)) for one in type_info.get_field_types()],
            }
        case PrimitiveArrayTypeInfo() if type_info.get_element_type() == Types.BYTE():
            return {"type": "string", "contentEncoding": "base64"}
        case (
            PrimitiveArrayTypeInfo() | BasicArrayTypeInfo() | ObjectArrayTypeInfo() | ListTypeInfo()
        ):
            return {
                "type": "array",
                "items": _or_null(schema_of_type(type_info.get_element_type())),
            }
        case MapTypeInfo():
            values = _or_null(schema_of_type(type_info.get_value_type()))
            return {"type": "object", "additionalProperties": values}
        case DateTypeInfo():
            return {"type": "string", "format": "date"}
        case TimeTypeInfo():
            return {"type": "string", "format": "time"}
        case TimestampTypeInfo():
            return {"type": "string", "format": "date-time"}
        case _:
            return {}


def _or_null(schema: dict[str, Any]) -> dict[str, Any]:
    return {"oneOf": [{"type": "null"}, schema]} if schema else schema


_INTEGER = {"type": "integer"}
_NUMBER = {"type": "number"}
_SCHEMAS_OF_BASIC_TYPES: dict[BasicType, dict[str, Any]] = {
    **dict.fromkeys([*_INTEGERS, BasicType.BIG_INT], _INTEGER),
    **dict.fromkeys([BasicType.FLOAT, BasicType.DOUBLE, BasicType.BIG_DEC], _NUMBER),
    BasicType.STRING: {"type": "string"},
    BasicType.CHAR: {"type": "string"},
    BasicType.BOOLEAN: {"type": "boolean"},
    BasicType.INSTANT: {"type": "string", "format": "date-time"},
}


class JsonRowSerializationSchema(SerializationSchema):
    """Makes a JSON object of a row.

    >>> from firesteel.datastream.formats.json import JsonRowSerializationSchema
    >>> person = Types.ROW_NAMED(["name", "age"], [Types.STRING(), Types.INT()])
    >>> schema = JsonRowSerializationSchema.builder().with_type_info(person).build()
    >>> schema.serialize(Row("ada", 36))
    b'{"name":"ada","age":36}'
    """

    def __init__(self, type_info: TypeInformation) -> None:
        self._type_info = type_info
        self._write = _null_safe(_writer(type_info))

    @staticmethod
    def builder() -> JsonRowSerializationSchema.Builder:
        """Start building a schema."""
        return JsonRowSerializationSchema.Builder()

    def serialize(self, element: Any) -> bytes:
        return orjson.dumps(self._write(element), default=_plain)

    def __reduce__(self) -> tuple[Any, ...]:
        return JsonRowSerializationSchema, (self._type_info,)

    class Builder:
        """Builds a JsonRowSerializationSchema.

        >>> from firesteel.datastream.formats.json import JsonRowSerializationSchema
        >>> builder = JsonRowSerializationSchema.builder()
        >>> schema = builder.with_type_info(Types.ROW_NAMED(["age"], [Types.INT()])).build()
        """

        def __init__(self) -> None:
            self._type_info: TypeInformation | None = None

        def with_type_info(self, type_info: TypeInformation) -> JsonRowSerializationSchema.Builder:
            """Set the type of the rows. The names of its fields are those of the objects.

            Args:
                type_info: A row type.
            """
            self._type_info = type_info
            return self

        def build(self) -> JsonRowSerializationSchema:
            """Create the schema."""
            if self._type_info is None:
                raise TypeError("JsonRowSerializationSchema needs with_type_info().")
            return JsonRowSerializationSchema(self._type_info)
