"""Buffers round-trip, and are compressed where that pays."""

import random

import pytest

from firesteel.task.exchange.buffers import BufferEncoder, decode_buffer
from firesteel.task.record_batch import RecordBatch
from firesteel.usercode import pickling

_LONG = ["a record with some text in it " * 40] * 50 + [f"{i:0500d}" for i in range(200)]
_NOISE = [random.Random(7).randbytes(300_000)]


@pytest.mark.parametrize("values", [[1, 2, 3], _LONG, _NOISE], ids=["small", "text", "noise"])
@pytest.mark.parametrize("stamped", [True, False])
def test_every_buffer_is_read_back(values, stamped):
    keys = list(range(len(values)))
    timestamps = list(range(len(values))) if stamped else None
    payload, _ = BufferEncoder().encode(RecordBatch(values, timestamps, keys))
    batch = decode_buffer(payload)
    assert (batch.values, batch.keys, batch.timestamps) == (values, keys, timestamps)


def test_text_travels_compressed_and_is_measured_uncompressed():
    payload, size = BufferEncoder().encode(RecordBatch(_LONG))
    assert len(payload) < size / 2
    assert size == len(pickling.dumps((_LONG, None, None)))


def test_what_does_not_shrink_is_sent_as_it_is_and_tried_again_later():
    encoder = BufferEncoder()
    plain, size = encoder.encode(RecordBatch(_NOISE))
    assert len(plain) == size
    tries = [len(encoder.encode(RecordBatch(_LONG))[0]) for _ in range(32)]
    assert tries[0] > 2 * tries[-1]
