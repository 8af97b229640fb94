"""The content of a checkpoint or savepoint, as plain data."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from enum import Enum

from firesteel.checkpoint.payload import Payload
from firesteel.checkpoint.state_descriptions import StateDescription, describe_operator_states
from firesteel.state.changelog import Segment
from firesteel.state.key_groups import KeyGroupRange
from firesteel.state.operator_state import OperatorStates


class SnapshotType(Enum):
    """A checkpoint belongs to the job, which deletes it. A savepoint belongs to the user."""

    CHECKPOINT = "checkpoint"
    SAVEPOINT = "savepoint"


@dataclass(frozen=True, slots=True)
class KeyedStateFile:
    """A data file of a savepoint. ``path`` is its full location.

    ``entries``, ``keys``: the number of entries and of keys by state.
    ``pickled``: the states with objects of the job's classes, which are unpickled when read.
    """

    path: str
    size: int
    checksum: int
    key_groups: KeyGroupRange
    entries: dict[str, int] = field(default_factory=dict)
    keys: dict[str, int] = field(default_factory=dict)
    pickled: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class SubtaskState:
    """The state of one subtask of one operator.

    ``segments``: the keyed state of a checkpoint: an optional full segment, then changes. In a
    native savepoint, a full segment with the files of the state backend.
    ``files``: the keyed state of a savepoint in the canonical format.
    ``splits``: the splits of a source's reader, with their positions.
    ``writer_states``: the state of a sink's writer.
    ``committables``: to commit after the checkpoint is complete.
    ``opaque``: state for the same parallelism only. Rescaling drops it.
    ``in_flight``: rows on their way to the operator that the barrier has overtaken.
    """

    segments: tuple[Segment, ...] = ()
    files: tuple[KeyedStateFile, ...] = ()
    operator_state: OperatorStates = field(default_factory=dict)
    splits: tuple[Payload, ...] = ()
    writer_states: tuple[Payload, ...] = ()
    committables: tuple[Payload, ...] = ()
    opaque: Payload | None = None
    finished: bool = False
    in_flight: tuple[Segment, ...] = ()

    @property
    def is_empty(self) -> bool:
        """True if there is no state of the user, which ``opaque`` is not."""
        return not (
            self.segments
            or self.files
            or self.splits
            or self.writer_states
            or self.committables
            or self.in_flight
            or any(state.elements for state in self.operator_state.values())
        )

    @property
    def size(self) -> int:
        """The number of bytes, inline and in files."""
        return (
            sum(segment.size for segment in (*self.segments, *self.in_flight))
            + sum(file.size for file in self.files)
            + sum(len(one) for state in self.operator_state.values() for one in state.elements)
            + sum(map(_size, (*self.splits, *self.writer_states, *self.committables)))
            + (0 if self.opaque is None else _size(self.opaque))
        )


def operator_title(name: str, uid: str | None, operator_id: str) -> str:
    """The name of an operator in messages, with the uid if the user has chosen one."""
    known = f"uid '{uid}'" if uid is not None else f"id {operator_id}"
    return f"'{name}' ({known})"


@dataclass(frozen=True, slots=True)
class OperatorMetadata:
    """All subtasks of one operator, and the state of its coordinator (a source's enumerator)."""

    operator_id: str
    uid: str | None
    name: str
    parallelism: int
    max_parallelism: int
    subtasks: tuple[SubtaskState, ...]
    states: tuple[StateDescription, ...] = ()
    coordinator: Payload | None = None

    @property
    def is_empty(self) -> bool:
        return self.coordinator is None and all(subtask.is_empty for subtask in self.subtasks)

    @property
    def has_keyed_state(self) -> bool:
        return any(subtask.segments or subtask.files for subtask in self.subtasks)

    @property
    def size(self) -> int:
        coordinator = 0 if self.coordinator is None else _size(self.coordinator)
        return coordinator + sum(subtask.size for subtask in self.subtasks)

    @property
    def title(self) -> str:
        """The name in messages."""
        return operator_title(self.name, self.uid, self.operator_id)


@dataclass(frozen=True, slots=True)
class Ancestor:
    """A checkpoint or savepoint of an earlier run, from which a later run was restored."""

    job_id: str
    checkpoint_id: int


@dataclass(frozen=True, slots=True)
class CheckpointMetadata:
    """A checkpoint or savepoint. Times are milliseconds since 1970.

    ``lineage``: the checkpoints that the run and its predecessors were restored from, oldest first.
    Each run of a job has a job id of its own.
    ``run``: a number that is higher than those of all earlier runs that have left checkpoints in
    the same directory.
    """

    checkpoint_id: int
    type: SnapshotType
    job_id: str
    job_name: str
    epoch: int
    trigger_time: int
    completion_time: int
    operators: tuple[OperatorMetadata, ...]
    lineage: tuple[Ancestor, ...] = ()
    run: int = 0

    def subtasks(self) -> Iterator[SubtaskState]:
        for operator in self.operators:
            yield from operator.subtasks

    @property
    def is_native(self) -> bool:
        """True for a savepoint with files of a state backend."""
        return self.type is SnapshotType.SAVEPOINT and any(
            subtask.segments for subtask in self.subtasks()
        )

    def is_after(self, other: CheckpointMetadata) -> bool:
        """True if this run, or a run before it, has passed the point of ``other``."""
        if other.job_id == self.job_id:
            return other.checkpoint_id < self.checkpoint_id
        return any(
            ancestor.job_id == other.job_id and other.checkpoint_id <= ancestor.checkpoint_id
            for ancestor in self.lineage
        )

    def files(self) -> frozenset[str]:
        """The locations of all files that the checkpoint refers to."""
        found = {file.path for state in self.subtasks() for file in state.files}
        for state in self.subtasks():
            for segment in (*state.segments, *state.in_flight):
                found |= segment.paths()
        return frozenset(found)

    @property
    def size(self) -> int:
        return sum(operator.size for operator in self.operators)


@dataclass(frozen=True, slots=True)
class OperatorFiles:
    """The files of a savepoint that a slot has written for one operator subtask.

    ``segment``: the files of the state backend, in a native savepoint.
    """

    operator_id: str
    subtask: int
    files: tuple[KeyedStateFile, ...]
    states: tuple[StateDescription, ...]
    segment: Segment | None = None


def with_files(
    metadata: CheckpointMetadata, written: Iterable[OperatorFiles]
) -> CheckpointMetadata:
    """The metadata of a savepoint: files instead of segments, and descriptions of all states."""
    by_operator: dict[str, list[OperatorFiles]] = {}
    for one in written:
        by_operator.setdefault(one.operator_id, []).append(one)
    operators = tuple(
        _operator_with_files(operator, by_operator.get(operator.operator_id, ()))
        for operator in metadata.operators
    )
    return replace(metadata, type=SnapshotType.SAVEPOINT, operators=operators)


def _operator_with_files(
    operator: OperatorMetadata, written: Iterable[OperatorFiles]
) -> OperatorMetadata:
    described = {state.name: state for state in operator.states}
    subtasks = [replace(subtask, segments=()) for subtask in operator.subtasks]
    for subtask in subtasks:
        for state in describe_operator_states(subtask.operator_state):
            described[state.name] = state
    for one in written:
        segments = () if one.segment is None else (one.segment,)
        subtasks[one.subtask] = replace(subtasks[one.subtask], files=one.files, segments=segments)
        described.update((state.name, state) for state in one.states)
    states = tuple(described[name] for name in sorted(described))
    return replace(operator, subtasks=tuple(subtasks), states=states)


def _size(payload: Payload) -> int:
    if payload.pickled is not None:
        return len(payload.pickled)
    # Accurate enough for statistics, and cheap.
    return len(repr(payload.json))
