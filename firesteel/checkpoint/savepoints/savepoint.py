"""Savepoints: the content of a checkpoint, self-contained and in one format, owned by the user.

A savepoint is one directory: ``_metadata`` and data files. It may be moved, copied and restored with
another parallelism or another state backend.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Sequence
from dataclasses import replace

from firesteel.checkpoint.metadata import (
    CheckpointMetadata,
    OperatorMetadata,
    SnapshotType,
    SubtaskState,
)
from firesteel.checkpoint.savepoints.keyed_state_files import write_keyed_files
from firesteel.checkpoint.state_descriptions import (
    StateDescription,
    describe_operator_states,
    describe_tables,
)
from firesteel.checkpoint.storage.metadata_file import (
    METADATA_FILE,
    open_checkpoint,
    write_metadata,
)
from firesteel.checkpoint.storage.storage import Storage, StorageError, is_temporary
from firesteel.common.typeinfo import TypeInformation
from firesteel.errors import FiresteelError
from firesteel.filesystems.file_systems import FileSystemOptions
from firesteel.state.backend import KeyedStateBackend
from firesteel.state.changelog import Segment

__all__ = ["NoSavepointError", "dispose_savepoint", "savepoint_directory", "write_savepoint"]

OpenBackend = Callable[[str, Sequence[Segment]], KeyedStateBackend]
"""Makes a backend that holds what the segments of an operator (by its id) say."""


class NoSavepointError(FiresteelError, ValueError):
    """Something else than a savepoint is where one was expected."""


def savepoint_directory(target: str, job_id: str, unique: str) -> str:
    """The directory of a new savepoint below the one that the user named, as Flink calls it."""
    return posixpath.join(target, f"savepoint-{job_id[:6]}-{unique[:12]}")


def write_savepoint(
    metadata: CheckpointMetadata,
    target: Storage,
    open_backend: OpenBackend,
    key_type_of: Callable[[str], TypeInformation | None] = lambda _: None,
    *,
    compress: bool = False,
) -> CheckpointMetadata:
    """Write all that ``metadata`` refers to into ``target``, and the metadata last.

    After an error nothing is left. Keys of an operator are written typed if ``key_type_of`` its id
    knows their type.
    """
    try:
        operators = tuple(
            _write_operator(
                operator, target, open_backend, key_type_of(operator.operator_id), compress
            )
            for operator in metadata.operators
        )
        written = replace(metadata, type=SnapshotType.SAVEPOINT, operators=operators)
        write_metadata(written, target)
    except BaseException:
        _remove(target)
        raise
    return written


def _write_operator(
    operator: OperatorMetadata,
    target: Storage,
    open_backend: OpenBackend,
    key_type: TypeInformation | None,
    compress: bool,
) -> OperatorMetadata:
    described = {state.name: state for state in operator.states}
    subtasks = []
    for index, subtask in enumerate(operator.subtasks):
        described.update(
            (state.name, state) for state in describe_operator_states(subtask.operator_state)
        )
        if subtask.segments:
            prefix = f"state-{operator.operator_id}-{index}"
            subtask, states = _write_keyed_state(
                subtask, operator, target, prefix, open_backend, key_type, compress
            )
            described.update((state.name, state) for state in states)
        subtasks.append(subtask)
    states = tuple(described[name] for name in sorted(described))
    return replace(operator, subtasks=tuple(subtasks), states=states)


def _write_keyed_state(
    subtask: SubtaskState,
    operator: OperatorMetadata,
    target: Storage,
    prefix: str,
    open_backend: OpenBackend,
    key_type: TypeInformation | None,
    compress: bool,
) -> tuple[SubtaskState, tuple[StateDescription, ...]]:
    backend = open_backend(operator.operator_id, subtask.segments)
    try:
        descriptions = dict(backend.descriptions())
        files = write_keyed_files(
            backend.entries(),
            descriptions,
            target,
            prefix,
            max_parallelism=operator.max_parallelism,
            key_type=key_type,
            compress=compress,
        )
    finally:
        backend.close()
    return replace(subtask, segments=(), files=files), describe_tables(descriptions, key_type)


def _remove(target: Storage) -> None:
    """What was written so far; the directory is new, so all of it is ours."""
    try:
        target.delete_directory()
    except StorageError:
        return


def dispose_savepoint(location: str, options: FileSystemOptions | None = None) -> None:
    """Delete a savepoint with its files. A checkpoint is refused: it belongs to its job."""
    directory, metadata = open_checkpoint(location, options)
    if metadata.type is not SnapshotType.SAVEPOINT:
        raise NoSavepointError(
            f"{directory.location} is a checkpoint of the job '{metadata.job_name}', not a savepoint. "
            "It may share files with other checkpoints; the job deletes it when it is not needed"
        )
    # First of all it stops being a savepoint.
    directory.delete(METADATA_FILE)
    for path in sorted(metadata.files()):
        name = directory.name_of(path)
        if name is not None:
            directory.delete(name)
    if all(is_temporary(file.path) for file in directory.list_files()):
        directory.delete_directory()
