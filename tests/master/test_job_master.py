"""The job master as a state machine: events in, the next step out."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from firesteel.common.job_status import JobStatus
from firesteel.datastream import StreamExecutionEnvironment
from firesteel.datastream.connectors.base import SourceSplit
from firesteel.errors import JobExecutionError
from firesteel.master.decisions import CommitPrepared
from firesteel.master.job_status import JobState
from firesteel.master.rate_control import RateControl
from firesteel.protocol.execution import EpochPlan
from firesteel.protocol.messages import (
    ReadBudget,
    SlotAck,
    SlotControl,
    SlotFailure,
    SourceStatus,
    SubtaskAck,
    VertexMetrics,
)
from firesteel.protocol.program import JobProgram
from firesteel.state.changelog import Segment
from firesteel.testing import ScriptedSource
from tests.job_masters import started_master


class Job:
    """Source (1 subtask, level 0) -> reduce -> sink (2 subtasks, level 1)."""

    def __init__(self, *, batch: bool = False) -> None:
        env = StreamExecutionEnvironment().set_parallelism(2)
        source = env.from_source(ScriptedSource([1, 2]), None, "script").set_parallelism(1)
        source.key_by(lambda v: v).reduce(max).print()
        levels = env._compile("job").levels
        assert levels.slots == (1, 2)
        self.source, self.reduce = (vertex.id for vertex in levels.job_graph.vertices)
        self.print = levels.job_graph.vertices[1].operators[1]
        program = JobProgram("job", "job", 0, levels, batch=batch)
        self.state = JobState()
        self.master = started_master(program, RateControl(target_seconds=1.0), self.state)

    def status(self) -> JobStatus:
        """The status now. A call, because mypy takes an attribute that was compared as fixed."""
        return self.master.status

    def ack(
        self,
        control: SlotControl,
        *,
        finished: bool = False,
        available: bool = True,
        segments: dict[int, tuple[Segment, ...]] | None = None,
        committables: dict[int, tuple[Any, ...]] | None = None,
        user_metrics: dict[int, dict[str, Any]] | None = None,
        records: int = 0,
    ) -> SlotAck:
        address = control.address
        is_source = address.level == 0
        splits = () if finished else (SourceSplit("script", position=1),)
        status = SourceStatus(splits, available, 0.5, finished)
        subtask = SubtaskAck(
            vertex=self.source if is_source else self.reduce,
            subtask=address.slot,
            segments=segments or {},
            whole={},
            gate=f"gate {address.epoch}",
            sources={self.source: status} if is_source else {},
            committables=committables or {},
            finished=finished,
            watermark=0,
            metrics=VertexMetrics(records_in=records),
            user_metrics=user_metrics or {},
        )
        return SlotAck(address, "host:1", (subtask,))

    def acks(self, plan: EpochPlan, **options: Any) -> list[SlotAck]:
        return [self.ack(control, **options) for control in plan.controls]

    def epoch(self, now: float = 0.0, **options: Any) -> EpochPlan:
        plan = self.master.plan_epoch(now)
        self.master.epoch_ended(self.acks(plan, **options), [], now)
        return plan


def _failure(control: SlotControl, message: str) -> SlotFailure:
    return SlotFailure(control.address, JobExecutionError(message))


def _closing(plan: EpochPlan) -> set[bool]:
    return {plan.closing, *(control.close for control in plan.controls)}


def test_a_job_runs_from_its_first_epoch_until_its_slots_are_closed():
    job = Job()
    assert job.master.delay(0.0) == 0.0
    assert _closing(job.epoch()) == {False}
    assert job.status() is JobStatus.RUNNING
    assert _closing(job.epoch(finished=True)) == {False}
    assert job.status() is JobStatus.RUNNING
    assert job.master.delay(0.0) == 0.0
    last = job.epoch()
    assert _closing(last) == {True}
    assert {control.budget for control in last.controls} == {ReadBudget(0, 0.0)}
    assert job.status() is JobStatus.FINISHED
    assert job.master.delay(0.0) is None


def test_every_slot_of_every_level_gets_a_control():
    plan = Job().master.plan_epoch(0.0)
    assert [(c.address.level, c.address.slot) for c in plan.controls] == [(0, 0), (1, 0), (1, 1)]
    assert {c.address.epoch for c in plan.controls} == {1}
    assert [c.address.slot for c in plan.of_level(1)] == [0, 1]


def test_splits_go_to_the_slot_of_their_reader_once():
    job = Job()
    assert job.master.delay(0.0) == 0.0
    first = job.epoch()
    assert [c.new_splits for c in first.controls] == [
        {job.source: (SourceSplit("script", position=0),)},
        {},
        {},
    ]
    assert {c.complete_sources for c in first.controls} == {frozenset({job.source})}
    assert [c.new_splits for c in job.epoch().controls] == [{}, {}, {}]


def test_state_goes_back_to_the_subtask_it_came_from():
    job = Job()
    plan = job.master.plan_epoch(0.0)
    segment = Segment(1, full=False, size=1, inline=b"x")
    acks = [
        job.ack(control, segments={job.reduce: (segment,)} if control.address.slot else {})
        for control in plan.controls
    ]
    job.master.epoch_ended(acks, [], 0.0)
    handles = [c.handles for c in job.master.plan_epoch(0.0).controls]
    assert [list(by_vertex) for by_vertex in handles] == [[job.source], [job.reduce], [job.reduce]]
    assert handles[1][job.reduce].operators == {}
    assert handles[2][job.reduce].operators[job.reduce].segments == (segment,)
    assert handles[2][job.reduce].gate == "gate 1"


def test_committables_are_committed_with_the_next_epoch_and_then_forgotten():
    job = Job()
    plan = job.master.plan_epoch(0.0)
    acks = job.acks(plan, available=False)
    acks[2] = job.ack(plan.controls[2], committables={job.print: ("c",)})
    job.master.epoch_ended(acks, [], 0.0)
    assert job.master.delay(0.0) == 0.0
    assert job.master.committables() == {job.print: ["c"]}
    following = job.epoch(available=False)
    assert [c.committables for c in following.controls] == [{}, {}, {job.print: ("c",)}]
    assert job.master.committables() == {}
    assert [c.committables for c in job.master.plan_epoch(0.0).controls] == [{}, {}, {}]


def test_what_was_prepared_last_is_committed_as_the_slots_close():
    job = Job()
    plan = job.master.plan_epoch(0.0)
    acks = job.acks(plan, finished=True)
    acks[1] = job.ack(plan.controls[1], finished=True, committables={job.print: ("c",)})
    job.master.epoch_ended(acks, [], 0.0)
    last = job.master.plan_epoch(0.0)
    assert last.closing
    assert last.controls[1].committables == {job.print: ("c",)}


def test_a_failure_keeps_the_state_of_the_epoch_before():
    job = Job()
    job.epoch()
    plan = job.master.plan_epoch(0.0)
    failures = [_failure(plan.controls[2], "later"), _failure(plan.controls[0], "cause")]
    job.master.epoch_ended([job.ack(plan.controls[1])], failures, 0.0)
    assert job.status() is JobStatus.FAILING
    # The earliest level is the cause; the others follow from it.
    assert str(job.master.failure) == "cause"
    last = job.master.plan_epoch(0.0)
    assert _closing(last) == {True}
    assert last.controls[1].handles[job.reduce].gate == "gate 1"
    job.master.epoch_ended([], [], 0.0)
    # The restart strategy decides what follows.
    assert job.master.is_over
    assert job.status() is JobStatus.FAILING


def test_a_failure_between_epochs_closes_the_slots():
    job = Job()
    job.epoch()
    job.master.fail(JobExecutionError("the query died"))
    assert job.master.delay(0.0) == 0.0
    assert job.master.plan_epoch(0.0).closing


def test_cancel_between_epochs_closes_the_slots():
    job = Job()
    job.epoch()
    job.state.cancel()
    assert job.master.delay(0.0) == 0.0
    assert _closing(job.epoch()) == {True}
    assert job.status() is JobStatus.CANCELED


@pytest.mark.parametrize("ends", [JobStatus.CANCELED, JobStatus.FAILING])
def test_an_end_within_an_epoch_waits_for_it_and_then_closes_the_slots(ends):
    job = Job()
    job.epoch()
    plan = job.master.plan_epoch(0.0)
    if ends is JobStatus.CANCELED:
        job.state.cancel()
    else:
        job.master.fail(JobExecutionError("a sink in the driver failed"))
    acks = job.acks(plan, committables={job.print: ("c",)})
    job.master.epoch_ended(acks, [], 0.0)
    assert job.master.delay(0.0) == 0.0
    last = job.epoch()
    assert _closing(last) == {True}
    # What the epoch wrote is committed, and its state is what close() sees.
    assert last.controls[1].committables == {job.print: ("c",)}
    assert last.controls[1].handles[job.reduce].gate == "gate 2"
    assert job.master.is_over
    assert job.status() is ends


def test_cancel_before_the_first_epoch():
    job = Job()
    job.state.cancel()
    assert _closing(job.epoch()) == {True}
    assert job.status() is JobStatus.CANCELED


def test_cancel_after_the_end_changes_nothing():
    job = Job()
    job.epoch(finished=True)
    job.epoch()
    job.state.cancel()
    assert job.status() is JobStatus.FINISHED


def test_the_first_failure_counts():
    job = Job()
    job.epoch()
    job.master.fail(JobExecutionError("first"))
    job.master.fail(JobExecutionError("second"))
    assert str(job.master.failure) == "first"


def test_a_function_that_fails_to_close_fails_the_job():
    job = Job()
    job.epoch(finished=True)
    plan = job.master.plan_epoch(0.0)
    job.master.epoch_ended([], [_failure(plan.controls[1], "close")], 0.0)
    assert job.master.is_over
    assert job.status() is JobStatus.FAILING
    assert str(job.master.failure) == "close"


@pytest.mark.parametrize("ends", [JobStatus.CANCELED, JobStatus.FAILING])
def test_an_abandoned_attempt_is_over_at_once(ends):
    job = Job()
    job.epoch()
    if ends is JobStatus.CANCELED:
        job.state.cancel()
    else:
        job.master.fail(JobExecutionError("x"))
    job.master.abandon()
    assert job.master.is_over
    assert job.status() is ends
    assert job.master.delay(0.0) is None


@pytest.mark.parametrize(
    "change",
    [
        lambda acks: acks[:-1],
        lambda acks: [*acks, acks[0]],
        lambda acks: [acks[0], acks[1], acks[1]],
        lambda acks: [],
    ],
    ids=["missing", "too many", "twice", "none"],
)
def test_an_epoch_without_the_ack_of_every_slot_is_refused(change):
    job = Job()
    plan = job.master.plan_epoch(0.0)
    with pytest.raises(JobExecutionError, match="the job has 3"):
        job.master.epoch_ended(change(job.acks(plan)), [], 0.0)


def test_acks_of_another_epoch_are_refused():
    job = Job()
    old = job.epoch()
    job.master.plan_epoch(0.0)
    with pytest.raises(JobExecutionError, match="3 of them of a different epoch"):
        job.master.epoch_ended(job.acks(old), [], 0.0)


def test_idle_sources_say_when_the_next_epoch_is_due():
    job = Job()
    assert job.master.delay(9.0) == 0.0
    job.epoch(now=10.0, available=False)
    assert job.master.delay(10.0) == 0.5
    assert job.master.delay(10.4) == pytest.approx(0.1)
    assert job.master.delay(11.0) == 0.0


def test_an_epoch_is_due_when_the_next_timer_is():
    job = Job()
    assert job.master.delay(9.0) == 0.0
    acks = job.acks(job.master.plan_epoch(10.0), available=False)
    _, second, third = acks
    # By the clocks of the slots, which differ from the driver's and from each other.
    acks[1] = _with_timer(second, processing_time=1_000_000, next_timer=1_000_300)
    acks[2] = _with_timer(third, processing_time=500_000, next_timer=500_200)
    job.master.epoch_ended(acks, [], 10.0)
    assert job.master.delay(10.0) == pytest.approx(0.2)
    assert job.master.delay(10.3) == 0.0
    # Once it has fired, idle sources set the pace again.
    job.epoch(now=11.0, available=False)
    assert job.master.delay(11.0) == 0.5


def _with_timer(ack, *, processing_time, next_timer):
    subtasks = tuple(replace(subtask, next_timer=next_timer) for subtask in ack.subtasks)
    return replace(ack, processing_time=processing_time, subtasks=subtasks)


def test_the_budget_follows_what_epochs_take_from_the_second_on():
    # The first epoch also starts processes: it says nothing about records.
    job = Job()
    budgets = []
    for now in (0.0, 1.0, 2.0):
        plan = job.master.plan_epoch(now)
        budgets.append(plan.controls[0].budget.records)
        job.master.epoch_ended(job.acks(plan, records=budgets[-1]), [], now + 0.5)
    assert budgets == [budgets[0], budgets[0], 2 * budgets[0]]


def test_metrics_add_up_over_epochs_and_merge_over_subtasks():
    job = Job()
    metrics = {job.reduce: {"Reduce.n": {"kind": "counter", "count": 2}}}
    job.epoch(records=5, user_metrics=metrics)
    job.epoch(records=7, user_metrics=metrics)
    assert job.master.metrics.vertices[job.reduce, 1].records_in == 12
    assert job.master.metrics.epochs == 2
    assert job.master.metrics.hosts[job.reduce, 0] == "host:1"
    # The last value of each of the three subtasks.
    assert job.master.metrics.user_metrics() == {"Reduce.n": {"kind": "counter", "count": 6}}


def test_a_batch_is_one_epoch_that_reads_everything_and_closes():
    job = Job(batch=True)
    assert job.master.delay(0.0) == 0.0
    plan = job.master.plan_epoch(0.0)
    assert _closing(plan) == {True}
    assert plan.controls[0].budget.records > 10**12
    assert plan.controls[0].new_splits[job.source]
    acks = job.acks(plan, finished=True, committables={job.print: ("c",)})
    job.master.epoch_ended(acks, [], 0.0)
    assert job.master.take_decisions() == [CommitPrepared({job.print: ["c", "c", "c"]})]
    assert job.status() is JobStatus.RUNNING
    job.master.prepared_committed()
    assert job.status() is JobStatus.FINISHED
    assert job.master.delay(0.0) is None


def test_a_failed_batch_commits_nothing():
    job = Job(batch=True)
    plan = job.master.plan_epoch(0.0)
    job.master.epoch_ended([], [_failure(plan.controls[0], "x")], 0.0)
    assert job.master.take_decisions() == []
    assert job.master.is_over
    assert job.status() is JobStatus.FAILING


def test_a_batch_that_is_canceled_while_it_runs_commits_nothing():
    job = Job(batch=True)
    plan = job.master.plan_epoch(0.0)
    job.state.cancel()
    acks = job.acks(plan, finished=True, committables={job.print: ("c",)})
    job.master.epoch_ended(acks, [], 0.0)
    assert job.master.take_decisions() == []
    assert job.status() is JobStatus.CANCELED


def test_a_batch_that_is_canceled_before_it_runs_has_no_epoch():
    job = Job(batch=True)
    job.state.cancel()
    assert job.master.delay(0.0) is None
    assert job.status() is JobStatus.CANCELED
