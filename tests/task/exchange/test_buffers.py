"""Buffers round-trip, and are compressed where that pays."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firesteel.common import Row, RowKind, Types
from firesteel.common.columns import ColumnLayout
from firesteel.task.column_batch import ColumnBatch
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


@given(
    rows=st.lists(st.tuples(st.none() | st.text(), st.none() | st.floats(allow_nan=False))),
    stamped=st.booleans(),
    kinds=st.booleans(),
    part=st.integers(0, 5),
)
def test_columns_are_read_back(rows, stamped, kinds, part):
    layout = ColumnLayout(Types.ROW_NAMED(["timestamp", "x"], [Types.STRING(), Types.DOUBLE()]))
    records = [Row(timestamp=text, x=number) for text, number in rows]
    sent = ColumnBatch(
        layout.columns_of(records),
        layout,
        list(range(len(rows))) if stamped else None,
        [RowKind(place % 4) for place in range(len(rows))] if kinds else None,
    ).part(min(part, len(rows)), len(rows))
    payload, _ = BufferEncoder().encode(sent)
    found = decode_buffer(payload)
    assert isinstance(found, ColumnBatch)
    assert repr(found.values) == repr(sent.values)
    assert found.timestamps == sent.timestamps
    assert [row.get_row_kind() for row in found.values] == [
        row.get_row_kind() for row in sent.values
    ]


def test_large_columns_are_compressed_too():
    layout = ColumnLayout(Types.STRING())
    sent = ColumnBatch(layout.columns_of(_LONG), layout)
    payload, size = BufferEncoder().encode(sent)
    assert len(payload) < size / 2
    assert decode_buffer(payload).values == _LONG
