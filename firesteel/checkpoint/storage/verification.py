"""Verification of the files of a checkpoint."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator

from firesteel.checkpoint.metadata import CheckpointMetadata, KeyedStateFile
from firesteel.checkpoint.storage.metadata_file import CorruptCheckpointError
from firesteel.checkpoint.storage.segment_store import segment_facts
from firesteel.checkpoint.storage.storage import CorruptFileError, FileFacts, Storage, StorageError

__all__ = ["find_defects", "verify"]


def verify(metadata: CheckpointMetadata, directory: Storage, *, deep: bool = True) -> None:
    """Raise CorruptCheckpointError for the first file that is missing or damaged.

    ``directory``: the directory of the checkpoint.
    ``deep``: read every file. Otherwise only sizes are compared.
    """
    for defect in find_defects(metadata, directory, deep=deep):
        raise defect


def find_defects(
    metadata: CheckpointMetadata, directory: Storage, *, deep: bool
) -> Iterator[CorruptCheckpointError]:
    """An error for each file that is missing or damaged."""
    for location, facts in dict(_files_of(metadata)).items():
        storage = directory.parent if directory.name_of(location) is None else directory
        name = storage.name_of(location)
        if name is None:
            yield CorruptCheckpointError(location, "it does not belong to this checkpoint")
            continue
        try:
            if deep:
                storage.check(name, facts)
            else:
                _compare_size(storage, name, facts)
        except CorruptFileError as error:
            yield CorruptCheckpointError(location, error.reason)
        except StorageError as error:
            if not error.missing:
                raise
            yield CorruptCheckpointError(location, "it does not exist")


def _files_of(metadata: CheckpointMetadata) -> Iterator[tuple[str, FileFacts]]:
    for subtask in metadata.subtasks():
        for segment in (*subtask.segments, *subtask.in_flight):
            for directory, facts in segment_facts(segment):
                yield posixpath.join(directory, facts.name), facts
        for file in subtask.files:
            yield file.path, facts_of(file)


def facts_of(file: KeyedStateFile) -> FileFacts:
    return FileFacts(posixpath.basename(file.path), file.size, file.checksum)


def _compare_size(storage: Storage, name: str, facts: FileFacts) -> None:
    size = storage.size(name)
    if size is None:
        raise CorruptFileError(storage.location_of(name), "it does not exist")
    if size != facts.size:
        raise CorruptFileError(
            storage.location_of(name), f"it should have {facts.size} bytes, but it has {size}"
        )
