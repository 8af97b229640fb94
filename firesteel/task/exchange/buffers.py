"""Buffers: many records of one channel as one binary value, compressed if that pays.

On its way through Spark a buffer is copied a dozen times, so large ones are worth a fast codec.
"""

from __future__ import annotations

import struct

import pyarrow as pa

from firesteel.task.codegen.key_loops import KeySelection
from firesteel.task.record_batch import RecordBatch
from firesteel.usercode import pickling

# A pickle begins with a different byte.
_COMPRESSED = b"Z"
_HEAD = struct.Struct("!cI")
_CODEC = pa.Codec("lz4_raw")

# Smaller buffers hold many small records. Pickling them costs more than copying the buffer.
_SMALLEST = 32 * 1024
# A buffer that compresses to more than this share is sent as it is, and so are the next ones.
_PAYS_BELOW = 0.8
_BUFFERS_SENT_PLAIN = 31


class BufferEncoder:
    """Encodes the buffers of one record writer, and learns whether compression pays for them."""

    def __init__(self) -> None:
        self._plain_left = 0

    def encode(self, batch: RecordBatch) -> tuple[bytes, int]:
        """Return the payload of a row, and its size without compression."""
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
