"""Operators of a chain that share one loop behave as they do separately."""

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from firesteel.common import WatermarkStrategy
from firesteel.errors import UserFunctionError
from firesteel.task.codegen.fusion import FusedNode, KeyedLoop, Step, StepKind, fuse
from firesteel.task.codegen.key_loops import KeySelection
from firesteel.task.record_batch import RecordBatch
from firesteel.testing import JobHarness
from firesteel.usercode.failures import user_function_error


class Context:
    element_timestamp: int | None = -1


class Batches:
    """Takes whole batches, as a record writer does."""

    def __init__(self) -> None:
        self.taken: list[tuple[list[Any], list[int] | None]] = []

    def __call__(self, batch: RecordBatch) -> None:
        self.taken.append((batch.values, batch.timestamps))


def step(kind: StepKind, function: Callable[..., Any], context: Any = None) -> Step:
    return Step(
        kind,
        function,
        lambda error, record: user_function_error(error, kind.name, function, [record], None),
        context,
    )


def broken_on(record: Any) -> Callable[..., Any]:
    def function(value: Any, context: Any = None) -> Any:
        if value == record:
            raise StopIteration(f"no {value}")
        return value

    return function


def test_maps_filters_and_sinks_of_a_tree_see_the_records_that_reach_them() -> None:
    seen: list[tuple[Any, int | None]] = []
    context = Context()
    sink = FusedNode(
        step(StepKind.INVOKE, lambda v, c: seen.append((v, c.element_timestamp)), context)
    )
    batches, kept = Batches(), Batches()
    tree = FusedNode(
        step(StepKind.MAP, lambda v: v * 10),
        [FusedNode(step(StepKind.FILTER, lambda v: v > 10), [sink], kept)],
        batches,
    )
    process = fuse(tree)

    process(RecordBatch([1, 2, 3]))
    assert seen == [(20, None), (30, None)]
    assert batches.taken == [([10, 20, 30], None)]
    assert kept.taken == [([20, 30], None)]

    process(RecordBatch([0, 4], [100, 104]))
    assert seen[2:] == [(40, 104)]
    assert batches.taken[1:] == [([0, 40], [100, 104])]
    assert kept.taken[1:] == [([40], [104])]


def test_nothing_is_emitted_for_a_batch_of_which_nothing_is_left() -> None:
    kept = Batches()
    fuse(FusedNode(step(StepKind.FILTER, lambda v: False), [], kept))(RecordBatch([1, 2]))
    assert kept.taken == []


@pytest.mark.parametrize("timestamps", [None, [1, 2, 3]])
@pytest.mark.parametrize("failing", [StepKind.MAP, StepKind.FILTER, StepKind.INVOKE])
def test_a_failure_names_the_operator_and_its_own_input_even_if_it_is_a_stop_iteration(
    failing: StepKind, timestamps: list[int] | None
) -> None:
    def function(kind: StepKind, record: Any) -> Callable[..., Any]:
        return broken_on(record) if kind is failing else lambda value, context=None: value * 2

    tree = FusedNode(
        step(StepKind.MAP, function(StepKind.MAP, 7)),
        [
            FusedNode(
                step(StepKind.FILTER, function(StepKind.FILTER, 14)),
                [FusedNode(step(StepKind.INVOKE, function(StepKind.INVOKE, 14), Context()))],
            )
        ],
    )
    with pytest.raises(UserFunctionError) as raised:
        fuse(tree)(RecordBatch([3, 7, 9], timestamps))
    assert raised.value.operator == failing.name
    assert raised.value.record == ("7" if failing is StepKind.MAP else "14")
    assert "fused" not in raised.value.traceback_text


@pytest.mark.parametrize("timestamps", [None, [1, 2, 3]])
def test_records_that_reach_an_operator_are_counted_behind_a_filter_too(
    timestamps: list[int] | None,
) -> None:
    counts: list[tuple[str, int]] = []
    end = FusedNode(step(StepKind.MAP, lambda v: v))
    tree = FusedNode(
        step(StepKind.FILTER, lambda v: v > 1),
        [replace(end.copy(), count=lambda n: counts.append(("kept", n)))],
        count=lambda n: counts.append(("all", n)),
    )
    fuse(tree)(RecordBatch([1, 2, 3], timestamps))
    assert counts == [("all", 3), ("kept", 2)]


def add(left: Any, right: Any) -> Any:
    return left + right


@pytest.mark.parametrize("selected", [False, True])
@pytest.mark.parametrize("timestamps", [None, [1, 2, 3, 4]])
def test_a_reduction_begins_a_loop_and_finds_what_a_key_has_in_the_overlay_and_in_the_base(
    timestamps: list[int] | None, selected: bool
) -> None:
    seen: list[tuple[Any, int | None]] = []
    sink = step(StepKind.INVOKE, lambda v, c: seen.append((v, c.element_timestamp)), Context())
    batches = Batches()
    root = FusedNode(step(StepKind.REDUCE, add), [FusedNode(sink)], batches)
    values = [10, 11, 20, 21]
    overlay: dict[int, int] = {}
    keys = None if selected else [0, 1, 0, 1]
    selection = KeySelection(lambda value: value % 2, "key_by") if selected else None
    base = {1: 1000}
    batch = RecordBatch(values, timestamps, keys, selection)
    KeyedLoop(root).process(batch, overlay, base.get)
    assert overlay == {0: 30, 1: 1032}
    assert base == {1: 1000}
    assert batches.taken == [([10, 1011, 30, 1032], timestamps)]
    times: Sequence[int | None] = timestamps or [None] * 4
    assert seen == list(zip([10, 1011, 30, 1032], times, strict=True))


def test_a_reduction_with_statements_of_its_own_has_them_in_the_loop() -> None:
    def never_called(kept: Any, record: Any) -> Any:
        raise AssertionError

    batches = Batches()
    reduce = replace(step(StepKind.REDUCE, never_called), combine=("result = kept - record",))
    loop = KeyedLoop(FusedNode(reduce, [], batches))
    loop.process(RecordBatch([9, 2, 3], None, ["a", "a", "a"]), {}, {}.get)
    assert batches.taken == [([9, 7, 4], None)]


def test_a_reduction_that_fails_and_a_key_that_is_not_found_name_their_function_and_record() -> (
    None
):
    loop = KeyedLoop(FusedNode(step(StepKind.REDUCE, add)))
    with pytest.raises(UserFunctionError) as raised:
        loop.process(RecordBatch([1, "two"], None, [0, 0]), {}, {}.get)
    assert (raised.value.operator, raised.value.record) == ("REDUCE", "'two'")
    assert "return left + right" in raised.value.traceback_text

    selection = KeySelection(lambda value: value[0], "key_by after Map")
    with pytest.raises(UserFunctionError) as raised:
        loop.process(RecordBatch([[5], []], selection=selection), {}, {}.get)
    assert (raised.value.operator, raised.value.record) == ("key_by after Map", "[]")
    assert "lambda value: value[0]" in raised.value.traceback_text


MANY = 1200


@pytest.mark.parametrize("with_time", [False, True])
@pytest.mark.parametrize(
    ("length", "add", "expected"),
    [
        pytest.param(
            MANY, lambda s: s.map(lambda n: n + 1), [MANY + n for n in range(8)], id="maps"
        ),
        pytest.param(MANY, lambda s: s.filter(lambda n: n % 2), [1, 3, 5, 7], id="filters"),
        pytest.param(300, lambda s: s.flat_map(lambda n: [n]), list(range(8)), id="flat maps"),
        pytest.param(
            40,
            lambda s: s.filter(lambda n: n % 2 == 0).union(s.filter(lambda n: n % 2)),
            list(range(8)),
            id="diamonds",
        ),
        pytest.param(5, lambda s: s.map(lambda n: n + 1).union(s), None, id="doubling diamonds"),
    ],
)
def test_long_chains_and_many_unions_run_soon_with_the_results_of_short_ones(
    length: int, add: Callable[[Any], Any], expected: list[int] | None, with_time: bool
) -> None:
    def program(env: Any) -> Any:
        stream = env.from_collection(range(8))
        if with_time:
            strategy = WatermarkStrategy.for_monotonous_timestamps()
            stream = stream.assign_timestamps_and_watermarks(
                strategy.with_timestamp_assigner(lambda n, _: n)
            )
        for _ in range(length):
            stream = add(stream)
        return stream

    harness = JobHarness(program, parallelism=1)
    started = time.thread_time()
    harness.run()
    assert time.thread_time() - started < 5, "a loop for every operator, or one of all of them?"
    if expected is None:
        expected = list(range(8))
        for _ in range(length):
            expected += [n + 1 for n in expected]
    assert sorted(harness.collected) == sorted(expected)


def test_a_failure_far_down_a_long_chain_names_its_operator_and_record() -> None:
    def program(env: Any) -> Any:
        stream = env.from_collection([1, 2, 3])
        for number in range(200):
            fails_on = 102 if number == 100 else -1
            checked = stream.map(broken_on(fails_on)).name(f"check {number}")
            stream = checked.map(lambda n: n + 1)
        return stream

    with pytest.raises(UserFunctionError) as raised:
        JobHarness(program, parallelism=1).run()
    assert (raised.value.operator, raised.value.record) == ("check 100", "102")


def test_a_loop_that_comes_to_an_operator_by_two_ways_brings_it_each_record_twice() -> None:
    united = Batches()
    end = FusedNode(
        step(StepKind.FILTER, lambda v: v % 2 == 0),
        [FusedNode(step(StepKind.MAP, lambda v: -v), [], united)],
    )
    tree = FusedNode(step(StepKind.MAP, lambda v: v * 2), [end.copy(), end.copy()])
    fuse(tree)(RecordBatch([1, 2]))
    assert united.taken == [([-2, -4], None), ([-2, -4], None)]
