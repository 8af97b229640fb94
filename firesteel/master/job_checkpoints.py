"""What the job master and the checkpoint coordinator have to tell each other.

Pure, like both of them: decisions that talk to storage or to users are handed on to the edge.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from firesteel.checkpoint.coordinator import CheckpointCoordinator
from firesteel.checkpoint.decisions import (
    AnswerRequest,
    Barrier,
    CleanUp,
    Decision,
    DeleteCheckpoint,
    FailJob,
    NotifyCheckpointAborted,
    NotifyCheckpointComplete,
    StopJob,
    WriteSnapshot,
)
from firesteel.checkpoint.metadata import SnapshotType
from firesteel.checkpoint.payload import Payload
from firesteel.checkpoint.requests import SnapshotRequest, StopMode
from firesteel.checkpoint.settings import CheckpointSettings
from firesteel.checkpoint.tasks import TaskAck, TaskId, operators_of
from firesteel.errors import FiresteelError
from firesteel.graph.job_graph import JobGraph
from firesteel.master.abandoned import Abandoned, abandoned_states
from firesteel.master.checkpoint_acks import subtask_state
from firesteel.master.collected_output import CollectedOutput
from firesteel.master.committables import Committables
from firesteel.master.source_coordinator import SourceCoordinator
from firesteel.master.state_ledger import StateLedger
from firesteel.task.messages import SlotAck, SubtaskAck
from firesteel.task.program import JobProgram

EdgeDecision = WriteSnapshot | DeleteCheckpoint | CleanUp | AnswerRequest

_FINAL = "$final"


@dataclass(slots=True)
class Notes:
    """What the operators are to be told with the next control rows."""

    completed: int | None = None
    aborted: tuple[int, ...] = ()

    def __bool__(self) -> bool:
        return self.completed is not None or bool(self.aborted)


@dataclass(slots=True)
class JobCheckpoints:
    """Of one attempt of a job; the coordinator outlives it."""

    coordinator: CheckpointCoordinator
    graph: JobGraph
    ledger: StateLedger
    sources: Mapping[int, SourceCoordinator]
    committables: Committables
    collected: CollectedOutput
    # Whether sinks commit when a checkpoint completes; else after every epoch.
    periodic: bool = False
    notes: Notes = field(default_factory=Notes)
    for_edge: list[EdgeDecision] = field(default_factory=list)
    failure: FiresteelError | None = None
    stopped: bool = False
    barrier: Barrier | None = None
    _told: Notes = field(default_factory=Notes)
    _epochs: dict[int, int] = field(default_factory=dict)
    _final_requested: bool = False

    # What comes next

    @property
    def must_wait(self) -> bool:
        """A savepoint to stop with is being written: nothing may be read behind its barrier."""
        return self.coordinator.is_stopping

    def delay(self, now: float, finished: Collection[TaskId]) -> float | None:
        if self.notes or self.committables.are_due:
            return 0.0
        return self.coordinator.delay(now, self._held_against_it(finished))

    def plan(self, now: float, epoch: int, finished: Collection[TaskId]) -> Barrier | None:
        """An epoch is planned: what it tells the operators, and the barrier it ends with."""
        self.tell()
        self.barrier = self.coordinator.trigger(now, epoch, self._held_against_it(finished))
        if self.barrier is not None:
            self._epochs[self.barrier.checkpoint_id] = epoch
        return self.barrier

    def tell(self) -> None:
        """The next control rows say what there is to say."""
        self._told, self.notes = self.notes, Notes()

    @property
    def told(self) -> Notes:
        """What the control rows of the running epoch say."""
        return self._told

    def drains(self) -> bool:
        return self.barrier is not None and self.barrier.stop is StopMode.DRAIN

    def needs_final(self) -> bool:
        """If all tasks have finished: what sinks prepared waits for one more checkpoint."""
        return self.committables.are_waiting

    def request_final(self) -> None:
        """Should it fail, the next regular one will do."""
        if not self._final_requested:
            self._final_requested = True
            self.request(SnapshotRequest(_FINAL, SnapshotType.CHECKPOINT), ())

    def _held_against_it(self, finished: Collection[TaskId]) -> Collection[TaskId]:
        """The last checkpoint is taken even by a job that takes none once tasks have finished."""
        return () if self._final_requested else finished

    # What has happened

    def epoch_ended(self, acks: Iterable[SlotAck], now: float, *, counts: bool) -> None:
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
        self.expire(now)

    def expire(self, now: float) -> None:
        """To be called now and then: what takes too long is given up."""
        self.handle(self.coordinator.expire(now))

    def _task_ack(self, ack: SubtaskAck, since: float, *, drained: bool) -> TaskAck:
        handle = self.ledger.handle(ack.vertex, ack.subtask)
        operators, states = {}, {}
        for node_id in self.graph.vertex(ack.vertex).operators:
            node = self.graph.nodes[node_id]
            operators[node.operator_id] = subtask_state(
                node,
                handle.operators.get(node_id),
                ack.sources.get(node_id),
                self.committables.waiting_of(ack.vertex, ack.subtask, node_id),
                ack.watermarks.get(node_id),
                # Who resumes a job that was drained wants its sources to read on.
                finished=ack.finished and not drained,
            )
            states[node.operator_id] = ack.tables.get(node_id, ())
        # Clocks of other machines may differ; nothing can have begun after it was reported.
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
                    for source in self.sources.values():
                        source.checkpoint_complete(checkpoint_id)
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
                case StopJob():
                    self.stopped = True
                case AnswerRequest(request_id) if request_id == _FINAL:
                    pass
                case _:
                    self.for_edge.append(decision)

    def take_for_edge(self) -> list[EdgeDecision]:
        taken, self.for_edge = self.for_edge, []
        return taken

    def abandoned(self) -> Abandoned:
        """The attempt has failed: what its sinks did behind the newest checkpoint."""
        latest = self.coordinator.store.latest
        completed = 0 if latest is None else latest.checkpoint_id
        return abandoned_states(self.graph, self.ledger, self.committables, completed)

    def overview(self) -> dict[str, Any]:
        return self.coordinator.stats.overview()


def only_on_request(program: JobProgram) -> CheckpointCoordinator:
    """For a job that has no periodic checkpoints."""
    operators = operators_of(program.levels.job_graph)
    return CheckpointCoordinator(
        CheckpointSettings(), operators, program.job_id, program.job_name, now=0.0
    )
