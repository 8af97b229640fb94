"""A checkpoint that exists: a job can go back to it."""

from __future__ import annotations

from dataclasses import dataclass

from firesteel.checkpoint.metadata import CheckpointMetadata, SnapshotType

__all__ = ["CompletedCheckpoint"]


@dataclass(frozen=True, slots=True)
class CompletedCheckpoint:
    """``location`` is its directory; None if it is in the driver's memory only.

    One that the job was restored from is the job's to delete only if it was claimed.
    """

    metadata: CheckpointMetadata
    location: str | None
    is_owned: bool = True

    @property
    def checkpoint_id(self) -> int:
        return self.metadata.checkpoint_id

    @property
    def is_savepoint(self) -> bool:
        return self.metadata.type is SnapshotType.SAVEPOINT

    @property
    def files(self) -> frozenset[str]:
        return self.metadata.files()

    @property
    def title(self) -> str:
        where = f" at {self.location}" if self.location is not None else ""
        return f"{self.metadata.type.value} {self.checkpoint_id}{where}"
