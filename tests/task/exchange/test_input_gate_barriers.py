"""Barriers at a gate: they are counted per channel. The slot decides which rows wait for them."""

from typing import Any

import pytest

from firesteel.errors import ChannelSequenceError, JobExecutionError
from firesteel.protocol.rows import BARRIER, DATA, END_OF_EPOCH, OPEN, BufferRow
from firesteel.task.exchange.input_gate import InputGate
from firesteel.usercode import pickling

B, C = 0, 1


class Gate:
    """A gate with two channels, and the sequence numbers of their rows."""

    def __init__(self, *, flowing: bool = False) -> None:
        self.received: list[int] = []
        self.gate = InputGate("D", lambda _: None, lambda _: None)
        self.gate.flowing = flowing
        for source in (B, C):
            self.gate.add_channel(0, source, lambda batch: self.received.extend(batch.values))
        self.gate.begin_epoch()
        self.seq = [0, 0]

    def send(self, source: int, *records: int) -> None:
        self._row(source, DATA, pickling.dumps((list(records), None, None)))

    def barrier(self, source: int, checkpoint_id: int = 1) -> None:
        self._row(source, BARRIER, pickling.dumps(checkpoint_id))

    def end(self, source: int) -> None:
        self._row(source, END_OF_EPOCH, OPEN)
        self.seq[source] = 0

    def _row(self, source: int, kind: int, payload: Any) -> None:
        self.gate.accept(BufferRow(0, 0, source, self.seq[source], kind, payload))
        self.seq[source] += 1


def test_a_checkpoint_is_aligned_when_all_barriers_are_there_and_every_epoch_starts_afresh() -> (
    None
):
    gate = Gate()
    gate.barrier(B)
    assert gate.gate.barriers.aligned is None
    gate.barrier(C)
    aligned = [gate.gate.barriers.aligned]
    gate.gate.begin_epoch()
    gate.seq = [0, 0]
    aligned.append(gate.gate.barriers.aligned)
    gate.barrier(B, 2)
    gate.barrier(C, 2)
    aligned.append(gate.gate.barriers.aligned)
    assert aligned == [1, None, 2]


def test_a_barrier_of_another_checkpoint_is_an_error() -> None:
    gate = Gate()
    gate.barrier(B, 1)
    with pytest.raises(JobExecutionError, match="barrier 2 came where barrier 1 was expected"):
        gate.barrier(C, 2)


def test_a_channel_sends_nothing_after_its_end() -> None:
    gate = Gate()
    gate.end(B)
    with pytest.raises(ChannelSequenceError):
        gate.send(B, 1)


def test_the_rows_of_the_next_epoch_may_follow_at_once_if_the_gate_is_flowing() -> None:
    gate = Gate(flowing=True)
    gate.send(B, 1)
    gate.end(B)
    gate.send(B, 2)
    gate.send(C, 3)
    gate.end(C)
    gate.gate.check_complete()
    gate.gate.begin_epoch()
    gate.send(B, 4)
    assert gate.received == [1, 2, 3, 4]
    with pytest.raises(ChannelSequenceError):
        gate.gate.check_complete()
