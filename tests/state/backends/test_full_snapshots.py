"""Full snapshots: taken at once, written in the background while the state continues to change."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from firesteel.state.backend import KeyedStateBackend
from firesteel.state.hashmap.backend import HashMapKeyedStateBackend
from firesteel.testing import OperatorHarness
from tests.state.backends.subtask_state import SubtaskState

Create = Callable[..., KeyedStateBackend]


@pytest.fixture(autouse=True)
def _always_in_the_background(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("firesteel.state.hashmap.backend._SMALL_BYTES", 0)


def _change(backend: KeyedStateBackend, mark: int) -> None:
    for key in range(2_000):
        backend.value_table("v").put(key, mark)
        backend.list_table("l").append(key % 50, mark)
        backend.map_table("m").put(key % 50, key, mark)
    backend.map_table("m").remove_entry(7, 7 + 50 * mark)
    backend.list_table("l").replace(8, [mark])
    backend.value_table("v").remove(9)
    backend.map_table("m").remove(10)


def test_compressed_full_segments_are_smaller_and_hold_the_same(tmp_path: Path) -> None:
    contents, sizes = [], []
    for compress in (False, True):
        directory = tmp_path / str(compress)
        directory.mkdir()
        state = SubtaskState(partial(HashMapKeyedStateBackend, compress=compress), directory)
        _change(state.backend, 1)
        state.end_epoch()
        state.wait_for_snapshot()
        (full,) = [segment for segment in state.end_epoch() if segment.full]
        sizes.append(full.size)
        state.crash()
        contents.append(state.backend.snapshot())
    assert contents[0] == contents[1] != {}
    assert sizes[1] < sizes[0] / 2


def test_a_snapshot_shows_the_state_of_its_epoch_whatever_happens_while_it_is_written(
    create: Create, tmp_path: Path
) -> None:
    state = SubtaskState(create, tmp_path)
    by_epoch: dict[int, Any] = {}
    seen = set()
    for mark in range(12):
        _change(state.backend, mark)
        # The thread of a snapshot that was begun before is writing all the while.
        segments = state.end_epoch()
        by_epoch[state.epoch] = state.backend.snapshot()
        for segment in segments:
            if segment.full:
                other = create()
                other.restore([segment], state.store)
                assert other.snapshot() == by_epoch[segment.epoch]
                seen.add(segment.epoch)
        if mark % 3 == 2:
            # It may end another epoch, to begin a snapshot that is planned.
            state.wait_for_snapshot()
            by_epoch[state.epoch] = state.backend.snapshot()
    assert len(seen) >= 2
    assert min(seen) < state.epoch
    state.crash()
    assert state.backend.snapshot() == by_epoch[state.epoch]


def test_a_snapshot_that_cannot_be_written_is_tried_again(
    create: Create, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: Any
) -> None:
    state = SubtaskState(create, tmp_path)
    write, write_file = state.store.write, state.store.write_file
    broken = True

    def full_disk(*arguments: Any, **options: Any) -> Any:
        if broken and options.get("full", True):
            raise OSError("No space left on device")
        return (write if options else write_file)(*arguments, **options)

    monkeypatch.setattr(state.store, "write", full_disk)
    monkeypatch.setattr(state.store, "write_file", full_disk)
    for mark in range(3):
        _change(state.backend, mark)
        state.end_epoch()
        state.wait_for_snapshot()
    assert "No space left" in caplog.text
    assert not any(segment.full for segment in state.segments())
    broken = False
    for mark in range(3):
        _change(state.backend, mark)
        state.end_epoch()
        state.wait_for_snapshot()
    assert any(segment.full for segment in state.segments())
    expected = state.backend.snapshot()
    state.crash()
    assert state.backend.snapshot() == expected


def test_closing_and_restoring_end_a_snapshot_under_way(create: Create, tmp_path: Path) -> None:
    state = SubtaskState(create, tmp_path)
    for mark in range(3):
        _change(state.backend, mark)
        state.end_epoch()
    expected = state.backend.snapshot()
    state.crash(same_process=True)
    assert state.backend.snapshot() == expected
    state.backend.close()
    needed = {path for segment in state.segments() for path in segment.paths()}
    assert {str(path) for path in tmp_path.iterdir()} == needed


def test_freezing_a_million_keys_takes_less_than_a_tenth_of_a_second() -> None:
    backend = HashMapKeyedStateBackend()
    table: Any = backend.value_table("t")
    table.overlay.update((number, number) for number in range(1_000_000))
    table.confirm()
    seconds = []
    for _ in range(5):
        started = time.perf_counter()
        table.freeze()
        seconds.append(time.perf_counter() - started)
    assert min(seconds) < 0.1


def test_an_accumulator_that_is_changed_in_place_does_not_reach_into_the_base() -> None:
    def collect(kept: list[int], new: list[int]) -> list[int]:
        kept.extend(new)
        return kept

    with OperatorHarness.of(lambda s: s.key_by(lambda v: 0).reduce(collect)) as harness:
        harness.process_elements([[1], [2]])
        harness.snapshot()
        base = harness._operator.table.base  # type: ignore[attr-defined]
        confirmed = base[0]
        harness.process_elements([[3], [4]])
        assert confirmed == [1, 2]
        assert base[0] is confirmed
        assert harness.keyed_state() == {"reduce": {0: [1, 2, 3, 4]}}
