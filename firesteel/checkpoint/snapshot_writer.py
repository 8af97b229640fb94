"""Writes and deletes checkpoints and savepoints, as the coordinator decides."""

from __future__ import annotations

from dataclasses import dataclass

from firesteel.checkpoint.metadata import CheckpointMetadata
from firesteel.checkpoint.rules.decisions import (
    CleanUp,
    DeleteCheckpoint,
    DeleteSavepoint,
    DiscardCheckpoints,
    WriteSnapshot,
)
from firesteel.checkpoint.savepoints.savepoint import complete_savepoint, delete_unfinished
from firesteel.checkpoint.storage.checkpoint_directory import JobCheckpointStorage
from firesteel.checkpoint.storage.storage import open_storage
from firesteel.filesystems.file_systems import FileSystemOptions


@dataclass(frozen=True, slots=True)
class WrittenSnapshot:
    """The arguments of the coordinator's ``snapshot_written``, except the time."""

    checkpoint_id: int
    location: str | None
    metadata: CheckpointMetadata


class SnapshotWriter:
    """Writes and deletes checkpoints and savepoints, in the thread of the caller.

    The state is written already: by slots, epoch by epoch or for a savepoint.
    """

    def __init__(
        self, storage: JobCheckpointStorage, options: FileSystemOptions | None = None
    ) -> None:
        self._storage = storage
        self._options = options

    def write(self, order: WriteSnapshot) -> WrittenSnapshot:
        """Write a snapshot. After an error no file is left, and ``write_failed`` gets the error."""
        metadata = order.metadata
        request = order.request
        if request is not None and request.target is not None:
            target = open_storage(request.target, self._options)
            complete_savepoint(metadata, target)
            return WrittenSnapshot(metadata.checkpoint_id, target.location, metadata)
        location = self._storage.write(metadata, order.new_files)
        return WrittenSnapshot(metadata.checkpoint_id, location, metadata)

    def delete(self, order: DeleteCheckpoint | DeleteSavepoint | CleanUp) -> None:
        """Delete files. A failure is logged, and does not fail the job."""
        if isinstance(order, CleanUp):
            self._storage.clean_up(order)
        elif isinstance(order, DeleteSavepoint):
            delete_unfinished(open_storage(order.target, self._options))
        else:
            self._storage.delete(order)

    def discard(self, order: DiscardCheckpoints) -> None:
        """Make sure that no job can restore these checkpoints. Raises an error of the storage."""
        for checkpoint_id in order.checkpoint_ids:
            self._storage.discard(checkpoint_id)
