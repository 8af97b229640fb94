"""A completed checkpoint, which a job can be restored from."""

from __future__ import annotations

from dataclasses import dataclass

from firesteel.checkpoint.metadata import CheckpointMetadata, SnapshotType

__all__ = ["CompletedCheckpoint"]


@dataclass(frozen=True, slots=True)
class CompletedCheckpoint:
    """A checkpoint or savepoint in storage.

    ``location``: its directory, or None if it is only in the driver's memory.
    ``is_owned``: the job may delete it. The job owns a restored checkpoint only if it claimed it.
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
