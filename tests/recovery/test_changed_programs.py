"""A stopped job continues with a changed program, in a new place, or from its last checkpoint."""

from __future__ import annotations

import json
import logging
import shutil
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from firesteel.checkpoint.rules.restore import KeyTypeChangedError, NonRestoredStateError
from firesteel.cli.main import main
from firesteel.common import Configuration, Time, Types
from firesteel.common.job_status import JobStatus
from firesteel.datastream import KeyedProcessFunction, StreamExecutionEnvironment
from firesteel.datastream.functions import BroadcastProcessFunction
from firesteel.datastream.state import (
    ListStateDescriptor,
    MapStateDescriptor,
    StateDescriptor,
    StateTtlConfig,
    ValueStateDescriptor,
)
from firesteel.errors import FiresteelError
from firesteel.testing import JobHarness

RECORDS, KEYS = 60, 5
LONG = Types.LONG()
COUNT = ValueStateDescriptor("count", Types.LONG())
RULES = MapStateDescriptor("rules", Types.STRING(), Types.LONG())


class Count(KeyedProcessFunction):
    """Gives (key, count); ``also`` is a state that it only asks for."""

    def __init__(
        self, also: StateDescriptor | None = None, count: ValueStateDescriptor = COUNT
    ) -> None:
        self._also = also
        self._count = count

    def open(self, runtime_context: Any) -> None:
        if isinstance(self._also, ListStateDescriptor):
            runtime_context.get_list_state(self._also)
        elif self._also is not None:
            runtime_context.get_state(self._also)
        self.count = runtime_context.get_state(self._count)

    def process_element(self, value: Any, ctx: Any) -> Any:
        self.count.update((self.count.value() or 0) + 1)
        yield ctx.get_current_key(), self.count.value()


class Rules(BroadcastProcessFunction):
    def __init__(self, rules: MapStateDescriptor) -> None:
        self._rules = rules

    def process_element(self, value: Any, ctx: Any) -> Any:
        yield value, ctx.get_broadcast_state(self._rules).get("limit")

    def process_broadcast_element(self, value: Any, ctx: Any) -> None:
        ctx.get_broadcast_state(self._rules).put(*value)


class Program:
    """``twice``: the counts are counted, too. ``mapped``: an operator without state stands before."""

    def __init__(
        self,
        *,
        twice: bool = False,
        mapped: bool = False,
        also: StateDescriptor | None = None,
        key_type: Any = LONG,
        count: ValueStateDescriptor = COUNT,
    ) -> None:
        self._count = count
        self._twice = twice
        self._mapped = mapped
        self._also = also
        self._key_type = key_type

    def __call__(self, env: StreamExecutionEnvironment) -> Any:
        numbers = env.from_collection(list(range(RECORDS)), Types.LONG()).uid("numbers")
        if self._mapped:
            numbers = numbers.map(lambda n: n, Types.LONG()).uid("same")
        as_text = self._key_type == Types.STRING()
        keyed = numbers.key_by(lambda n: str(n % KEYS) if as_text else n % KEYS, self._key_type)
        counts = keyed.process(Count(self._also, self._count)).uid("count").name("Count")
        if self._twice:
            again = counts.key_by(lambda pair: pair[0], self._key_type)
            return again.process(Count()).uid("count again").name("Count again")
        return counts


def _started(program: Any, **settings: str) -> JobHarness:
    configuration = Configuration()
    for key, value in settings.items():
        configuration.set_string(key.replace("__", "-").replace("_", "."), value)
    harness = JobHarness(
        program, parallelism=2, records_per_epoch=5, configuration=configuration, checkpoint_every=0
    )
    for _ in range(3):
        harness.run_epoch()
    return harness


def _setting(key: str, value: str) -> Configuration:
    configuration = Configuration()
    configuration.set_string(key, value)
    return configuration


_ALL = dict.fromkeys(range(KEYS), RECORDS // KEYS)


def test_operators_are_added_and_removed(caplog: pytest.LogCaptureFixture) -> None:
    before = _started(Program(twice=True))
    path = before.stop()
    changed = Program(mapped=True)
    with pytest.raises(NonRestoredStateError) as refused:
        before.resume(path, program=changed)
    listing = (
        "Operators with restored state: 'Source: Collection Source' (uid 'numbers'), 'Count' "
        "(uid 'count'). New operators, without state: "
    )
    assert listing in str(refused.value)
    assert "(uid 'same')" in str(refused.value)
    assert "no operator of the job claims: 'Count again' (uid 'count again')" in str(refused.value)
    assert "execution.state-recovery.ignore-unclaimed-state: true" in str(refused.value)
    allowed = _setting("execution.state-recovery.ignore-unclaimed-state", "true")
    with caplog.at_level(logging.INFO, "firesteel"):
        after = before.resume(path, program=changed, configuration=allowed)
    assert listing in caplog.text
    after.run()
    assert after.keyed_state()["count"]["count"] == _ALL


def test_an_operator_may_be_new(caplog: pytest.LogCaptureFixture) -> None:
    before = _started(Program())
    after = before.resume(before.stop(), program=Program(twice=True))
    after.run()
    state = after.keyed_state()
    assert state["count"]["count"] == _ALL
    # It has counted from the moment it was there.
    assert sum(state["count again"]["count"].values()) < RECORDS


@pytest.mark.parametrize("backend", ["hashmap", "rocksdb"])
@pytest.mark.parametrize(
    "now",
    [ValueStateDescriptor("count", Types.STRING()), ListStateDescriptor("count", Types.LONG())],
)
def test_a_state_of_another_type_is_refused_at_once(backend: str, now: StateDescriptor) -> None:
    before = _started(Program(), state_backend_type=backend)
    after = before.resume(before.stop(), program=Program(also=now))
    # The restart strategy would try it for ever; here is nothing to hope for.
    with pytest.raises(FiresteelError) as refused:
        after.run()
    wanted = (
        "a list state of Long"
        if isinstance(now, ListStateDescriptor)
        else "a value state of String"
    )
    assert "'Count'" in str(refused.value)
    assert (
        f"the state 'count' exists as a value state of Long, but the program declares {wanted}"
        in str(refused.value)
    )


@pytest.mark.parametrize("backend", ["hashmap", "rocksdb"])
@pytest.mark.parametrize("parallelism", [2, 3])
def test_a_ttl_is_added_and_dropped(backend: str, parallelism: int) -> None:
    expiring = ValueStateDescriptor("count", Types.LONG())
    expiring.enable_time_to_live(StateTtlConfig.new_builder(Time.days(1)).build())
    harness = _started(Program(), state_backend_type=backend)
    for count in (expiring, COUNT):
        program = Program(count=count)
        harness = harness.resume(harness.stop(), program=program, parallelism=parallelism)
        harness.run_epoch()
        harness.checkpoint()
        harness.crash()
    harness.run()
    assert harness.keyed_state()["count"]["count"] == _ALL


def test_a_broadcast_state_of_another_type_is_refused_at_once() -> None:
    def program(rules: MapStateDescriptor) -> Any:
        def build(env: StreamExecutionEnvironment) -> Any:
            numbers = env.from_collection(list(range(RECORDS))).uid("numbers")
            limits = env.from_collection([("limit", 7)]).uid("limits")
            return numbers.connect(limits.broadcast(rules)).process(Rules(rules)).uid("rules")

        return build

    before = _started(program(RULES))
    path = before.stop()
    texts = MapStateDescriptor("rules", Types.STRING(), Types.STRING())
    with pytest.raises(
        FiresteelError, match=r"the state 'rules' exists as .*STRING to LONG.*STRING to STRING"
    ):
        before.resume(path, program=program(texts)).run()


def test_keys_of_another_type_are_refused() -> None:
    before = _started(Program())
    path = before.stop()
    with pytest.raises(
        KeyTypeChangedError, match=r"'Count' \(uid 'count'\).*keys of type Long.*String"
    ):
        before.resume(path, program=Program(key_type=Types.STRING()))
    # What is not declared may be anything.
    after = before.resume(path, program=Program(key_type=None))
    after.run()
    assert after.keyed_state()["count"]["count"] == _ALL


@pytest.mark.parametrize(("backend", "other"), [("hashmap", "rocksdb"), ("rocksdb", "hashmap")])
def test_a_moved_savepoint_is_restored_on_the_other_backend(
    tmp_path: Path, backend: str, other: str
) -> None:
    before = _started(Program(), state_backend_type=backend)
    path = before.stop(str(tmp_path / "here"))
    shutil.move(path, tmp_path / "there")
    shutil.rmtree(tmp_path / "here")
    after = before.resume(
        str(tmp_path / "there"), configuration=_setting("state.backend.type", other), parallelism=3
    )
    after.run()
    assert after.keyed_state()["count"]["count"] == _ALL
    assert len(before.collected) + len(after.collected) == RECORDS


class Texts(KeyedProcessFunction):
    """Keeps a long text for each key."""

    def open(self, runtime_context: Any) -> None:
        self.text = runtime_context.get_state(ValueStateDescriptor("text", Types.STRING()))

    def process_element(self, value: Any, ctx: Any) -> Any:
        self.text.update(f"{value} is the last of key {ctx.get_current_key()}. " * 50)
        yield value


def _keep_texts(env: StreamExecutionEnvironment) -> Any:
    numbers = env.from_collection(list(range(RECORDS)), Types.LONG()).uid("numbers")
    return numbers.key_by(lambda n: n % KEYS, LONG).process(Texts()).uid("texts")


def _bytes_below(path: str) -> int:
    return sum(file.stat().st_size for file in Path(path).iterdir())


@pytest.mark.parametrize("backend", ["hashmap", "rocksdb"])
def test_a_compressed_savepoint_is_smaller_and_restored_by_a_job_without_compression(
    backend: str,
) -> None:
    plain = _started(_keep_texts, state_backend_type=backend)
    job = _started(
        _keep_texts,
        state_backend_type=backend,
        execution_checkpointing_snapshot__compression="true",
    )
    path = job.stop()
    assert _bytes_below(path) < _bytes_below(plain.savepoint()) / 2
    assert len(job.keyed_state()["texts"]["text"]) == KEYS
    after = job.resume(path, configuration=Configuration())
    assert after.keyed_state() == job.keyed_state()
    after.run()
    plain.run()
    assert after.keyed_state() == plain.keyed_state()


@pytest.mark.parametrize("backend", ["hashmap", "rocksdb"])
def test_a_canceled_job_resumes_from_its_retained_checkpoint(backend: str) -> None:
    retained = {
        "execution_checkpointing_externalized__checkpoint__retention": "RETAIN_ON_CANCELLATION"
    }
    before = _started(Program(), state_backend_type=backend, **retained)
    path = before.checkpoint()
    before.run_epoch()
    before.cancel()
    while before.run_epoch():
        pass
    assert before.status is JobStatus.CANCELED
    assert Path(path, "_metadata").exists()
    # Without a path, the newest checkpoint of the job is looked for.
    for after in (before.resume(), before.resume(path)):
        after.run()
        assert after.keyed_state()["count"]["count"] == _ALL


def test_without_retention_a_canceled_job_leaves_nothing() -> None:
    before = _started(Program())
    path = before.checkpoint()
    before.cancel()
    while before.run_epoch():
        pass
    assert not Path(path).exists()


@pytest.mark.parametrize("backend", ["hashmap", "rocksdb"])
def test_the_command_line_shows_what_is_in_a_jobs_savepoint(backend: str) -> None:
    job = _started(Program(twice=True), state_backend_type=backend)
    for path, kind in ((job.savepoint(), "Savepoint"), (job.checkpoint(), "Checkpoint")):
        shown = CliRunner().invoke(main, ["savepoint", "show", path])
        assert shown.exit_code == 0
        assert shown.output.startswith(f"{kind} ")
        assert "'Count': uid 'count'" in shown.output
        assert "'count': a value state of Long by keys of type LONG" in shown.output
    path = job.savepoint()
    shown = CliRunner().invoke(main, ["savepoint", "show", "--json", path])
    operators = {one["uid"]: one for one in json.loads(shown.output)["operators"]}
    (count,) = (state for state in operators["count"]["states"] if state["name"] == "count")
    assert count["keys"] == KEYS
    assert count["needs_classes"] is False
