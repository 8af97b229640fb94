"""The format of segments: blocks of changes, each with a JSON header and typed columns.

Reading headers runs no code. Reading a column runs code only if its encoding is ``pickle``: its type
is unknown, or its values do not fit the declared type. Blocks of savepoints may have encoded rows of
the rocksdb backend in place of columns. These contain no pickles.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import accumulate, chain, pairwise
from typing import Any

import pyarrow as pa

from firesteel.common.typeinfo import (
    BasicArrayTypeInfo,
    BasicTypeInfo,
    ListTypeInfo,
    MapTypeInfo,
    ObjectArrayTypeInfo,
    PrimitiveArrayTypeInfo,
    RowTypeInfo,
    TupleTypeInfo,
    TypeInformation,
    Types,
)
from firesteel.common.typeinfo.basic import BasicType
from firesteel.common.typeinfo.temporal import DateTypeInfo, TimestampTypeInfo, TimeTypeInfo
from firesteel.common.types import RowKind, new_rows
from firesteel.errors import TypeMismatchError
from firesteel.state.changelog import CorruptSegmentError
from firesteel.state.changes import ChangeKind, Changes, EncodedRows
from firesteel.state.rocksdb.rows import RowFormat
from firesteel.state.table_descriptions import TableDescription, describe_table, table_of
from firesteel.state.type_descriptions import describe_type, type_of
from firesteel.state.value_keys import hashable_key
from firesteel.usercode import pickling
from firesteel.usercode.unpicklable import unpicklable_record

PICKLE, ARROW, ROWS = "pickle", "arrow", "rows"

# Types whose values survive a conversion to Arrow and back.
_EXACT = frozenset(BasicType) - {BasicType.BIG_INT, BasicType.BIG_DEC, BasicType.INSTANT}
_TEMPORAL = (DateTypeInfo, TimeTypeInfo, TimestampTypeInfo)
_SEQUENCES = (ListTypeInfo, BasicArrayTypeInfo, ObjectArrayTypeInfo)
_KINDS = tuple(RowKind)


Watch = Callable[[str, bytes], None]
"""Is told the table and the bytes of every pickled column that may name classes."""


def encode_column(
    values: list[Any], type_info: TypeInformation | None, watch: Callable[[bytes], object] = len
) -> tuple[str, bytes]:
    """Encode a column, and return the encoding and the bytes.

    watch: is told about a pickle that may name classes.
    """
    if type_info is not None and has_arrow_form(type_info):
        try:
            return ARROW, _write(_to_arrow(values, type_info))
        except (pa.ArrowException, TypeError, UnicodeEncodeError, OverflowError):
            # Arrow rejects some values, for example a lone surrogate. They are pickled.
            pass
    try:
        payload, may_name_classes = pickling.dumps_watched(values)
    except Exception as error:
        raise unpicklable_record(error, values, what="value in the state") from error
    if may_name_classes:
        watch(payload)
    return PICKLE, payload


def decode_column(
    encoding: str, payload: bytes | memoryview, type_info: TypeInformation | None
) -> list[Any]:
    if encoding == PICKLE:
        values: list[Any] = pickling.loads(payload)
        return values
    assert type_info is not None
    return _from_arrow(_read(payload), type_info)


def has_arrow_form(type_info: TypeInformation) -> bool:
    """True if values of the type survive a conversion to Arrow and back."""
    if isinstance(type_info, BasicTypeInfo):
        return type_info.basic_type in _EXACT
    if isinstance(type_info, RowTypeInfo | TupleTypeInfo):
        # Arrow has no struct without fields. A row has at least the field for its kind.
        fields = type_info.get_field_types()
        return all(map(has_arrow_form, fields)) and bool(
            fields or isinstance(type_info, RowTypeInfo)
        )
    if isinstance(type_info, MapTypeInfo):
        return has_arrow_form(type_info.get_key_type()) and has_arrow_form(
            type_info.get_value_type()
        )
    if isinstance(type_info, PrimitiveArrayTypeInfo):
        return True
    if isinstance(type_info, _SEQUENCES):
        # A list of BYTE may be a bytes object, and Arrow would lose the difference.
        element = type_info.get_element_type()
        is_bytes = isinstance(element, BasicTypeInfo) and element.basic_type is BasicType.BYTE
        return not is_bytes and has_arrow_form(element)
    return isinstance(type_info, _TEMPORAL)


def _to_arrow(values: list[Any], type_info: TypeInformation) -> pa.Array:
    if isinstance(type_info, RowTypeInfo | TupleTypeInfo):
        return _rows_to_arrow(values, type_info)
    if isinstance(type_info, _SEQUENCES):
        return _lists_to_arrow(values, lambda flat: _to_arrow(flat, type_info.get_element_type()))
    if isinstance(type_info, MapTypeInfo):
        keys = _lists_to_arrow(values, lambda flat: _to_arrow(flat, type_info.get_key_type()))
        elements = _lists_to_arrow(
            [None if value is None else list(value.values()) for value in values],
            lambda flat: _to_arrow(flat, type_info.get_value_type()),
        )
        return pa.StructArray.from_arrays([keys, elements], names=["keys", "values"])
    return pa.array(values, type_info.to_arrow_type())


def _from_arrow(array: pa.Array, type_info: TypeInformation) -> list[Any]:
    if isinstance(type_info, RowTypeInfo | TupleTypeInfo):
        return _rows_from_arrow(array, type_info)
    if isinstance(type_info, _SEQUENCES):
        return _lists_from_arrow(
            array, lambda flat: _from_arrow(flat, type_info.get_element_type())
        )
    if isinstance(type_info, MapTypeInfo):
        keys = _lists_from_arrow(
            array.field("keys"), lambda flat: _from_arrow(flat, type_info.get_key_type())
        )
        elements = _lists_from_arrow(
            array.field("values"), lambda flat: _from_arrow(flat, type_info.get_value_type())
        )
        return [
            None if names is None else dict(zip(names, inner, strict=True))
            for names, inner in zip(keys, elements, strict=True)
        ]
    values: list[Any] = array.to_pylist()
    return values


def _rows_to_arrow(values: list[Any], type_info: RowTypeInfo | TupleTypeInfo) -> pa.Array:
    absent = [value is None for value in values]
    mask = pa.array(absent) if any(absent) else None
    columns = [
        _to_arrow([None if value is None else value[position] for value in values], field)
        for position, field in enumerate(type_info.get_field_types())
    ]
    if isinstance(type_info, RowTypeInfo):
        kinds = [None if row is None else row.get_row_kind().value for row in values]
        columns.append(pa.array(kinds, pa.int8()))
    names = [f"f{position}" for position in range(len(columns))]
    return pa.StructArray.from_arrays(columns, names=names, mask=mask)


def _rows_from_arrow(array: pa.Array, type_info: RowTypeInfo | TupleTypeInfo) -> list[Any]:
    fields = type_info.get_field_types()
    columns = [_from_arrow(array.field(position), field) for position, field in enumerate(fields)]
    if isinstance(type_info, RowTypeInfo):
        kinds = [_KINDS[kind or 0] for kind in array.field(len(fields)).to_pylist()]
        records = map(list, zip(*columns, strict=True)) if columns else ([] for _ in kinds)
        rows: list[Any] = list(new_rows(records, type_info.get_field_names(), kinds))
    else:
        rows = list(zip(*columns, strict=True))
    if not array.null_count:
        return rows
    present = array.is_valid().to_pylist()
    return [row if here else None for row, here in zip(rows, present, strict=True)]


def _lists_to_arrow(values: list[Any], inner: Callable[[list[Any]], pa.Array]) -> pa.Array:
    offsets: list[int | None] = []
    end = 0
    for value in values:
        # In Arrow, a missing offset stands for a missing list.
        offsets.append(None if value is None else end)
        end += 0 if value is None else len(value)
    offsets.append(end)
    flat = inner(list(chain.from_iterable(value for value in values if value is not None)))
    return pa.LargeListArray.from_arrays(pa.array(offsets, pa.int64()), flat)


def _lists_from_arrow(array: pa.Array, inner: Callable[[pa.Array], list[Any]]) -> list[Any]:
    flat = inner(array.flatten())
    results: list[Any] = []
    start = 0
    for length in array.value_lengths().to_pylist():
        results.append(None if length is None else flat[start : start + length])
        start += length or 0
    return results


def _write(array: pa.Array) -> bytes:
    batch = pa.record_batch([array], names=["c"])
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    payload: bytes = sink.getvalue().to_pybytes()
    return payload


def _read(payload: bytes | memoryview) -> pa.Array:
    with pa.ipc.open_stream(pa.py_buffer(payload)) as reader:
        return reader.read_next_batch().column(0)


_MAGIC = b"FSTEEL1\n"
_LENGTH = struct.Struct("<II")
_LONG = Types.LONG()

_CODEC = "zstd"
# Compressing a smaller body does not save enough.
_SMALLEST_COMPRESSED = 512


def encode_changes(
    changes: Iterable[Changes | EncodedRows],
    descriptions: Mapping[str, TableDescription],
    key_type: TypeInformation | None,
    *,
    compress: bool = False,
    watch: Watch | None = None,
) -> Iterator[bytes]:
    """The content of a segment, chunk by chunk."""
    yield _MAGIC
    for block in changes:
        yield _encode_block(block, descriptions[block.table], key_type, compress, watch)


def _encode_block(
    changes: Changes | EncodedRows,
    table: TableDescription,
    key_type: TypeInformation | None,
    compress: bool,
    watch: Watch | None,
) -> bytes:
    if isinstance(changes, EncodedRows):
        change = ChangeKind.PUT
        encoded = [("rows", ROWS, _packed(changes.rows)), ("values", ROWS, _packed(changes.values))]
    else:
        told: Callable[[bytes], object] = len if watch is None else partial(watch, changes.table)
        change = changes.kind
        columns = _columns(changes, table, key_type)
        encoded = [(name, *encode_column(values, kind, told)) for name, values, kind in columns]
    body = b"".join(payload for _, _, payload in encoded)
    facts = {
        "table": changes.table,
        "change": change.value,
        "description": describe_table(table),
        "key_type": None if key_type is None else describe_type(key_type),
        "columns": [(name, encoding, len(payload)) for name, encoding, payload in encoded],
    }
    if compress and len(body) >= _SMALLEST_COMPRESSED:
        facts["compression"] = _CODEC
        body = pa.compress(body, _CODEC, asbytes=True)
    header = json.dumps(facts, separators=(",", ":")).encode()
    return _LENGTH.pack(len(header), len(body)) + header + body


def decode_changes(payload: bytes) -> Iterator[tuple[Changes, TableDescription]]:
    """The inverse of ``encode_changes``. Encoded rows are decoded."""
    for part, table in decode_parts(payload):
        yield part if isinstance(part, Changes) else _decode_rows(part, table), table


def decode_parts(payload: bytes) -> Iterator[tuple[Changes | EncodedRows, TableDescription]]:
    """The inverse of ``encode_changes``."""
    for header, body, _ in _blocks(payload):
        yield _decode_block(header, _decompressed(header, body))


def _packed(items: Sequence[bytes]) -> bytes:
    count = len(items)
    return struct.pack(f"<I{count}I", count, *map(len, items)) + b"".join(items)


def _unpacked(column: memoryview) -> list[bytes]:
    (count,) = struct.unpack_from("<I", column)
    lengths = struct.unpack_from(f"<{count}I", column, 4)
    content = bytes(column[4 + 4 * count :])
    return [content[start:end] for start, end in pairwise(accumulate(lengths, initial=0))]


def _decode_rows(part: EncodedRows, table: TableDescription) -> Changes:
    rows = RowFormat(0, table, 1)
    # The file may come from anywhere, and decoding other rows could run code.
    if not rows.are_plain(part.rows, part.values):
        raise CorruptSegmentError(
            f"encoded rows of the state '{part.table}' contain more than text, numbers and times"
        )
    keys, elements = rows.columns(zip(part.rows, part.values, strict=True))
    return Changes(part.table, ChangeKind.PUT, keys, elements)


def joined(payloads: Iterable[bytes]) -> Iterator[bytes]:
    """The content of one segment with the changes of several, in order. Nothing is decoded."""
    yield _MAGIC
    for payload in payloads:
        _check_signature(payload)
        yield payload[len(_MAGIC) :]


def only_tables(payload: bytes, wanted: Callable[[str], bool]) -> Iterator[bytes]:
    """The content reduced to the blocks of the wanted tables. Columns are not decoded."""
    yield _MAGIC
    for header, _, block in _blocks(payload):
        if wanted(header["table"]):
            yield bytes(block)


def _blocks(payload: bytes) -> Iterator[tuple[dict[str, Any], memoryview, memoryview]]:
    """The blocks: header, body, and the bytes of both."""
    _check_signature(payload)
    view = memoryview(payload)
    start = len(_MAGIC)
    while start < len(view):
        header_length, body_length = _LENGTH.unpack_from(view, start)
        header_start = start + _LENGTH.size
        body_start = header_start + header_length
        end = body_start + body_length
        header = json.loads(bytes(view[header_start:body_start]))
        yield header, view[body_start:end], view[start:end]
        start = end


def _check_signature(payload: bytes) -> None:
    if payload[: len(_MAGIC)] != _MAGIC:
        raise CorruptSegmentError(
            "the content of a state segment does not begin with Firesteel's file signature"
        )


def _decompressed(header: dict[str, Any], body: memoryview) -> memoryview:
    codec = header.get("compression")
    if codec is None:
        return body
    size = sum(length for _, _, length in header["columns"])
    return memoryview(pa.decompress(body, size, codec))


def converted(changes: Changes, table: TableDescription) -> Changes:
    """The changes with elements and entries converted to their declared types.

    Returns the same object if no conversion was necessary.
    """
    elements = _convert(changes, changes.elements, table.element_type, pairs=table.ttl)
    entries = _convert(changes, changes.entries, table.entry_type)
    if elements is changes.elements and entries is changes.entries:
        return changes
    return Changes(changes.table, changes.kind, changes.keys, elements, changes.lengths, entries)


def _convert(
    changes: Changes,
    values: list[Any] | None,
    type_info: TypeInformation | None,
    *,
    pairs: bool = False,
) -> list[Any] | None:
    if values is None or type_info is None or type_info.is_pickled:
        return values
    bare = [value for value, _ in values] if pairs else values
    try:
        result = type_info.convert_batch(bare, nullable=True)
    except TypeMismatchError as error:
        error.reason = f"{error.reason} It was stored in the state '{changes.table}'."
        raise
    if result is bare:
        return values
    if not pairs:
        return result
    return [(value, stamp) for value, (_, stamp) in zip(result, values, strict=True)]


_Column = tuple[str, list[Any], TypeInformation | None]


def _columns(
    changes: Changes, table: TableDescription, key_type: TypeInformation | None
) -> Iterator[_Column]:
    if table.namespaced:
        yield "keys", [key for key, _ in changes.keys], key_type
        yield "namespaces", [namespace for _, namespace in changes.keys], None
    else:
        yield "keys", changes.keys, key_type
    if changes.lengths is not None:
        yield "lengths", changes.lengths, _LONG
    if changes.entries is not None:
        yield "entries", changes.entries, table.entry_type
    if changes.elements is None:
        return
    if table.ttl:
        yield "elements", [element for element, _ in changes.elements], table.element_type
        yield "stamps", [stamp for _, stamp in changes.elements], _LONG
    else:
        yield "elements", changes.elements, table.element_type


def _decode_block(
    header: dict[str, Any], body: memoryview
) -> tuple[Changes | EncodedRows, TableDescription]:
    table = table_of(header["description"])
    if header["columns"][0][1] == ROWS:
        middle = header["columns"][0][2]
        return EncodedRows(
            header["table"], _unpacked(body[:middle]), _unpacked(body[middle:])
        ), table
    key_type = None if header["key_type"] is None else type_of(header["key_type"])
    types = {
        "keys": key_type,
        "lengths": _LONG,
        "entries": table.entry_type,
        "elements": table.element_type,
        "stamps": _LONG,
    }
    columns: dict[str, list[Any]] = {}
    position = 0
    for name, encoding, length in header["columns"]:
        columns[name] = decode_column(encoding, body[position : position + length], types.get(name))
        position += length
    keys, elements = columns["keys"], columns.get("elements")
    if key_type is not None and not isinstance(key_type, BasicTypeInfo):
        keys = list(map(hashable_key, keys))
    if table.namespaced:
        keys = list(zip(keys, columns["namespaces"], strict=True))
    if elements is not None and table.ttl:
        elements = list(zip(elements, columns["stamps"], strict=True))
    changes = Changes(
        header["table"],
        ChangeKind(header["change"]),
        keys,
        elements,
        columns.get("lengths"),
        columns.get("entries"),
    )
    return changes, table


def pickled_columns(payload: bytes) -> Iterator[tuple[str, str, memoryview]]:
    """Table, name and bytes of every pickled column. Columns are not decoded."""
    for header, packed, _ in _blocks(payload):
        body = _decompressed(header, packed)
        start = 0
        for name, encoding, length in header["columns"]:
            if encoding == PICKLE:
                yield header["table"], name, body[start : start + length]
            start += length
