"""A job that continues with a different parallelism or a different program."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from firesteel.checkpoint.rules.restore import MaxParallelismChangedError, NonRestoredStateError
from firesteel.common import Configuration, Types
from firesteel.datastream.functions import KeyedProcessFunction
from firesteel.datastream.state import ListStateDescriptor, ValueStateDescriptor
from firesteel.errors import UserFunctionError
from firesteel.state.table_descriptions import IncompatibleStateError
from firesteel.testing import JobHarness, ListSink
from tests.recovery.jobs import RESTARTS, Job, assert_exactly_once

RETAINING = Configuration(RESTARTS).set_string(
    "execution.checkpointing.externalized-checkpoint-retention", "RETAIN_ON_CANCELLATION"
)


def start(job: Any, **more: Any) -> JobHarness:
    arguments = {"records_per_epoch": 3, "checkpoint_every": 4, "configuration": RETAINING}
    return JobHarness(job, **{"parallelism": 2, **arguments, **more})


def run_epochs(harness: JobHarness, count: int) -> None:
    for _ in range(count):
        assert harness.run_epoch()


def stopped(harness: JobHarness, **changes: Any) -> JobHarness:
    return harness.resume(harness.stop(), **changes)


def canceled(harness: JobHarness, **changes: Any) -> JobHarness:
    harness.cancel()
    harness.run()
    return harness.resume(**changes)


def killed(harness: JobHarness, **changes: Any) -> JobHarness:
    harness.kill()
    return harness.resume(**changes)


@pytest.mark.parametrize("ends", [stopped, canceled, killed])
@pytest.mark.parametrize("inline_threshold", [0, 64 * 1024])
@pytest.mark.parametrize(
    "parallelisms", [(2, 3, 1), (1, 4, 2), (3, 3, 3)], ids=lambda ps: "-".join(map(str, ps))
)
def test_timers_state_and_output_come_along(
    tmp_path: Path,
    ends: Callable[..., JobHarness],
    parallelisms: tuple[int, ...],
    inline_threshold: int,
) -> None:
    """Timers of both kinds are pending at each change, and so are transactions and files."""
    job = Job(tmp_path)
    harness = start(job, parallelism=parallelisms[0], inline_threshold=inline_threshold)
    run_epochs(harness, 9)
    for parallelism in parallelisms[1:]:
        harness = ends(harness, parallelism=parallelism)
        assert any("_timers" in name for name in harness.keyed_state()["count"])
        run_epochs(harness, 5)
    harness.run()
    assert_exactly_once(job, harness, collected=job.outputs()["list"])


@pytest.mark.parametrize("backends", [("hashmap", "rocksdb"), ("rocksdb", "hashmap")], ids=str)
def test_another_state_backend(tmp_path: Path, backends: tuple[str, str]) -> None:
    before, after = (
        Configuration(RETAINING).set_string("state.backend.type", name) for name in backends
    )
    job = Job(tmp_path)
    harness = start(job, configuration=before)
    run_epochs(harness, 7)
    harness = stopped(harness, configuration=after, parallelism=3)
    run_epochs(harness, 5)
    harness.crash()
    harness.run()
    assert_exactly_once(job, harness, collected=job.outputs()["list"])


# Another program


class Count(KeyedProcessFunction):
    def __init__(self, descriptor: Any = None) -> None:
        self.descriptor = descriptor or ValueStateDescriptor("count", Types.INT())

    def open(self, runtime_context: Any) -> None:
        if isinstance(self.descriptor, ListStateDescriptor):
            runtime_context.get_list_state(self.descriptor)
        else:
            self.count = runtime_context.get_state(self.descriptor)

    def process_element(self, value: int, ctx: Any) -> Any:
        self.count.update((self.count.value() or 0) + 1)
        yield value % 4, self.count.value()


def program(
    sink: ListSink, *, shape: str = "as it was", descriptor: Any = None, max_parallelism: int = 128
) -> Callable[[Any], None]:
    def build(env: Any) -> None:
        env.set_max_parallelism(max_parallelism)
        numbers = env.from_collection(range(40)).set_parallelism(1).uid("numbers")
        keyed = numbers.key_by(lambda n: n % 4)
        if shape == "one more":
            keyed = numbers.map(lambda n: n).uid("new").key_by(lambda n: n % 4)
        counted = keyed.process(Count(descriptor)).uid("count").name("Count")
        if shape == "one more":
            again = counted.map(lambda r: r[0]).key_by(lambda k: k)
            again.process(Count()).uid("count again").name("Count again").print()
        if shape != "one less":
            counted.key_by(lambda r: r[0]).reduce(max).uid("greatest").name("Greatest").print()
        counted.sink_to(sink).uid("sink")

    return build


EXPECTED = Counter((key, number) for key in range(4) for number in range(1, 11))


def stopped_program(sink: ListSink) -> tuple[JobHarness, str]:
    harness = start(program(sink))
    run_epochs(harness, 4)
    return harness, harness.stop()


def test_operators_can_be_added() -> None:
    sink = ListSink()
    harness, savepoint = stopped_program(sink)
    harness.resume(savepoint, program=program(sink, shape="one more"), parallelism=3).run()
    assert Counter(sink.values()) == EXPECTED


def test_removing_one_with_state_needs_a_word_and_the_error_lists_all_of_them() -> None:
    sink = ListSink()
    harness, savepoint = stopped_program(sink)
    with pytest.raises(NonRestoredStateError) as caught:
        harness.resume(savepoint, program=program(sink, shape="one less"))
    message = str(caught.value)
    assert "Operators with restored state: 'Source: Collection Source' (uid 'numbers')" in message
    assert "'Count' (uid 'count')" in message
    assert "no operator of the job claims: 'Greatest' (uid 'greatest')" in message
    assert "execution.state-recovery.ignore-unclaimed-state" in message
    allowed = Configuration(RESTARTS)
    allowed.set_string("execution.state-recovery.ignore-unclaimed-state", "true")
    harness.resume(savepoint, program=program(sink, shape="one less"), configuration=allowed).run()
    assert Counter(sink.values()) == EXPECTED


@pytest.mark.parametrize(
    ("descriptor", "words"),
    [
        (ValueStateDescriptor("count", Types.STRING()), ["value state of Integer", "String"]),
        (ListStateDescriptor("count", Types.INT()), ["value state", "list state"]),
    ],
    ids=["type", "kind"],
)
def test_a_state_of_another_type_is_refused_by_name(descriptor: Any, words: list[str]) -> None:
    sink = ListSink()
    harness, savepoint = stopped_program(sink)
    never = Configuration(RESTARTS).set_string("restart-strategy.type", "none")
    resumed = harness.resume(
        savepoint, program=program(sink, descriptor=descriptor), configuration=never
    )
    with pytest.raises(UserFunctionError, match=IncompatibleStateError.__name__) as caught:
        resumed.run()
    message = str(caught.value)
    assert "'Count'" in message
    assert "'count'" in message
    for word in words:
        assert word in message


def test_another_maximum_parallelism_is_refused() -> None:
    sink = ListSink()
    harness, savepoint = stopped_program(sink)
    with pytest.raises(MaxParallelismChangedError, match=r"'Count' \(uid 'count'\).*128.*64"):
        harness.resume(savepoint, program=program(sink, max_parallelism=64))
