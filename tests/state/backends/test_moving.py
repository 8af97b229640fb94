"""State that moves: to other subtasks, other parallelisms, other backends."""

from __future__ import annotations

import copy
import posixpath
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest

from firesteel.checkpoint.savepoints.keyed_state_files import read_keyed_file, write_frozen_state
from firesteel.checkpoint.storage.storage import open_storage
from firesteel.state.backend import KeyedStateBackend, KeyGroupFilter
from firesteel.state.changelog import UnknownFormatError
from firesteel.state.frozen_state import FrozenState
from firesteel.state.key_groups import KeyGroupRange, key_group_of, subtask_of
from tests.state.backends.conftest import BACKENDS, MAX_PARALLELISM
from tests.state.backends.subtask_state import SubtaskState

Create = Callable[..., KeyedStateBackend]


def _fill(backend: KeyedStateBackend, keys: list[Any], mark: str) -> None:
    for key in keys:
        backend.value_table("v").put(key, mark)
        backend.value_table("w", namespaced=True).put((key, ("window", 1)), mark)
        backend.list_table("l").extend(key, [mark, key])
        backend.map_table("m").put(key, "entry", mark)
        backend.map_table("m").put(key, mark, key)


def _subtasks(create: Create, directory: Path, parallelism: int) -> list[SubtaskState]:
    keys = [f"key {number}" for number in range(200)]
    subtasks = []
    for index in range(parallelism):
        state = SubtaskState(create, directory)
        mine = [k for k in keys if subtask_of(key_group_of(k, 128), parallelism, 128) == index]
        _fill(state.backend, mine, "old")
        state.end_epoch()
        state.wait_for_snapshot()
        # A full segment, and a log after it.
        _fill(state.backend, mine[::2], "new")
        for key in mine[::5]:
            state.backend.value_table("v").remove(key)
            state.backend.list_table("l").remove(key)
            state.backend.map_table("m").remove(key)
        state.end_epoch()
        assert [segment.full for segment in state.segments()] == [True, False]
        subtasks.append(state)
    return subtasks


def _union(backends: list[KeyedStateBackend]) -> dict[str, dict[Any, Any]]:
    union: dict[str, dict[Any, Any]] = {}
    for backend in backends:
        for name, entries in backend.snapshot().items():
            table = union.setdefault(name, {})
            assert not table.keys() & entries.keys()
            table.update(entries)
    return union


@pytest.mark.parametrize(("before", "after"), [(1, 2), (2, 3), (3, 1), (2, 2)])
def test_keys_move_with_their_key_groups(
    create: Create, tmp_path: Path, before: int, after: int
) -> None:
    old = _subtasks(create, tmp_path, before)
    new = []
    for index in range(after):
        mine = KeyGroupRange.of_subtask(index, after, MAX_PARALLELISM)
        backend = create()
        for state in old:
            only = KeyGroupFilter(mine, MAX_PARALLELISM)
            backend.add(state.segments(), state.store, only)
        for entry in backend.entries():
            assert key_group_of(entry.key, MAX_PARALLELISM) in mine
        new.append(backend)
    assert _union(new) == _union([state.backend for state in old])


def test_what_was_taken_over_is_part_of_the_next_segments(create: Create, tmp_path: Path) -> None:
    old = _subtasks(create, tmp_path, 2)
    state = SubtaskState(create, tmp_path)
    for other in old:
        state.backend.add(other.segments(), other.store)
    state.backend.list_table("l").append("key 1", "appended")
    expected = state.backend.snapshot()
    state.end_epoch()
    for other in old:
        for path in {p for segment in other.segments() for p in segment.paths()}:
            Path(path).unlink()
    state.crash()
    assert state.backend.snapshot() == expected
    assert expected["l"]["key 1"][-1] == "appended"


def test_a_filtered_restore_is_covered_by_the_next_segments(create: Create, tmp_path: Path) -> None:
    (old,) = _subtasks(create, tmp_path, 1)
    state = SubtaskState(create, tmp_path)
    state.epoch = old.epoch
    mine = KeyGroupRange.of_subtask(1, 2, MAX_PARALLELISM)
    state.backend.restore(old.segments(), old.store, KeyGroupFilter(mine, MAX_PARALLELISM))
    expected = state.backend.snapshot()
    state.end_epoch()
    state.crash()
    assert state.backend.snapshot() == expected


@pytest.mark.parametrize("target", sorted(BACKENDS))
def test_everything_written_at_once_can_be_read_by_every_backend(
    create: Create, tmp_path: Path, target: str
) -> None:
    (state,) = _subtasks(create, tmp_path, 1)
    state.backend.value_table("v").put("not confirmed", 1)
    segment = state.backend.write_everything(state.epoch, state.store)
    other = BACKENDS[target]()
    try:
        other.restore([segment], state.store)
        assert other.snapshot() == state.backend.snapshot()
    finally:
        other.close()


def test_files_of_savepoints_can_be_loaded(create: Create, tmp_path: Path) -> None:
    state = SubtaskState(create)
    _fill(state.backend, ["a", "b"], "x")
    state.end_epoch()
    entries = list(state.backend.entries())
    assert ("w", "a", ("window", 1), "x") in entries
    assert ("l", "b", None, ["x", "b"]) in entries
    storage = open_storage(str(tmp_path))
    frozen = state.backend.freeze(128)
    (file,) = write_frozen_state(frozen, storage, "state")
    frozen.release()
    assert list(read_keyed_file(file, storage)) != []
    assert {*map(repr, read_keyed_file(file, storage))} == {*map(repr, entries)}
    other = SubtaskState(create)
    other.backend.load(storage.read("state-0"))
    assert other.backend.snapshot() == state.backend.snapshot()
    other.end_epoch()
    other.crash()
    assert other.backend.snapshot() == state.backend.snapshot()


@pytest.mark.parametrize("seed", range(5))
def test_frozen_state_does_not_change(create: Create, tmp_path: Path, seed: int) -> None:
    """Two savepoints and a full segment may be written while all tables change."""
    random = Random(seed)
    state = SubtaskState(create)
    storage = open_storage(str(tmp_path))
    running: list[tuple[FrozenState, dict[str, dict[Any, Any]]]] = []
    finished = 0
    for step in range(40):
        keys = random.sample("abcdefgh", 3)
        _fill(state.backend, keys, f"x{step}")
        state.backend.map_table("m").remove(random.choice("abcdefgh"))
        state.backend.value_table("v").remove(random.choice("abcdefgh"))
        state.end_epoch()
        if len(running) < 3 and random.random() < 0.4:
            expected = copy.deepcopy(state.backend.snapshot())
            running.append((state.backend.freeze(128), expected))
        elif running and random.random() < 0.5:
            frozen, expected = running.pop(random.randrange(len(running)))
            other = BACKENDS["hashmap"]()
            for file in write_frozen_state(frozen, storage, f"savepoint-{step}"):
                other.load(storage.read(posixpath.basename(file.path)))
            frozen.release()
            found = other.snapshot()
            assert found == {name: table for name, table in expected.items() if table}
            finished += 1
    assert finished > 2


def test_files_of_rocksdb_are_not_for_the_hash_map(tmp_path: Path) -> None:
    (state,) = _subtasks(BACKENDS["rocksdb"], tmp_path, 1)
    with pytest.raises(UnknownFormatError, match="Only a canonical savepoint"):
        BACKENDS["hashmap"]().restore(state.segments(), state.store)
    state.backend.close()
