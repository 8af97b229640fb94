"""Writes and deletes savepoints.

A savepoint is one directory with ``_metadata`` and data files. It can be moved and copied, and
restored with a different parallelism or state backend.
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

OpenBackend = Callable[[str, Sequence[Segment]], KeyedStateBackend]
"""Creates a backend with the content of segments, from an operator id and the segments."""


class NoSavepointError(FiresteelError, ValueError):
    """There is a checkpoint where a savepoint was expected."""


def savepoint_directory(target: str, job_id: str, unique: str) -> str:
    """The directory of a new savepoint below the user's directory, named as in Flink."""
    return posixpath.join(target, f"savepoint-{job_id[:6]}-{unique[:12]}")


def write_savepoint(
    metadata: CheckpointMetadata,
    target: Storage,
    open_backend: OpenBackend,
    key_type_of: Callable[[str], TypeInformation | None] = lambda _: None,
    *,
    compress: bool = False,
) -> CheckpointMetadata:
    """Write the state of ``metadata`` to ``target``, and the metadata last.

    After an error no file is left. ``key_type_of`` gives the key type of an operator id, or None.
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
        delete_unfinished(target)
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
