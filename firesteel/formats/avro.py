"""Avro: files of generic records, and messages that are rows.

A generic record is a dict, as in PyFlink. A file consists of blocks with a marker before each of
them, so several subtasks can share it. A position is the offset of a block, and the number of
records that were read from it.
"""

from __future__ import annotations

import datetime as dt
import io
import json
from collections.abc import Callable, Iterator, Sequence
from operator import attrgetter
from pathlib import Path
from types import ModuleType
from typing import Any, BinaryIO

import pyarrow as pa

from firesteel.common.serialization import (
    BulkWriter,
    BulkWriterFactory,
    DeserializationSchema,
    SerializationSchema,
)
from firesteel.common.typeinfo import PickledBytesTypeInfo, RowTypeInfo, TypeInformation, Types
from firesteel.common.types import Row, RowKind, new_row
from firesteel.errors import ConfigurationError, NeverSupportedError, shorten
from firesteel.formats.base import (
    BrokenRecord,
    BrokenRecords,
    BulkFormat,
    FilePart,
    RecordReader,
)
from firesteel.stability import public_evolving

__all__ = [
    "AvroBulkWriters",
    "AvroReaderFormat",
    "AvroRowDeserializationSchema",
    "AvroRowSerializationSchema",
    "AvroSchema",
    "GenericRecordAvroTypeInfo",
    "decode_message",
    "encode_message",
]

_HEADER = {
    "type": "record",
    "name": "Header",
    "fields": [
        {"name": "magic", "type": {"type": "fixed", "name": "magic", "size": 4}},
        {"name": "meta", "type": {"type": "map", "values": "bytes"}},
        {"name": "sync", "type": {"type": "fixed", "name": "sync", "size": 16}},
    ],
}
_MAGIC = b"Obj\x01"
_SYNC_BYTES = 16
_SEARCH_BYTES = 256 * 1024


def _fastavro() -> ModuleType:
    try:
        import fastavro
    except ImportError:
        raise ConfigurationError(
            "Avro needs the package fastavro: pip install 'firesteel[avro]'"
        ) from None
    module: ModuleType = fastavro
    return module


class AvroSchema:
    """The schema of Avro records.

    >>> from firesteel.datastream.formats.avro import AvroSchema
    >>> schema = AvroSchema.parse_string('{"type": "array", "items": "int"}')
    >>> print(schema)
    {"type": "array", "items": "int"}
    """

    def __init__(self, definition: Any) -> None:
        self._definition = definition
        # Parsing checks the schema. Schemas that fastavro has parsed cannot be pickled to all
        # versions of it, so the definition is kept.
        self._parsed = _fastavro().parse_schema(definition)

    @staticmethod
    def parse_string(json_schema: str) -> AvroSchema:
        """Read a schema from JSON.

        Args:
            json_schema: The schema.
        """
        return AvroSchema(json.loads(json_schema))

    @staticmethod
    def parse_file(file_path: str) -> AvroSchema:
        """Read a schema from a file with JSON.

        Args:
            file_path: The path of the file.

        >>> from pathlib import Path
        >>> from firesteel.datastream.formats.avro import AvroSchema
        >>> size = Path("numbers.avsc").write_text('{"type": "array", "items": "int"}')
        >>> print(AvroSchema.parse_file("numbers.avsc"))
        {"type": "array", "items": "int"}
        """
        return AvroSchema.parse_string(Path(file_path).read_text(encoding="utf-8"))

    @property
    @public_evolving
    def definition(self) -> Any:
        """The schema as Python objects. Not in PyFlink.

        >>> from firesteel.datastream.formats.avro import AvroSchema
        >>> AvroSchema.parse_string('"int"').definition
        'int'
        """
        return self._definition

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AvroSchema) and self._definition == other.definition

    def __hash__(self) -> int:
        return hash(str(self))

    def __str__(self) -> str:
        return json.dumps(self._definition)

    def __repr__(self) -> str:
        return f"AvroSchema({self})"

    def __reduce__(self) -> tuple[Any, ...]:
        return AvroSchema, (self._definition,)


_parsed_of = attrgetter("_parsed")


class GenericRecordAvroTypeInfo(PickledBytesTypeInfo):
    """The type of generic records, which are dicts.

    Args:
        schema: The schema of the records.

    >>> from firesteel.datastream.formats.avro import AvroSchema, GenericRecordAvroTypeInfo
    >>> schema = AvroSchema.parse_string('{"type": "map", "values": "int"}')
    >>> records = env.from_collection([{"a": 1}])
    >>> typed = records.map(lambda record: record, GenericRecordAvroTypeInfo(schema))
    >>> list(typed.execute_and_collect())
    [{'a': 1}]
    """

    def __init__(self, schema: AvroSchema) -> None:
        self._schema = schema

    def to_arrow_type(self) -> pa.DataType:
        return arrow_type_of(self._schema.definition, {})

    def __eq__(self, other: object) -> bool:
        return isinstance(other, GenericRecordAvroTypeInfo) and self._schema == other._schema

    def __hash__(self) -> int:
        return hash(self._schema)

    def __repr__(self) -> str:
        return f"GenericRecordAvroTypeInfo({self._schema})"


# Types


_LOGICAL_TYPES: dict[str, tuple[Callable[[], TypeInformation], pa.DataType]] = {
    "date": (Types.SQL_DATE, pa.date32()),
    "time-millis": (Types.SQL_TIME, pa.time32("ms")),
    "time-micros": (Types.SQL_TIME, pa.time64("us")),
    "timestamp-millis": (Types.SQL_TIMESTAMP, pa.timestamp("ms", tz="UTC")),
    "timestamp-micros": (Types.SQL_TIMESTAMP, pa.timestamp("us", tz="UTC")),
    "local-timestamp-millis": (Types.SQL_TIMESTAMP, pa.timestamp("ms")),
    "local-timestamp-micros": (Types.SQL_TIMESTAMP, pa.timestamp("us")),
}
_PRIMITIVES: dict[str, tuple[Callable[[], TypeInformation], pa.DataType]] = {
    "null": (Types.PICKLED_BYTE_ARRAY, pa.null()),
    "boolean": (Types.BOOLEAN, pa.bool_()),
    "int": (Types.INT, pa.int32()),
    "long": (Types.LONG, pa.int64()),
    "float": (Types.FLOAT, pa.float32()),
    "double": (Types.DOUBLE, pa.float64()),
    "string": (Types.STRING, pa.string()),
    "enum": (Types.STRING, pa.string()),
    "bytes": (lambda: Types.PRIMITIVE_ARRAY(Types.BYTE()), pa.binary()),
    "fixed": (lambda: Types.PRIMITIVE_ARRAY(Types.BYTE()), pa.binary()),
}


def _resolve(schema: Any, named: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return the name of a type and its definition. A union with null is the other type."""
    if isinstance(schema, list):
        others = [one for one in schema if one != "null"]
        if len(others) != 1:
            return "union", {}
        return _resolve(others[0], named)
    if isinstance(schema, str):
        found = named.get(schema)
        return (schema, {}) if found is None else (found["type"], found)
    if isinstance(schema["type"], dict | list):
        return _resolve(schema["type"], named)
    if schema.get("name"):
        named[schema["name"]] = schema
        named[f"{schema.get('namespace', '')}.{schema['name']}".lstrip(".")] = schema
    return schema["type"], schema


def type_info_of(schema: Any, named: dict[str, Any]) -> TypeInformation:
    """Return the type of the values of a schema, as in Flink."""
    kind, definition = _resolve(schema, named)
    match kind:
        case "record" | "error":
            fields = definition["fields"]
            return Types.ROW_NAMED(
                [one["name"] for one in fields],
                [type_info_of(one["type"], named) for one in fields],
            )
        case "array":
            return Types.OBJECT_ARRAY(type_info_of(definition["items"], named))
        case "map":
            return Types.MAP(Types.STRING(), type_info_of(definition["values"], named))
        case "union":
            return Types.PICKLED_BYTE_ARRAY()
    logical = definition.get("logicalType")
    if logical == "decimal":
        return Types.BIG_DEC()
    return (_LOGICAL_TYPES.get(str(logical)) or _known(kind))[0]()


def arrow_type_of(schema: Any, named: dict[str, Any]) -> pa.DataType:
    """Return the type of a column with the values of a schema."""
    kind, definition = _resolve(schema, named)
    match kind:
        case "record" | "error":
            fields = definition["fields"]
            return pa.struct([(one["name"], arrow_type_of(one["type"], named)) for one in fields])
        case "array":
            return pa.list_(arrow_type_of(definition["items"], named))
        case "map":
            return pa.map_(pa.string(), arrow_type_of(definition["values"], named))
        case "union":
            raise TypeError(f"A column cannot have several types: {shorten(schema)}")
    logical = definition.get("logicalType")
    if logical == "decimal":
        return pa.decimal128(definition["precision"], definition.get("scale", 0))
    return (_LOGICAL_TYPES.get(str(logical)) or _known(kind))[1]


def _known(kind: str) -> tuple[Callable[[], TypeInformation], pa.DataType]:
    if kind not in _PRIMITIVES:
        raise TypeError(f"The Avro schema has an unknown type {kind!r}")
    return _PRIMITIVES[kind]


# Files


@public_evolving
class AvroReaderFormat(BulkFormat):
    """The format of Avro files whose records are dicts. Not in PyFlink.

    Several subtasks share a large file by blocks. A file may have been written with an older or
    newer schema, which Avro resolves.

    >>> import fastavro
    >>> from firesteel.datastream.connectors.file_system import FileSource
    >>> from firesteel.datastream.formats.avro import AvroReaderFormat, AvroSchema
    >>> text = '{"type": "record", "name": "P", "fields": [{"name": "age", "type": "int"}]}'
    >>> schema = AvroSchema.parse_string(text)
    >>> with open("people.avro", "wb") as file:
    ...     fastavro.writer(file, schema.definition, [{"age": 36}])
    >>> source = FileSource.for_bulk_file_format(
    ...     AvroReaderFormat.for_generic_record(schema), "people.avro"
    ... ).build()
    >>> stream = env.from_source(source, WatermarkStrategy.no_watermarks(), "people")
    >>> list(stream.execute_and_collect())
    [{'age': 36}]
    """

    is_splittable = True

    def __init__(self, schema: AvroSchema) -> None:
        self._schema = schema

    @staticmethod
    def for_generic_record(schema: AvroSchema) -> AvroReaderFormat:
        """Return the format for a schema.

        Args:
            schema: The schema of the records in the stream.
        """
        if not isinstance(schema, AvroSchema):
            raise TypeError(f"AvroReaderFormat needs an AvroSchema, got {schema!r}")
        return AvroReaderFormat(schema)

    def create_reader(
        self, file: BinaryIO, part: FilePart, position: Any, broken: BrokenRecords
    ) -> RecordReader:
        return _AvroReader(file, part, position, broken, self._schema)

    def get_produced_type(self) -> TypeInformation:
        return GenericRecordAvroTypeInfo(self._schema)

    def __repr__(self) -> str:
        return f"AvroReaderFormat.for_generic_record({self._schema})"


class _AvroReader(RecordReader):
    """Reads the blocks whose markers begin in the part."""

    def __init__(
        self,
        file: BinaryIO,
        part: FilePart,
        position: Sequence[int] | None,
        broken: BrokenRecords,
        schema: AvroSchema,
    ) -> None:
        self._file = file
        self._part = part
        self._broken = broken
        self._schema = schema
        self._records: list[Any] = []
        self._taken = 0
        # The offsets of the present block, and of the next one. None at the end.
        self._block = 0
        self._next: int | None = None
        self._blocks: Iterator[Any] | None = None
        try:
            self._header, self._sync = _read_header(file)
        except Exception as error:  # noqa: BLE001 - fastavro raises anything for garbage
            # One part reports the file. The others have nothing to read.
            broken.check_storage()
            if part.start == 0:
                self._report("the file is not a whole Avro file", error)
            return
        if position is None:
            self._next = self._find_block(part.start)
            self._block = self._next or 0
        else:
            self._block, skip = position
            self._next = self._block
            if skip:
                self._load()
                self._taken = skip

    def read(self, limit: int) -> list[Any]:
        while self._taken == len(self._records):
            if self._next is None:
                return []
            self._load()
        records = self._records[self._taken : self._taken + limit]
        self._taken += len(records)
        return records

    def _load(self) -> None:
        """Read the block at ``_next``, and find the next one."""
        assert self._next is not None
        self._block, self._records, self._taken = self._next, [], 0
        try:
            if self._blocks is None:
                stream = _Spliced(self._header, self._file, self._block)
                self._blocks = iter(_fastavro().block_reader(stream, _parsed_of(self._schema)))
            block = next(self._blocks, None)
            if block is None:
                self._next = None
                return
            self._records = list(block)
            self._next = self._file.tell()
        except Exception as error:  # noqa: BLE001 - fastavro raises anything for garbage
            self._report("a block of the Avro file is damaged", error)
            self._blocks = None
            self._next = self._find_block(self._block)
            return
        if self._next - _SYNC_BYTES >= self._part.stop or self._next >= self._part.size:
            self._next = None

    def _find_block(self, start: int) -> int | None:
        """Return the offset of the block after the first marker from ``start`` on, or None."""
        offset, data = start, b""
        self._file.seek(start)
        while True:
            more = self._file.read(_SEARCH_BYTES)
            found = (data + more).find(self._sync)
            if found >= 0:
                marker = offset - len(data) + found
                block = marker + _SYNC_BYTES
                return block if marker < self._part.stop and block < self._part.size else None
            if not more or offset - _SYNC_BYTES >= self._part.stop:
                return None
            offset += len(more)
            data = (data + more)[-_SYNC_BYTES:]

    def _report(self, problem: str, error: BaseException) -> None:
        reason = f"{problem}: {str(error) or type(error).__name__}"
        self._broken.add(BrokenRecord(self._part.path, None, reason))

    def at_end(self) -> bool:
        return self._next is None and self._taken == len(self._records)

    def position(self) -> list[int]:
        if self._taken == len(self._records) and self._next is not None:
            return [self._next, 0]
        return [self._block, self._taken]

    def close(self) -> None:
        self._file.close()


def _read_header(file: BinaryIO) -> tuple[bytes, bytes]:
    """Return the header of a file, and the marker of its blocks."""
    file.seek(0)
    header = _fastavro().schemaless_reader(file, _HEADER, None)
    end = file.tell()
    if header["magic"] != _MAGIC:
        raise ValueError("it does not begin with the sign of Avro files")
    file.seek(0)
    return file.read(end), header["sync"]


class _Spliced:
    """The header of a file, followed by the file from an offset on."""

    def __init__(self, header: bytes, file: BinaryIO, offset: int) -> None:
        self._header = io.BytesIO(header)
        self._file = file
        file.seek(offset)

    def read(self, size: int = -1) -> bytes:
        return self._header.read(size) or self._file.read(size)

    def tell(self) -> int:
        return self._file.tell()


class AvroBulkWriters:
    """Writers of Avro files, for ``FileSink.for_bulk_format``.

    >>> from pathlib import Path
    >>> import fastavro
    >>> from firesteel.datastream.connectors.file_system import BucketAssigner, FileSink
    >>> from firesteel.datastream.formats.avro import AvroBulkWriters, AvroSchema
    >>> text = '{"type": "record", "name": "P", "fields": [{"name": "age", "type": "int"}]}'
    >>> schema = AvroSchema.parse_string(text)
    >>> sink = (
    ...     FileSink.for_bulk_format("out", AvroBulkWriters.for_generic_record(schema))
    ...     .with_bucket_assigner(BucketAssigner.base_path_bucket_assigner())
    ...     .build()
    ... )
    >>> stream = env.from_collection([{"age": 36}]).sink_to(sink)
    >>> result = env.execute()
    >>> [list(fastavro.reader(path.open("rb"))) for path in Path("out").glob("part-*")]
    [[{'age': 36}]]
    """

    @staticmethod
    def for_generic_record(schema: AvroSchema) -> BulkWriterFactory:
        """Return the factory of writers for dicts, or rows, that match a schema.

        Args:
            schema: The schema of the records.
        """
        return _AvroWriterFactory(schema)


class _AvroWriterFactory(BulkWriterFactory):
    def __init__(self, schema: AvroSchema) -> None:
        self._schema = schema

    def create(self, out: BinaryIO) -> BulkWriter:
        return _AvroWriter(out, self._schema)


class _AvroWriter(BulkWriter):
    def __init__(self, out: BinaryIO, schema: AvroSchema) -> None:
        from fastavro.write import Writer

        self._writer = Writer(out, _parsed_of(schema))

    def add_element(self, element: Any) -> None:
        self._writer.write(_plain(element))

    def finish(self) -> None:
        self._writer.flush()


def _plain(value: Any) -> Any:
    """Return a value that fastavro can write: rows become dicts, and times without a zone are UTC."""
    if isinstance(value, Row):
        return {name: _plain(one) for name, one in value.as_dict().items()}
    if isinstance(value, dict):
        return {key: _plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple) and not _is_named_union(value):
        return [_plain(one) for one in value]
    if isinstance(value, dt.datetime) and value.tzinfo is None:
        return value.replace(tzinfo=dt.UTC)
    return value


def _is_named_union(value: Any) -> bool:
    """Return True for fastavro's way to choose a branch of a union: a name and a value."""
    return isinstance(value, tuple) and len(value) == 2 and isinstance(value[0], str)


# Messages


def decode_message(
    message: bytes, written_with: AvroSchema, read_as: AvroSchema | None = None
) -> Any:
    """Return the value of a message, by Avro's rules for a writer's and a reader's schema."""
    reader = None if read_as is None else _parsed_of(read_as)
    try:
        return _fastavro().schemaless_reader(io.BytesIO(message), _parsed_of(written_with), reader)
    except Exception as error:
        raise ValueError(
            f"The message {shorten(message)} is not an Avro record of {read_as or written_with}: "
            f"{str(error) or type(error).__name__}"
        ) from error


def encode_message(value: Any, schema: AvroSchema) -> bytes:
    """Return the bytes of a row, a dict or a different value."""
    out = io.BytesIO()
    _fastavro().schemaless_writer(out, _parsed_of(schema), _plain(value))
    return out.getvalue()


class AvroRowDeserializationSchema(DeserializationSchema):
    """Makes a row of a message that is an Avro record.

    Args:
        record_class: Not supported: it names a Java class.
        avro_schema_string: The schema of the record, as JSON.

    >>> from firesteel.datastream.formats.avro import (
    ...     AvroRowDeserializationSchema,
    ...     AvroRowSerializationSchema,
    ... )
    >>> text = '{"type": "record", "name": "P", "fields": [{"name": "age", "type": "int"}]}'
    >>> message = AvroRowSerializationSchema(avro_schema_string=text).serialize(Row(36))
    >>> AvroRowDeserializationSchema(avro_schema_string=text).deserialize(message)
    Row(age=36)
    """

    def __init__(
        self, record_class: str | None = None, avro_schema_string: str | None = None
    ) -> None:
        self._schema = _message_schema(
            "AvroRowDeserializationSchema", record_class, avro_schema_string
        )
        self._type_info = _row_type_of("AvroRowDeserializationSchema", self._schema)
        self._to_row = _row_reader(self._schema.definition, {})

    def deserialize(self, message: bytes) -> Any:
        return self._to_row(decode_message(message, self._schema))

    def get_produced_type(self) -> TypeInformation:
        return self._type_info

    def __reduce__(self) -> tuple[Any, ...]:
        return AvroRowDeserializationSchema, (None, str(self._schema))


class AvroRowSerializationSchema(SerializationSchema):
    """Makes an Avro record of a row.

    Args:
        record_class: Not supported: it names a Java class.
        avro_schema_string: The schema of the record, as JSON.

    >>> from firesteel.datastream.formats.avro import AvroRowSerializationSchema
    >>> text = '{"type": "record", "name": "P", "fields": [{"name": "age", "type": "int"}]}'
    >>> AvroRowSerializationSchema(avro_schema_string=text).serialize(Row(age=36))
    b'H'
    """

    def __init__(
        self, record_class: str | None = None, avro_schema_string: str | None = None
    ) -> None:
        self._schema = _message_schema(
            "AvroRowSerializationSchema", record_class, avro_schema_string
        )
        self._type_info = _row_type_of("AvroRowSerializationSchema", self._schema)

    def serialize(self, element: Any) -> bytes:
        (row,) = self._type_info.convert_batch([element])
        return encode_message(row, self._schema)

    def __reduce__(self) -> tuple[Any, ...]:
        return AvroRowSerializationSchema, (None, str(self._schema))


def _message_schema(user: str, record_class: str | None, text: str | None) -> AvroSchema:
    if record_class is not None:
        raise NeverSupportedError(
            f"{user}(record_class=...)", "it names a Java class; pass avro_schema_string"
        )
    if text is None:
        raise TypeError(f"{user} needs avro_schema_string.")
    return AvroSchema.parse_string(text)


def _row_type_of(user: str, schema: AvroSchema) -> RowTypeInfo:
    type_info = type_info_of(schema.definition, {})
    if not isinstance(type_info, RowTypeInfo):
        raise TypeError(f"{user} needs the schema of a record, got {schema}")
    return type_info


def _row_reader(schema: Any, named: dict[str, Any]) -> Callable[[Any], Any]:
    """Return the function that makes rows of the dicts of fastavro."""
    kind, definition = _resolve(schema, named)
    match kind:
        case "record" | "error":
            names = [one["name"] for one in definition["fields"]]
            readers = [_row_reader(one["type"], named) for one in definition["fields"]]

            def read_record(value: Any) -> Any:
                if value is None:
                    return None
                fields = [read(value[name]) for name, read in zip(names, readers, strict=True)]
                return new_row(fields, names, RowKind.INSERT)

            return read_record
        case "array":
            read_item = _row_reader(definition["items"], named)
            return lambda value: None if value is None else list(map(read_item, value))
        case "map":
            read_value = _row_reader(definition["values"], named)
            return lambda value: (
                None if value is None else {key: read_value(one) for key, one in value.items()}
            )
    if str(definition.get("logicalType")).startswith("timestamp"):
        # Timestamps of SQL have no zone.
        return lambda value: None if value is None else value.replace(tzinfo=None)
    return lambda value: value
