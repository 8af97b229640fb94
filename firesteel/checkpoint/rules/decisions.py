"""Decisions of the coordinator. Its caller carries them out, in order."""

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
    "DeleteSavepoint",
    "DiscardCheckpoints",
    "FailJob",
    "NotifyCheckpointAborted",
    "NotifyCheckpointComplete",
    "WriteSnapshot",
]


@dataclass(frozen=True, slots=True)
class Barrier:
    """The planned epoch ends with this barrier.

    ``stop``: sources do not read further until the outcome is known. With DRAIN, event time reaches
    its end before the barrier.
    ``timestamp``: the time of the trigger, in milliseconds since 1970.
    ``target``: the directory of a savepoint. Slots write their keyed state to it.
    ``timeout``: the seconds after which the savepoint is given up.
    ``native``: the savepoint consists of the files of the state backend.
    """

    checkpoint_id: int
    type: SnapshotType
    epoch: int
    stop: StopMode | None = None
    timestamp: int = field(default=0, compare=False)
    target: str | None = None
    timeout: float = field(default=float("inf"), compare=False)
    native: bool = False


@dataclass(frozen=True, slots=True)
class WriteSnapshot:
    """Write the metadata of the snapshot, then call ``snapshot_written`` or ``write_failed``.

    ``new_files``: files since the last completed checkpoint, which may not be synced yet.
    """

    metadata: CheckpointMetadata
    request: SnapshotRequest | None
    new_files: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class NotifyCheckpointComplete:
    """Notify the operators with the next control rows. Sinks commit their committables."""

    checkpoint_id: int


@dataclass(frozen=True, slots=True)
class NotifyCheckpointAborted:
    checkpoint_id: int


@dataclass(frozen=True, slots=True)
class DeleteCheckpoint:
    """Delete the directory of a checkpoint, if there is one, and files without a holder."""

    directory: str | None
    files: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class DeleteSavepoint:
    """Delete the directory of a savepoint that was given up."""

    target: str


@dataclass(frozen=True, slots=True)
class DiscardCheckpoints:
    """Delete the metadata of checkpoints that were given up, then call ``discarded``.

    Their writes have ended before. No job can restore them afterwards.
    """

    checkpoint_ids: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class CleanUp:
    """Delete all files of the job that these checkpoints do not need. No task is running."""

    retained: tuple[CompletedCheckpoint, ...]


@dataclass(frozen=True, slots=True)
class AnswerRequest:
    """Answer a request with the location or the error."""

    request_id: str
    location: str | None = None
    error: FiresteelError | None = None


@dataclass(frozen=True, slots=True)
class FailJob:
    """Fail the job. Its restart strategy decides about a restart."""

    error: FiresteelError


Decision = (
    WriteSnapshot
    | NotifyCheckpointComplete
    | NotifyCheckpointAborted
    | DeleteCheckpoint
    | DeleteSavepoint
    | DiscardCheckpoints
    | CleanUp
    | AnswerRequest
    | FailJob
)
