"""Savepoints that are created or changed, and the jobs that continue from them."""

from __future__ import annotations

import shutil
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from firesteel.checkpoint.savepoints.keyed_state_files import ForeignClassError
from firesteel.checkpoint.savepoints.keyed_state_import import DuplicateKeyError
from firesteel.checkpoint.savepoints.savepoint_reader import StateNotFoundError
from firesteel.common import Configuration, Row, Types
from firesteel.common.time import Time
from firesteel.datastream import KeyedProcessFunction, StreamExecutionEnvironment
from firesteel.datastream.state import (
    ListStateDescriptor,
    MapStateDescriptor,
    StateTtlConfig,
    ValueStateDescriptor,
)
from firesteel.errors import FiresteelError, InvalidProgramError, TypeMismatchError
from firesteel.state_processor import SavepointReader, SavepointWriter
from firesteel.testing import JobHarness
from tests.state_processor.jobs import (
    COUNT,
    KEYS,
    RULES,
    Point,
    counting,
    harness_of,
    limiting,
)


def _counts(**values: int) -> pa.Table:
    return pa.table({"key": [int(k[1:]) for k in values], "value": list(values.values())})


def _ended(harness: JobHarness) -> JobHarness:
    harness.run()
    return harness


@pytest.mark.parametrize(("backend", "other"), [("hashmap", "rocksdb"), ("rocksdb", "hashmap")])
@pytest.mark.parametrize("kind", ["savepoint", "checkpoint"])
def test_a_job_goes_on_from_what_was_changed(
    env: StreamExecutionEnvironment, tmp_path: Path, backend: str, other: str, kind: str
) -> None:
    before = harness_of(counting, backend)
    path = before.savepoint() if kind == "savepoint" else before.checkpoint()
    old = before.keyed_state()["count"]
    changed = str(tmp_path / "changed")
    counts = SavepointReader.read(env, path).read_keyed_state_as_arrow("count", "count")
    more = counts.set_column(1, "value", pa.array([v + 1000 for v in counts["value"].to_pylist()]))
    SavepointWriter.from_existing_savepoint(env, path).with_keyed_state(
        "count", "count", more
    ).write(changed)
    # The new one stands on its own.
    shutil.rmtree(path)
    backend_setting = Configuration()
    backend_setting.set_string("state.backend.type", other)
    after = _ended(before.resume(changed, configuration=backend_setting, parallelism=3))
    new = after.keyed_state()["count"]
    assert new["count"] == dict.fromkeys(range(KEYS), 1000 + 60 // KEYS)
    firsts = dict(reversed(after.collected))
    assert firsts == {key: old["count"][key] + 1001 for key in range(KEYS)}
    # State that was not changed continued, too.
    assert sum(map(sum, (m.values() for m in new["parity"].values()))) == 60
    assert new["last"] == {key: [50 + key, 55 + key] for key in range(KEYS)}


def test_rows_that_are_gone_are_keys_without_state(
    env: StreamExecutionEnvironment, tmp_path: Path
) -> None:
    before = harness_of(counting)
    path = before.savepoint()
    SavepointWriter.from_existing_savepoint(env, path).with_keyed_state(
        "count", "count", _counts(k3=500)
    ).write(str(tmp_path / "s"))
    first = dict(reversed(_ended(before.resume(str(tmp_path / "s"))).collected))
    assert first == {0: 1, 1: 1, 2: 1, 3: 501, 4: 1}


def test_a_job_begins_with_state_that_was_made_up(
    env: StreamExecutionEnvironment, tmp_path: Path
) -> None:
    path = str(tmp_path / "new")
    writer = SavepointWriter.new_savepoint(env, max_parallelism=128)
    writer.with_keyed_state("count", COUNT, _counts(k0=100, k4=400), Types.LONG())
    writer.with_list_state(
        "list", ListStateDescriptor("seen", Types.LONG()), pa.table({"value": [-1, -2, -3]})
    )
    writer.with_union_state(
        "union", ListStateDescriptor("seen", Types.LONG()), pa.table({"value": [-4]})
    )
    writer.write(path)
    configuration = Configuration()
    configuration.set_string("execution.state-recovery.path", path)
    harness = JobHarness(
        counting,
        parallelism=3,
        configuration=configuration,
        checkpoint_every=0,
        records_per_epoch=5,
    )
    end = harness.stop(str(tmp_path))
    first = dict(reversed(harness.collected))
    assert first[0] == 101
    assert first[4] == 401
    reader = SavepointReader.read(env, end)
    seen = reader.read_list_state_as_arrow("list", "seen").column("value").to_pylist()
    assert {-1, -2, -3} < set(seen)
    assert seen.count(-1) == 1
    union = reader.read_union_state_as_arrow("union", "seen").column("value").to_pylist()
    assert union.count(-4) == 3


def test_broadcast_state_is_changed_for_all(
    env: StreamExecutionEnvironment, tmp_path: Path
) -> None:
    before = harness_of(limiting)
    path = before.savepoint()
    rules = pa.table({"key": ["limit"], "value": [99]})
    SavepointWriter.from_existing_savepoint(env, path).with_broadcast_state(
        "limit", "rules", rules
    ).write(str(tmp_path / "s"))
    after = _ended(before.resume(str(tmp_path / "s"), parallelism=3))
    assert {limit for _, limit in after.collected} == {99}
    with pytest.raises(InvalidProgramError, match="needs a MapStateDescriptor"):
        SavepointWriter.new_savepoint(env, 8).with_broadcast_state("u", COUNT, rules)  # type: ignore[arg-type]
    SavepointWriter.new_savepoint(env, 8).with_broadcast_state("u", RULES, rules)


def test_an_operator_gets_another_uid_or_goes(
    env: StreamExecutionEnvironment, tmp_path: Path
) -> None:
    before = harness_of(counting)
    path = before.savepoint()
    writer = SavepointWriter.from_existing_savepoint(env, path)
    writer.change_operator_identifier("count", "other").remove_operator("union")
    writer.write(str(tmp_path / "s"))
    after = _ended(before.resume(str(tmp_path / "s"), program=partial(counting, uid="other")))
    assert after.keyed_state()["other"]["count"] == dict.fromkeys(range(KEYS), 60 // KEYS)
    with pytest.raises(StateNotFoundError, match="'union'"):
        SavepointReader.read(env, str(tmp_path / "s")).read_union_state_as_arrow("union", "seen")
    with pytest.raises(InvalidProgramError, match="already has an operator with uid 'list'"):
        writer.change_operator_identifier("other", "list")


def test_copying_a_savepoint_rebuilds_no_object_of_the_job(
    env: StreamExecutionEnvironment, tmp_path: Path
) -> None:
    before = harness_of(partial(counting, points=True))
    savepoint, checkpoint = before.savepoint(), before.checkpoint()
    Point.rebuilt = 0
    SavepointWriter.from_existing_savepoint(env, savepoint).with_keyed_state(
        "count", "count", _counts(k1=7)
    ).write(str(tmp_path / "s"))
    assert Point.rebuilt == 0
    # A checkpoint has another format, so its objects have to be read.
    with pytest.raises(ForeignClassError, match="Point"):
        SavepointWriter.from_existing_savepoint(env, checkpoint).write(str(tmp_path / "c"))
    assert not (tmp_path / "c").exists()
    SavepointWriter.from_existing_savepoint(env, checkpoint, allow_pickle=True).write(
        str(tmp_path / "c")
    )
    for path in (tmp_path / "s", tmp_path / "c"):
        reader = SavepointReader.read(env, str(path))
        points = reader.read_keyed_state_as_arrow("count", "point", allow_pickle=True)
        assert points.num_rows == KEYS


class Sees(KeyedProcessFunction):
    """Gives what it finds."""

    def __init__(self, *descriptors: Any) -> None:
        self._descriptors = descriptors

    def open(self, runtime_context: Any) -> None:
        value, listed, mapped = self._descriptors
        self.states = [
            runtime_context.get_state(value),
            runtime_context.get_list_state(listed),
            runtime_context.get_map_state(mapped),
        ]

    def process_element(self, value: Any, ctx: Any) -> Any:
        found, listed, mapped = self.states
        yield found.value(), list(listed.get()), dict(mapped.items())


def test_rows_tuples_and_a_time_to_live(env: StreamExecutionEnvironment, tmp_path: Path) -> None:
    pair = Types.TUPLE([Types.STRING(), Types.LONG()])
    person = Types.ROW_NAMED(["name", "age"], [Types.STRING(), Types.LONG()])
    value = ValueStateDescriptor("v", person)
    listed = ListStateDescriptor("l", pair)
    listed.enable_time_to_live(StateTtlConfig.new_builder(Time.days(1000)).build())
    mapped = MapStateDescriptor("m", pair, person)
    key = [{"f0": "k", "f1": 1}]
    writer = SavepointWriter.new_savepoint(env, 16)
    ada = {"name": "Ada", "age": 36}
    for descriptor, content in (
        (value, ada),
        (listed, [{"f0": "a", "f1": 1}, {"f0": "b", "f1": 2}]),
        (mapped, [({"f0": "x", "f1": 9}, ada)]),
    ):
        column = pa.array([content], descriptor.type_info.to_arrow_type())
        writer.with_keyed_state("sees", descriptor, pa.table({"key": key, "value": column}), pair)
    writer.write(str(tmp_path / "s"))

    def program(environment: StreamExecutionEnvironment) -> Any:
        environment.set_max_parallelism(16)
        records = environment.from_collection([("k", 1)], pair)
        return records.key_by(lambda r: r, pair).process(Sees(value, listed, mapped)).uid("sees")

    configuration = Configuration()
    configuration.set_string("execution.state-recovery.path", str(tmp_path / "s"))
    harness = _ended(JobHarness(program, configuration=configuration, now=1.0))
    row = Row(name="Ada", age=36)
    assert harness.collected == [(row, [("a", 1), ("b", 2)], {("x", 9): row})]


@pytest.mark.parametrize(
    ("state", "rows", "error", "words"),
    [
        ("count", {"key": [1], "v": [1]}, InvalidProgramError, "must have the columns: key, value"),
        (
            "count",
            {"key": [1, 1], "value": [1, 2]},
            DuplicateKeyError,
            "key 1 has more than one row",
        ),
        ("count", {"key": [1], "value": ["x"]}, TypeMismatchError, "the state 'count'"),
        ("count", {"key": ["x"], "value": [1]}, TypeMismatchError, "a key of the state 'count'"),
        ("last", {"key": [1], "value": [7]}, InvalidProgramError, "list state.*must be an array"),
        ("nothing", {"key": [1], "value": [1]}, StateNotFoundError, "pass its descriptor"),
        (
            "_timers/user-timers/event",
            {"key": [1], "value": [1]},
            InvalidProgramError,
            "only the job itself",
        ),
    ],
)
def test_what_does_not_fit_is_refused_and_leaves_nothing(
    env: StreamExecutionEnvironment,
    tmp_path: Path,
    state: str,
    rows: dict[str, Any],
    error: type[FiresteelError],
    words: str,
) -> None:
    writer = SavepointWriter.from_existing_savepoint(env, harness_of(counting).savepoint())
    with pytest.raises(error, match=words):
        writer.with_keyed_state("count", state, pa.table(rows)).write(str(tmp_path / "s"))
    assert not (tmp_path / "s").exists()


def test_keys_that_are_structs_need_a_type(env: StreamExecutionEnvironment, tmp_path: Path) -> None:
    writer = SavepointWriter.new_savepoint(env, 8)
    rows = pa.table({"key": [{"f0": 1, "f1": "x"}], "value": [1]})
    with pytest.raises(InvalidProgramError, match=r"tuples or rows: pass key_type"):
        writer.with_keyed_state("count", COUNT, rows).write(str(tmp_path / "s"))


def test_nothing_is_no_state(env: StreamExecutionEnvironment, tmp_path: Path) -> None:
    writer = SavepointWriter.new_savepoint(env, 8)
    writer.with_keyed_state("x", COUNT, pa.table({"key": [1, 2], "value": [None, 3]}))
    lists = ListStateDescriptor("l", Types.LONG())
    writer.with_keyed_state("x", lists, pa.table({"key": [1, 2], "value": [[], [3]]}))
    writer.write(str(tmp_path / "s"))
    reader = SavepointReader.read(env, str(tmp_path / "s"))
    for state in ("count", "l"):
        assert reader.read_keyed_state_as_arrow("x", state).column("key").to_pylist() == [2]


def test_a_directory_with_files_is_refused(env: StreamExecutionEnvironment, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises(InvalidProgramError, match="needs a new or empty directory"):
        SavepointWriter.new_savepoint(env, 8).write(str(tmp_path))
    assert (tmp_path / "file").read_text() == "mine"
