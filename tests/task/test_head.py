"""Heads of subtasks: each kind of input behind one interface."""

from __future__ import annotations

from typing import Any

import pytest

from firesteel.datastream import StreamExecutionEnvironment
from firesteel.errors import ChannelSequenceError, JobExecutionError
from firesteel.protocol.program import JobProgram
from firesteel.task.head import GateHead, SubtaskHead
from firesteel.task.operators.iteration import IterationHead
from firesteel.task.operators.source import SourceHead
from firesteel.task.slot_wiring import SlotWiring, wire_slot
from firesteel.task.subtask import Subtask


def wired(program: Any, level: int) -> SlotWiring:
    environment = StreamExecutionEnvironment().set_parallelism(1)
    program(environment)
    job = environment._compile("heads")
    return wire_slot(JobProgram("heads", "heads", 0, job.levels), level, 0, lambda _: None)


def heads(program: Any, level: int) -> list[SubtaskHead]:
    return [subtask.head for subtask in wired(program, level).subtasks.values()]


def source_and_reduce(environment: StreamExecutionEnvironment) -> None:
    environment.from_collection([1, 2]).key_by(lambda n: n % 2).reduce(max).print()


def test_a_source_reads_and_begins_time() -> None:
    (head,) = heads(source_and_reduce, 0)
    assert isinstance(head, SourceHead)
    assert (head.reads, head.is_origin) == (True, True)


def test_an_operator_after_an_exchange_is_fed_by_its_gate() -> None:
    (head,) = heads(source_and_reduce, 1)
    assert type(head) is GateHead
    assert (head.reads, head.is_origin, head.finished) == (False, False, False)


def test_a_gate_must_have_heard_from_all_channels_at_the_end_of_an_epoch() -> None:
    (head,) = heads(source_and_reduce, 1)
    with pytest.raises(ChannelSequenceError):
        head.end_epoch(last=False)


def test_the_head_of_a_loop_reads_and_has_a_gate() -> None:
    def loop(environment: StreamExecutionEnvironment) -> None:
        iteration = environment.from_collection([3]).iterate()
        step = iteration.map(lambda n: n - 1)
        iteration.close_with(step.filter(lambda n: n > 0))
        step.print()

    found = [head for level in (0, 1) for head in heads(loop, level) if isinstance(head, GateHead)]
    assert any(isinstance(head, IterationHead) and head.reads for head in found)


def test_only_a_dataframe_source_takes_rows_of_spark() -> None:
    subtask: Subtask
    (subtask,) = wired(source_and_reduce, 1).subtasks.values()
    with pytest.raises(JobExecutionError, match="reads no DataFrame"):
        subtask.accept_external(b"")
