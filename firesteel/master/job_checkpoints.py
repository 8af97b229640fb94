"""Checkpoints of one attempt: carries events and decisions between job master and coordinator.

It is pure, like both of them. Decisions that concern storage, sources or users go to the edge.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from firesteel.checkpoint.metadata import (
    CheckpointMetadata,
    OperatorFiles,
    SnapshotType,
    SubtaskState,
)
from firesteel.checkpoint.payload import Payload, payload_of_split, split_of_payload
from firesteel.checkpoint.rules.coordinator import CheckpointCoordinator
from firesteel.checkpoint.rules.decisions import (
    AnswerRequest,
    Barrier,
    Decision,
    DiscardCheckpoints,
    FailJob,
    NotifyCheckpointAborted,
    NotifyCheckpointComplete,
)
from firesteel.checkpoint.rules.requests import SnapshotRequest, StopMode
from firesteel.checkpoint.rules.restore import OperatorAssignment, RestorePlan, SubtaskAssignment
from firesteel.checkpoint.rules.settings import CheckpointSettings
from firesteel.checkpoint.rules.tasks import TaskAck, TaskId, operators_of
from firesteel.errors import FiresteelError, JobExecutionError
from firesteel.graph.job_graph import JobGraph, JobVertex
from firesteel.graph.operator_specs import SinkSpec, SourceSpec, TwoPhaseCommitSinkSpec
from firesteel.graph.stream_graph import StreamNode
from firesteel.master.committables import Abandoned, Committables, abandoned_states
from firesteel.master.decisions import CheckpointDecision, CommitPositions
from firesteel.master.driver_output import CollectedOutput
from firesteel.master.source_coordinator import SourceCoordinator
from firesteel.master.state_ledger import StateLedger
from firesteel.protocol.messages import (
    AbandonedState,
    InFlight,
    OperatorHandle,
    RestoredState,
    SavepointFiles,
    SavepointOrder,
    SlotAck,
    SourceStatus,
    SubtaskAck,
    SubtaskHandle,
)
from firesteel.protocol.program import JobProgram
from firesteel.state.changelog import Segment
from firesteel.usercode import pickling


def subtask_state(
    node: StreamNode,
    handle: OperatorHandle | None,
    source: SourceStatus | None,
    committables: Sequence[Any],
    watermark: int | None,
    *,
    finished: bool,
    in_flight: tuple[Segment, ...] = (),
) -> SubtaskState:
    """Return the state of one operator subtask at the end of an epoch."""
    handle = handle or OperatorHandle()
    is_sink = isinstance(node.spec, SinkSpec | TwoPhaseCommitSinkSpec)
    splits = source.splits if source is not None else ()
    wholes = [one for one in (handle.whole, *handle.more) if one is not None]
    return SubtaskState(
        segments=handle.segments,
        operator_state=handle.operator_state,
        splits=tuple(map(payload_of_split, splits)),
        # Writer states are pickled and unpickled in slots only. Other operators keep positions
        # and watermarks whole, which have fields of their own here.
        writer_states=tuple(Payload(pickled=one) for one in wholes) if is_sink else (),
        committables=tuple(map(Payload.of, committables)),
        opaque=None if watermark is None else Payload(json=watermark),
        finished=finished,
        in_flight=in_flight,
    )


def restored_handles(
    graph: JobGraph, plan: RestorePlan, metadata: CheckpointMetadata
) -> Mapping[tuple[int, int], SubtaskHandle]:
    """Return the handles from which slots restore the subtasks, by vertex and subtask.

    After a savepoint event time starts over, as in Flink: the job may be given older data.
    """
    keeps_time = metadata.type is SnapshotType.CHECKPOINT
    handles = {}
    for vertex in graph.vertices:
        for subtask in range(vertex.parallelism):
            operators = {
                node_id: _operator_handle(
                    graph.nodes[node_id], operator, operator.subtasks[subtask], keeps_time
                )
                for node_id in vertex.operators
                if (operator := plan.assignments.get(graph.nodes[node_id].operator_id)) is not None
            }
            handles[vertex.id, subtask] = SubtaskHandle(
                operators,
                restored_checkpoint_id=metadata.checkpoint_id,
                finished=_had_finished(graph, vertex, subtask, plan),
                in_flight=_in_flight(graph, vertex, subtask, plan),
            )
    return handles


def _had_finished(graph: JobGraph, vertex: JobVertex, subtask: int, plan: RestorePlan) -> bool:
    """Return True if all operators of a subtask had ended and none has anything left to read."""
    for node_id in vertex.operators:
        operator = plan.assignments.get(graph.nodes[node_id].operator_id)
        if operator is None:
            return False
        state = operator.subtasks[subtask]
        if not state.finished or state.splits:
            return False
    return True


def _in_flight(
    graph: JobGraph, vertex: JobVertex, subtask: int, plan: RestorePlan
) -> dict[int, InFlight]:
    """Return the rows that were on their way to a subtask, by node.

    A node that is chained now may have had rows on their way before the job was rescaled.
    """
    found = {}
    for node_id in vertex.operators:
        operator = plan.assignments.get(graph.nodes[node_id].operator_id)
        if operator is not None and any(rows := operator.subtasks[subtask].in_flight):
            found[node_id] = InFlight(rows, operator.is_rescaled)
    return found


def _operator_handle(
    node: StreamNode,
    operator: OperatorAssignment,
    assignment: SubtaskAssignment,
    keeps_time: bool,
) -> OperatorHandle:
    wholes = [one.pickled for one in assignment.writer_states if one.pickled is not None]
    if isinstance(node.spec, SourceSpec):
        splits = tuple(map(split_of_payload, assignment.splits))
        # Watermark generators start over, as in Flink. Watermarks that they have sent still hold.
        wholes = [pickling.dumps((splits, assignment.finished and not splits, None))]
    parts = assignment.keyed
    restored = None
    if assignment.must_materialize:
        restored = RestoredState(assignment, operator.max_parallelism, operator.states)
    return OperatorHandle(
        segments=parts[0].segments if parts and restored is None else (),
        whole=wholes[0] if wholes else None,
        more=tuple(wholes[1:]),
        operator_state=assignment.operator_state,
        restored=restored,
        watermark=assignment.opaque.load() if keeps_time and assignment.opaque else None,
    )


_FINAL = "$final"
_FIRST_PAUSE_SECONDS = 0.1
_LONGEST_PAUSE_SECONDS = 10.0
# A canceled job waits this long for storage to discard pending checkpoints, and asks this often.
_DISCARD_SECONDS = 5.0
_DISCARD_POLL_SECONDS = 0.05


def _final_pause(requests: int) -> float:
    """Seconds before the next final checkpoint. The first one that fails is repeated at once."""
    if requests < 2:
        return 0.0
    # A float overflows with a large exponent.
    return min(_FIRST_PAUSE_SECONDS * 2.0 ** min(requests - 2, 20), _LONGEST_PAUSE_SECONDS)


@dataclass(slots=True)
class Notes:
    """News for the operators, sent with the next control rows."""

    completed: int | None = None
    aborted: tuple[int, ...] = ()

    def __bool__(self) -> bool:
        return self.completed is not None or bool(self.aborted)


@dataclass(slots=True)
class JobCheckpoints:
    """The checkpoints of one attempt. The coordinator outlives it."""

    coordinator: CheckpointCoordinator
    graph: JobGraph
    ledger: StateLedger
    sources: Mapping[int, SourceCoordinator]
    committables: Committables
    collected: CollectedOutput
    # Sinks commit when a checkpoint completes, not after every epoch.
    periodic: bool = False
    notes: Notes = field(default_factory=Notes)
    for_edge: list[CheckpointDecision | CommitPositions] = field(default_factory=list)
    failure: FiresteelError | None = None
    barrier: Barrier | None = None
    # Acks of the epoch with which the attempt failed.
    void: list[SubtaskAck] = field(default_factory=list)
    _told: Notes = field(default_factory=Notes)
    _epochs: dict[int, int] = field(default_factory=dict)
    # Savepoints that slots write: the files by level and slot, of those that have finished.
    _saving: dict[int, dict[tuple[int, int], tuple[SavepointFiles, ...]]] = field(
        default_factory=dict
    )
    # Requests for the final checkpoint: their number, the time of the next, and if one is open.
    _final_requests: int = 0
    _final_at: float | None = None
    _final_is_open: bool = False
    # A canceled job: the time at which its slots close, and if all pending checkpoints are gone.
    _closes_at: float | None = None
    _is_discarded: bool = False

    def __post_init__(self) -> None:
        savepoint = self.coordinator.stopped_with
        if savepoint is not None:
            # An attempt that only repeats the commit and the end of a job that stops.
            self.notes.completed = savepoint.checkpoint_id

    @property
    def stopped(self) -> bool:
        """Note that the savepoint of a job that stops is complete. Only the commit is left to do."""
        return self.coordinator.stopped_with is not None

    # The next epoch

    @property
    def must_wait(self) -> bool:
        """A savepoint to stop with is being written: nothing may be read after its barrier."""
        return self.coordinator.is_stopping

    @property
    def is_saving(self) -> bool:
        """Slots write a savepoint. Their acks tell when it is complete."""
        return bool(self._saving)

    def order(self) -> SavepointOrder | None:
        """The order for the slots, if the planned epoch ends with a savepoint."""
        barrier = self.barrier
        if barrier is None or barrier.target is None:
            return None
        return SavepointOrder(
            barrier.checkpoint_id,
            barrier.target,
            barrier.stop is not None,
            barrier.timeout,
            barrier.native,
        )

    def delay(self, now: float, finished: Collection[TaskId]) -> float | None:
        if self.notes or self.committables.are_due:
            return 0.0
        return self.coordinator.delay(now, self._held_against_it(finished))

    def plan(self, now: float, epoch: int, finished: Collection[TaskId]) -> Barrier | None:
        """Plan an epoch: its news for the operators, and the barrier it ends with."""
        self.tell()
        self.barrier = self.coordinator.trigger(now, epoch, self._held_against_it(finished))
        if self.barrier is not None:
            self._epochs[self.barrier.checkpoint_id] = epoch
        return self.barrier

    def tell(self) -> None:
        """Put all news into the control rows of the epoch that is planned."""
        self._told, self.notes = self.notes, Notes()

    @property
    def told(self) -> Notes:
        """News in the control rows of the running epoch."""
        return self._told

    def drains(self) -> bool:
        return self.barrier is not None and self.barrier.stop is StopMode.DRAIN

    def needs_final(self) -> bool:
        """Return True if committables of finished tasks wait for one more checkpoint."""
        return self.committables.are_waiting

    def request_final(self, now: float) -> None:
        """Ask for one more checkpoint, until one succeeds.

        The job has nothing else to do, so it does not wait for the interval if one fails.
        """
        if self._final_is_open:
            return
        if self._final_at is None:
            self._final_at = now + _final_pause(self._final_requests)
        if now < self._final_at:
            return
        self._final_requests += 1
        self._final_at = None
        self._final_is_open = True
        self.request(SnapshotRequest(_FINAL, SnapshotType.CHECKPOINT), ())

    def _held_against_it(self, finished: Collection[TaskId]) -> Collection[TaskId]:
        """Finished tasks do not prevent the last checkpoint, even if the settings say so."""
        return () if self._final_requests else finished

    # Events

    def epoch_ended(self, acks: Sequence[SlotAck], now: float, *, counts: bool) -> None:
        """All acks are in, and the ledger has them."""
        self.committables.carried_out()
        self.handle(self.coordinator.running_files(self.ledger.files()))
        barrier, self.barrier = self.barrier, None
        if barrier is not None and counts:
            pending = {c.checkpoint_id: c for c in self.coordinator.pending}
            checkpoint = pending.get(barrier.checkpoint_id)
            since = now - checkpoint.triggered_at if checkpoint is not None else 0.0
            drained = barrier.stop is StopMode.DRAIN
            tasks = [
                self._task_ack(ack, since, drained=drained)
                for slot in acks
                for ack in slot.subtasks
            ]
            self.handle(
                self.coordinator.acknowledge(
                    barrier.checkpoint_id,
                    tasks,
                    now,
                    self._coordinators(barrier.checkpoint_id),
                )
            )
            if barrier.target is not None:
                self._saving[barrier.checkpoint_id] = {}
        self.expire(now)
        self._take_savepoints(acks, now)

    def _take_savepoints(self, acks: Sequence[SlotAck], now: float) -> None:
        """Take the reports of slots about the savepoints that they write."""
        pending = {one.checkpoint_id for one in self.coordinator.pending}
        for checkpoint_id, written in list(self._saving.items()):
            error: str | None = None
            for ack in acks:
                place = (ack.address.level, ack.address.slot)
                if place in written:
                    continue
                progress = ack.savepoints.get(checkpoint_id)
                if progress is None:
                    error = (
                        f"level {place[0]}, slot {place[1]} was restarted while it wrote its state"
                    )
                elif progress.error is not None:
                    error = f"level {place[0]}, slot {place[1]}: {progress.error}"
                elif progress.files is not None:
                    written[place] = progress.files
            if checkpoint_id not in pending:
                del self._saving[checkpoint_id]
            elif error is not None:
                del self._saving[checkpoint_id]
                failure = JobExecutionError(error)
                self.handle(self.coordinator.write_failed(checkpoint_id, failure, now))
            elif len(written) == len(acks):
                del self._saving[checkpoint_id]
                files = [self._operator_files(one) for some in written.values() for one in some]
                self.handle(self.coordinator.files_written(checkpoint_id, files, now))

    def _operator_files(self, written: SavepointFiles) -> OperatorFiles:
        operator_id = self.graph.nodes[written.node].operator_id
        return OperatorFiles(
            operator_id, written.subtask, written.files, written.states, written.segment
        )

    def expire(self, now: float) -> None:
        """Give up checkpoints that take too long. Called now and then."""
        self.handle(self.coordinator.expire(now))

    def _task_ack(self, ack: SubtaskAck, since: float, *, drained: bool) -> TaskAck:
        handle = self.ledger.handle(ack.vertex, ack.subtask)
        operators, states = {}, {}
        nodes = self.graph.vertex(ack.vertex).operators
        first = nodes[0]
        for node_id in nodes:
            node = self.graph.nodes[node_id]
            operators[node.operator_id] = subtask_state(
                node,
                handle.operators.get(node_id),
                ack.sources.get(node_id),
                self.committables.waiting_of(ack.vertex, ack.subtask, node_id),
                ack.watermarks.get(node_id),
                # The sources of a drained job continue to read when it is resumed.
                finished=ack.finished and not drained,
                # Rows arrive at the first operator of a chain.
                in_flight=ack.in_flight if node_id == first else (),
            )
            states[node.operator_id] = ack.tables.get(node_id, ())
        # Clocks of different machines differ. Nothing can have begun after it was reported.
        latest = max(0.0, since - ack.timing.alignment - ack.timing.sync)
        timing = replace(ack.timing, start_delay=min(ack.timing.start_delay, latest))
        return TaskAck((ack.vertex, ack.subtask), operators, states, timing)

    def _coordinators(self, checkpoint_id: int) -> dict[str, Payload]:
        return {
            self.graph.nodes[node].operator_id: source.checkpoint(checkpoint_id)
            for node, source in self.sources.items()
        }

    def request(self, request: SnapshotRequest, finished: Collection[TaskId]) -> None:
        self.handle(self.coordinator.request(request, finished))

    def handle(self, decisions: Iterable[Decision]) -> None:
        for decision in decisions:
            match decision:
                case NotifyCheckpointComplete(checkpoint_id):
                    self.notes.completed = checkpoint_id
                    for node, source in self.sources.items():
                        unread = source.checkpoint_complete(checkpoint_id)
                        if unread is not None:
                            self.for_edge.append(CommitPositions(node, unread))
                    epoch = self._epochs.pop(checkpoint_id, None)
                    if epoch is not None:
                        self.committables.confirm(epoch)
                        self.collected.confirm(epoch)
                case NotifyCheckpointAborted(checkpoint_id):
                    for source in self.sources.values():
                        source.checkpoint_aborted(checkpoint_id)
                    self._epochs.pop(checkpoint_id, None)
                    self.notes.aborted += (checkpoint_id,)
                case FailJob(error):
                    self.failure = error
                case AnswerRequest(request_id) if request_id == _FINAL:
                    self._final_is_open = False
                case _:
                    self.for_edge.append(decision)

    def give_up(self, now: float) -> float:
        """Give up pending checkpoints of a canceled job. Return the seconds until its slots close.

        Sinks abort the transactions of these checkpoints. So storage must not have them any more.
        """
        if self._closes_at is None:
            decisions = self.coordinator.job_canceled(now)
            self._is_discarded = not any(isinstance(one, DiscardCheckpoints) for one in decisions)
            self._closes_at = now + _DISCARD_SECONDS
            self.handle(decisions)
        if self._is_discarded:
            return 0.0
        return min(_DISCARD_POLL_SECONDS, max(0.0, self._closes_at - now))

    def discarded(self) -> None:
        """Storage has no checkpoint that was given up."""
        self._is_discarded = True

    def abandoned_by(self, vertex: int, subtask: int) -> dict[int, AbandonedState]:
        """Return the work that sinks of a canceled job abort when they close, by node."""
        if not self._is_discarded:
            return {}
        latest, last = self.coordinator.store.latest, self.coordinator.last_to_return_to
        found = {}
        for node in self.graph.vertex(vertex).operators:
            if not isinstance(self.graph.nodes[node].spec, TwoPhaseCommitSinkSpec):
                continue
            handed_over = self.committables.after_checkpoints_of(vertex, subtask, node)
            if last > (0 if latest is None else latest.checkpoint_id):
                # The savepoint after the last checkpoint may contain them.
                handed_over = ()
            found[node] = AbandonedState(None, handed_over, last)
        return found

    def take_for_edge(self) -> list[CheckpointDecision | CommitPositions]:
        taken, self.for_edge = self.for_edge, []
        return taken

    def abandoned(self) -> Abandoned:
        """Return the work of a failed attempt's sinks after the newest checkpoint."""
        latest = self.coordinator.store.latest
        completed = 0 if latest is None else latest.checkpoint_id
        return abandoned_states(
            self.graph,
            self.ledger,
            self.committables,
            completed,
            has_newer_savepoint=self.coordinator.has_newer_savepoint,
            void=self.void,
        )

    def overview(self) -> dict[str, Any]:
        return self.coordinator.stats.overview()


def only_on_request(program: JobProgram) -> CheckpointCoordinator:
    """Return a coordinator for a job without periodic checkpoints."""
    operators = operators_of(program.levels.job_graph)
    return CheckpointCoordinator(
        CheckpointSettings(), operators, program.job_id, program.job_name, now=0.0
    )
