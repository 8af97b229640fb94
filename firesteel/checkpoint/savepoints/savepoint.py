"""Completes and deletes savepoints.

A savepoint is one directory with ``_metadata`` and data files. It can be moved and copied, and
restored with a different parallelism. A canonical one also restores with a different state backend.
"""

from __future__ import annotations

import posixpath

from firesteel.checkpoint.metadata import CheckpointMetadata, SnapshotType
from firesteel.checkpoint.storage.metadata_file import (
    METADATA_FILE,
    open_checkpoint,
    write_metadata,
)
from firesteel.checkpoint.storage.storage import Storage, StorageError, is_temporary
from firesteel.checkpoint.storage.verification import find_defects
from firesteel.errors import FiresteelError
from firesteel.filesystems.file_systems import FileSystemOptions, is_uri, qualify


class SavepointFileError(FiresteelError, RuntimeError):
    """The driver does not find a file that a slot has written."""

    def __init__(self, location: str) -> None:
        super().__init__(
            f"a slot has written {location}, but the driver does not find it there. Slots write the "
            "files of a savepoint, so its directory must be one that driver and slots share"
        )
        self.location = location


class NoSavepointError(FiresteelError, ValueError):
    """There is a checkpoint where a savepoint was expected."""


def savepoint_directory(target: str, job_id: str, unique: str) -> str:
    """The directory of a new savepoint below the user's directory, named as in Flink.

    A relative path is below the working directory of the driver. That of slots is different.
    """
    parent = target if is_uri(target) else qualify(target)
    return posixpath.join(parent, f"savepoint-{job_id[:6]}-{unique[:12]}")


def complete_savepoint(metadata: CheckpointMetadata, target: Storage) -> None:
    """Write the metadata, after slots have written the files.

    Attempts of tasks that do not count may have left files, which are deleted. After an error no
    file is left.
    """
    try:
        for defect in find_defects(metadata, target, deep=False):
            raise SavepointFileError(defect.location)
        write_metadata(metadata, target)
        kept = {target.name_of(path) for path in metadata.files()} | {METADATA_FILE}
        for file in target.list_files():
            if file.path not in kept:
                target.delete(file.path)
    except BaseException:
        delete_unfinished(target)
        raise


def delete_unfinished(target: Storage) -> None:
    """Delete the directory of a savepoint that could not be written. All of its files are new."""
    try:
        target.delete_directory()
    except StorageError:
        return


def dispose_savepoint(location: str, options: FileSystemOptions | None = None) -> None:
    """Delete a savepoint with its files. A checkpoint belongs to its job, and raises an error."""
    directory, metadata = open_checkpoint(location, options)
    if metadata.type is not SnapshotType.SAVEPOINT:
        raise NoSavepointError(
            f"{directory.location} is a checkpoint of the job '{metadata.job_name}', not a savepoint. "
            "It may share files with other checkpoints; the job deletes it when it is no longer needed"
        )
    # Without metadata it is no savepoint.
    directory.delete(METADATA_FILE)
    for path in sorted(metadata.files()):
        name = directory.name_of(path)
        if name is not None:
            directory.delete(name)
    if all(is_temporary(file.path) for file in directory.list_files()):
        directory.delete_directory()
