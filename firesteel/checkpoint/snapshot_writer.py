"""Writes and deletes checkpoints and savepoints, as the coordinator decides."""

from __future__ import annotations

from dataclasses import dataclass

from firesteel.checkpoint.ledger import CheckpointLedger
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
        self,
        storage: JobCheckpointStorage,
        options: FileSystemOptions | None = None,
        ledger: CheckpointLedger | None = None,
    ) -> None:
        """``ledger`` is that of a job with several masters."""
        self._storage = storage
        self._options = options
        self._ledger = ledger

    def write(self, order: WriteSnapshot) -> WrittenSnapshot:
        """Write a snapshot. After an error no file is left, and ``write_failed`` gets the error."""
        metadata = order.metadata
        request = order.request
        if self._ledger is not None:
            self._ledger.begin(metadata.checkpoint_id)
        location: str | None
        if request is not None and request.target is not None:
            target = open_storage(request.target, self._options)
            complete_savepoint(metadata, target)
            location = target.location
            is_entered = request.stop is not None
        else:
            location = self._storage.write(metadata, order.new_files)
            is_entered = True
        if self._ledger is not None and location is not None and is_entered:
            # A job that stops commits its savepoint, so the next master must not restore an older one.
            self._ledger.complete(metadata.checkpoint_id, location, metadata.epoch)
        return WrittenSnapshot(metadata.checkpoint_id, location, metadata)

    def delete(self, order: DeleteCheckpoint | DeleteSavepoint | CleanUp) -> None:
        """Delete files. A failure is logged, and does not fail the job."""
        if self._ledger is not None:
            self._forget(self._ledger, order)
        if isinstance(order, CleanUp):
            self._storage.clean_up(order, None if self._ledger is None else self._ledger.check)
        elif isinstance(order, DeleteSavepoint):
            delete_unfinished(open_storage(order.target, self._options))
        else:
            self._storage.delete(order)

    def discard(self, order: DiscardCheckpoints) -> None:
        """Make sure that no job can restore these checkpoints. Raises an error of the storage."""
        for checkpoint_id in order.checkpoint_ids:
            if self._ledger is not None:
                self._ledger.discard(checkpoint_id)
            self._storage.discard(checkpoint_id)

    @staticmethod
    def _forget(
        ledger: CheckpointLedger, order: DeleteCheckpoint | DeleteSavepoint | CleanUp
    ) -> None:
        """Remove entries before their files. The ledger raises if a different master leads."""
        if isinstance(order, CleanUp):
            ledger.keep_only([one.location for one in order.retained if one.location is not None])
        elif isinstance(order, DeleteCheckpoint) and order.directory is not None:
            ledger.forget(order.directory)
        else:
            ledger.check()
