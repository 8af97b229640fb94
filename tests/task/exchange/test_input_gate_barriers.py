"""The classic picture: sources B and C into D, and B's barrier comes first.

B:  1 2 | 6 7        D sees   1 2 |B 6 7 3 4 5 |C
C:  3 4 5 |
"""

from typing import Any

import pytest

from firesteel.errors import JobExecutionError
from firesteel.protocol.rows import BARRIER, DATA, END_OF_EPOCH, OPEN, BufferRow
from firesteel.task.exchange.input_gate import InputGate
from firesteel.usercode import pickling

B, C = 0, 1


class Job:
    """D adds up what it gets. A checkpoint keeps D's state and the sources' positions."""

    def __init__(self, *, exactly_once: bool) -> None:
        self.state: list[int] = []
        self.checkpoint: list[int] = []
        self.exactly_once = exactly_once
        self._start()

    def _start(self) -> None:
        self.gate = InputGate(
            "D", lambda _: None, lambda _: None, self._take, exactly_once=self.exactly_once
        )
        for source in (B, C):
            self.gate.add_channel(0, source, lambda batch: self.state.extend(batch.values))
        self.gate.begin_epoch()
        self.seq = [0, 0]

    def _take(self, checkpoint_id: int) -> None:
        self.checkpoint = list(self.state)

    def send(self, source: int, *records: int) -> None:
        self._row(source, DATA, (list(records), None, None))

    def barrier(self, source: int, checkpoint_id: int = 1) -> None:
        self._row(source, BARRIER, checkpoint_id)

    def _row(self, source: int, kind: int, payload: Any) -> None:
        self.gate.accept(BufferRow(0, 0, source, self.seq[source], kind, pickling.dumps(payload)))
        self.seq[source] += 1

    def the_picture(self) -> None:
        self.send(B, 1, 2)
        self.barrier(B)
        self.send(B, 6, 7)
        self.send(C, 3, 4, 5)
        self.barrier(C)

    def crash_and_recover(self, *replayed: int) -> list[int]:
        """The state of the checkpoint; sources read again what is behind their barriers."""
        self.state = list(self.checkpoint)
        self._start()
        self.send(B, *replayed)
        return sorted(self.state)


def test_exactly_once_holds_back_what_is_behind_an_early_barrier() -> None:
    job = Job(exactly_once=True)
    job.the_picture()
    assert sorted(job.checkpoint) == [1, 2, 3, 4, 5]
    assert job.state == [1, 2, 3, 4, 5, 6, 7]
    assert job.crash_and_recover(6, 7) == [1, 2, 3, 4, 5, 6, 7]


def test_at_least_once_processes_it_at_once_and_a_recovery_doubles_it() -> None:
    job = Job(exactly_once=False)
    job.the_picture()
    assert sorted(job.checkpoint) == [1, 2, 3, 4, 5, 6, 7]
    assert job.crash_and_recover(6, 7) == [1, 2, 3, 4, 5, 6, 6, 7, 7]


def test_without_checkpoints_records_may_be_lost() -> None:
    job = Job(exactly_once=True)
    job.send(B, 1, 2, 6)
    job.send(C, 3, 4, 5)
    assert job.crash_and_recover(7) == [7]


def test_the_marks_behind_a_barrier_wait_as_well_and_every_epoch_starts_afresh() -> None:
    job = Job(exactly_once=True)
    job.barrier(B)
    job._row(B, END_OF_EPOCH, OPEN)
    job.barrier(C)
    aligned = [job.gate.barriers.aligned]
    job.gate.begin_epoch()
    job.seq = [0, 0]
    aligned.append(job.gate.barriers.aligned)
    job.barrier(B, 2)
    job.barrier(C, 2)
    aligned.append(job.gate.barriers.aligned)
    assert aligned == [1, None, 2]


def test_a_barrier_of_another_checkpoint_is_an_error() -> None:
    job = Job(exactly_once=True)
    job.barrier(B, 1)
    with pytest.raises(JobExecutionError, match="barrier 2 came where barrier 1 was expected"):
        job.barrier(C, 2)
