"""Epochs, segments and crashes: the state comes back as it was confirmed."""

from __future__ import annotations

import copy
import tempfile
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from firesteel.state.backend import KeyedStateBackend
from firesteel.state.changelog import CorruptSegmentError, Segment, UnknownFormatError
from firesteel.state.tables import MISSING
from tests.state.backends.subtask_state import SubtaskState
from tests.thoroughness import examples

Create = Callable[..., KeyedStateBackend]

_KEYS = st.integers(0, 4)
_ENTRIES = st.integers(0, 3)
_VALUES = st.text(max_size=20)
_OPERATIONS = st.lists(
    st.one_of(
        st.tuples(st.just("put"), _KEYS, _VALUES),
        st.tuples(st.just("remove"), _KEYS),
        st.tuples(st.just("put in window"), _KEYS, _ENTRIES, _VALUES),
        st.tuples(st.just("remove window"), _KEYS, _ENTRIES),
        st.tuples(st.just("append"), _KEYS, st.lists(_VALUES, max_size=3)),
        st.tuples(st.just("replace"), _KEYS, st.lists(_VALUES, max_size=3)),
        st.tuples(st.just("remove list"), _KEYS),
        st.tuples(st.just("put entry"), _KEYS, _ENTRIES, _VALUES),
        st.tuples(st.just("remove entry"), _KEYS, _ENTRIES),
        st.tuples(st.just("remove map"), _KEYS),
        st.tuples(st.just("epoch"), st.booleans()),
        st.tuples(st.just("crash"), st.booleans()),
    ),
    max_size=80,
)


class Model:
    """The same state as plain dictionaries."""

    def __init__(self) -> None:
        self.tables: dict[str, dict[Any, Any]] = {"v": {}, "w": {}, "l": {}, "m": {}}

    def apply(self, backend: KeyedStateBackend, name: str, arguments: tuple[Any, ...]) -> None:
        values, windows = backend.value_table("v"), backend.value_table("w", namespaced=True)
        lists, maps = backend.list_table("l"), backend.map_table("m")
        key, *rest = arguments
        v, w, lst, m = self.tables.values()
        match name, rest:
            case "put", [value]:
                values.put(key, value)
                v[key] = value
            case "remove", []:
                values.remove(key)
                v.pop(key, None)
            case "put in window", [window, value]:
                windows.put((key, window), value)
                w[key, window] = value
            case "remove window", [window]:
                windows.remove((key, window))
                w.pop((key, window), None)
            case "append", [elements]:
                if len(elements) == 1:
                    lists.append(key, elements[0])
                else:
                    lists.extend(key, elements)
                if elements:
                    lst.setdefault(key, []).extend(elements)
            case "replace", [elements]:
                lists.replace(key, elements)
                lst[key] = list(elements)
                if not elements:
                    del lst[key]
            case "remove list", []:
                lists.remove(key)
                lst.pop(key, None)
            case "put entry", [entry, value]:
                maps.put(key, entry, value)
                m.setdefault(key, {})[entry] = value
            case "remove entry", [entry]:
                maps.remove_entry(key, entry)
                m.get(key, {}).pop(entry, None)
                if not m.get(key, {1}):
                    del m[key]
            case "remove map", []:
                maps.remove(key)
                m.pop(key, None)
            case _:
                raise AssertionError(name)

    def check(self, backend: KeyedStateBackend) -> None:
        kept = backend.snapshot()
        assert {name: kept.get(name, {}) for name in self.tables} == self.tables
        for key in range(5):
            assert backend.value_table("v").get(key) == self.tables["v"].get(key, MISSING)
            assert backend.list_table("l").get(key) == self.tables["l"].get(key)
            entries = self.tables["m"].get(key, {})
            maps = backend.map_table("m")
            assert dict(maps.entries(key)) == entries
            assert maps.contains(key) == bool(entries)
            assert [maps.get(key, e) for e in range(4)] == [
                entries.get(e, MISSING) for e in range(4)
            ]


@given(_OPERATIONS, st.sampled_from([0, 100, 1000, 1 << 16]), st.booleans(), st.booleans())
@settings(
    deadline=None,
    # RocksDB opens a database for each example.
    max_examples=examples(50),
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
def test_any_history_equals_plain_dictionaries(
    create: Create,
    operations: list[tuple[Any, ...]],
    inline_threshold: int,
    has_directory: bool,
    in_background: bool,
) -> None:
    with tempfile.TemporaryDirectory() as directory, pytest.MonkeyPatch.context() as patch:
        if in_background:
            patch.setattr("firesteel.state.hashmap.backend._SMALL_BYTES", 0)
        state = SubtaskState(create, directory if has_directory else None, inline_threshold)
        now = Model()
        confirmed = copy.deepcopy(now)
        for name, *arguments in operations:
            if name == "epoch":
                if arguments[0]:
                    state.wait_for_snapshot()
                state.end_epoch()
                confirmed = copy.deepcopy(now)
            elif name == "crash":
                state.crash(same_process=arguments[0])
                now = copy.deepcopy(confirmed)
            else:
                now.apply(state.backend, name, tuple(arguments))
            now.check(state.backend)
        state.wait_for_snapshot()
        state.end_epoch()
        state.crash()
        now.check(state.backend)
        files = {path for segment in state.segments() for path in segment.paths()}
        assert {str(path) for path in Path(directory).iterdir()} >= files
        state.backend.close()


@given(
    _OPERATIONS,
    st.sampled_from([0, 100, 1000]),
    st.sampled_from([50, 1 << 22]),
    st.booleans(),
)
@settings(
    deadline=None,
    max_examples=examples(50),
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
def test_any_history_with_merged_segments_equals_plain_dictionaries(
    create: Create,
    operations: list[tuple[Any, ...]],
    inline_threshold: int,
    large_bytes: int,
    waits: bool,
) -> None:
    with tempfile.TemporaryDirectory() as directory, pytest.MonkeyPatch.context() as patch:
        patch.setattr("firesteel.state.changelog._MERGED_NEIGHBORS", 2)
        patch.setattr("firesteel.state.changelog._LARGE_BYTES", large_bytes)
        patch.setattr("firesteel.state.hashmap.backend._SMALL_BYTES", 0)
        # Full snapshots are rare, and happen while segments are merged.
        patch.setattr("firesteel.state.changelog._LOG_GROWTH", 10)
        state = SubtaskState(create, directory, inline_threshold)
        now = Model()
        confirmed = copy.deepcopy(now)
        retained: list[tuple[tuple[Segment, ...], Model]] = []
        for name, *arguments in operations:
            if name == "epoch":
                state.end_epoch()
                if waits:
                    state.wait_for_snapshot()
                    state.end_epoch()
                confirmed = copy.deepcopy(now)
                if arguments[0]:
                    retained.append((state.retain(), confirmed))
                if len(retained) > 3:
                    state.release()
                    retained.pop(0)
            elif name == "crash":
                state.crash(same_process=arguments[0])
                now = copy.deepcopy(confirmed)
            else:
                now.apply(state.backend, name, tuple(arguments))
            now.check(state.backend)
        for segments, model in retained:
            other = create()
            other.restore(segments, state.store)
            model.check(other)
            other.close()
        state.backend.close()


def test_the_log_stays_short_in_number_over_thousands_of_epochs(
    create: Create, tmp_path: Path
) -> None:
    state = SubtaskState(create, tmp_path, inline_threshold=2000)
    table = state.backend.value_table("t")
    random = Random(1)
    for number in range(20_000):
        table.put(number, random.randbytes(100))
    state.end_epoch()
    state.wait_for_snapshot()
    state.end_epoch()
    handles, files, written = [], [], 0
    for epoch in range(3_000):
        table.put(epoch, "y")
        for segment in state.end_epoch():
            assert not segment.full
            written += segment.size
        handles.append(len(state.segments()))
        files.append(len(list(tmp_path.iterdir())))
        if epoch % 16 == 0:
            state.wait_for_snapshot()
    size = sum(segment.size for segment in state.segments() if not segment.full)
    assert max(handles) <= 60
    # RocksDB's full segment consists of several files.
    assert max(files) <= 100
    # Each change is written about as often as the log can double.
    assert written <= 12 * size
    state.crash()
    assert state.backend.value_table("t").get(2_999) == "y"
    assert len(state.backend.value_table("t")) == 20_000
    state.backend.close()
    needed = {path for segment in state.segments() for path in segment.paths()}
    assert {str(path) for path in tmp_path.iterdir()} == needed


def test_a_merge_that_fails_is_tried_again_with_the_next_segments(
    create: Create, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: Any
) -> None:
    monkeypatch.setattr("firesteel.state.changelog._MERGED_NEIGHBORS", 4)
    state = SubtaskState(create, tmp_path)
    table = state.backend.value_table("t")
    for number in range(5_000):
        table.put(number, f"{number:0100d}")
    state.end_epoch()
    state.wait_for_snapshot()
    state.end_epoch()
    read = state.store.read

    def broken(segment: Segment) -> bytes:
        raise OSError("the disk is away")

    monkeypatch.setattr(state.store, "read", broken)
    for epoch in range(6):
        table.put(epoch, "y")
        state.end_epoch()
        state.wait_for_snapshot()
    assert "the disk is away" in caplog.text
    assert len(state.segments()) == 7
    monkeypatch.setattr(state.store, "read", read)
    for epoch in range(6):
        table.put(epoch, "z")
        state.end_epoch()
        state.wait_for_snapshot()
    assert len(state.segments()) < 7
    state.crash()
    assert [state.backend.value_table("t").get(key) for key in (5, 6)] == ["z", f"{6:0100d}"]


def test_the_log_stays_within_a_multiple_of_the_state(create: Create, tmp_path: Path) -> None:
    state = SubtaskState(create, tmp_path, inline_threshold=1000)
    for epoch in range(500):
        for entry in range(7):
            number = epoch * 7 + entry
            state.backend.value_table("t").put(number % 50, f"value {number}")
        state.end_epoch()
        state.wait_for_snapshot()
    segments = state.segments()
    assert [segment.full for segment in segments] == [True] + [False] * (len(segments) - 1)
    log = sum(segment.size for segment in segments if not segment.full)
    assert log <= max(1000, 3 * segments[0].size)
    # What a full segment replaced is gone.
    needed = {path for segment in segments for path in segment.paths()}
    assert {str(path) for path in tmp_path.iterdir()} == needed


def test_what_travels_in_every_control_row_is_bounded(create: Create, tmp_path: Path) -> None:
    state = SubtaskState(create, tmp_path, inline_threshold=2000)
    for number in range(2_000):
        state.backend.value_table("t").put(number, "x" * 50)
    state.end_epoch()
    # A large state, and epochs that change little: the log may grow long, in files.
    largest = 0
    for epoch in range(300):
        state.backend.value_table("t").put(epoch, "y")
        state.end_epoch()
        largest = max(largest, sum(len(s.inline or b"") for s in state.segments()))
    assert 0 < largest <= 2000
    state.crash()
    assert state.backend.value_table("t").get(299) == "y"
    assert len(state.backend.value_table("t")) == 2_000


def test_what_the_background_took_is_told_once(create: Create, tmp_path: Path) -> None:
    state = SubtaskState(create, tmp_path, inline_threshold=1000)
    random = Random(1)
    for number in range(50_000):
        state.backend.value_table("t").put(number, random.randbytes(50))
    state.end_epoch()
    assert state.backend.take_background_seconds() == 0
    state.wait_for_snapshot()
    assert [segment.full for segment in state.end_epoch()] == [True]
    assert 0 < state.backend.take_background_seconds() < 60
    assert state.backend.take_background_seconds() == 0


def test_without_a_directory_everything_is_inline(create: Create) -> None:
    state = SubtaskState(create, None, inline_threshold=10)
    for number in range(100):
        state.backend.value_table("t").put(number, number)
        state.end_epoch()
        state.wait_for_snapshot()
    assert all(not segment.paths() for segment in state.segments())
    state.crash()
    assert len(state.backend.value_table("t")) == 100


def test_an_epoch_without_changes_writes_nothing(create: Create) -> None:
    state = SubtaskState(create)
    state.backend.value_table("t")
    assert state.end_epoch() == ()


def test_an_epoch_writes_only_what_it_changed(create: Create, tmp_path: Path) -> None:
    state = SubtaskState(create, tmp_path)
    lists, maps = state.backend.list_table("l"), state.backend.map_table("m")
    lists.extend("key", range(100_000))
    for entry in range(100_000):
        maps.put("key", entry, "x")
    state.end_epoch()
    state.wait_for_snapshot()
    state.end_epoch()
    lists.append("key", "one more")
    maps.put("key", 7, "changed")
    maps.remove_entry("key", 8)
    (segment,) = state.end_epoch()
    assert not segment.full
    assert segment.size < 3_000
    state.crash()
    assert len(state.backend.list_table("l").get("key") or ()) == 100_001
    assert state.backend.map_table("m").get("key", 7) == "changed"
    assert len(dict(state.backend.map_table("m").entries("key"))) == 99_999


def test_a_map_is_read_as_it_was_when_the_reading_began(create: Create) -> None:
    maps = create().map_table("m")
    for entry in range(4):
        maps.put("key", entry, "old")
    seen = []
    for entry, value in maps.entries("key"):
        seen.append((entry, value))
        maps.remove_entry("key", entry)
        maps.put("key", 3, "new")
        maps.put("key", entry + 10, "added")
    assert sorted(seen) == [(entry, "old") for entry in range(4)]


@pytest.mark.parametrize("is_file", [True, False])
def test_damage_is_noticed(create: Create, tmp_path: Path, is_file: bool) -> None:
    state = SubtaskState(create, tmp_path, inline_threshold=0 if is_file else 1 << 20)
    state.backend.value_table("t").put("a", 1)
    (segment,) = state.seal()
    if is_file:
        (file,) = tmp_path.iterdir()
        file.write_bytes(b"!" + file.read_bytes()[1:])
        damaged = segment
    else:
        inline = b"!" + (segment.inline or b"")[1:]
        damaged = Segment(1, False, segment.size, inline=inline, checksum=segment.checksum)
    with pytest.raises(CorruptSegmentError, match="damaged"):
        create().restore([damaged], state.store)


def test_a_format_of_the_future_is_refused(create: Create) -> None:
    state = SubtaskState(create)
    with pytest.raises(UnknownFormatError, match="format 99"):
        create().restore([Segment(1, True, 3, inline=b"xyz", version=99)], state.store)
    with pytest.raises(CorruptSegmentError, match="neither inline content nor a file"):
        create().restore([Segment(1, True, 3)], state.store)
