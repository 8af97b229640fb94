"""The job master of one attempt: takes events, plans epochs and makes decisions.

It is pure: it has no thread and no clock and does no I/O. The job runner tells it what has happened
and when, has an executor run its plans, and carries its decisions out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from firesteel.checkpoint.metadata import CheckpointMetadata, SnapshotType
from firesteel.checkpoint.payload import Payload
from firesteel.checkpoint.rules.coordinator import CheckpointCoordinator
from firesteel.checkpoint.rules.decisions import Barrier
from firesteel.checkpoint.rules.requests import SnapshotRequest
from firesteel.common.job_status import JobStatus
from firesteel.connectors.base import SourceSplit
from firesteel.errors import FiresteelError, JobExecutionError
from firesteel.graph.operator_specs import DataFrameSourceSpec
from firesteel.graph.stream_graph import StreamNode
from firesteel.master.committables import Committables
from firesteel.master.decisions import CommitPrepared, EdgeDecision
from firesteel.master.driver_output import CollectedOutput
from firesteel.master.iterations import Iterations
from firesteel.master.job_checkpoints import JobCheckpoints, only_on_request
from firesteel.master.job_metrics import JobMetrics
from firesteel.master.job_status import JobState
from firesteel.master.rate_control import RateControl
from firesteel.master.source_coordinator import EnumeratorReport, SourceCoordinator
from firesteel.master.state_ledger import StateLedger
from firesteel.master.watermark_alignment import WatermarkAligner
from firesteel.protocol.execution import EpochPlan
from firesteel.protocol.messages import (
    ConfirmedRuns,
    OperatorHandle,
    ReadBudget,
    SlotAck,
    SlotAddress,
    SlotControl,
    SlotFailure,
    SubtaskHandle,
)
from firesteel.protocol.program import JobProgram, attempt_in_run


@dataclass(frozen=True, slots=True)
class StartingPoint:
    """State that an attempt begins with: nothing, or the content of a checkpoint."""

    checkpoint_id: int | None = None
    # Epochs continue to count: the segments of a log are ordered by them.
    epoch: int = 0
    handles: Mapping[tuple[int, int], SubtaskHandle] = field(default_factory=dict)
    # The committables of a subtask, by (vertex, subtask) and node.
    committables: Mapping[tuple[int, int], Mapping[int, tuple[Any, ...]]] = field(
        default_factory=dict
    )
    # Per source node: the state of the enumerator, and the number of splits of each reader.
    enumerators: Mapping[int, Payload] = field(default_factory=dict)
    splits: Mapping[int, tuple[int, ...]] = field(default_factory=dict)


_READ_NOTHING = ReadBudget(0, 0.0)
_READ_EVERYTHING = ReadBudget(records=1 << 62, seconds=float("inf"), to_the_end=True)
# Poll intervals, in seconds, for things that change without an event.
_WAIT_SECONDS = 0.05
_SPARK_SECONDS = 0.1
# Slots that write a savepoint are asked this often.
_SAVEPOINT_SECONDS = 0.1


class JobMaster:
    """Decides when an epoch is due, plans it, and takes the acknowledgments of its slots."""

    def __init__(
        self,
        program: JobProgram,
        sources: dict[int, SourceCoordinator],
        rate: RateControl,
        coordinator: CheckpointCoordinator | None = None,
        start: StartingPoint | None = None,
        collected: CollectedOutput | None = None,
        state: JobState | None = None,
    ) -> None:
        """``start`` is the state of the subtasks if the job continues from a checkpoint.

        ``collected`` is told which epochs are confirmed. ``state`` is the status of the job, which
        outlives its attempts.
        """
        self._program = program
        self._levels = program.levels
        self._graph = program.levels.job_graph
        self._sources = sources
        self._rate = rate
        self._aligner = WatermarkAligner(self._graph.nodes)
        self._ledger = StateLedger()
        self._iterations = Iterations(self._graph, self._ledger)
        self._committables = Committables()
        if start is not None:
            for (vertex_id, subtask), handle in start.handles.items():
                self._ledger.restore(vertex_id, subtask, handle)
            for place, prepared in start.committables.items():
                self._committables.prepared(0, place, prepared, wait=False)
        self.checkpoints = JobCheckpoints(
            coordinator or only_on_request(program),
            self._graph,
            self._ledger,
            sources,
            self._committables,
            collected or CollectedOutput(),
            periodic=program.checkpointed,
        )
        self._finished: dict[tuple[int, int], bool] = {
            (vertex.id, subtask): False
            for vertex in self._graph.vertices
            for subtask in range(vertex.parallelism)
        }
        self._dataframe_vertices = {
            vertex.id
            for vertex in self._graph.vertices
            if isinstance(self._graph.nodes[vertex.operators[0]].spec, DataFrameSourceSpec)
        }
        self._epoch = 0 if start is None else start.epoch
        # The runs of the last epoch.
        self._runs = ConfirmedRuns()
        # Committables in the control rows of the running epoch.
        self._carried: dict[tuple[int, int], dict[int, tuple[Any, ...]]] = {}
        # The running epoch closes the slots.
        self._closing = False
        self._planned_at: float | None = None
        self._last_ended_at = 0.0
        # Due time of the next processing-time timer of any subtask.
        self._next_timer_at: float | None = None
        self._state = state or JobState()
        # The slots are closed, or lost: this attempt plans no further epoch.
        self.is_over = False
        self.failure: FiresteelError | None = None
        self._decisions: list[EdgeDecision] = []
        names = {node.id: node.name for node in self._graph.nodes.values()}
        self.metrics = JobMetrics(names, self._levels)

    @property
    def status(self) -> JobStatus:
        return self._state.status

    # The next step

    def start(self) -> None:
        """The attempt begins. A job that was canceled before that stays so."""
        if self.status is JobStatus.CREATED:
            self._state.change(JobStatus.RUNNING)

    def take_decisions(self) -> list[EdgeDecision]:
        """Return the decisions since the last call, for the edge to carry out in order."""
        taken, self._decisions = [*self.checkpoints.take_for_edge(), *self._decisions], []
        return taken

    def delay(self, now: float) -> float | None:
        """Return the seconds until the next epoch is due, or None if no epoch follows.

        An event may change the answer. The call also makes decisions: see ``take_decisions``.
        """
        if self.is_over:
            return None
        self.checkpoints.expire(now)
        self._follow_checkpoints()
        if self._program.batch:
            return self._batch_delay(now)
        if self._is_ending():
            canceled = self.status is JobStatus.CANCELLING
            return self.checkpoints.give_up(now) if canceled else 0.0
        if self.checkpoints.must_wait:
            return _WAIT_SECONDS
        for source in self._sources.values():
            self._decisions += source.decide(now)
        first_answers = [source.until_first_answer(now) for source in self._sources.values()]
        if self._planned_at is None and any(first_answers):
            return max(first_answers)
        return self._epoch_delay(now)

    def _epoch_delay(self, now: float) -> float:
        """Return the seconds until an epoch has something to do."""
        delays = [
            delay
            for node, source in self._sources.items()
            if (delay := source.delay(self._aligner.delay(node, now))) is not None
        ]
        if self._all_finished() and self.checkpoints.needs_final():
            self.checkpoints.request_final(now)
        checkpoint = self.checkpoints.delay(now, self._finished_tasks())
        if checkpoint is not None:
            delays.append(checkpoint + (now - self._last_ended_at))
        if self.checkpoints.is_saving:
            delays.append(_SAVEPOINT_SECONDS)
        elif self._all_finished() and checkpoint != 0.0:
            # Only the last checkpoint is not written yet.
            return _WAIT_SECONDS
        if self._next_timer_at is not None:
            delays.append(max(0.0, self._next_timer_at - self._last_ended_at))
        delays += [at - self._last_ended_at for at in self._iterations.due_at(self._last_ended_at)]
        for source in self._sources.values():
            if (until := source.until_discovery(now)) is not None:
                delays.append(until + (now - self._last_ended_at))
        if not delays or self._spark_feeds():
            # A DataFrame source may have rows at any time.
            delays.append(_SPARK_SECONDS)
        soonest = min(delays)
        return max(0.0, soonest - (now - self._last_ended_at)) if soonest else 0.0

    def _batch_delay(self, now: float) -> float | None:
        """The one epoch of a batch job is due when all splits are known."""
        if self._is_ending():
            # Nothing has run yet, so no slot has to close.
            self._end()
            return None
        sources = [one for one in self._sources.values() if not one.has_found_everything]
        for source in sources:
            self._decisions += source.decide(now)
        if not sources:
            return 0.0
        waits = [wait for one in sources if (wait := one.until_discovery(now)) is not None]
        return min(waits, default=_SPARK_SECONDS)

    def plan_epoch(self, now: float) -> EpochPlan:
        """Plan the next epoch, which reads, or the last one, which closes the slots.

        The one epoch of a batch job reads everything, then closes.
        """
        self._planned_at = now
        self._epoch += 1
        if self._program.batch:
            return self._plan_batch()
        closing = self._closing = self._is_ending()
        barrier = None
        if closing:
            self.checkpoints.tell()
        else:
            barrier = self.checkpoints.plan(now, self._epoch, self._finished_tasks())
        self._carried = self._committables.carry()
        splits: dict[tuple[int, int], tuple[Any, ...]] = {}
        aligned = self._aligner.limits(now)
        ended_loops = self._iterations.plan(now)
        if not closing:
            for source in self._sources.values():
                for subtask, assigned in source.assign().items():
                    splits[source.node_id, subtask] = assigned
        return EpochPlan(
            self._epoch,
            tuple(
                self._control(
                    level,
                    slot,
                    splits,
                    closing=closing,
                    barrier=barrier,
                    aligned=aligned,
                    ended_loops=ended_loops,
                )
                for level, slots in enumerate(self._levels.slots)
                for slot in range(slots)
            ),
            closing,
            due_in=self._due_in(now),
        )

    def _due_in(self, now: float) -> float | None:
        """Return the seconds until there is something to do besides reading, as far as known."""
        delays = [at - now for at in self._iterations.due_at(now)]
        checkpoint = self.checkpoints.delay(now, self._finished_tasks())
        if checkpoint is not None:
            delays.append(checkpoint)
        discoveries = [source.until_discovery(now) for source in self._sources.values()]
        delays += [until for until in discoveries if until is not None]
        return max(0.0, min(delays)) if delays else None

    def _plan_batch(self) -> EpochPlan:
        self._closing = True
        splits = {
            (source.node_id, subtask): assigned
            for source in self._sources.values()
            for subtask, assigned in source.assign(everything=True).items()
        }
        return EpochPlan(
            self._epoch,
            tuple(
                self._control(level, slot, splits, closing=True, budget=_READ_EVERYTHING)
                for level, slots in enumerate(self._levels.slots)
                for slot in range(slots)
            ),
            closing=True,
        )

    def _control(
        self,
        level: int,
        slot: int,
        splits: dict[tuple[int, int], tuple[Any, ...]],
        *,
        closing: bool,
        budget: ReadBudget | None = None,
        barrier: Barrier | None = None,
        aligned: dict[int, int] | None = None,
        ended_loops: frozenset[int] = frozenset(),
    ) -> SlotControl:
        runs = self._runs.told_to(level, slot)
        program = self._program
        address = SlotAddress(program.job_id, program.attempt, level, slot, self._epoch, runs)
        handles, new_splits, committables, abandoned = {}, {}, {}, {}
        feedback: dict[int, dict[int, OperatorHandle]] = {}
        for vertex_id, subtask in self.subtasks_in(level, slot):
            handles[vertex_id] = self._ledger.handle(vertex_id, subtask)
            committables.update(self._carried.get((vertex_id, subtask), {}))
            feedback.update(self._iterations.feedback(vertex_id, subtask))
            if closing:
                abandoned.update(self.checkpoints.abandoned_by(vertex_id, subtask))
            for node in self._graph.vertex(vertex_id).operators:
                if (node, subtask) in splits:
                    new_splits[node] = splits[node, subtask]
        if budget is None:
            budget = _READ_NOTHING if closing else self._rate.budget()
        told = self.checkpoints.told
        return SlotControl(
            address=address,
            budget=budget,
            handles=handles,
            new_splits=new_splits,
            complete_sources=frozenset(
                node for node, source in self._sources.items() if source.is_complete()
            ),
            held_sources=frozenset(
                node for node, source in self._sources.items() if source.holds_time()
            ),
            aligned_watermarks=aligned or {},
            committables=committables,
            feedback=feedback,
            ended_loops=ended_loops,
            close=closing,
            checkpoint_id=None if barrier is None else barrier.checkpoint_id,
            checkpoint_timestamp=0 if barrier is None else barrier.timestamp,
            overtakes=program.unaligned
            and barrier is not None
            and barrier.type is SnapshotType.CHECKPOINT,
            drain=self.checkpoints.drains(),
            halt=barrier is not None and barrier.stop is not None,
            savepoint=None if barrier is None else self.checkpoints.order(),
            completed_checkpoint=told.completed,
            aborted_checkpoints=told.aborted,
            abandoned=abandoned,
        )

    def subtasks_in(self, level: int, slot: int) -> list[tuple[int, int]]:
        """Return (vertex, subtask) of everything that runs in a slot."""
        found = []
        for vertex in self._graph.vertices:
            subtask = slot - self._levels.slot_offset[vertex.slot_sharing_group]
            if self._levels.level_of[vertex.id] == level and 0 <= subtask < vertex.parallelism:
                found.append((vertex.id, subtask))
        return found

    # Events

    def splits_discovered(self, node: int, report: EnumeratorReport, now: float) -> None:
        self._sources[node].discovered(report, now)

    def positions_committed(self, node: int, report: EnumeratorReport) -> None:
        self._sources[node].reported(report)

    def pending_known(self, node: int, splits: Sequence[SourceSplit], pending: bool) -> None:
        self._sources[node].pending_known(splits, pending)

    def epoch_ended(
        self,
        acks: list[SlotAck],
        failures: list[SlotFailure],
        now: float,
        void: Sequence[SlotAck] = (),
    ) -> None:
        """All rows of an epoch have arrived. ``void`` are the acks of its earlier tries."""
        self._last_ended_at = now
        if failures:
            self.epoch_lost(_worst(failures), () if self._closing else (*void, *acks))
        if self._closing:
            if self._program.batch and self.status is JobStatus.RUNNING:
                self._batch_ended(acks)
            else:
                self._end()
            return
        if failures:
            return
        self._check_complete(acks)
        self._next_timer_at = _next_timer(acks, now)
        records_by_slot: dict[int, int] = {}
        for ack in acks:
            self._take(ack, records_by_slot)
        self.metrics.epoch_ended(acks, now)
        self._iterations.epoch_ended(acks, self._finished, now)
        # If the driver's part of the epoch has failed, no checkpoint may end with it.
        self.checkpoints.epoch_ended(acks, now, counts=self.failure is None)
        self._follow_checkpoints()
        self.metrics.epochs += 1
        # The first epoch also starts processes, so its duration says nothing about records.
        if self._planned_at is not None and self.metrics.epochs > 1:
            seconds = now - self._planned_at
            self.metrics.last_epoch_seconds = seconds
            self.metrics.longest_epoch_seconds = max(self.metrics.longest_epoch_seconds, seconds)
            self._rate.epoch_took(seconds, max(records_by_slot.values(), default=0))

    def _batch_ended(self, acks: list[SlotAck]) -> None:
        """The job is finished once everything that its sinks have prepared is committed."""
        self._check_complete(acks)
        for ack in acks:
            self._take(ack, {})
        self.metrics.epoch_ended(acks, self._last_ended_at)
        self._decisions.append(CommitPrepared(self._committables.by_node()))

    def prepared_committed(self) -> None:
        """CommitPrepared has been carried out."""
        self._end()

    def _check_complete(self, acks: list[SlotAck]) -> None:
        expected = sum(self._levels.slots)
        wrong = [ack for ack in acks if ack.address.epoch != self._epoch]
        places = {(ack.address.level, ack.address.slot) for ack in acks}
        if len(acks) != expected or len(places) != expected or wrong:
            raise JobExecutionError(
                f"epoch {self._epoch} ended with {len(acks)} acks of {len(places)} slots, but the "
                f"job has {expected}"
                + (f", {len(wrong)} of them of a different epoch" if wrong else "")
            )
        self._check_runs(acks)

    def _check_runs(self, acks: list[SlotAck]) -> None:
        """Every slot must have worked on the output of the very runs that are acked."""
        runs = {(ack.address.level, ack.address.slot): ack.run_id for ack in acks}
        for ack in acks:
            level = ack.address.level - 1
            for slot, run_id in ack.upstream_runs.items():
                if runs[level, slot] != run_id:
                    raise JobExecutionError(
                        f"epoch {self._epoch}: Spark ran level {level}, slot {slot} again after its "
                        "output had been used. Set spark.stage.maxConsecutiveAttempts to 1 and "
                        "spark.speculation to false"
                    )
        self._runs = ConfirmedRuns.of(runs, self._levels.slots)

    def _take(self, ack: SlotAck, records_by_slot: dict[int, int]) -> None:
        for subtask_ack in ack.subtasks:
            key = (subtask_ack.vertex, subtask_ack.subtask)
            self._ledger.record(subtask_ack)
            self._finished[key] = subtask_ack.finished
            self._committables.prepared(
                self._epoch, key, subtask_ack.committables, wait=self.checkpoints.periodic
            )
            for node, status in subtask_ack.sources.items():
                self._sources[node].update(subtask_ack.subtask, status)
                self._aligner.update(node, subtask_ack.subtask, status)
            if subtask_ack.sources:
                slot = ack.address.slot
                read = subtask_ack.metrics.records_in
                records_by_slot[slot] = max(records_by_slot.get(slot, 0), read)

    def epoch_lost(self, error: FiresteelError, void: Sequence[SlotAck]) -> None:
        """The running epoch does not count, although slots have acknowledged it."""
        self.checkpoints.void += [subtask for ack in void for subtask in ack.subtasks]
        self.fail(error)

    def fail(self, error: FiresteelError) -> None:
        """The attempt has failed. Its slots are still to be closed. The first failure counts."""
        if self.failure is None:
            self.failure = error
        self._state.fail()

    def abandon(self) -> None:
        """No epoch can run any more: a failed or canceled attempt ends as it stands."""
        if not self.is_over:
            self._end()

    def _is_ending(self) -> bool:
        """Return True if only closing the slots is left to do."""
        if self.status in (JobStatus.FAILING, JobStatus.CANCELLING) or self.checkpoints.stopped:
            return True
        if self.status is not JobStatus.RUNNING or not self._all_finished():
            return False
        return not (
            self.checkpoints.needs_final()
            or self.checkpoints.must_wait
            or self.checkpoints.is_saving
        )

    def _end(self) -> None:
        """The attempt is over. The restart strategy decides what follows from a failure."""
        self.is_over = True
        if self.status is JobStatus.CANCELLING:
            self._state.canceled()
        elif self.status is not JobStatus.FAILING:
            rescales = self.checkpoints.coordinator.is_rescaling
            self._state.change(JobStatus.RESTARTING if rescales else JobStatus.FINISHED)

    def committables(self) -> dict[int, list[Any]]:
        """Return everything that is prepared but not committed, by sink node."""
        return self._committables.by_node()

    # Checkpoints

    def request_snapshot(self, request: SnapshotRequest) -> None:
        self.checkpoints.request(request, self._finished_tasks())

    def snapshot_written(
        self, checkpoint_id: int, location: str | None, metadata: CheckpointMetadata, now: float
    ) -> None:
        coordinator = self.checkpoints.coordinator
        self.checkpoints.handle(
            coordinator.snapshot_written(checkpoint_id, location, metadata, now)
        )
        self._follow_checkpoints()

    def snapshot_failed(self, checkpoint_id: int, error: Exception, now: float) -> None:
        coordinator = self.checkpoints.coordinator
        self.checkpoints.handle(coordinator.write_failed(checkpoint_id, error, now))
        self._follow_checkpoints()

    def checkpoints_discarded(self) -> None:
        """DiscardCheckpoints has been carried out."""
        self.checkpoints.discarded()

    def _follow_checkpoints(self) -> None:
        if self.checkpoints.failure is not None:
            self.fail(self.checkpoints.failure)

    def _spark_feeds(self) -> bool:
        """Return True if records of a DataFrame may still come."""
        return any(
            not finished and vertex in self._dataframe_vertices
            for (vertex, _), finished in self._finished.items()
        )

    def _all_finished(self) -> bool:
        return all(self._finished.values())

    def _finished_tasks(self) -> list[tuple[int, int]]:
        return [task for task, finished in self._finished.items() if finished]

    def overview(self) -> dict[str, Any]:
        """Return, as JSON, the work and the place of every subtask so far."""
        found = self.metrics.overview(
            attempt_in_run(self._program.attempt),
            self._ledger.size,
            self.checkpoints.coordinator.stats.timing_of,
        )
        return {"status": self.status.name, **found}

    def operator_handles(self) -> Iterator[tuple[StreamNode, OperatorHandle]]:
        """Yield the confirmed state of every operator subtask that has any."""
        for vertex in self._graph.vertices:
            for subtask in range(vertex.parallelism):
                for node, handle in self._ledger.handle(vertex.id, subtask).operators.items():
                    yield self._graph.nodes[node], handle


Event = Callable[[JobMaster, float], None]
"""Tells a job master a result of its edge, with the time of its arrival."""


@dataclass(frozen=True, slots=True)
class Raised:
    """The event of an error at the edge. It fails the attempt."""

    error: BaseException

    def __call__(self, master: JobMaster, now: float) -> None:
        raise self.error


def _next_timer(acks: list[SlotAck], now: float) -> float | None:
    """Return the time of the first timer on the driver's clock."""
    waits = [
        (subtask.next_timer - ack.processing_time) / 1000
        for ack in acks
        for subtask in ack.subtasks
        if subtask.next_timer is not None and not subtask.finished
    ]
    return now + max(0.0, min(waits)) if waits else None


def _worst(failures: list[SlotFailure]) -> FiresteelError:
    """Return the failure of the earliest level: it is the cause of the others."""
    return min(failures, key=lambda failure: failure.address.level).error
