"""The content of a segment: blocks of changes, each with a JSON header and typed columns.

Reading the headers runs no code. A column does only if it says ``pickle``: its type is unknown,
or its values do not fit the declared one.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import pyarrow as pa

from firesteel.common.typeinfo import TypeInformation, Types
from firesteel.errors import TypeMismatchError
from firesteel.state.changelog import CorruptSegmentError
from firesteel.state.changes import ChangeKind, Changes
from firesteel.state.columns import PICKLE, decode_column, encode_column
from firesteel.state.tables import TableDescription
from firesteel.state.type_descriptions import describe_table, describe_type, table_of, type_of

_MAGIC = b"FSTEEL1\n"
_LENGTH = struct.Struct("<II")
_LONG = Types.LONG()

_CODEC = "zstd"
# Of a smaller body compression saves nothing that counts.
_SMALLEST_COMPRESSED = 512


def encode_changes(
    changes: Iterable[Changes],
    descriptions: Mapping[str, TableDescription],
    key_type: TypeInformation | None,
    *,
    compress: bool = False,
) -> Iterator[bytes]:
    """A segment's content, chunk by chunk."""
    yield _MAGIC
    for block in changes:
        yield _encode_block(block, descriptions[block.table], key_type, compress)


def _encode_block(
    changes: Changes, table: TableDescription, key_type: TypeInformation | None, compress: bool
) -> bytes:
    columns = list(_columns(changes, table, key_type))
    encoded = [(name, *encode_column(values, kind)) for name, values, kind in columns]
    body = b"".join(payload for _, _, payload in encoded)
    facts = {
        "table": changes.table,
        "change": changes.kind.value,
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
    """The way back from ``encode_changes``."""
    for header, body, _ in _blocks(payload):
        yield _decode_block(header, _decompressed(header, body))


def only_tables(payload: bytes, wanted: Callable[[str], bool]) -> Iterator[bytes]:
    """The same content, but only the blocks of some tables; no column is opened."""
    yield _MAGIC
    for header, _, block in _blocks(payload):
        if wanted(header["table"]):
            yield bytes(block)


def _blocks(payload: bytes) -> Iterator[tuple[dict[str, Any], memoryview, memoryview]]:
    """Header, body, and the bytes of both, of one block after the other."""
    view = memoryview(payload)
    if bytes(view[: len(_MAGIC)]) != _MAGIC:
        raise CorruptSegmentError("this is not a state segment of Firesteel")
    start = len(_MAGIC)
    while start < len(view):
        header_length, body_length = _LENGTH.unpack_from(view, start)
        header_start = start + _LENGTH.size
        body_start = header_start + header_length
        end = body_start + body_length
        header = json.loads(bytes(view[header_start:body_start]))
        yield header, view[body_start:end], view[start:end]
        start = end


def _decompressed(header: dict[str, Any], body: memoryview) -> memoryview:
    codec = header.get("compression")
    if codec is None:
        return body
    size = sum(length for _, _, length in header["columns"])
    return memoryview(pa.decompress(body, size, codec))


def converted(changes: Changes, table: TableDescription) -> Changes:
    """The changes with elements and entries as their declared types want them.

    The same object comes back if nothing had to be converted.
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


def _decode_block(header: dict[str, Any], body: memoryview) -> tuple[Changes, TableDescription]:
    table = table_of(header["description"])
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
    """Table, column and bytes of every column that is a pickle; none of them is opened."""
    for header, packed, _ in _blocks(payload):
        body = _decompressed(header, packed)
        start = 0
        for name, encoding, length in header["columns"]:
            if encoding == PICKLE:
                yield header["table"], name, body[start : start + length]
            start += length
