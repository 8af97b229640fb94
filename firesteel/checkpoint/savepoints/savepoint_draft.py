"""Operators of a new savepoint, from an existing savepoint and from new state."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from firesteel.checkpoint.metadata import KeyedStateFile, OperatorMetadata, SubtaskState
from firesteel.checkpoint.savepoints.keyed_state_files import write_keyed_files
from firesteel.checkpoint.savepoints.savepoint_reader import read_segments
from firesteel.checkpoint.state_descriptions import (
    StateDescription,
    describe_operator_states,
    key_type_of,
    table_descriptions,
)
from firesteel.checkpoint.storage.storage import Storage
from firesteel.checkpoint.storage.verification import facts_of
from firesteel.filesystems.file_systems import FileSystemOptions
from firesteel.graph.operator_ids import hash_of_uid
from firesteel.state.operator_state import OperatorState
from firesteel.state.segment_format import only_tables

__all__ = [
    "copy_operator",
    "file_prefix",
    "new_operator",
    "renamed_operator",
    "with_keyed_state",
    "with_operator_state",
]


def file_prefix(operator: OperatorMetadata) -> str:
    return f"state-{operator.operator_id}"


def new_operator(uid: str, parallelism: int, max_parallelism: int) -> OperatorMetadata:
    """An operator with a uid, without state."""
    return OperatorMetadata(
        operator_id=hash_of_uid(uid),
        uid=uid,
        name=uid,
        parallelism=parallelism,
        max_parallelism=max_parallelism,
        subtasks=(SubtaskState(),) * parallelism,
    )


def renamed_operator(operator: OperatorMetadata, uid: str) -> OperatorMetadata:
    """The operator with a different uid."""
    return replace(operator, operator_id=hash_of_uid(uid), uid=uid)


def copy_operator(
    operator: OperatorMetadata,
    source: Storage,
    target: Storage,
    without: Collection[str] = (),
    options: FileSystemOptions | None = None,
    *,
    allow_pickle: bool = False,
) -> OperatorMetadata:
    """Copy an operator of the savepoint in ``source``, without some of its keyed states.

    Files of a savepoint are copied without decoding, so this runs no code of the job's classes.
    Segments of a checkpoint are decoded. ``allow_pickle`` allows objects of such classes in them.
    """
    kept = tuple(state for state in operator.states if state.name not in without)
    described = {state.name: state for state in kept}
    subtasks = []
    for index, subtask in enumerate(operator.subtasks):
        prefix = f"{file_prefix(operator)}-{index}"
        files = [
            copied
            for number, file in enumerate(subtask.files)
            if (copied := _copy_file(file, source, target, f"{prefix}-{number}", without))
        ]
        if subtask.segments:
            tables = table_descriptions(kept)
            key_types = (key_type_of(kept, name) for name in tables)
            files += write_keyed_files(
                read_segments(
                    subtask.segments,
                    list(tables),
                    operator.max_parallelism,
                    options,
                    allow_pickle=allow_pickle,
                ),
                tables,
                target,
                prefix,
                max_parallelism=operator.max_parallelism,
                key_type=next(key_types, None),
            )
        subtasks.append(replace(subtask, files=tuple(files), segments=()))
        for state in describe_operator_states(subtask.operator_state):
            described[state.name] = state
    return replace(operator, subtasks=tuple(subtasks), states=_sorted(described))


def _copy_file(
    file: KeyedStateFile, source: Storage, target: Storage, name: str, without: Collection[str]
) -> KeyedStateFile | None:
    """Copy a file without some states. Returns None if no entry is left."""
    left = {state: count for state, count in file.entries.items() if state not in without}
    if not any(left.values()):
        return None
    known = facts_of(file)
    payload = source.read(known.name, known)
    facts = target.write(name, only_tables(payload, lambda table: table not in without))
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
    """The operator with a new keyed state, whose ``files`` are given by subtask."""
    subtasks = tuple(
        replace(subtask, files=subtask.files + files.get(index, ()))
        for index, subtask in enumerate(operator.subtasks)
    )
    return replace(operator, subtasks=subtasks, states=_with(operator, state))


def with_operator_state(
    operator: OperatorMetadata, name: str, states: Sequence[OperatorState]
) -> OperatorMetadata:
    """The operator with new operator state of its subtasks, which replaces one of the same name."""
    subtasks = tuple(
        replace(subtask, operator_state={**subtask.operator_state, name: state})
        for subtask, state in zip(operator.subtasks, states, strict=True)
    )
    (described,) = describe_operator_states({name: states[0]})
    return replace(operator, subtasks=subtasks, states=_with(operator, described))


def _with(operator: OperatorMetadata, state: StateDescription) -> tuple[StateDescription, ...]:
    return _sorted({one.name: one for one in (*operator.states, state)})


def _sorted(states: Mapping[str, StateDescription]) -> tuple[StateDescription, ...]:
    return tuple(states[name] for name in sorted(states))
