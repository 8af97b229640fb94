"""The checkpoint storage of one job.

A checkpoint is ``<root>/<job id>/chk-7/_metadata``. ``<root>/<job id>/shared`` has the state that
checkpoints share. The methods may take long, so the caller runs them in a separate thread.
"""

from __future__ import annotations

import logging
import posixpath
from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Protocol

from firesteel.checkpoint.metadata import CheckpointMetadata
from firesteel.checkpoint.rules.completed_checkpoint import CompletedCheckpoint
from firesteel.checkpoint.rules.decisions import CleanUp, DeleteCheckpoint
from firesteel.checkpoint.storage.discovery import latest_run
from firesteel.checkpoint.storage.metadata_file import (
    METADATA_FILE,
    SHARED_DIRECTORY,
    write_metadata,
)
from firesteel.checkpoint.storage.storage import Storage, StorageError, is_temporary, open_storage
from firesteel.common.configuration import Configuration
from firesteel.datastream.checkpoint_config import CheckpointConfig
from firesteel.datastream.checkpoint_storage import JobManagerCheckpointStorage
from firesteel.errors import FiresteelError
from firesteel.filesystems.file_systems import FileSystemOptions
from firesteel.filesystems.settings import file_system_options

_log = logging.getLogger("firesteel")


class StateSizeError(FiresteelError, RuntimeError):
    """State is too large for checkpoints in the driver's memory."""

    def __init__(self, operator: str, subtask: int, size: int, limit: int) -> None:
        super().__init__(
            f"the state of '{operator}', subtask {subtask}, has {size:,} bytes, but "
            f"JobManagerCheckpointStorage keeps at most {limit:,} bytes per subtask. Set "
            "execution.checkpointing.dir to a directory or an object store to write checkpoints to "
            "files, or raise max_state_size"
        )
        self.operator = operator
        self.subtask = subtask
        self.size = size
        self.limit = limit


class JobCheckpointStorage(Protocol):
    """The interface of the checkpoint storage of a job."""

    @property
    def shared(self) -> Storage | None:
        """The directory for segments of slots. None if segments are inline."""

    def write(self, metadata: CheckpointMetadata, new_files: tuple[str, ...]) -> str | None:
        """Store a checkpoint, and return its location. After an error no file is left."""

    def delete(self, deletion: DeleteCheckpoint) -> None:
        """Delete files. A failure is logged, and does not fail the job."""

    def discard(self, checkpoint_id: int) -> None:
        """Delete the metadata of a checkpoint, if there is any. Raises an error if that fails."""

    def clean_up(self, order: CleanUp, check: Callable[[], None] | None = None) -> list[str]:
        """Delete superfluous files, and return their names.

        ``check`` raises an error if a different master leads. Files that were found before it was
        called are then not those of a later master.
        """

    def latest_run(self, job_name: str) -> int:
        """The highest number among the runs of the job that have left checkpoints, or 0."""

    def holds(self, checkpoint: CompletedCheckpoint) -> bool:
        """True if this storage has the files of a checkpoint, so that new ones may refer to them."""


def checkpoint_name(checkpoint_id: int) -> str:
    return f"chk-{checkpoint_id}"


class CheckpointDirectory:
    """Checkpoints in a file system or object store."""

    def __init__(
        self, root: Storage, job_id: str, options: FileSystemOptions | None = None
    ) -> None:
        self._root = root
        self.job = root.at(job_id)
        self._options = options

    @property
    def shared(self) -> Storage | None:
        return self.job.at(SHARED_DIRECTORY)

    def write(self, metadata: CheckpointMetadata, new_files: tuple[str, ...]) -> str | None:
        directory = self.job.at(checkpoint_name(metadata.checkpoint_id))
        for file in new_files:
            self._sync(file)
        try:
            return write_metadata(metadata, directory)
        except BaseException:
            self.delete(DeleteCheckpoint(directory.location))
            raise

    def _sync(self, location: str) -> None:
        name = self.job.name_of(location)
        if name is not None:
            self.job.sync(name)

    def delete(self, deletion: DeleteCheckpoint) -> None:
        if deletion.directory is not None:
            self._delete_directory(deletion.directory)
        for directory, names in _by_directory(deletion.files).items():
            storage = open_storage_like(self.job, directory, self._options)
            for name in names:
                _quietly(storage.delete, name)

    def _delete_directory(self, location: str) -> None:
        storage = open_storage_like(self.job, location, self._options)
        # Without metadata it is no checkpoint. Files of others stay.
        _quietly(storage.delete, METADATA_FILE)
        try:
            rest = [file.path for file in storage.list_files() if not is_temporary(file.path)]
        except StorageError as error:
            _log.warning("%s", error)
            return
        if not rest:
            _quietly(storage.delete_directory, "")

    def discard(self, checkpoint_id: int) -> None:
        self.job.at(checkpoint_name(checkpoint_id)).delete(METADATA_FILE)

    def clean_up(self, order: CleanUp, check: Callable[[], None] | None = None) -> list[str]:
        kept: set[str] = set()
        for checkpoint in order.retained:
            locations = set(checkpoint.files)
            if checkpoint.location is not None:
                locations.add(posixpath.join(checkpoint.location, METADATA_FILE))
            kept.update(filter(None, map(self.job.name_of, locations)))
        try:
            found = [file.path for file in self.job.list_files()]
        except StorageError as error:
            _log.warning("%s", error)
            return []
        superfluous = [name for name in found if name not in kept]
        if check is not None:
            check()
        if len(superfluous) == len(found) and check is None:
            _quietly(self.job.delete_directory, "")
        else:
            for name in superfluous:
                _quietly(self.job.delete, name)
        return superfluous

    def latest_run(self, job_name: str) -> int:
        return latest_run(self._root, job_name)

    def holds(self, checkpoint: CompletedCheckpoint) -> bool:
        return all(self.job.name_of(file) is not None for file in checkpoint.files)


class MemoryCheckpoints:
    """Checkpoints in the driver's memory. With a directory, the metadata is also stored there."""

    def __init__(self, max_state_size: int, directory: CheckpointDirectory | None = None) -> None:
        self._max_state_size = max_state_size
        self._directory = directory

    @property
    def shared(self) -> Storage | None:
        return None

    def write(self, metadata: CheckpointMetadata, new_files: tuple[str, ...]) -> str | None:
        for operator in metadata.operators:
            for index, subtask in enumerate(operator.subtasks):
                if subtask.size > self._max_state_size:
                    raise StateSizeError(operator.name, index, subtask.size, self._max_state_size)
        return None if self._directory is None else self._directory.write(metadata, ())

    def delete(self, deletion: DeleteCheckpoint) -> None:
        if self._directory is not None:
            self._directory.delete(deletion)
            return
        # Segments of the running job on its local disk.
        for directory, names in _by_directory(deletion.files).items():
            storage = open_storage(directory)
            for name in names:
                _quietly(storage.delete, name)

    def discard(self, checkpoint_id: int) -> None:
        if self._directory is not None:
            self._directory.discard(checkpoint_id)

    def clean_up(self, order: CleanUp, check: Callable[[], None] | None = None) -> list[str]:
        return [] if self._directory is None else self._directory.clean_up(order, check)

    def latest_run(self, job_name: str) -> int:
        return 0 if self._directory is None else self._directory.latest_run(job_name)

    def holds(self, checkpoint: CompletedCheckpoint) -> bool:
        return not checkpoint.files


def job_checkpoint_storage(configuration: Configuration, job_id: str) -> JobCheckpointStorage:
    """The storage that the configuration selects."""
    storage = CheckpointConfig(configuration).get_checkpoint_storage()
    options = file_system_options(configuration)
    path = storage.get_checkpoint_path()
    directory = None
    if path is not None:
        directory = CheckpointDirectory(open_storage(path, options), job_id, options)
    if isinstance(storage, JobManagerCheckpointStorage):
        return MemoryCheckpoints(storage.get_max_state_size(), directory)
    assert directory is not None
    return directory


def open_storage_like(
    known: Storage, location: str, options: FileSystemOptions | None = None
) -> Storage:
    """The storage at ``location``, on the file system of ``known`` if it is below it."""
    if location == known.location:
        return known
    name = known.name_of(location)
    return open_storage(location, options) if name is None else known.at(name)


def _by_directory(locations: Iterable[str]) -> dict[str, list[str]]:
    names: defaultdict[str, list[str]] = defaultdict(list)
    for location in locations:
        directory, name = posixpath.split(location)
        names[directory].append(name)
    return names


def _quietly(delete: Callable[[str], None], name: str) -> None:
    try:
        delete(name)
    except StorageError as error:
        _log.warning("%s", error)
