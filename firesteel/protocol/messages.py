"""What driver and slots tell each other: control rows down, acks up.

They are pickled: they travel only inside one Spark application, between our own processes.
"""

from __future__ import annotations

import pickle
from array import array
from collections.abc import Mapping
from dataclasses import dataclass, field
from random import getrandbits
from typing import Any

from firesteel.checkpoint.rules.restore import SubtaskAssignment
from firesteel.checkpoint.rules.tasks import NO_TIMING, TaskTiming
from firesteel.checkpoint.state_descriptions import StateDescription
from firesteel.common.constants import MIN_WATERMARK
from firesteel.connectors.base import SourceSplit
from firesteel.errors import FiresteelError
from firesteel.state.changelog import Segment
from firesteel.state.operator_state import OperatorStates

# Four bytes; 0 is not known, as before the first epoch.
_RUN_ID = "I"
_UNKNOWN = 0


def new_run_id() -> int:
    """Tells two attempts at one epoch of one slot apart."""
    return getrandbits(32) or 1


@dataclass(frozen=True, slots=True)
class ConfirmedRuns:
    """As one slot has to know them: its own, and those of later levels by level."""

    own: int = _UNKNOWN
    later: Mapping[int, bytes] = field(default_factory=dict)

    @classmethod
    def of(cls, runs: Mapping[tuple[int, int], int], slots: tuple[int, ...]) -> ConfirmedRuns:
        """``runs`` by (level, slot), for the driver; ``slots`` has their number for each level."""
        return cls(
            later={
                level: array(
                    _RUN_ID, (runs.get((level, slot), _UNKNOWN) for slot in range(count))
                ).tobytes()
                for level, count in enumerate(slots)
            }
        )

    def told_to(self, level: int, slot: int) -> ConfirmedRuns:
        packed = self.later.get(level)
        own = _UNKNOWN if packed is None else array(_RUN_ID, packed)[slot]
        return ConfirmedRuns(
            own, {later: self.later[later] for later in self.later if later > level}
        )

    def includes(self, run_id: int) -> bool:
        return self.own in (run_id, _UNKNOWN)


@dataclass(frozen=True, slots=True)
class SlotAddress:
    """One slot of one level of one attempt of one job, at one epoch."""

    job_id: str
    attempt: int
    level: int
    slot: int
    epoch: int
    confirmed_runs: ConfirmedRuns = field(default_factory=ConfirmedRuns)
    # The slot is to be closed, whatever it still does.
    by_force: bool = False


@dataclass(frozen=True, slots=True)
class RestoredState:
    """Keyed state that must be gathered from what other subtasks left, or from a savepoint."""

    assignment: SubtaskAssignment
    max_parallelism: int
    states: tuple[StateDescription, ...] = ()


@dataclass(frozen=True, slots=True)
class OperatorHandle:
    """The state of one operator subtask: segments of keyed state, and what is small and whole.

    What is whole is pickled in the slot and unpickled only there. ``unsaved``: a function that saves
    itself at checkpoints has worked since the last one, so nobody else can take its place.
    """

    segments: tuple[Segment, ...] = ()
    whole: bytes | None = None
    operator_state: OperatorStates = field(default_factory=dict)
    unsaved: bool = False
    # What subtasks that are gone had kept whole, after the parallelism has changed.
    more: tuple[bytes, ...] = ()
    restored: RestoredState | None = None
    # The last watermark it sent on before the checkpoint that the job was restored from.
    watermark: int | None = None


@dataclass(frozen=True, slots=True)
class AbandonedState:
    """What a sink with transactions had when its attempt of the job failed.

    ``whole`` is its last state, ``committables`` what it had handed over. Only what the checkpoints
    up to ``completed`` hold counts; the rest is to be undone.
    """

    whole: bytes | None
    committables: tuple[Any, ...]
    completed: int


@dataclass(frozen=True, slots=True)
class SubtaskHandle:
    """The confirmed state of a subtask. ``gate`` holds its channels' watermarks and ends."""

    operators: dict[int, OperatorHandle] = field(default_factory=dict)
    gate: Any = None
    # The checkpoint that the job was restored from, and whether the subtask had ended by then.
    restored_checkpoint_id: int | None = None
    finished: bool = False
    # Left behind by earlier attempts of the job, by node.
    abandoned: Mapping[int, tuple[AbandonedState, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Feedback:
    """What the tail of a loop has for its head: so many records, in these segments."""

    records: int
    segments: tuple[Segment, ...] = ()


@dataclass(frozen=True, slots=True)
class ReadBudget:
    """How much the sources of a slot may read in an epoch: each so many records, all so long."""

    records: int
    seconds: float
    # There is no other epoch: wait for what the splits still have.
    to_the_end: bool = False


@dataclass(frozen=True, slots=True)
class SlotControl:
    """Everything a slot must know for one epoch. ``handles`` are the subtasks' states by vertex."""

    address: SlotAddress
    budget: ReadBudget
    handles: dict[int, SubtaskHandle] = field(default_factory=dict)
    new_splits: dict[int, tuple[SourceSplit, ...]] = field(default_factory=dict)
    # How far the watermark of a source may go (by node), where its strategy aligns sources.
    aligned_watermarks: dict[int, int] = field(default_factory=dict)
    # Source nodes that will get no further splits.
    complete_sources: frozenset[int] = frozenset()
    committables: dict[int, tuple[Any, ...]] = field(default_factory=dict)
    # For heads of loops, by node: what their tails had at the end of the epoch before.
    feedback: dict[int, tuple[OperatorHandle, ...]] = field(default_factory=dict)
    # The heads whose loops are over.
    ended_loops: frozenset[int] = frozenset()
    # The last epoch of a job: close the functions and forget the slot.
    close: bool = False
    # The checkpoint that this epoch ends with, if it does, and when it was triggered.
    checkpoint_id: int | None = None
    checkpoint_timestamp: int = 0
    # Event time ends before the barrier: the job stops for good with this savepoint.
    drain: bool = False
    # The newest checkpoint that is complete, and those that never will be, if there is news.
    completed_checkpoint: int | None = None
    aborted_checkpoints: tuple[int, ...] = ()

    @property
    def has_work(self) -> bool:
        """Whether there is more to do than to close: for that alone no state is restored."""
        commits = self.committables or self.completed_checkpoint is not None
        return bool(commits) or not self.close


@dataclass(frozen=True, slots=True)
class SourceStatus:
    """``available``: there was more than the budget allowed. Else ask again after ``delay`` seconds."""

    splits: tuple[SourceSplit, ...]
    available: bool
    delay: float
    finished: bool
    watermark: int = MIN_WATERMARK
    # Others in its alignment group do not wait for it.
    idle: bool = False
    # It stopped because it was too far ahead of its alignment group.
    ahead: bool = False
    # Only these splits did.
    paused: frozenset[str] = frozenset()


@dataclass(slots=True)
class VertexMetrics:
    """Of one subtask in one epoch."""

    records_in: int = 0
    records_out: int = 0
    bytes_in: int = 0
    bytes_out: int = 0
    busy_seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class SubtaskAck:
    vertex: int
    subtask: int
    # What the epoch changed: a node without an entry changed nothing.
    segments: dict[int, tuple[Segment, ...]]
    # All there is: a node without an entry has nothing that is kept whole.
    whole: dict[int, bytes]
    gate: Any
    sources: dict[int, SourceStatus]
    committables: dict[int, tuple[Any, ...]]
    finished: bool
    watermark: int
    metrics: VertexMetrics
    # By node; one without an entry has none.
    user_metrics: dict[int, dict[str, Any]]
    # The processing time, in milliseconds, at which the next timer is due, or a watermark
    # generator must be asked though no record has come.
    next_timer: int | None = None
    # A node without an entry has not changed its operator state.
    operator_state: dict[int, OperatorStates] = field(default_factory=dict)
    # Of the tails of loops: all that is under way.
    feedback: dict[int, Feedback] = field(default_factory=dict)
    # The nodes whose functions hold what only a checkpoint makes them save.
    unsaved: frozenset[int] = frozenset()
    # With a checkpoint: the keyed state of each node in words, the watermark that it sent on last,
    # and how the snapshot went.
    tables: dict[int, tuple[StateDescription, ...]] = field(default_factory=dict)
    watermarks: dict[int, int] = field(default_factory=dict)
    timing: TaskTiming = field(default=NO_TIMING, compare=False)


@dataclass(frozen=True, slots=True)
class SlotAck:
    address: SlotAddress
    host: str
    subtasks: tuple[SubtaskAck, ...]
    # A slot's task may run more than once: which run this is, and which runs of the slots before
    # it gave its input.
    run_id: int = 0
    upstream_runs: dict[int, int] = field(default_factory=dict)
    # Seconds from the slot's first row to its last.
    seconds: float = 0.0
    # Milliseconds on the slot's own clock, at the end of the epoch. Its timers are due by the same
    # clock, so the difference is right wherever the driver runs.
    processing_time: int = 0


@dataclass(frozen=True, slots=True)
class SlotFailure:
    """A failure that a retry of the task would only repeat: the job must decide."""

    address: SlotAddress
    error: FiresteelError


def encode(message: object) -> bytes:
    return pickle.dumps(message, protocol=5)


def decode(payload: bytes) -> Any:
    return pickle.loads(payload)
