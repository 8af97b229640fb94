"""What a checkpoint or savepoint consists of. Plain data: reading and writing are next door."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum

from firesteel.checkpoint.payload import Payload
from firesteel.checkpoint.state_descriptions import StateDescription
from firesteel.state.changelog import Segment
from firesteel.state.key_groups import KeyGroupRange
from firesteel.state.operator_state import OperatorStates


class SnapshotType(Enum):
    """A checkpoint belongs to the job and is dropped by it; a savepoint belongs to the user."""

    CHECKPOINT = "checkpoint"
    SAVEPOINT = "savepoint"


@dataclass(frozen=True, slots=True)
class KeyedStateFile:
    """A data file of a savepoint; ``path`` is its full location.

    ``entries`` and ``keys`` count by state; ``pickled`` names the states that have something in
    them which is unpickled when it is read.
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
    """What one subtask of one operator needs to come back.

    Keyed state is either ``segments`` (a checkpoint: a full one first, or none, then changes) or
    ``files`` (a savepoint). ``splits`` are those of a source's reader at their positions,
    ``writer_states`` what a sink's writer keeps. ``committables`` are to be committed because the
    checkpoint completed. ``opaque`` fits the same parallelism only, and is dropped when that changes.
    """

    segments: tuple[Segment, ...] = ()
    files: tuple[KeyedStateFile, ...] = ()
    operator_state: OperatorStates = field(default_factory=dict)
    splits: tuple[Payload, ...] = ()
    writer_states: tuple[Payload, ...] = ()
    committables: tuple[Payload, ...] = ()
    opaque: Payload | None = None
    finished: bool = False

    @property
    def is_empty(self) -> bool:
        """Whether nothing would be lost without it. ``opaque`` alone is no state of the user's."""
        return not (
            self.segments
            or self.files
            or self.splits
            or self.writer_states
            or self.committables
            or any(state.elements for state in self.operator_state.values())
        )

    @property
    def size(self) -> int:
        """Bytes of all that is kept, inline or in files."""
        return (
            sum(segment.size for segment in self.segments)
            + sum(file.size for file in self.files)
            + sum(len(one) for state in self.operator_state.values() for one in state.elements)
            + sum(map(_size, (*self.splits, *self.writer_states, *self.committables)))
            + (0 if self.opaque is None else _size(self.opaque))
        )


@dataclass(frozen=True, slots=True)
class OperatorMetadata:
    """All subtasks of one operator, and what its coordinator (a source's enumerator) keeps."""

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
        """How messages call it: a uid where there is one, because the user has chosen that."""
        known = f"uid '{self.uid}'" if self.uid is not None else f"id {self.operator_id}"
        return f"'{self.name}' ({known})"


@dataclass(frozen=True, slots=True)
class CheckpointMetadata:
    """Times are milliseconds since 1970."""

    checkpoint_id: int
    type: SnapshotType
    job_id: str
    job_name: str
    epoch: int
    trigger_time: int
    completion_time: int
    operators: tuple[OperatorMetadata, ...]

    def subtasks(self) -> Iterator[SubtaskState]:
        for operator in self.operators:
            yield from operator.subtasks

    def files(self) -> frozenset[str]:
        """The locations of all files that it refers to."""
        found = {file.path for state in self.subtasks() for file in state.files}
        for state in self.subtasks():
            for segment in state.segments:
                found |= segment.paths()
        return frozenset(found)

    @property
    def size(self) -> int:
        return sum(operator.size for operator in self.operators)


def _size(payload: Payload) -> int:
    if payload.pickled is not None:
        return len(payload.pickled)
    # Close enough for statistics, and cheap.
    return len(repr(payload.json))
