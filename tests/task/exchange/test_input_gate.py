"""The input gate: no rows lost or repeated, watermarks, and the end of input."""

from __future__ import annotations

from typing import Any

import pytest

from firesteel.common.constants import MAX_WATERMARK, MIN_WATERMARK
from firesteel.errors import ChannelSequenceError
from firesteel.protocol.rows import (
    ABORTED,
    DATA,
    END_OF_EPOCH,
    FINISHED,
    IDLENESS,
    OPEN,
    WATERMARK,
    BufferRow,
)
from firesteel.task.exchange.input_gate import ACTIVE, IDLE, InputGate
from firesteel.task.record_batch import RecordBatch
from firesteel.usercode import pickling

_EDGE = 4


class Gate:
    """A gate with two channels, and what came through."""

    def __init__(self) -> None:
        self.received: list[tuple[Any, Any, Any]] = []
        self.watermarks: list[int] = []
        self.idleness: list[bool] = []
        self.gate = InputGate("reduce (1/2)", self.watermarks.append, self.idleness.append)
        for upstream in range(2):
            self.gate.add_channel(_EDGE, upstream, self._receive)
        self.gate.begin_epoch()

    def _receive(self, batch: RecordBatch) -> None:
        self.received.append((batch.values, batch.keys, batch.timestamps))

    def row(self, channel: int, seq: int, kind: int, payload: bytes) -> None:
        self.gate.accept(BufferRow(0, _EDGE, channel, seq, kind, payload))

    def data(self, channel: int, seq: int, *values: Any) -> None:
        self.row(channel, seq, DATA, pickling.dumps((list(values), None, None)))

    def watermark(self, channel: int, seq: int, watermark: int) -> None:
        self.row(channel, seq, WATERMARK, pickling.dumps(watermark))

    def end(self, channel: int, seq: int, payload: bytes = OPEN) -> None:
        self.row(channel, seq, END_OF_EPOCH, payload)


def test_rows_in_order_come_through():
    gate = Gate()
    gate.data(0, 0, "a")
    gate.data(1, 0, "b", "c")
    gate.data(0, 1, "d")
    gate.end(0, 2)
    gate.end(1, 1)
    gate.gate.check_complete()
    assert gate.received == [(["a"], None, None), (["b", "c"], None, None), (["d"], None, None)]
    assert gate.gate.records_in == 4
    assert gate.gate.bytes_in > 0


def test_a_missing_row_is_noticed():
    gate = Gate()
    gate.data(0, 0, "a")
    with pytest.raises(ChannelSequenceError, match=r"0 of edge 4 into reduce \(1/2\)") as caught:
        gate.data(0, 2, "c")
    assert (caught.value.expected, caught.value.actual) == (1, 2)


def test_a_row_that_comes_twice_is_noticed():
    gate = Gate()
    gate.data(0, 0, "a")
    with pytest.raises(ChannelSequenceError):
        gate.data(0, 0, "a")


def test_a_row_after_the_end_is_noticed():
    gate = Gate()
    gate.end(0, 0)
    with pytest.raises(ChannelSequenceError):
        gate.data(0, 1, "a")


def test_a_channel_that_never_ends_is_noticed():
    gate = Gate()
    gate.data(1, 0, "a")
    gate.end(0, 0)
    with pytest.raises(ChannelSequenceError, match="1 of edge 4") as caught:
        gate.gate.check_complete()
    assert (caught.value.expected, caught.value.actual) == (1, -1)


def test_every_epoch_counts_from_zero():
    gate = Gate()
    gate.data(0, 0, "a")
    gate.gate.begin_epoch()
    gate.data(0, 0, "b")
    assert gate.gate.records_in == 1


def test_the_watermark_is_the_lowest_of_all_channels():
    gate = Gate()
    gate.watermark(0, 0, 5)
    assert gate.watermarks == []
    gate.watermark(1, 0, 3)
    gate.watermark(1, 1, 9)
    gate.watermark(1, 2, 8)
    gate.watermark(0, 1, 7)
    assert gate.watermarks == [3, 5, 7]


def test_a_finished_channel_holds_no_watermark_back():
    gate = Gate()
    gate.end(0, 0, FINISHED)
    gate.watermark(1, 0, 4)
    assert gate.watermarks == [4]
    gate.watermark(1, 1, MAX_WATERMARK)
    assert gate.watermarks == [4, MAX_WATERMARK]


def test_it_has_finished_when_all_channels_have():
    gate = Gate()
    gate.end(0, 0, FINISHED)
    gate.end(1, 0)
    assert not gate.gate.finished
    gate.gate.begin_epoch()
    gate.end(0, 0, FINISHED)
    gate.end(1, 0, FINISHED)
    assert gate.gate.finished


def test_a_gate_without_channels_never_finishes():
    assert not InputGate("source", lambda _: None, lambda _: None).finished


def test_an_abort_is_heard_whatever_its_number():
    gate = Gate()
    gate.data(0, 0, "a")
    gate.end(0, 17, ABORTED)
    assert gate.gate.aborted
    gate.gate.begin_epoch()
    assert not gate.gate.aborted


def test_it_comes_back_as_it_was():
    gate = Gate()
    gate.watermark(0, 0, 5)
    gate.watermark(1, 0, 3)
    gate.end(1, 1, FINISHED)
    again = Gate()
    again.gate.restore(gate.gate.snapshot())
    assert again.gate.watermark == 5
    again.watermark(0, 0, 4)
    assert again.watermarks == []
    again.watermark(0, 1, 8)
    assert again.watermarks == [8]
    again.end(0, 2, FINISHED)
    assert again.gate.finished
    again.gate.restore(None)
    assert again.gate.watermark == MIN_WATERMARK
    assert not again.gate.finished


def test_local_channels_need_no_rows():
    gate = Gate()
    entrance = gate.gate.accept_local(_EDGE, 0)
    entrance.emit(RecordBatch(["a"], [1]))
    entrance.watermark(6)
    gate.watermark(1, 0, 6)
    entrance.end(True)
    gate.end(1, 1, FINISHED)
    gate.gate.check_complete()
    assert gate.received == [(["a"], None, [1])]
    assert gate.watermarks == [6, MAX_WATERMARK]
    assert gate.gate.finished


def test_nobody_waits_for_an_idle_channel():
    gate = Gate()
    gate.watermark(0, 0, 5)
    gate.row(1, 0, IDLENESS, IDLE)
    assert gate.watermarks == [5]
    again = Gate()
    again.gate.restore(gate.gate.snapshot())
    again.watermark(0, 0, 7)
    assert again.watermarks == [7]
    again.row(0, 1, IDLENESS, IDLE)
    assert again.idleness == [True]
    again.row(1, 0, IDLENESS, ACTIVE)
    assert again.idleness == [True, False]


def test_large_buffers_come_in_chunks_where_somebody_looks_at_the_clock():
    gate = Gate()
    looks: list[int] = []
    gate.gate.pace(lambda: looks.append(len(gate.received)))
    payload = (list(range(100)), list("k" * 100), list(range(100)))
    gate.row(0, 0, DATA, pickling.dumps(payload))
    assert [len(batch) for batch, _, _ in gate.received] == [1, 2, 4, 8, 16, 32, 37]
    for column in range(3):
        joined = [item for batch in gate.received for item in batch[column]]
        assert joined == payload[column]
    assert looks == list(range(1, 8))
