"""Operators of a savepoint that is put together: from another savepoint, and from new keyed state."""

from __future__ import annotations

import posixpath
from collections.abc import Collection, Mapping
from dataclasses import replace

from firesteel.checkpoint.metadata import (
    KeyedStateFile,
    OperatorMetadata,
    StateDescription,
    SubtaskState,
)
from firesteel.checkpoint.storage import FileFacts, Storage
from firesteel.graph.operator_ids import hash_of_uid
from firesteel.state.segment_format import without_tables

__all__ = ["copy_operator", "file_prefix", "new_operator", "with_keyed_state"]


def file_prefix(operator: OperatorMetadata) -> str:
    return f"state-{operator.operator_id}"


def new_operator(uid: str, parallelism: int, max_parallelism: int) -> OperatorMetadata:
    """An operator that a job will know by its uid; without state."""
    return OperatorMetadata(
        operator_id=hash_of_uid(uid),
        uid=uid,
        name=uid,
        parallelism=parallelism,
        max_parallelism=max_parallelism,
        subtasks=(SubtaskState(),) * parallelism,
    )


def copy_operator(
    operator: OperatorMetadata, source: Storage, target: Storage, without: Collection[str] = ()
) -> OperatorMetadata:
    """An operator of the savepoint in ``source``, but for some of its keyed states.

    Nothing inside the files is opened, so this runs no code of the job's classes.
    """
    subtasks = tuple(
        replace(
            subtask,
            files=tuple(
                copied
                for number, file in enumerate(subtask.files)
                if (
                    copied := _copy_file(
                        file, source, target, f"{file_prefix(operator)}-{index}-{number}", without
                    )
                )
            ),
        )
        for index, subtask in enumerate(operator.subtasks)
    )
    states = tuple(state for state in operator.states if state.name not in without)
    return replace(operator, subtasks=subtasks, states=states)


def _copy_file(
    file: KeyedStateFile, source: Storage, target: Storage, name: str, without: Collection[str]
) -> KeyedStateFile | None:
    """None if nothing of it is left."""
    old = posixpath.basename(file.path)
    payload = source.read(old, FileFacts(old, file.size, file.checksum))
    left = {state: count for state, count in file.entries.items() if state not in without}
    if not any(left.values()):
        return None
    facts = target.write(name, without_tables(payload, without))
    return replace(
        file,
        path=target.location_of(name),
        size=facts.size,
        checksum=facts.checksum,
        entries=left,
        keys={state: count for state, count in file.keys.items() if state not in without},
        pickled=file.pickled.difference(without),
    )


def with_keyed_state(
    operator: OperatorMetadata,
    state: StateDescription,
    files: Mapping[int, tuple[KeyedStateFile, ...]],
) -> OperatorMetadata:
    """``files`` by subtask hold the state, of which the operator has none so far."""
    subtasks = tuple(
        replace(subtask, files=subtask.files + files.get(index, ()))
        for index, subtask in enumerate(operator.subtasks)
    )
    states = {one.name: one for one in (*operator.states, state)}
    return replace(
        operator, subtasks=subtasks, states=tuple(states[name] for name in sorted(states))
    )
