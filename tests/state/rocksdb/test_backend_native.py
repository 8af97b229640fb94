"""RocksDB's files as the state of a native savepoint: frozen, copied, and taken over."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

from firesteel.state.backend import KeyedStateBackend, KeyGroupFilter
from firesteel.state.backend_factory import StateBackendSettings, create_keyed_state
from firesteel.state.changelog import CorruptSegmentError, Segment, SegmentStore
from firesteel.state.key_groups import KeyGroupRange, key_group_of, subtask_of
from firesteel.state.rocksdb.database import Database

_MAX_PARALLELISM = 128
_KEYS = [f"key {number}" for number in range(500)]

Create = Callable[[], KeyedStateBackend]
State = dict[str, dict[Any, Any]]


@pytest.fixture
def create(tmp_path: Path) -> Iterator[Create]:
    made: list[KeyedStateBackend] = []
    settings = StateBackendSettings("rocksdb", (str(tmp_path / "local"),), memory_bytes=8 << 20)

    def make() -> KeyedStateBackend:
        made.append(create_keyed_state(settings, None, _MAX_PARALLELISM))
        return made[-1]

    yield make
    for backend in made:
        backend.close()


@pytest.fixture
def store(tmp_path: Path) -> SegmentStore:
    return _store(tmp_path / "savepoint")


def _store(directory: Path) -> SegmentStore:
    directory.mkdir()
    return SegmentStore(str(directory), 0)


def _subtask(key: str, parallelism: int) -> int:
    return subtask_of(key_group_of(key, _MAX_PARALLELISM), parallelism, _MAX_PARALLELISM)


def _fill(backend: KeyedStateBackend, keys: list[str], random: Random) -> None:
    for key in keys:
        backend.value_table("value").put(key, random.random())
        backend.value_table("window", namespaced=True).put((key, random.randrange(3)), key)
        backend.list_table("list").extend(key, [key, random.random()])
        backend.map_table("map").put(key, random.randrange(5), random.random())


def _end_epoch(backend: KeyedStateBackend, epoch: int, store: SegmentStore) -> tuple[Segment, ...]:
    segments = backend.seal(epoch, store)
    backend.confirm()
    return segments


def _copied(backend: KeyedStateBackend, store: SegmentStore) -> Segment:
    frozen = backend.freeze_files()
    assert frozen is not None
    try:
        return frozen.copy(store, lambda: None)
    finally:
        frozen.release()


def test_files_have_the_state_of_the_moment_they_were_frozen(
    create: Create, store: SegmentStore
) -> None:
    backend, random = create(), Random(1)
    _fill(backend, _KEYS, random)
    _end_epoch(backend, 1, store)
    state = backend.snapshot()
    frozen = backend.freeze_files()
    assert frozen is not None
    _fill(backend, _KEYS, random)
    for key in _KEYS[::2]:
        backend.value_table("value").remove(key)
    backend.drop_table("map")
    _end_epoch(backend, 2, store)
    segment = frozen.copy(store, lambda: None)
    frozen.release()
    assert backend.snapshot() != state
    restored = create()
    restored.restore((segment,), store)
    assert restored.snapshot() == state


@pytest.mark.parametrize("before", [1, 2, 3, 5])
@pytest.mark.parametrize("after", [1, 2, 3, 7])
def test_any_parallelism_restores_them(
    create: Create, store: SegmentStore, before: int, after: int
) -> None:
    random = Random(before * 10 + after)
    expected: State = {}
    segments = []
    for index in range(before):
        backend = create()
        # The tables of each subtask get their numbers in an order of their own.
        for name in random.sample(["value", "list", "map"], 3):
            getattr(backend, f"{name}_table")(name)
        _fill(backend, [key for key in _KEYS if _subtask(key, before) == index], random)
        _end_epoch(backend, 1, store)
        segments.append(_copied(backend, store))
        for name, entries in backend.snapshot().items():
            expected.setdefault(name, {}).update(entries)
    found: State = {}
    for index in range(after):
        mine = KeyGroupRange.of_subtask(index, after, _MAX_PARALLELISM)
        backend = create()
        backend.restore((), store)
        for segment in segments:
            backend.add([segment], store, KeyGroupFilter(mine, _MAX_PARALLELISM))
        # What was read belongs to this subtask, and stays writable.
        backend.list_table("list").append(_KEYS[0], "more")
        backend.list_table("list").remove(_KEYS[0])
        own = _store(Path(f"{store._directory}-{index}"))
        full, *_ = _end_epoch(backend, 1, own)
        assert full.full
        again = create()
        again.restore((full,), own)
        for entry in again.entries():
            assert key_group_of(entry.key, _MAX_PARALLELISM) in mine
        for name, entries in again.snapshot().items():
            table = found.setdefault(name, {})
            assert not table.keys() & entries.keys()
            table.update(entries)
    del expected["list"][_KEYS[0]]
    found["list"].pop(_KEYS[0], None)
    assert found == expected


def test_restoring_reads_no_row(
    create: Create, store: SegmentStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first files are taken over, also by a subtask that owns a part of their keys."""
    backend = create()
    _fill(backend, _KEYS, Random(3))
    _end_epoch(backend, 1, store)
    segment = _copied(backend, store)

    def refuse(*_: object) -> Any:
        raise AssertionError("a row was read")

    for parallelism in (1, 2):
        restored = create()
        restored.restore((), store)
        mine = KeyGroupRange.of_subtask(0, parallelism, _MAX_PARALLELISM)
        only = KeyGroupFilter(mine, _MAX_PARALLELISM) if parallelism > 1 else None
        with monkeypatch.context() as patch:
            patch.setattr(Database, "scan", refuse)
            patch.setattr(Database, "cursor", refuse)
            restored.add([segment], store, only)
        keys = {key for key in _KEYS if _subtask(key, parallelism) == 0}
        assert set(restored.snapshot()["value"]) == keys


def test_checkpoints_do_not_refer_to_files_of_the_savepoint(
    create: Create, store: SegmentStore, tmp_path: Path
) -> None:
    backend, random = create(), Random(4)
    _fill(backend, _KEYS, random)
    _end_epoch(backend, 1, store)
    segment = _copied(backend, store)
    for path in segment.paths():
        assert Path(path).parent == tmp_path / "savepoint"
    restored, own = create(), _store(tmp_path / "own")
    restored.restore((), own)
    restored.add([segment], own)
    found: list[Segment] = []
    for epoch in range(1, 60):
        _fill(restored, _KEYS, random)
        found += _end_epoch(restored, epoch, own)
        if restored._snapshot is not None:
            assert restored._snapshot.wait(60)
    assert sum(one.full for one in found) > 2
    for one in found:
        for path in one.paths():
            assert Path(path).parent == tmp_path / "own"


def test_checkpoints_and_savepoints_do_not_disturb_each_other(
    create: Create, store: SegmentStore, tmp_path: Path
) -> None:
    """A native savepoint has all files, however many of them the last snapshot has written."""
    backend, random, own = create(), Random(5), _store(tmp_path / "own")
    segments: list[Segment] = []
    for epoch in range(1, 40):
        _fill(backend, _KEYS, random)
        segments += _end_epoch(backend, epoch, own)
        segment = _copied(backend, store)
        assert not segment.shared
        if epoch % 10 == 0:
            restored = create()
            restored.restore((segment,), store)
            assert restored.snapshot() == backend.snapshot()
    assert any(segment.full for segment in segments)


def test_a_savepoint_that_is_given_up_leaves_no_files(
    create: Create, store: SegmentStore, tmp_path: Path
) -> None:
    backend = create()
    _fill(backend, _KEYS, Random(6))
    _end_epoch(backend, 1, _store(tmp_path / "own"))

    def give_up() -> None:
        raise InterruptedError

    frozen = backend.freeze_files()
    assert frozen is not None
    with pytest.raises(InterruptedError):
        frozen.copy(store, give_up)
    frozen.release()
    unwanted = backend.freeze_files()
    assert unwanted is not None
    unwanted.release()
    assert list((tmp_path / "savepoint").iterdir()) == []
    assert list((tmp_path / "local").rglob("checkpoint-*")) == []


def test_a_damaged_file_is_named(create: Create, store: SegmentStore) -> None:
    backend = create()
    _fill(backend, _KEYS, Random(7))
    _end_epoch(backend, 1, store)
    segment = _copied(backend, store)
    path = max(map(Path, segment.paths()), key=lambda path: path.stat().st_size)
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    with pytest.raises(CorruptSegmentError, match=path.name):
        create().restore((segment,), store)
