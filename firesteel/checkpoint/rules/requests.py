"""Requests for savepoints and additional checkpoints of a running job."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from firesteel.checkpoint.metadata import SnapshotType

__all__ = ["SnapshotRequest", "StopMode"]


class StopMode(Enum):
    """Reasons to stop the sources at a barrier.

    SUSPEND keeps timers and windows, so that the job can be resumed. DRAIN advances event time to
    its end first, so that all pending results are emitted. Both end the job with a savepoint.
    RESCALE ends an attempt with a checkpoint, from which the next one starts with a different
    parallelism.
    """

    SUSPEND = "suspend"
    DRAIN = "drain"
    RESCALE = "rescale"


@dataclass(frozen=True, slots=True)
class SnapshotRequest:
    """A request. The answer has its ``request_id``.

    ``target``: the directory of the savepoint.
    ``native``: the savepoint consists of the files of the state backend.
    """

    request_id: str
    type: SnapshotType
    target: str | None = None
    stop: StopMode | None = None
    native: bool = False

    @property
    def title(self) -> str:
        if self.stop is StopMode.RESCALE:
            return "the checkpoint for the new parallelism"
        if self.type is SnapshotType.CHECKPOINT:
            return "the checkpoint"
        return "the savepoint" if self.stop is None else "stopping with a savepoint"
