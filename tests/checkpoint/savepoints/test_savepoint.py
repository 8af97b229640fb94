"""Savepoints are self-contained: they can be moved, and restored with any parallelism."""

from __future__ import annotations

import collections
import datetime as dt
import decimal
import fractions
import importlib
import pickle
import shutil
import uuid
import zoneinfo
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.sections.savepoint import Slot
from firesteel.checkpoint.metadata import (
    CheckpointMetadata,
    SnapshotType,
    SubtaskState,
)
from firesteel.checkpoint.payload import Payload
from firesteel.checkpoint.rules.restore import RestoreTarget, plan_restore
from firesteel.checkpoint.savepoints.description import show_snapshot
from firesteel.checkpoint.savepoints.keyed_state_files import (
    ForeignClassError,
    read_keyed_file,
    write_keyed_files,
)
from firesteel.checkpoint.savepoints.plain_pickle import foreign_class
from firesteel.checkpoint.savepoints.savepoint import (
    NoSavepointError,
    dispose_savepoint,
    savepoint_directory,
)
from firesteel.checkpoint.savepoints.savepoint_reader import (
    StateNotFoundError,
    open_state,
)
from firesteel.checkpoint.storage.checkpoint_directory import CheckpointDirectory
from firesteel.checkpoint.storage.metadata_file import (
    CheckpointNotFoundError,
    open_checkpoint,
    read_metadata,
)
from firesteel.checkpoint.storage.segment_store import StorageSegmentStore
from firesteel.checkpoint.storage.storage import (
    CorruptFileError,
    Storage,
    StorageError,
    open_storage,
)
from firesteel.common import Instant, Row, RowKind, Types
from firesteel.filesystems.file_systems import FileSystemOptions
from firesteel.state.changes import StateEntry
from firesteel.state.elements import encode_pair
from firesteel.state.hashmap.backend import HashMapKeyedStateBackend
from firesteel.state.key_groups import key_group_of, subtask_of
from firesteel.state.operator_state import OperatorState, Redistribution
from firesteel.task.state.restoring import restore_keyed_state
from firesteel.testing import StorageFault, StorageFaultKind, with_faults
from tests.checkpoint.builders import metadata, operator, write_savepoint
from tests.thoroughness import examples

_MAX = 16


class Point:
    """A class of the job."""

    def __init__(self, x: int) -> None:
        self.x = x

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Point) and other.x == self.x

    __hash__ = None  # type: ignore[assignment]


class Job:
    """A counting operator whose state lies in the segments of a checkpoint."""

    def __init__(self, storage: Storage, parallelism: int = 2) -> None:
        self.store = StorageSegmentStore(storage.at("shared"), inline_threshold=50)
        self.backends = [HashMapKeyedStateBackend(Types.STRING()) for _ in range(parallelism)]
        self.parallelism = parallelism
        self.limit: Any = 5

    def put(self, key: str, total: int, seen: Sequence[Any] = (), **sums: int) -> None:
        group = key_group_of(key, _MAX)
        backend = self.backends[subtask_of(group, self.parallelism, _MAX)]
        backend.value_table("total", element_type=Types.LONG()).put(key, total)
        if seen:
            backend.list_table("seen").replace(key, seen)
        table = backend.map_table("sums", entry_type=Types.STRING(), element_type=Types.LONG())
        for name, value in sums.items():
            table.put(key, name, value)
        timers = backend.value_table("_timers/x", namespaced=True)
        for time in range(total % 3):
            timers.put((key, (time, None)), None)

    def checkpoint(self, *more: Any) -> CheckpointMetadata:
        states = []
        for index, backend in enumerate(self.backends):
            segments = backend.seal(1, self.store)
            backend.confirm()
            rules = OperatorState(
                Redistribution.BROADCAST,
                (encode_pair("limit", self.limit),),
                '["broadcast", "STRING", "LONG"]',
            )
            states.append(
                SubtaskState(
                    segments,
                    operator_state={"rules": rules},
                    committables=(Payload.of(f"part-{index}"),),
                )
            )
        counting = operator("count", *states, uid="counter", max_parallelism=_MAX)
        return metadata(counting, *more, checkpoint_id=12)

    def savepoint(self, target: Storage, taken: CheckpointMetadata | None = None) -> None:
        taken = taken or self.checkpoint()
        write_savepoint(taken, target, self.store, Types.STRING())

    def entries(self) -> list[StateEntry]:
        return sorted(entry for one in self.backends for entry in one.entries())


def _filled(storage: Storage, parallelism: int = 2) -> Job:
    job = Job(storage, parallelism)
    for number in range(40):
        job.put(f"key {number}", number, [number, "x"], a=number, b=1)
    return job


def _restored(location: str, parallelism: int) -> list[HashMapKeyedStateBackend]:
    """The backends of a new job with another parallelism, each filled as a slot would do it."""
    _, found = open_checkpoint(location)
    target = RestoreTarget("id-of-count", "counter", "count", parallelism, _MAX)
    assigned = plan_restore(found, [target]).assignments["id-of-count"]
    backends = []
    for subtask in assigned.subtasks:
        backend = HashMapKeyedStateBackend(Types.STRING())
        store = StorageSegmentStore(None, 0)
        restore_keyed_state(backend, subtask, assigned.max_parallelism, assigned.states, store)
        # What was restored from elsewhere is written again at once.
        assert any(segment.full for segment in backend.seal(1, store)) == bool(subtask.keyed)
        for entry in backend.entries():
            assert key_group_of(entry.key, _MAX) in subtask.key_groups
        backends.append(backend)
    return backends


def test_it_has_everything_in_one_directory(storage: Storage) -> None:
    job = _filled(storage.at("job"))
    target = storage.at("savepoints/s1")
    job.savepoint(target)
    storage.delete_directory("job")
    found = read_metadata(target)
    assert found.type is SnapshotType.SAVEPOINT
    (counting,) = found.operators
    assert [state.name for state in counting.states] == [
        "_timers/x",
        "rules",
        "seen",
        "sums",
        "total",
    ]
    assert {file.path for file in target.list_files()} == {
        "_metadata",
        "state-id-of-count-0-0",
        "state-id-of-count-1-0",
    }
    read = [
        entry
        for subtask in counting.subtasks
        for file in subtask.files
        for entry in read_keyed_file(file, target)
    ]
    assert sorted(read) == job.entries()
    assert [one.committables for one in counting.subtasks] == [
        (Payload.of("part-0"),),
        (Payload.of("part-1"),),
    ]


@pytest.mark.parametrize("parallelism", [1, 2, 3, 16])
def test_it_is_moved_and_restored_with_another_parallelism(
    tmp_path: Path, parallelism: int
) -> None:
    job = _filled(open_storage(str(tmp_path / "job")))
    job.savepoint(open_storage(str(tmp_path / "here")))
    shutil.rmtree(tmp_path / "job")
    shutil.move(tmp_path / "here", tmp_path / "there")
    backends = _restored(str(tmp_path / "there"), parallelism)
    assert sorted(entry for one in backends for entry in one.entries()) == job.entries()


_values = st.integers() | st.text(max_size=3) | st.tuples(st.integers(), st.none())
_entries = st.lists(
    st.tuples(st.sampled_from(["v", "l", "m", "n"]), st.integers(0, 60), _values),
    max_size=60,
)


@given(_entries, st.integers(1, 20), st.integers(1, 64))
@settings(max_examples=examples(60))
def test_files_are_sorted_by_key_group_and_lose_nothing(
    tmp_path_factory: pytest.TempPathFactory,
    changes: list[tuple[str, int, Any]],
    file_entries: int,
    max_parallelism: int,
) -> None:
    backend = HashMapKeyedStateBackend()
    backend.value_table("v")
    backend.list_table("l")
    backend.map_table("m")
    backend.value_table("n", namespaced=True)
    for table, key, value in changes:
        if table == "v":
            backend.value_table("v").put(key, value)
        elif table == "l":
            backend.list_table("l").append(key, value)
        elif table == "m":
            backend.map_table("m").put(key, str(value), value)
        else:
            backend.value_table("n", namespaced=True).put((key, value), key)
    directory = open_storage(str(tmp_path_factory.mktemp("files")))
    files = write_keyed_files(
        backend.entries(),
        backend.descriptions(),
        directory,
        "state",
        max_parallelism=max_parallelism,
        file_entries=file_entries,
    )
    read = []
    for file in files:
        entries = list(read_keyed_file(file, directory))
        assert len(entries) <= file_entries
        for table in "vlmn":
            groups = [key_group_of(e.key, max_parallelism) for e in entries if e.table == table]
            assert groups == sorted(groups)
        groups = [key_group_of(entry.key, max_parallelism) for entry in entries]
        assert (file.key_groups.start, file.key_groups.end) == (min(groups), max(groups))
        read += entries
    expected = list(backend.entries())
    assert sorted(map(repr, read)) == sorted(map(repr, expected))
    for table in "vlmn":
        keys = {entry.key for entry in expected if entry.table == table}
        assert sum(file.keys[table] for file in files) == len(keys)
        assert sum(file.entries[table] for file in files) == sum(e.table == table for e in expected)


class TestDamage:
    def test_a_damaged_data_file_is_named(self, local: Storage) -> None:
        _filled(local.at("job")).savepoint(local.at("s"))
        name = "state-id-of-count-0-0"
        payload = local.at("s").read(name)
        local.at("s").write(name, payload[:-1] + b"?")
        with pytest.raises(CorruptFileError, match=name):
            list(open_state(local.at("s").location, "counter", "total").entries())

    @pytest.mark.parametrize("path", ["*count-1-0*", "*_metadata*"])
    @pytest.mark.parametrize("kind", [StorageFaultKind.FAIL, StorageFaultKind.FULL])
    def test_one_that_cannot_be_written_leaves_nothing(
        self, local: Storage, path: str, kind: StorageFaultKind
    ) -> None:
        job = _filled(local.at("job"))
        faulty, _ = with_faults(local.at("s"), StorageFault(kind, path=path))
        with pytest.raises(StorageError):
            job.savepoint(faulty)
        assert local.at("s").list_files() == []
        assert local.at("job").list_files()

    def test_a_segment_that_is_gone_leaves_nothing_either(self, local: Storage) -> None:
        job = _filled(local.at("job"))
        taken = job.checkpoint()
        local.delete_directory("job")
        with pytest.raises(RuntimeError, match="is missing"):
            job.savepoint(local.at("s"), taken)
        assert local.list_files() == []


class TestDisposal:
    def test_all_of_it_goes_and_nothing_else(self, local: Storage, s3: FileSystemOptions) -> None:
        for storage in (local, open_storage("s3://checkpoints/disposal", s3)):
            job = _filled(storage.at("job"))
            taken = job.checkpoint()
            for name in ("s1", "s2"):
                job.savepoint(storage.at(name), taken)
            before = len(storage.list_files())
            dispose_savepoint(storage.at("s1").location, s3)
            with pytest.raises(CheckpointNotFoundError):
                dispose_savepoint(storage.at("s1").location, s3)
            assert len(storage.list_files()) == before - 3
            assert read_metadata(storage.at("s2")).files()

    def test_what_a_user_put_beside_it_stays(self, local: Storage) -> None:
        _filled(local.at("job")).savepoint(local.at("s"))
        local.write("s/why.txt", b"before the upgrade")
        dispose_savepoint(local.at("s").location)
        assert [file.path for file in local.at("s").list_files()] == ["why.txt"]

    def test_a_checkpoint_is_not_the_users_to_delete(self, local: Storage) -> None:
        directory = CheckpointDirectory(local, "job")
        location = directory.write(_filled(directory.job).checkpoint(), ())
        assert location is not None
        with pytest.raises(NoSavepointError, match="is a checkpoint of the job 'a job'"):
            dispose_savepoint(location)
        assert read_metadata(directory.job.at("chk-12")).checkpoint_id == 12


class TestDescription:
    def test_a_savepoint_tells_what_is_in_it(self, local: Storage) -> None:
        job = _filled(local.at("job"))
        source = operator("source", SubtaskState(finished=True), coordinator=Payload.of(7))
        job.savepoint(local.at("s"), job.checkpoint(source))
        summary = show_snapshot(local.at("s").location)
        counting, numbers = summary.operators
        assert (summary.type, summary.checkpoint_id, summary.files) == ("savepoint", 12, 2)
        assert (counting.uid, counting.parallelism, counting.committables) == ("counter", 2, 2)
        states = {state.name: state for state in counting.states}
        assert (states["total"].keys, states["total"].entries) == (40, 40)
        assert states["total"].description == "a value state of Long by keys of type STRING"
        assert (states["_timers/x"].keys, states["_timers/x"].entries) == (26, 39)
        assert states["rules"].elements == 2
        assert states["rules"].description == "an operator broadcast state of STRING to LONG"
        assert not states["rules"].needs_classes
        assert not states["seen"].needs_classes
        assert numbers.has_coordinator_state
        assert sum(counting.subtask_sizes) == counting.size
        assert summary.to_json()["operators"][0]["states"][0]["name"] == "_timers/x"
        text = summary.to_text()
        for words in (
            "Savepoint 12 of job 'a job'",
            "'count': uid 'counter', id id-of-count",
            "parallelism 2 of at most 16",
            "'total': a value state of Long by keys of type STRING: 40 keys",
            "26 keys, 39 entries",
            "finished subtasks: 1",
        ):
            assert words in text

    def test_it_tells_which_states_need_classes_of_the_job(self, local: Storage) -> None:
        job = Job(local.at("job"))
        job.put("key", 1, [Point(3)])
        job.limit = Point(5)
        job.savepoint(local.at("s"))
        summary = show_snapshot(local.at("s").location)
        assert {s.name for s in summary.operators[0].states if s.needs_classes} == {"rules", "seen"}
        assert "needs classes of the job" in summary.to_text()

    def test_a_checkpoint_does_so_without_counts(self, local: Storage) -> None:
        directory = CheckpointDirectory(local, "job")
        location = directory.write(_filled(directory.job).checkpoint(), ())
        assert location is not None
        summary = show_snapshot(location)
        assert summary.type == "checkpoint"
        assert summary.size > 0


def _table(location: str, operator: str, state: str) -> pa.Table:
    found = open_state(location, operator, state)
    return found.arrow_table(found.entries())


class TestReading:
    def test_state_as_a_table(self, local: Storage) -> None:
        _filled(local.at("job")).savepoint(local.at("s"))
        location = local.at("s").location
        table = _table(location, "counter", "total")
        assert table.schema.to_string() == "key: string\nvalue: int64"
        assert sorted(table.to_pylist(), key=lambda row: row["value"])[3] == {
            "key": "key 3",
            "value": 3,
        }
        sums = _table(location, "count", "sums")
        assert str(sums.schema.field("value").type) == "map<string, int64>"
        seen = _table(location, "id-of-count", "seen")
        assert seen.column("value").to_pylist()[0].startswith("[")
        timers = _table(location, "counter", "_timers/x")
        assert timers.column_names == ["key", "namespace", "value"]

    def test_rows_and_tuples_become_structs(self, local: Storage) -> None:
        backend = HashMapKeyedStateBackend()
        row_type = Types.ROW_NAMED(["name", "age"], [Types.STRING(), Types.INT()])
        backend.value_table("rows", element_type=row_type).put((1, "x"), Row(name="a", age=3))
        ttl = backend.list_table("pairs", ttl=True)
        ttl.replace((1, "x"), [((1, 2), 99), ((3, 4), 99)])
        states = SubtaskState(backend.seal(1, StorageSegmentStore(None, 0)))
        job = Job(local.at("job"))
        taken = metadata(operator("rows", states))
        write_savepoint(taken, local.at("s"), job.store)
        location = local.at("s").location
        assert _table(location, "rows", "rows").to_pylist() == [
            {"key": {"f0": 1, "f1": "x"}, "value": {"name": "a", "age": 3}}
        ]
        assert _table(location, "rows", "pairs").to_pylist()[0]["value"] == [
            {"f0": 1, "f1": 2},
            {"f0": 3, "f1": 4},
        ]

    def test_what_is_not_there_is_listed(self, local: Storage) -> None:
        _filled(local.at("job")).savepoint(local.at("s"))
        location = local.at("s").location
        with pytest.raises(StateNotFoundError, match=r"'x' is not the uid.*uid 'counter'"):
            open_state(location, "x", "total")
        with pytest.raises(StateNotFoundError, match=r"has no keyed state 'x'.*'seen', 'sums'"):
            open_state(location, "counter", "x")

    def test_classes_of_the_job_are_rebuilt_only_if_that_is_wanted(self, local: Storage) -> None:
        job = Job(local.at("job"))
        job.put("key", 1, [Point(3)])
        job.savepoint(local.at("s"))
        location = local.at("s").location
        with pytest.raises(ForeignClassError, match=r"'seen' .*Point.*allow_pickle=True"):
            list(open_state(location, "counter", "seen").entries())
        (entry,) = open_state(location, "counter", "seen", allow_pickle=True).entries()
        assert entry.value == [Point(3)]
        # A job that restores its own state needs its own classes.
        assert _restored(location, 1)[0].snapshot()["seen"] == {"key": [Point(3)]}


@pytest.mark.parametrize(
    ("value", "foreign"),
    [
        ([1, "a", None, (2.5, b"x"), {"k": [True]}, {1, 2}, frozenset({3})], None),
        (Row(name="a", age=1), None),
        (fractions.Fraction(1, 3), "fractions.Fraction"),
        (Point(1), "Point"),
        (print, "builtins.print"),
        (zoneinfo.ZoneInfo.no_cache, "builtins.getattr"),
    ],
    ids=["plain", "row", "class", "own class", "function", "attribute"],
)
def test_plain_data_is_told_from_classes(value: Any, foreign: str | None) -> None:
    found = foreign_class(pickle.dumps(value, protocol=5))
    assert (found is None) if foreign is None else (found is not None and foreign in found)


def _deleted_row() -> Row:
    row = Row(1)
    row.set_row_kind(RowKind.DELETE)
    return row


@pytest.mark.parametrize(
    "value",
    [
        dt.datetime(2026, 1, 2, 3, tzinfo=dt.UTC),
        dt.datetime(2026, 1, 2, tzinfo=zoneinfo.ZoneInfo("Europe/Berlin")),
        [dt.timedelta(1), dt.date(2026, 1, 2), dt.time(1)],
        decimal.Decimal("1.50"),
        uuid.UUID(int=7),
        Instant(1, 2),
        _deleted_row(),
        collections.OrderedDict(a=1),
        collections.deque([1], 3),
        (complex(1, 2), bytearray(b"x")),
    ],
    ids=lambda value: type(value).__name__,
)
def test_every_kind_of_plain_data_is_let_through(value: Any) -> None:
    assert foreign_class(pickle.dumps([value], protocol=5)) is None


@pytest.mark.parametrize("name", ["uuid\nUUID", "firesteel.common.types\n_create_row"])
def test_a_pickle_cannot_change_the_classes_it_names(name: str) -> None:
    """It can tell the unpickler to set attributes, also of classes and functions."""
    named = getattr(importlib.import_module(name.split("\n", maxsplit=1)[0]), name.split("\n")[1])
    for state in (b"}U\x06hackedK\x01s", b"N}U\x06hackedK\x01s\x86"):
        harmful = b"\x80\x02c" + name.encode() + b"\n" + state + b"b."
        assert foreign_class(harmful) is not None
        assert not hasattr(named, "hacked")


def test_a_pickle_cannot_change_the_kinds_of_rows() -> None:
    insert = b"cfiresteel.common.types\nRowKind\nK\x00\x85R"
    assert foreign_class(b"\x80\x02" + insert + b".") is None
    assert foreign_class(b"\x80\x02" + insert + b"}U\x07_value_K\x01sb.") is not None
    assert RowKind.INSERT.value == 0


def test_what_is_no_pickle_is_no_plain_data() -> None:
    assert foreign_class(b"\x80\x05nonsense") is not None


def test_the_name_of_a_savepoint_is_flinks() -> None:
    assert savepoint_directory("/s", "0123456789abcdef", "f" * 32) == (
        "/s/savepoint-012345-ffffffffffff"
    )


def test_a_relative_directory_is_that_of_the_driver(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Slots have working directories of their own."""
    monkeypatch.chdir(tmp_path)
    relative, uri = (
        savepoint_directory(target, "0123456789abcdef", "f" * 32) for target in ("s", "s3://bucket")
    )
    assert relative == f"{tmp_path}/s/savepoint-012345-ffffffffffff"
    assert uri == "s3://bucket/savepoint-012345-ffffffffffff"


def test_the_memory_of_the_driver_does_not_depend_on_the_size_of_the_state(tmp_path: Path) -> None:
    """It completes a savepoint that a slot has written, and opens it to restore the job."""
    peaks: list[int] = []
    for megabytes in (1, 1, 16):
        directory = tmp_path / str(len(peaks))
        slot = Slot("hashmap", 10_000, directory, megabytes << 20)
        target = open_storage(str(directory / "savepoint"))
        slot.save(target)
        peaks.append(slot.driver_bytes(target))
        slot.backend.close()
    # The first turn also loads code.
    _, small, large = peaks
    assert large < small + 50_000
