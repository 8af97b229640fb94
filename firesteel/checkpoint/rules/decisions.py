"""What the coordinator wants to be done. Whoever asked it carries these out, in their order."""

from __future__ import annotations

from dataclasses import dataclass, field

from firesteel.checkpoint.metadata import CheckpointMetadata, SnapshotType
from firesteel.checkpoint.rules.completed_checkpoint import CompletedCheckpoint
from firesteel.checkpoint.rules.requests import SnapshotRequest, StopMode
from firesteel.errors import FiresteelError

__all__ = [
    "AnswerRequest",
    "Barrier",
    "CleanUp",
    "Decision",
    "DeleteCheckpoint",
    "FailJob",
    "NotifyCheckpointAborted",
    "NotifyCheckpointComplete",
    "StopJob",
    "WriteSnapshot",
]


@dataclass(frozen=True, slots=True)
class Barrier:
    """The epoch that is planned ends with this barrier.

    With ``stop``, no source reads behind it until the outcome is known; with DRAIN, event time
    reaches its end before it.
    """

    checkpoint_id: int
    type: SnapshotType
    epoch: int
    stop: StopMode | None = None
    # When it was triggered, in milliseconds since 1970.
    timestamp: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class WriteSnapshot:
    """All acks are in: write it, then call ``snapshot_written`` or ``write_failed``.

    ``new_files`` have been written since the last completed checkpoint, and may not be on disk yet.
    """

    metadata: CheckpointMetadata
    request: SnapshotRequest | None
    new_files: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class NotifyCheckpointComplete:
    """Tell the operators, with the next control rows: sinks commit what they prepared up to here."""

    checkpoint_id: int


@dataclass(frozen=True, slots=True)
class NotifyCheckpointAborted:
    checkpoint_id: int


@dataclass(frozen=True, slots=True)
class DeleteCheckpoint:
    """Delete the directory of a checkpoint, if one is named, and then files that nobody needs."""

    directory: str | None
    files: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CleanUp:
    """No task is running: delete all of the job's files that these checkpoints do not need."""

    retained: tuple[CompletedCheckpoint, ...]


@dataclass(frozen=True, slots=True)
class AnswerRequest:
    """Tell the one who asked: where it is, or why it failed."""

    request_id: str
    location: str | None = None
    error: FiresteelError | None = None


@dataclass(frozen=True, slots=True)
class StopJob:
    """The savepoint to stop with is complete: the job is finished, without another epoch of data."""

    stop: StopMode
    location: str


@dataclass(frozen=True, slots=True)
class FailJob:
    """Too many checkpoints failed, or the job cannot go on. The restart strategy decides."""

    error: FiresteelError


Decision = (
    WriteSnapshot
    | NotifyCheckpointComplete
    | NotifyCheckpointAborted
    | DeleteCheckpoint
    | CleanUp
    | AnswerRequest
    | StopJob
    | FailJob
)
