"""Metadata for tests, by hand and by hypothesis."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from firesteel.checkpoint.metadata import (
    Ancestor,
    CheckpointMetadata,
    KeyedStateFile,
    OperatorFiles,
    OperatorMetadata,
    SnapshotType,
    SubtaskState,
    with_files,
)
from firesteel.checkpoint.payload import Payload
from firesteel.checkpoint.savepoints.keyed_state_files import write_frozen_state
from firesteel.checkpoint.savepoints.savepoint import complete_savepoint, delete_unfinished
from firesteel.checkpoint.state_descriptions import StateDescription, describe_tables
from firesteel.checkpoint.storage.storage import Storage
from firesteel.common.typeinfo import TypeInformation
from firesteel.state.changelog import Segment, SegmentFile, SegmentStore
from firesteel.state.hashmap.backend import HashMapKeyedStateBackend
from firesteel.state.key_groups import KeyGroupRange
from firesteel.state.operator_state import OperatorState, Redistribution


def operator(
    name: str,
    *subtasks: SubtaskState,
    uid: str | None = None,
    max_parallelism: int = 128,
    states: tuple[StateDescription, ...] = (),
    coordinator: Payload | None = None,
) -> OperatorMetadata:
    """An operator with as many subtasks as are given, one empty one by default."""
    given = subtasks or (SubtaskState(),)
    return OperatorMetadata(
        operator_id=f"id-of-{name}",
        uid=uid,
        name=name,
        parallelism=len(given),
        max_parallelism=max_parallelism,
        subtasks=given,
        states=states,
        coordinator=coordinator,
    )


def metadata(
    *operators: OperatorMetadata,
    checkpoint_id: int = 7,
    type: SnapshotType = SnapshotType.CHECKPOINT,
    epoch: int = 40,
) -> CheckpointMetadata:
    return CheckpointMetadata(
        checkpoint_id=checkpoint_id,
        type=type,
        job_id="0" * 32,
        job_name="a job",
        epoch=epoch,
        trigger_time=1_700_000_000_000,
        completion_time=1_700_000_000_900,
        operators=operators,
    )


def file_segment(storage: Storage, name: str, payload: bytes = b"state", epoch: int = 1) -> Segment:
    """A segment whose file is in the job's shared directory."""
    shared = storage.at("shared")
    facts = shared.write(name, payload)
    return Segment(epoch, True, facts.size, path=shared.location_of(name), checksum=facts.checksum)


_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3)
    ),
    max_leaves=5,
)
values: st.SearchStrategy[Any] = _json | st.binary(max_size=8) | st.tuples(st.integers(), st.text())
payloads = st.builds(Payload.of, values)
names = st.text("abcdefgh", min_size=1, max_size=8)
small = st.integers(0, 2**40)


def segments(directory: Storage) -> st.SearchStrategy[Segment]:
    def of_file(name: str, here: bool, epoch: int, size: int, full: bool) -> Segment:
        place = directory if here else directory.parent.at("shared")
        path = place.location_of(name)
        return Segment(epoch, full, size, path=path, checksum=size & 0xFFFF)

    def of_files(parts: list[tuple[str, bytes]], epoch: int) -> Segment:
        kept = [
            SegmentFile(name, len(payload), 1, inline=payload or None, path=None)
            if payload
            else SegmentFile(name, 9, 2, path=directory.parent.at("shared").location_of(name))
            for name, payload in parts
        ]
        return Segment(epoch, True, 10, files=tuple(kept))

    inline = st.builds(
        lambda epoch, full, payload: Segment(epoch, full, len(payload), inline=payload),
        small,
        st.booleans(),
        st.binary(max_size=20),
    )
    plain = st.builds(of_file, names, st.booleans(), small, small, st.booleans())
    several = st.builds(
        of_files, st.lists(st.tuples(names, st.binary(max_size=4)), min_size=1, max_size=2), small
    )
    return inline | plain | several


def files(directory: Storage) -> st.SearchStrategy[KeyedStateFile]:
    return st.builds(
        KeyedStateFile,
        path=names.map(directory.location_of),
        size=small,
        checksum=small,
        key_groups=st.builds(KeyGroupRange, st.integers(0, 60), st.integers(61, 127)),
        entries=st.dictionaries(names, small, max_size=2),
        keys=st.dictionaries(names, small, max_size=2),
        pickled=st.frozensets(names, max_size=2),
    )


def subtask_states(directory: Storage) -> st.SearchStrategy[SubtaskState]:
    return st.builds(
        SubtaskState,
        segments=st.lists(segments(directory), max_size=3).map(tuple),
        files=st.lists(files(directory), max_size=2).map(tuple),
        operator_state=st.dictionaries(
            names,
            st.builds(
                OperatorState,
                st.sampled_from(Redistribution),
                st.lists(st.binary(max_size=5), max_size=3).map(tuple),
                st.text(max_size=5),
            ),
            max_size=2,
        ),
        splits=st.lists(payloads, max_size=2).map(tuple),
        writer_states=st.lists(payloads, max_size=2).map(tuple),
        committables=st.lists(payloads, max_size=2).map(tuple),
        opaque=st.none() | payloads,
        finished=st.booleans(),
    )


def operators(directory: Storage) -> st.SearchStrategy[OperatorMetadata]:
    return st.builds(
        lambda subtasks, **rest: OperatorMetadata(
            subtasks=tuple(subtasks), parallelism=len(subtasks), **rest
        ),
        st.lists(subtask_states(directory), min_size=1, max_size=3),
        operator_id=names,
        uid=st.none() | names,
        name=st.text(max_size=10),
        max_parallelism=st.integers(1, 32768),
        states=st.lists(
            st.builds(StateDescription, names, names, st.dictionaries(names, names, max_size=2)),
            max_size=2,
        ).map(tuple),
        coordinator=st.none() | payloads,
    )


def all_metadata(directory: Storage) -> st.SearchStrategy[CheckpointMetadata]:
    return st.builds(
        CheckpointMetadata,
        checkpoint_id=small,
        type=st.sampled_from(SnapshotType),
        job_id=names,
        job_name=st.text(max_size=10),
        epoch=small,
        trigger_time=small,
        completion_time=small,
        operators=st.lists(operators(directory), max_size=3).map(tuple),
        lineage=st.lists(st.builds(Ancestor, names, small), max_size=3).map(tuple),
        run=small,
    )


def written_files(
    taken: CheckpointMetadata,
    target: Storage,
    store: SegmentStore,
    key_type: TypeInformation | None = None,
) -> list[OperatorFiles]:
    """Write the keyed state of a checkpoint to files of a savepoint, as slots do it."""
    files = []
    for operator in taken.operators:
        for index, subtask in enumerate(operator.subtasks):
            if not subtask.segments:
                continue
            backend = HashMapKeyedStateBackend()
            backend.restore(subtask.segments, store)
            frozen = backend.freeze(operator.max_parallelism)
            prefix = f"state-{operator.operator_id}-{index}"
            files.append(
                OperatorFiles(
                    operator.operator_id,
                    index,
                    tuple(write_frozen_state(frozen, target, prefix, key_type=key_type)),
                    describe_tables(frozen.descriptions, key_type),
                )
            )
    return files


def write_savepoint(
    taken: CheckpointMetadata,
    target: Storage,
    store: SegmentStore,
    key_type: TypeInformation | None = None,
) -> None:
    """Write a savepoint with the content of a checkpoint."""
    try:
        complete_savepoint(with_files(taken, written_files(taken, target, store, key_type)), target)
    except BaseException:
        delete_unfinished(target)
        raise
