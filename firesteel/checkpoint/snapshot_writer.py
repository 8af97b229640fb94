"""Writes and deletes checkpoints and savepoints, as the coordinator decides."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from firesteel.checkpoint.metadata import CheckpointMetadata
from firesteel.checkpoint.rules.decisions import CleanUp, DeleteCheckpoint, WriteSnapshot
from firesteel.checkpoint.savepoints.savepoint import OpenBackend, write_savepoint
from firesteel.checkpoint.storage.checkpoint_directory import JobCheckpointStorage
from firesteel.checkpoint.storage.storage import open_storage
from firesteel.common.typeinfo import TypeInformation
from firesteel.filesystems.file_systems import FileSystemOptions


@dataclass(frozen=True, slots=True)
class WrittenSnapshot:
    """The arguments of the coordinator's ``snapshot_written``, except the time."""

    checkpoint_id: int
    location: str | None
    metadata: CheckpointMetadata


class SnapshotWriter:
    """Writes and deletes checkpoints and savepoints, in the thread of the caller."""

    def __init__(
        self,
        storage: JobCheckpointStorage,
        open_backend: OpenBackend,
        options: FileSystemOptions | None = None,
        key_type_of: Callable[[str], TypeInformation | None] = lambda _: None,
        *,
        compress: bool = False,
    ) -> None:
        self._storage = storage
        self._open_backend = open_backend
        self._options = options
        self._key_type_of = key_type_of
        self._compress = compress

    def write(self, order: WriteSnapshot) -> WrittenSnapshot:
        """Write a snapshot. After an error no file is left, and ``write_failed`` gets the error."""
        metadata = order.metadata
        request = order.request
        if request is not None and request.target is not None:
            target = open_storage(request.target, self._options)
            written = write_savepoint(
                metadata, target, self._open_backend, self._key_type_of, compress=self._compress
            )
            return WrittenSnapshot(metadata.checkpoint_id, target.location, written)
        location = self._storage.write(metadata, order.new_files)
        return WrittenSnapshot(metadata.checkpoint_id, location, metadata)

    def delete(self, order: DeleteCheckpoint | CleanUp) -> None:
        """Delete files. A failure is logged, and does not fail the job."""
        if isinstance(order, CleanUp):
            self._storage.clean_up(order)
        else:
            self._storage.delete(order)
