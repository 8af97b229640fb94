"""Messages between the driver and the slots: controls for an epoch, and acks with its results.

Messages are pickled. They travel only between Firesteel's processes within one Spark application.
"""

from __future__ import annotations

import pickle
from array import array
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from multiprocessing import AuthenticationError
from random import getrandbits
from typing import Any, NamedTuple

from firesteel.checkpoint.metadata import KeyedStateFile
from firesteel.checkpoint.rules.restore import SubtaskAssignment
from firesteel.checkpoint.rules.tasks import NO_TIMING, TaskTiming
from firesteel.checkpoint.state_descriptions import StateDescription
from firesteel.common.constants import MIN_WATERMARK
from firesteel.connectors.base import SourceSplit
from firesteel.errors import FiresteelError, JobExecutionError
from firesteel.protocol.driver_address import DriverAddress
from firesteel.state.changelog import Segment
from firesteel.state.operator_state import OperatorStates
from firesteel.usercode.pickling import quickly_pickled

# A run id has four bytes. 0 stands for an unknown run, as before the first epoch.
_RUN_ID = "I"
_UNKNOWN = 0


def new_run_id() -> int:
    """Return an id that distinguishes two attempts at one epoch of one slot."""
    return getrandbits(32) or 1


@quickly_pickled
@dataclass(frozen=True, slots=True)
class ConfirmedRuns:
    """The runs of the previous epoch that the driver has confirmed.

    ``own`` is the run of the slot that receives this. ``later`` has those of later levels, packed,
    because a control travels through all levels.
    """

    own: int = _UNKNOWN
    later: Mapping[int, bytes] = field(default_factory=dict)

    @classmethod
    def of(cls, runs: Mapping[tuple[int, int], int], slots: tuple[int, ...]) -> ConfirmedRuns:
        """Pack the runs of all slots.

        Args:
            runs: The runs by level and slot.
            slots: The number of slots of each level.
        """
        return cls(
            later={
                level: array(
                    _RUN_ID, (runs.get((level, slot), _UNKNOWN) for slot in range(count))
                ).tobytes()
                for level, count in enumerate(slots)
            }
        )

    def told_to(self, level: int, slot: int) -> ConfirmedRuns:
        """Return the runs that a slot needs: its own, and those of the levels after it."""
        packed = self.later.get(level)
        own = _UNKNOWN if packed is None else array(_RUN_ID, packed)[slot]
        return ConfirmedRuns(
            own, {later: self.later[later] for later in self.later if later > level}
        )

    def includes(self, run_id: int) -> bool:
        """Return whether the run may be the confirmed one of this slot."""
        return self.own in (run_id, _UNKNOWN)


@quickly_pickled
@dataclass(frozen=True, slots=True)
class SlotAddress:
    """A slot of a level of an attempt of a job, at one epoch.

    ``by_force`` means that the slot must be closed even if it is still busy.
    """

    job_id: str
    attempt: int
    level: int
    slot: int
    epoch: int
    confirmed_runs: ConfirmedRuns = field(default_factory=ConfirmedRuns)
    by_force: bool = False


@dataclass(frozen=True, slots=True)
class RestoredState:
    """Keyed state that a subtask must collect from several subtasks, or from a savepoint."""

    assignment: SubtaskAssignment
    max_parallelism: int
    states: tuple[StateDescription, ...] = ()


@quickly_pickled
@dataclass(frozen=True, slots=True)
class OperatorHandle:
    """The state of one operator subtask.

    ``segments`` contain keyed state. ``whole`` is small state that is always written as a whole.
    Only slots unpickle it. ``unsaved`` means that the function has state that it saves only at
    checkpoints, so a new function cannot replace it.
    """

    segments: tuple[Segment, ...] = ()
    whole: bytes | None = None
    operator_state: OperatorStates = field(default_factory=dict)
    unsaved: bool = False
    # The whole states of removed subtasks, after a change of the parallelism.
    more: tuple[bytes, ...] = ()
    restored: RestoredState | None = None
    # The last watermark that the operator sent before the restored checkpoint.
    watermark: int | None = None


@dataclass(frozen=True, slots=True)
class AbandonedState:
    """The transactions of a sink whose attempt of the job failed, or was canceled.

    ``whole`` is the last state of the sink, and ``committables`` are those that it had handed to
    the driver. Transactions of the checkpoints up to ``completed`` are valid. All others are
    aborted: by the next attempt after a failure, and by the sink itself if the job is canceled.
    """

    whole: bytes | None
    committables: tuple[Any, ...]
    completed: int


@dataclass(frozen=True, slots=True)
class InFlight:
    """Rows of an unaligned checkpoint, which a subtask processes before all others.

    by_subtask: the segments of the earlier subtasks. All but the own one are empty, unless the
        parallelism has changed. Then each new subtask takes its share of all rows.
    is_rescaled: the parallelism has changed.
    """

    by_subtask: tuple[tuple[Segment, ...], ...]
    is_rescaled: bool = False


@quickly_pickled
@dataclass(frozen=True, slots=True)
class SubtaskHandle:
    """The confirmed state of a subtask. ``gate`` has the watermarks and ends of its channels."""

    operators: dict[int, OperatorHandle] = field(default_factory=dict)
    gate: Any = None
    # The restored checkpoint, and whether the subtask had ended before it.
    restored_checkpoint_id: int | None = None
    finished: bool = False
    # Transactions of earlier attempts of the job, by node.
    abandoned: Mapping[int, tuple[AbandonedState, ...]] = field(default_factory=dict)
    # Rows that were on their way to a node at the restored checkpoint, by node.
    in_flight: Mapping[int, InFlight] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Feedback:
    """Records that the tail of a loop sends to its head, and the segments that contain them."""

    records: int
    segments: tuple[Segment, ...] = ()


#: The number of records of a budget without a limit.
UNLIMITED = 1 << 62


@quickly_pickled
@dataclass(frozen=True, slots=True)
class ReadBudget:
    """Per-epoch read limits: records per source, and total seconds for all sources of a slot."""

    records: int
    seconds: float
    # This is the only epoch, so sources read all of their splits.
    to_the_end: bool = False


@dataclass(frozen=True, slots=True)
class SavepointOrder:
    """Tells a slot to write its keyed state at the end of the epoch to files of a savepoint.

    ``target`` is the directory of the savepoint. ``waits`` means that the job stops with the
    savepoint: the slot ends the epoch when the files are written, or after ``seconds``. ``native``
    selects the format.
    """

    checkpoint_id: int
    target: str
    waits: bool = False
    seconds: float = float("inf")
    native: bool = False


@dataclass(frozen=True, slots=True)
class SavepointFiles:
    """The files of one operator subtask, and the states that they contain.

    ``segment``: the files of the state backend, in a native savepoint.
    """

    vertex: int
    subtask: int
    node: int
    files: tuple[KeyedStateFile, ...]
    states: tuple[StateDescription, ...]
    segment: Segment | None = None


@dataclass(frozen=True, slots=True)
class SavepointProgress:
    """The work of a slot on a savepoint. ``files`` is None while the slot still writes."""

    files: tuple[SavepointFiles, ...] | None = None
    error: str | None = None


@quickly_pickled
@dataclass(frozen=True, slots=True)
class SlotControl:
    """Instructions for a slot for one epoch. ``handles`` are the states of its subtasks, by vertex."""

    address: SlotAddress
    budget: ReadBudget
    handles: dict[int, SubtaskHandle] = field(default_factory=dict)
    # The driver keeps the handles for slots that do not have their state. See ``fetch_handles``.
    driver: DriverAddress | None = None
    new_splits: dict[int, tuple[SourceSplit, ...]] = field(default_factory=dict)
    # The highest allowed watermark of sources with watermark alignment, by node.
    aligned_watermarks: dict[int, int] = field(default_factory=dict)
    # The source nodes that receive no more splits.
    complete_sources: frozenset[int] = frozenset()
    # The source nodes with splits that no reader has yet. Their watermarks wait for these splits.
    held_sources: frozenset[int] = frozenset()
    committables: dict[int, tuple[Any, ...]] = field(default_factory=dict)
    # For heads of loops, by head and tail: the tail's records at the end of the previous epoch.
    feedback: dict[int, dict[int, OperatorHandle]] = field(default_factory=dict)
    # The heads of loops that have ended.
    ended_loops: frozenset[int] = frozenset()
    # This is the last epoch of the job: the slot closes its functions.
    close: bool = False
    # The checkpoint at the end of this epoch, if there is one, and the time of its trigger.
    checkpoint_id: int | None = None
    checkpoint_timestamp: int = 0
    # The barrier of the checkpoint may overtake rows. That of a savepoint never does.
    overtakes: bool = False
    # Sources read nothing, because slots have rows that wait.
    waits: bool = False
    # Event time ends before the barrier, because the job stops for good with this savepoint.
    drain: bool = False
    # The job stops with this savepoint: nothing is read after its barrier until the next control.
    halt: bool = False
    # The checkpoint at the end of this epoch is a savepoint.
    savepoint: SavepointOrder | None = None
    # The newest complete checkpoint, and the aborted ones, since the previous epoch.
    completed_checkpoint: int | None = None
    aborted_checkpoints: tuple[int, ...] = ()
    # For sinks of a canceled job, by node: the work after its last checkpoint, which they abort.
    abandoned: dict[int, AbandonedState] = field(default_factory=dict)

    @property
    def has_work(self) -> bool:
        """True if the slot has more to do than to close. Closing alone needs no state."""
        commits = self.committables or self.completed_checkpoint is not None
        return bool(commits or self.abandoned) or not self.close


@dataclass(frozen=True, slots=True)
class EndEpoch:
    """Ends an epoch in slots that live as long as the job. Level 0 ends it at once.

    The other levels end it when all of their channels have.
    """

    epoch: int


class Credit(NamedTuple):
    """The progress of a live slot with the rows of one channel, for the slot that sends them.

    target: the slot that has processed the rows.
    taken: the bytes of all rows that were processed since the attempt began.
    limit: the bytes that may be on their way to the slot, or None for any number.
    """

    edge: int
    target: int
    taken: int
    limit: int | None


@dataclass(frozen=True, slots=True)
class Credits:
    """The credits of later slots, which come to the sending slot by way of the driver."""

    credits: tuple[Credit, ...]


Message = SlotControl | EndEpoch | Credits
"""A message of the driver to a live slot."""


@quickly_pickled
@dataclass(frozen=True, slots=True)
class SourceStatus:
    """The progress of a source subtask.

    ``available`` means that the budget ended before the data. If it is False, the driver asks again
    after ``delay`` seconds.
    """

    splits: tuple[SourceSplit, ...]
    available: bool
    delay: float
    finished: bool
    watermark: int = MIN_WATERMARK
    # The sources of its alignment group do not wait for it.
    idle: bool = False
    # It stopped because it is too far ahead of its alignment group.
    ahead: bool = False
    # The splits that stopped for this reason, if the source continues with others.
    paused: frozenset[str] = frozenset()
    # The number of splits that the reader asks for, because it has none left (Flink: a split request).
    wanted: int = 0


@quickly_pickled
@dataclass(slots=True)
class VertexMetrics:
    """Metrics of one subtask in one epoch."""

    records_in: int = 0
    records_out: int = 0
    bytes_in: int = 0
    bytes_out: int = 0
    busy_seconds: float = 0.0
    # The records into and out of operators, by node and Flink's name. Numbers that generated loops
    # do not know have no entry.
    records: Mapping[int, Mapping[str, int]] = field(default_factory=dict)
    # The latest values: the watermark of the input, and figures of operators by node and name.
    watermark_in: int = MIN_WATERMARK
    operators: Mapping[int, Mapping[str, float]] = field(default_factory=dict)

    def add(self, epoch: VertexMetrics) -> None:
        """Add the work of an epoch. The latest values stay as they are."""
        self.records_in += epoch.records_in
        self.records_out += epoch.records_out
        self.bytes_in += epoch.bytes_in
        self.bytes_out += epoch.bytes_out
        self.busy_seconds += epoch.busy_seconds
        # A new dictionary, because other threads may read the old one.
        so_far, added = self.records, epoch.records
        summed = {
            node: {
                name: so_far.get(node, {}).get(name, 0) + count for name, count in counts.items()
            }
            for node, counts in added.items()
        }
        self.records = {**so_far, **summed}


@quickly_pickled
@dataclass(frozen=True, slots=True)
class SubtaskAck:
    """The results of one subtask in one epoch. Dictionaries are keyed by node."""

    vertex: int
    subtask: int
    # The changes of the epoch. A node without an entry changed nothing.
    segments: dict[int, tuple[Segment, ...]]
    # The complete small states. A node without an entry has none.
    whole: dict[int, bytes]
    gate: Any
    sources: dict[int, SourceStatus]
    committables: dict[int, tuple[Any, ...]]
    finished: bool
    watermark: int
    metrics: VertexMetrics
    user_metrics: dict[int, dict[str, Any]]
    # The processing time in milliseconds at which the next timer is due, or at which a watermark
    # generator must run although no record has arrived.
    next_timer: int | None = None
    # A node without an entry has not changed its operator state.
    operator_state: dict[int, OperatorStates] = field(default_factory=dict)
    # For tails of loops: all records in the loop.
    feedback: dict[int, Feedback] = field(default_factory=dict)
    # The nodes whose functions have state that they save only at checkpoints.
    unsaved: frozenset[int] = frozenset()
    # With a checkpoint: descriptions of the keyed state, the last watermarks sent, and durations.
    tables: dict[int, tuple[StateDescription, ...]] = field(default_factory=dict)
    watermarks: dict[int, int] = field(default_factory=dict)
    timing: TaskTiming = field(default=NO_TIMING, compare=False)
    # With an unaligned checkpoint: the rows that its barrier has overtaken.
    in_flight: tuple[Segment, ...] = ()


def abandoned_by(
    ack: SubtaskAck, transactional: Collection[int], completed: int
) -> dict[int, AbandonedState]:
    """Return the work of the sinks of a subtask in an epoch that does not count, by node."""
    wholes = {node: whole for node, whole in ack.whole.items() if node in transactional}
    return {
        node: AbandonedState(wholes.get(node), ack.committables.get(node, ()), completed)
        for node in {**wholes, **ack.committables}
    }


@quickly_pickled
@dataclass(frozen=True, slots=True)
class SlotAck:
    """The report of a slot at the end of an epoch.

    The task of a slot may run more than once. ``run_id`` identifies this run, and
    ``upstream_runs`` those runs of the previous level that produced its input.
    """

    address: SlotAddress
    host: str
    subtasks: tuple[SubtaskAck, ...]
    run_id: int = 0
    upstream_runs: dict[int, int] = field(default_factory=dict)
    # Seconds from the first row of the slot to its last.
    seconds: float = 0.0
    # Milliseconds on the clock of the slot at the end of the epoch. Timers refer to the same clock,
    # so the driver computes delays correctly even if its own clock differs.
    processing_time: int = 0
    # Seconds that the end of the epoch took, in which the slot processed no records.
    end_seconds: float = 0.0
    # Many rows wait in the slot. Sources should not read until it has processed them.
    is_loaded: bool = False
    # All savepoints that the slot writes, or has finished since the previous epoch, by id.
    savepoints: Mapping[int, SavepointProgress] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SlotFailure:
    """A failure that a retry of the task would repeat. The job master decides what follows."""

    address: SlotAddress
    error: FiresteelError


def fetch_handles(control: SlotControl) -> dict[int, SubtaskHandle]:
    """Return the handles of a slot that does not have its state.

    Most slots have it, so that the handles do not travel with every control.
    """
    if control.driver is None:
        return control.handles
    try:
        with control.driver.connect() as connection:
            connection.send(control.address)
            handles: dict[int, SubtaskHandle] = connection.recv()
            return handles
    except (EOFError, OSError, AuthenticationError) as error:
        where = f"level {control.address.level}, slot {control.address.slot}"
        raise JobExecutionError(
            f"{where} could not fetch the handles of its state from the driver: "
            f"{type(error).__name__}: {error}"
        ) from error


def encode(message: object) -> bytes:
    return pickle.dumps(message, protocol=5)


def decode(payload: bytes) -> Any:
    return pickle.loads(payload)
