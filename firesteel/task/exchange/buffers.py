"""Buffers: many records of one channel as one binary value, compressed where that pays.

On its way through Spark a buffer is copied a dozen times, so large ones are worth a fast codec.
"""

from __future__ import annotations

import struct

import pyarrow as pa

from firesteel.task.codegen.key_loops import KeySelection
from firesteel.task.record_batch import RecordBatch
from firesteel.usercode import pickling

# A pickle begins with another byte.
_COMPRESSED = b"Z"
_HEAD = struct.Struct("!cI")
_CODEC = pa.Codec("lz4_raw")

# Smaller buffers are many small records, whose pickling costs more than their copies.
_SMALLEST = 32 * 1024
# A buffer that stays larger than this share of itself is sent as it is, and so are the next ones.
_PAYS_BELOW = 0.8
_BUFFERS_SENT_PLAIN = 31


class BufferEncoder:
    """Of one record writer, whose records are alike: it remembers whether compressing pays."""

    def __init__(self) -> None:
        self._plain_left = 0

    def encode(self, batch: RecordBatch) -> tuple[bytes, int]:
        """The payload of a row, and how large it would be without compression."""
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


def decode_buffer(payload: bytes, selection: KeySelection | None = None) -> RecordBatch:
    """The batch in a buffer. ``selection`` computes its keys if they were not sent."""
    if payload[:1] == _COMPRESSED:
        _, size = _HEAD.unpack_from(payload)
        payload = _CODEC.decompress(memoryview(payload)[_HEAD.size :], size)
    values, keys, timestamps = pickling.loads(payload)
    return RecordBatch(values, timestamps, keys, selection)
