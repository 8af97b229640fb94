"""Reads all state of a job as tables, and runs no code of the job unless the user allows it."""

from __future__ import annotations

from functools import partial
from typing import Any

import pyarrow as pa
import pytest

from firesteel.checkpoint.savepoints.keyed_state_files import ForeignClassError
from firesteel.checkpoint.savepoints.savepoint_reader import StateNotFoundError
from firesteel.checkpoint.storage.metadata_file import open_checkpoint
from firesteel.datastream import StreamExecutionEnvironment
from firesteel.state_processor import SavepointReader
from firesteel.testing import JobHarness
from tests.state_processor.jobs import Point, counting, harness_of, limiting

_BACKENDS = ["hashmap", "rocksdb"]


def _snapshot(harness: JobHarness, kind: str) -> str:
    if kind == "checkpoint":
        return harness.checkpoint()
    return harness.savepoint(native=kind == "native savepoint")


def _in_files_of_rocksdb(program: Any) -> str:
    """A job that was restored writes everything anew; here in RocksDB's own files."""
    harness = harness_of(program, "rocksdb")
    restored = harness.resume(harness.savepoint())
    path = restored.checkpoint()
    _, metadata = open_checkpoint(path)
    assert any(segment.files for one in metadata.subtasks() for segment in one.segments)
    return path


def _by_key(table: pa.Table) -> dict[Any, Any]:
    return {row["key"]: row["value"] for row in table.to_pylist()}


@pytest.mark.parametrize("backend", _BACKENDS)
@pytest.mark.parametrize("kind", ["savepoint", "native savepoint", "checkpoint"])
def test_keyed_state_of_every_kind_comes_typed(
    env: StreamExecutionEnvironment, backend: str, kind: str
) -> None:
    harness = harness_of(counting, backend)
    path = _snapshot(harness, kind)
    state = harness.keyed_state()["count"]
    reader = SavepointReader.read(env, path)
    counts = reader.read_keyed_state_as_arrow("count", "count")
    assert counts.schema.to_string() == "key: int64\nvalue: int64"
    assert _by_key(counts) == state["count"] != {}
    last = reader.read_keyed_state_as_arrow("count", "last")
    assert str(last.schema.field("value").type) == "list<item: int64>"
    assert _by_key(last) == state["last"] != {}
    parity = reader.read_keyed_state_as_arrow("count", "parity")
    assert str(parity.schema.field("value").type) == "map<string, int64>"
    assert {key: dict(value) for key, value in _by_key(parity).items()} == state["parity"] != {}


def test_files_of_rocksdb_are_read(env: StreamExecutionEnvironment) -> None:
    reader = SavepointReader.read(env, _in_files_of_rocksdb(partial(counting, points=True)))
    assert sorted(_by_key(reader.read_keyed_state_as_arrow("count", "count"))) == [0, 1, 2, 3, 4]
    Point.rebuilt = 0
    with pytest.raises(ForeignClassError, match=r"'point' .*Point.*allow_pickle=True"):
        reader.read_keyed_state_as_arrow("count", "point")
    assert Point.rebuilt == 0
    points = reader.read_keyed_state_as_arrow("count", "point", allow_pickle=True)
    assert points.num_rows == 5


@pytest.mark.parametrize("kind", ["savepoint", "native savepoint", "checkpoint"])
def test_timers_have_a_namespace(env: StreamExecutionEnvironment, kind: str) -> None:
    path = _snapshot(harness_of(counting), kind)
    reader = SavepointReader.read(env, path)
    with pytest.raises(StateNotFoundError, match=r"no keyed state 'x'.*'count', 'last'"):
        reader.read_keyed_state_as_arrow("count", "x")
    table = reader.read_keyed_state_as_arrow("count", "_timers/user-timers/event")
    assert table.column_names == ["key", "namespace", "value"]
    assert sorted(table.column("key").to_pylist()) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("kind", ["savepoint", "native savepoint", "checkpoint"])
def test_lists_of_all_subtasks_come_together(env: StreamExecutionEnvironment, kind: str) -> None:
    harness = harness_of(counting)
    path = _snapshot(harness, kind)
    reader = SavepointReader.read(env, path)
    records = sum(harness.keyed_state()["count"]["count"].values())
    for table in (
        reader.read_list_state_as_arrow("list", "seen"),
        reader.read_union_state_as_arrow("union", "seen"),
    ):
        assert table.schema.to_string() == "value: int64"
        assert len(set(table.column("value").to_pylist())) == table.num_rows == records == 20
    with pytest.raises(
        StateNotFoundError, match=r"no list state 'seen'.*'seen' \(a union list state\)"
    ):
        reader.read_list_state_as_arrow("union", "seen")


@pytest.mark.parametrize("kind", ["savepoint", "native savepoint", "checkpoint"])
def test_broadcast_state_is_there_once(env: StreamExecutionEnvironment, kind: str) -> None:
    path = _snapshot(harness_of(limiting), kind)
    rules = SavepointReader.read(env, path).read_broadcast_state_as_arrow("limit", "rules")
    assert rules.schema.to_string() == "key: string\nvalue: int64"
    assert rules.to_pylist() == [{"key": "limit", "value": 7}]


@pytest.mark.parametrize("backend", _BACKENDS)
@pytest.mark.parametrize("kind", ["savepoint", "native savepoint", "checkpoint"])
def test_classes_of_the_job_are_rebuilt_only_if_that_is_wanted(
    env: StreamExecutionEnvironment, backend: str, kind: str
) -> None:
    path = _snapshot(harness_of(partial(counting, points=True), backend), kind)
    reader = SavepointReader.read(env, path)
    Point.rebuilt = 0
    # A state beside it needs no class.
    assert reader.read_keyed_state_as_arrow("count", "count").num_rows == 5
    with pytest.raises(ForeignClassError, match=r"'point' .*Point.*allow_pickle=True"):
        reader.read_keyed_state_as_arrow("count", "point")
    assert Point.rebuilt == 0
    table = reader.read_keyed_state_as_arrow("count", "point", allow_pickle=True)
    assert Point.rebuilt >= 5
    assert all(text.startswith("Point(") for text in table.column("value").to_pylist())
