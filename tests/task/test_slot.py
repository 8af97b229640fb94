"""A slot: epochs, retries, restores, aborts, and rows that only pass through."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest

from firesteel.datastream import StreamExecutionEnvironment
from firesteel.datastream.functions import MapFunction
from firesteel.errors import JobExecutionError, UserFunctionError
from firesteel.master.rate_control import RateControl
from firesteel.protocol.messages import (
    ReadBudget,
    SlotAck,
    SlotControl,
    SlotFailure,
    VertexMetrics,
    decode,
)
from firesteel.protocol.program import JobProgram, PackedProgram
from firesteel.protocol.rows import (
    ABORTED,
    ACK,
    DATA,
    END_OF_EPOCH,
    FAILURE,
    HEADER,
    OUTPUT,
    BufferRow,
    rows_of,
)
from firesteel.task.slot import Slot, control_row
from firesteel.testing import ScriptedSource
from firesteel.usercode import pickling
from tests.job_masters import started_master


class Life(MapFunction):
    """Class attributes: what all copies in this process went through."""

    events: list[str] = []

    def open(self, runtime_context: Any) -> None:
        self.events.append("open")

    def map(self, value: Any) -> Any:
        if value == "bad":
            raise ValueError("bad record")
        return value

    def close(self) -> None:
        self.events.append("close")


class Job:
    """script -> key_by -> fold (level 1) -> map -> global -> print (level 2), one slot each."""

    def __init__(self, script: Iterable[Any]) -> None:
        Life.events = []
        env = StreamExecutionEnvironment().set_parallelism(1)
        stream = env.from_source(ScriptedSource(script), None, "script")
        counted = stream.key_by(lambda v: v).fold(0, lambda count, _: count + 1)
        counted.union(stream).map(Life()).global_().print()
        job = env._compile("job")
        assert job.levels.slots == (1, 1, 1)
        program = JobProgram("job", "the job", 0, job.levels)
        self.packed = PackedProgram.pack(program)
        self.master = started_master(program, RateControl(1.0, max_records=3))
        self.slots = [self.new_slot(level) for level in range(3)]

    def new_slot(self, level: int) -> Slot:
        return Slot(self.packed.unpack(), level, 0)

    def plan(self) -> list[SlotControl]:
        self.master.delay(0.0)
        return list(self.master.plan_epoch(0.0).controls)

    def run(
        self, level: int, control: SlotControl, rows: list[BufferRow], **options: Any
    ) -> list[BufferRow]:
        own = control if level == 0 else None
        batches = self.slots[level].run_epoch(control.address, rows, own, **options)
        return [row for batch in batches for row in rows_of(batch)]

    def run_all(self, controls: list[SlotControl]) -> list[list[BufferRow]]:
        """The rows that each level gives."""
        outputs: list[list[BufferRow]] = []
        rows: list[BufferRow] = []
        for level, control in enumerate(controls):
            rows = self.run(level, control, rows)
            if level == 0:
                rows = [*map(control_row, controls[1:]), *rows]
            outputs.append(rows)
        return outputs

    def epoch(self) -> list[str]:
        """Run an epoch through all levels; what was printed."""
        rows = self.run_all(self.plan())[-1]
        self.end(rows)
        return _printed(rows)

    def end(self, rows: list[BufferRow]) -> None:
        acks = [decode(row.payload) for row in rows if row.kind == ACK]
        failures = [decode(row.payload) for row in rows if row.kind == FAILURE]
        self.master.epoch_ended(acks, failures, 0.0)


def _printed(rows: list[BufferRow]) -> list[str]:
    return [line for row in rows if row.kind == OUTPUT for line in pickling.loads(row.payload)]


def _comparable(rows: list[BufferRow]) -> list[Any]:
    """Rows without what differs between two runs: their times, and their number in headers."""

    def content(row: BufferRow) -> Any:
        if row.kind != ACK:
            return row.payload
        ack: SlotAck = decode(row.payload)
        return [replace(subtask, metrics=VertexMetrics()) for subtask in ack.subtasks]

    return [
        (*row[:3], None if row.kind == HEADER else row.seq, row.kind, content(row)) for row in rows
    ]


def test_epochs_go_on_from_each_other():
    job = Job(["a", "a", "b", "a", "b"])
    assert sorted(job.epoch()) == sorted(["1", "2", "1", "a", "a", "b"])
    assert sorted(job.epoch()) == sorted(["3", "2", "a", "b"])
    assert Life.events == ["open"]


@pytest.mark.parametrize("level", [0, 1, 2])
@pytest.mark.parametrize("process", ["same", "another"])
def test_a_task_that_runs_again_gives_the_same_rows(level, process):
    job = Job(["a", "a", "b", "a", "b"])
    job.epoch()
    controls = job.plan()
    outputs = job.run_all(controls)
    if process == "another":
        job.slots[level] = job.new_slot(level)
    again = job.run(level, controls[level], outputs[level - 1] if level else [])
    if level == 0:
        again = [*map(control_row, controls[1:]), *again]
    assert _comparable(again) == _comparable(outputs[level])


def test_a_slot_whose_last_run_was_not_the_confirmed_one_restores():
    job, undisturbed = Job(["a", "b"] * 5), Job(["a", "b"] * 5)
    expected = [undisturbed.epoch() for _ in range(3)]
    assert job.epoch() == expected[0]
    controls = job.plan()
    used = job.run_all(controls)[-1]
    # An attempt that Spark has given up ends late, and it has read less than the one that counts.
    late = replace(controls[0], budget=ReadBudget(1, 60.0))
    job.run(0, late, [])
    job.end(used)
    assert _printed(used) == expected[1]
    assert job.epoch() == expected[2]


def test_an_epoch_that_mixes_two_runs_of_a_slot_is_refused():
    job = Job(["a", "b"] * 5)
    controls = job.plan()
    used = job.run_all(controls)[-1]
    again = job.run(0, controls[0], [])
    mixed = [
        row for row in used if not (row.kind == ACK and decode(row.payload).address.level == 0)
    ]
    mixed += [row for row in again if row.kind == ACK]
    with pytest.raises(JobExecutionError, match="after its output had been used"):
        job.end(mixed)


@pytest.mark.parametrize("level", [0, 1, 2])
@pytest.mark.parametrize("after", [1, 2, 5])
def test_what_an_attempt_left_behind_that_broke_off_does_not_show(level, after):
    job, undisturbed = Job(["a", "a", "b", "a", "b"]), Job(["a", "a", "b", "a", "b"])
    expected = [undisturbed.epoch() for _ in range(2)]
    assert job.epoch() == expected[0]
    controls = job.plan()
    rows = [] if level == 0 else job.run_all(controls)[level - 1]
    slot = job.slots[level]
    slot._batcher.limit = 1
    attempt = slot.run_epoch(controls[level].address, rows, None if level else controls[0])
    for _ in range(after):
        next(attempt, None)
    attempt.close()
    outputs = job.run_all(controls)
    assert _printed(outputs[-1]) == expected[1]


def test_input_that_breaks_off_is_a_failure_and_the_next_attempt_is_right():
    job = Job(["a", "a", "b"])
    controls = job.plan()
    outputs = job.run_all(controls)

    def breaking():
        yield from outputs[0][:-2]
        raise ConnectionResetError("the input broke off")

    slot = job.slots[1]
    batches = list(slot.run_epoch(controls[1].address, breaking(), None))
    rows = [row for batch in batches for row in rows_of(batch)]
    assert [row.kind for row in rows if row.kind in (ACK, FAILURE)].count(FAILURE) == 1
    again = job.run(1, controls[1], outputs[0])
    assert _comparable(again) == _comparable(outputs[1])


def test_a_new_slot_restores_from_the_handles_in_its_control_row():
    job = Job(["a", "a", "b", "a"])
    job.epoch()
    job.slots[1] = job.new_slot(1)
    assert sorted(job.epoch()) == ["3", "a"]


def test_a_slot_that_missed_an_epoch_restores():
    job = Job(["a"] * 9)
    job.epoch()
    stale = job.slots[1]
    job.slots[1] = job.new_slot(1)
    job.epoch()
    job.slots[1] = stale
    assert "9" in job.epoch()


def test_rows_before_the_control_row_wait_for_it():
    job = Job(["a", "a", "b"])
    controls = job.plan()
    outputs = job.run_all(controls)
    is_own = [row.kind == 1 and row.edge == 1 for row in outputs[0]]
    late = [row for row, own in zip(outputs[0], is_own, strict=True) if not own]
    late += [row for row, own in zip(outputs[0], is_own, strict=True) if own]
    job.slots[1] = job.new_slot(1)
    again = job.run(1, controls[1], late)
    assert sorted(_comparable(again), key=str) == sorted(_comparable(outputs[1]), key=str)


def test_a_missing_control_row_is_a_failure():
    job = Job(["a"])
    controls = job.plan()
    rows = job.run(0, controls[0], [])
    (failure,) = [decode(r.payload) for r in job.run(1, controls[1], rows) if r.kind == FAILURE]
    assert isinstance(failure.error, JobExecutionError)
    assert "control row of epoch 1 is missing" in str(failure.error)


def test_rows_for_later_levels_and_for_the_driver_pass_untouched():
    job = Job(["a", "b"])
    controls = job.plan()
    outputs = job.run_all(controls)
    ack_of_0 = [row for row in outputs[0] if row.kind == ACK]
    control_of_2 = [row for row in outputs[0] if row.kind == 1 and row.edge == 2]
    assert ack_of_0
    assert control_of_2
    for row in (*ack_of_0, *control_of_2):
        assert row in outputs[1]
    assert {decode(r.payload).address.level for r in outputs[2] if r.kind == ACK} == {0, 1, 2}
    assert {row.kind for row in outputs[2]} == {ACK, OUTPUT}


def test_every_block_begins_with_a_header():
    job = Job(["a"])
    controls = job.plan()
    rows = job.run(0, controls[0], [])
    assert rows[0].kind == HEADER
    assert decode(rows[0].payload) == controls[0].address


def test_a_failure_is_told_to_the_driver_and_to_everyone_downstream():
    job = Job(["a", "bad"])
    controls = job.plan()
    outputs = job.run_all(controls)
    (failure,) = [decode(row.payload) for row in outputs[-1] if row.kind == FAILURE]
    assert isinstance(failure, SlotFailure)
    assert failure.address.level == 1
    error = failure.error
    assert isinstance(error, UserFunctionError)
    assert (error.job, error.operator, error.record) == ("the job", "Map", "'bad'")
    ends = [row.payload for row in outputs[1] if row.kind == END_OF_EPOCH]
    assert ends == [ABORTED]
    # The slot behind it says nothing of its own: no ack, no failure.
    levels = [decode(row.payload).address.level for row in outputs[2] if row.kind == ACK]
    assert levels == [0]
    assert _printed(outputs[2]) == []


def test_functions_are_closed_after_a_failure():
    job = Job(["a", "bad"])
    job.end(job.run_all(job.plan())[-1])
    assert Life.events == ["open"]
    closing = job.plan()
    assert all(control.close for control in closing)
    job.run_all(closing)
    assert Life.events == ["open", "close"]
    assert all(slot.closed for slot in job.slots)


def test_errors_can_be_raised_instead():
    job = Job(["bad"])
    controls = job.plan()
    outputs = job.run_all(controls)
    job.slots[1] = job.new_slot(1)
    with pytest.raises(UserFunctionError, match="bad record"):
        job.run(1, controls[1], outputs[0], raise_errors=True)
    assert job.slots[1].closed
    assert Life.events[-1] == "close"


def test_a_lost_row_is_a_failure():
    job = Job(["a", "b"])
    controls = job.plan()
    rows = job.run_all(controls)[0]
    job.slots[1] = job.new_slot(1)
    lost = [row for row in rows if row.kind != DATA]
    (failure,) = [decode(r.payload) for r in job.run(1, controls[1], lost) if r.kind == FAILURE]
    assert "expected buffer 0" in str(failure.error)


def test_the_last_epoch_of_a_finished_job_closes_the_functions():
    job = Job(["a"])
    while not job.master.status.is_terminal_state():
        job.epoch()
    assert Life.events == ["open", "close"]


def test_a_finished_subtask_does_not_finish_twice_after_a_restore():
    from firesteel.task.operators.base import Operator

    finishes: list[str] = []
    job = Job(["a"])
    finish = Operator.finish

    def count(operator: Operator) -> None:
        finishes.append(operator.name)
        finish(operator)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Operator, "finish", count)
        job.epoch()
        before = list(finishes)
        assert before.count("Map") == 1
        job.slots = [job.new_slot(level) for level in range(3)]
        job.epoch()
        assert [name for name in finishes if name == "Map"] == ["Map"]


def test_several_sources_of_a_slot_share_the_time_of_an_epoch(monkeypatch):
    from firesteel.task.operators.source import SourceOperator

    env = StreamExecutionEnvironment().set_parallelism(1)
    streams = [env.from_source(ScriptedSource([n]), None, f"s{n}") for n in range(3)]
    streams[0].union(*streams[1:]).print()
    program = JobProgram("job", "job", 0, env._compile("job").levels)
    seconds = []

    def read_epoch(self, budget):
        seconds.append(budget.seconds)
        return iter(())

    monkeypatch.setattr(SourceOperator, "read_epoch", read_epoch)
    master = started_master(program, RateControl(3.0))
    (control,) = master.plan_epoch(0.0).controls
    list(Slot(program, 0, 0).run_epoch(control.address, [], control))
    assert seconds == [1.0, 1.0, 1.0]
