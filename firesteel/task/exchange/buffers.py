"""Buffers: many records of one channel as one binary value, compressed if that pays.

A buffer is a pickle of rows, or the message of Arrow's IPC format for columns, after a pickle of
their type. On its way through Spark a buffer is copied a dozen times, so large ones are worth a fast codec.
"""

from __future__ import annotations

import struct
from functools import lru_cache

import pyarrow as pa

from firesteel.common.columns import ColumnLayout
from firesteel.common.typeinfo import TypeInformation
from firesteel.common.types import RowKind
from firesteel.task.codegen.key_loops import KeySelection
from firesteel.task.column_batch import ColumnBatch, ColumnKeys
from firesteel.task.record_batch import RecordBatch
from firesteel.usercode import pickling

# A pickle begins with a different byte.
_COMPRESSED, _COLUMNS = b"Z", b"A"
_HEAD = struct.Struct("!cI")
_CODEC = pa.Codec("lz4_raw")

# Smaller buffers hold many small records. Pickling them costs more than copying the buffer.
_SMALLEST = 32 * 1024
# A buffer that compresses to more than this share is sent as it is, and so are the next ones.
_PAYS_BELOW = 0.8
_BUFFERS_SENT_PLAIN = 31
# Names of further columns. Columns of records may have the same names, but not these places.
_STAMPS, _KINDS = pa.field("timestamp", pa.int64()), pa.field("kind", pa.int8())
# Arrow computes faster with arrays that begin at such addresses.
_ALIGNMENT = 64


class BufferEncoder:
    """Encodes the buffers of one record writer, and learns whether compression pays for them."""

    def __init__(self) -> None:
        self._plain_left = 0

    def encode(self, batch: RecordBatch) -> tuple[bytes, int]:
        """Return the payload of a row, and its size without compression."""
        if isinstance(batch, ColumnBatch):
            payload = _columns_payload(batch)
        else:
            payload = pickling.dumps((batch.values, batch.sent_keys, batch.timestamps))
        size = len(payload)
        if size < _SMALLEST:
            return payload, size
        if self._plain_left:
            self._plain_left -= 1
            return payload, size
        packed = _CODEC.compress(payload, asbytes=True)
        if len(packed) > _PAYS_BELOW * size:
            self._plain_left = _BUFFERS_SENT_PLAIN
            return payload, size
        return _HEAD.pack(_COMPRESSED, size) + packed, size


def decode_buffer(
    payload: bytes, selection: KeySelection | ColumnKeys | None = None
) -> RecordBatch:
    """The batch in a buffer. ``selection`` computes its keys if they were not sent."""
    if payload[:1] == _COMPRESSED:
        _, size = _HEAD.unpack_from(payload)
        payload = _CODEC.decompress(memoryview(payload)[_HEAD.size :], size, asbytes=True)
    if payload[:1] == _COLUMNS:
        return _columns_in(payload, selection if isinstance(selection, ColumnKeys) else None)
    values, keys, timestamps = pickling.loads(payload)
    return RecordBatch(
        values, timestamps, keys, selection if isinstance(selection, KeySelection) else None
    )


def _columns_payload(batch: ColumnBatch) -> bytes:
    arrays, fields = batch.columns.columns, list(batch.layout.schema)
    stamps, kinds = batch.stamps, batch.kinds
    if stamps is not None:
        arrays.append(stamps)
        fields.append(_STAMPS)
    if kinds is not None:
        arrays.append(pa.array([kind.value for kind in kinds], pa.int8()))
        fields.append(_KINDS)
    names = tuple(batch.layout.schema.names)
    front = _front_of(batch.layout.type_info, names, stamps is not None, kinds is not None)
    message = pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields)).serialize()
    return b"".join((front, message))


@lru_cache(maxsize=64)
def _front_of(
    type_info: TypeInformation, _names: tuple[str, ...], has_stamps: bool, has_kinds: bool
) -> bytes:
    """Return the part of a buffer that describes its columns. Types of other names are equal."""
    described = pickling.dumps((type_info, has_stamps, has_kinds))
    size = _HEAD.size + len(described)
    padded = described + bytes(-size % _ALIGNMENT)
    return _HEAD.pack(_COLUMNS, len(padded)) + padded


@lru_cache(maxsize=64)
def _described(front: bytes) -> tuple[ColumnLayout, pa.Schema, bool, bool]:
    """Return the layout of the records, all columns, and if there are timestamps and kinds."""
    type_info, has_stamps, has_kinds = pickling.loads(front)
    layout = ColumnLayout(type_info)
    fields = [*layout.schema, *[_STAMPS] * has_stamps, *[_KINDS] * has_kinds]
    return layout, pa.schema(fields), has_stamps, has_kinds


def _columns_in(payload: bytes, keys: ColumnKeys | None) -> ColumnBatch:
    _, size = _HEAD.unpack_from(payload)
    begin = _HEAD.size + size
    layout, schema, has_stamps, has_kinds = _described(payload[_HEAD.size : begin])
    found = pa.ipc.read_record_batch(pa.py_buffer(payload).slice(begin), schema)
    arrays = found.columns
    kinds = list(map(RowKind, arrays.pop().to_pylist())) if has_kinds else None
    stamps = arrays.pop() if has_stamps else None
    columns = pa.RecordBatch.from_arrays(arrays, schema=layout.schema)
    return ColumnBatch(columns, layout, stamps, kinds, column_keys=keys)
