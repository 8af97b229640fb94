"""Every operator has its records in and out, also inside of a chain, as its functions count them."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from firesteel.common import Configuration
from firesteel.datastream import OutputTag
from firesteel.datastream.functions import (
    FilterFunction,
    FlatMapFunction,
    MapFunction,
    ProcessFunction,
    SinkFunction,
)
from firesteel.metrics import MetricRegistry
from firesteel.task.codegen.fusion import FusedNode, KeyedLoop, Step, StepKind, fuse, without_count
from firesteel.task.record_batch import RecordBatch, SentRecords
from firesteel.testing import JobHarness

ODD = OutputTag("odd")
IN, OUT = "numRecordsIn", "numRecordsOut"


class Counting:
    """Counts the records into and out of a function, for comparison."""

    def open(self, runtime_context: Any) -> None:
        group = runtime_context.get_metrics_group()
        self.taken, self.made = group.counter("taken"), group.counter("made")


class Double(Counting, MapFunction):
    def map(self, value: int) -> int:
        self.taken.inc()
        self.made.inc()
        return value * 2


class Keep(Counting, FilterFunction):
    def __init__(self, modulus: int) -> None:
        self.modulus = modulus

    def filter(self, value: int) -> bool:
        self.taken.inc()
        keeps = value % self.modulus != 0
        self.made.inc(int(keeps))
        return keeps


class Repeat(Counting, FlatMapFunction):
    def flat_map(self, value: int) -> Any:
        self.taken.inc()
        for number in range(value % 3):
            self.made.inc()
            yield value + number


class Split(Counting, ProcessFunction):
    def process_element(self, value: int, ctx: Any) -> Any:
        self.taken.inc()
        self.made.inc(2 if value % 5 == 0 else 1)
        if value % 5 == 0:
            yield ODD, value
        yield value + 1


class Ignore(SinkFunction):
    def open(self, runtime_context: Any) -> None:
        self.taken = runtime_context.get_metrics_group().counter("taken")

    def invoke(self, value: Any, context: Any) -> None:
        self.taken.inc()


def records_of(harness: JobHarness) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """Return the metrics of each operator with counting functions, and those functions' counts."""
    found = []
    for vertex in harness.master.overview()["vertices"]:
        for subtask in vertex["subtasks"]:
            for node, metrics in subtask["user_metrics"].items():
                counts = {name.rpartition(".")[2]: one["count"] for name, one in metrics.items()}
                found.append((subtask["operators"][node], counts))
    return found


@pytest.mark.parametrize("execution", ["real-time", "micro-batch"])
@pytest.mark.parametrize("seed", range(12))
def test_operators_of_random_chains_know_their_records_or_leave_them_out(
    execution: str, seed: int
) -> None:
    dice = Random(seed)
    kinds = [dice.choice("mfpr") for _ in range(dice.randint(2, 7))]

    def program(env: Any) -> Any:
        stream = env.from_collection(list(range(500)))
        sides = []
        for kind in kinds:
            if kind == "m":
                stream = stream.map(Double())
            elif kind == "f":
                stream = stream.filter(Keep(dice.randint(2, 4)))
            elif kind == "r":
                stream = stream.flat_map(Repeat())
            else:
                stream = stream.process(Split())
                sides.append(stream.get_side_output(ODD).map(Double()))
                stream.add_sink(Ignore())
        return [stream.map(Double()), *sides]

    settings = Configuration().set_string("firesteel.execution", execution)
    harness = JobHarness(program, parallelism=2, configuration=settings, records_per_epoch=90)
    harness.run()
    found = records_of(harness)
    assert len(found) >= 2 * len(kinds)
    for metrics, counts in found:
        assert metrics.get(IN, counts["taken"]) == counts["taken"]
        made = counts.get("made", 0)
        assert metrics.get(OUT, made) == made
    # Only between two filters, and between a filter and a SinkFunction, may a number be missing.
    if "f" not in kinds:
        assert all(IN in metrics and OUT in metrics for metrics, _ in found)


def test_a_reduction_and_the_operators_after_it_know_their_records() -> None:
    def program(env: Any) -> Any:
        sums = env.from_collection(list(range(100))).key_by(lambda n: n % 7).reduce(_add)
        return sums.map(Double()).filter(Keep(4)).map(Double())

    harness = JobHarness(program, parallelism=1)
    harness.run()
    _, vertex = harness.master.overview()["vertices"]
    [subtask] = vertex["subtasks"]
    operators = list(subtask["operators"].values())
    assert (operators[0][IN], operators[0][OUT]) == (100, 100)
    double, keep, again = records_of(harness)
    assert (double[0][IN], double[0][OUT]) == (100, 100)
    kept = keep[1]["made"]
    assert 0 < kept < 100
    assert (keep[0][IN], keep[0][OUT]) == (100, kept)
    assert (again[0][IN], again[0][OUT]) == (kept, kept)


def _add(a: int, b: int) -> int:
    return a + b


def test_a_second_attempt_counts_from_zero_and_a_number_never_falls_within_an_attempt() -> None:
    def program(env: Any) -> Any:
        return env.from_collection(list(range(300))).map(Double()).flat_map(Repeat())

    harness = JobHarness(program, parallelism=1, records_per_epoch=50)
    before = 0
    while harness.run_epoch():
        [(double, _), _] = records_of(harness)
        assert double[OUT] >= before
        before = double[OUT]
    [(double, counts), (repeat, repeated)] = records_of(harness)
    assert double[OUT] == repeat[IN] == counts["made"] == 300
    assert repeat[OUT] == repeated["made"]


def node(kind: StepKind, *children: FusedNode, emit: Any = None, count: Any = None) -> FusedNode:
    def explain(error: BaseException, record: Any) -> Exception:
        return AssertionError(f"{error} for {record}")

    functions: dict[StepKind, Any] = {
        StepKind.MAP: lambda value: value,
        StepKind.FILTER: lambda value: value % 2,
        StepKind.REDUCE: lambda a, b: a + b,
        StepKind.INVOKE: lambda value, context: None,
    }
    step = Step(kind, functions[kind], explain, context=MetricRegistry())
    return FusedNode(step, list(children), emit, count, SentRecords())


def test_a_loop_counts_without_an_instruction_per_record() -> None:
    taken: list[int] = []
    last = node(StepKind.MAP, emit=lambda batch: taken.append(len(batch)))
    middle = node(StepKind.FILTER, last)
    first = node(StepKind.MAP, middle)
    assert not list(without_count(first))
    fuse(first)(RecordBatch([1, 2, 3]))
    fuse(first)(RecordBatch([1, 2, 3], [1, 2, 3]))
    assert [one.sent.count for one in (first, middle, last) if one.sent] == [6, 4, 4]
    assert taken == [2, 2]


def test_records_between_two_filters_are_not_counted() -> None:
    last = node(StepKind.FILTER, emit=lambda batch: None)
    between = node(StepKind.MAP, last)
    first = node(StepKind.FILTER, between)
    assert list(without_count(first)) == [first.sent, between.sent]
    fuse(first)(RecordBatch([1, 2, 3]))
    assert [one.sent.count for one in (first, between, last) if one.sent] == [0, 0, 2]


def test_a_subtask_that_begins_in_a_loop_tells_the_operators_around_it() -> None:
    entered: list[int] = []
    sink = node(StepKind.MAP, count=entered.append)
    first = node(StepKind.FILTER, sink)
    assert not list(without_count(first))
    fuse(first)(RecordBatch([1, 2, 3]))
    assert entered == [2]
    assert [one.sent.count for one in (first, sink) if one.sent] == [2, 2]


def test_a_keyed_loop_counts_its_results() -> None:
    last = node(StepKind.MAP)
    root = node(StepKind.REDUCE, last, emit=lambda batch: None)
    overlay: dict[Any, Any] = {}
    KeyedLoop(root).process(RecordBatch([1, 2, 3], None, [0, 0, 1]), overlay, {}.get)
    assert [one.sent.count for one in (root, last) if one.sent] == [3, 3]
