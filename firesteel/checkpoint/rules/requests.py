"""What users ask of a running job: savepoints, and checkpoints beyond the regular ones."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from firesteel.checkpoint.metadata import SnapshotType

__all__ = ["SnapshotRequest", "StopMode"]


class StopMode(Enum):
    """How a job stops with a savepoint.

    SUSPEND leaves timers and windows as they are, for the job to be resumed. DRAIN lets event time
    reach its end first, so that everything that is pending comes out; the job is over then.
    """

    SUSPEND = "suspend"
    DRAIN = "drain"


@dataclass(frozen=True, slots=True)
class SnapshotRequest:
    """``request_id`` comes back in the answer. ``target`` is the savepoint's directory."""

    request_id: str
    type: SnapshotType
    target: str | None = None
    stop: StopMode | None = None

    @property
    def title(self) -> str:
        if self.type is SnapshotType.CHECKPOINT:
            return "the checkpoint"
        return "the savepoint" if self.stop is None else "stopping with a savepoint"
