"""full_window_partition: all records of a subtask or a key, at the end of the input."""

from __future__ import annotations

from typing import Any

import pytest

from firesteel.common import Configuration, Row, Types
from firesteel.datastream import MapPartitionFunction, Order
from firesteel.datastream.execution_mode import RuntimeExecutionMode
from firesteel.errors import InvalidProgramError, UserFunctionError
from firesteel.testing import Fault, JobHarness, OperatorHarness, ScriptedSource
from tests.task.windows import Count


class Ends(MapPartitionFunction):
    """The first and the last record."""

    def open(self, runtime_context):
        self._index = runtime_context.get_index_of_this_subtask()

    def map_partition(self, values):
        values = list(values)
        if values:
            yield self._index, values[0], values[-1]


def _subtask(operation: Any) -> Any:
    return lambda stream: operation(stream.full_window_partition())


def _key(operation: Any) -> Any:
    return lambda stream: operation(stream.key_by(lambda r: r[0]).full_window_partition())


@pytest.mark.parametrize(
    ("operation", "expected"),
    [
        (lambda p: p.map_partition(Ends()), [(0, ("b", 3), ("a", 2))]),
        (lambda p: p.map_partition(lambda values: [len(list(values))]), [3]),
        (lambda p: p.map_partition(lambda values: None), []),
        (lambda p: p.sort_partition(1), [("a", 1), ("a", 2), ("b", 3)]),
        (lambda p: p.sort_partition(1, Order.DESCENDING), [("b", 3), ("a", 2), ("a", 1)]),
        (lambda p: p.sort_partition(lambda r: -r[1]), [("b", 3), ("a", 2), ("a", 1)]),
        # Equal records keep their order.
        (lambda p: p.sort_partition(0, Order.DESCENDING), [("b", 3), ("a", 1), ("a", 2)]),
        (lambda p: p.reduce(lambda a, b: (a[0] + b[0], a[1] + b[1])), [("baa", 6)]),
        (lambda p: p.aggregate(Count()), [3]),
    ],
)
@pytest.mark.parametrize("batch", [False, True])
def test_a_partition_is_what_a_subtask_has(operation, expected, batch):
    with OperatorHarness.of(_subtask(operation), batch=batch) as harness:
        harness.process_elements([("b", 3), ("a", 1)])
        if not batch:
            harness.end_epoch()
        harness.process_elements([("a", 2)])
        assert harness.output == []
        harness.finish()
        assert harness.output == expected
        assert harness.watermarks == [2**63 - 1]


@pytest.mark.parametrize(
    ("operation", "expected"),
    [
        (lambda p: p.map_partition(Ends()), [(0, ("a", 2), ("a", 1)), (0, ("b", 3), ("b", 3))]),
        (lambda p: p.map_partition(lambda values: [len(list(values))]), [1, 2]),
        (lambda p: p.sort_partition(1), [("a", 1), ("a", 2), ("b", 3)]),
        (lambda p: p.reduce(lambda a, b: (a[0], a[1] + b[1])), [("a", 3), ("b", 3)]),
        (lambda p: p.aggregate(Count()), [1, 2]),
    ],
)
def test_a_partition_of_a_keyed_stream_is_what_a_key_has(operation, expected):
    with OperatorHarness.of(_key(operation)) as harness:
        harness.process_elements([("a", 2), ("b", 3), ("a", 1)])
        assert harness.output == []
        harness.finish()
        assert sorted(harness.output) == expected


def test_a_subtask_without_records_has_an_empty_partition():
    for operation, expected in (
        (lambda p: p.map_partition(lambda values: [list(values)]), [[]]),
        (lambda p: p.aggregate(Count()), [0]),
        (lambda p: p.reduce(max), []),
    ):
        with OperatorHarness.of(_subtask(operation)) as harness:
            harness.finish()
            assert harness.output == expected


def test_rows_are_sorted_by_a_name():
    rows = [Row(name="b", n=1), Row(name="a", n=2)]
    with OperatorHarness.of(_subtask(lambda p: p.sort_partition("name"))) as harness:
        harness.process_elements(rows)
        harness.finish()
        assert [row["name"] for row in harness.output] == ["a", "b"]


def test_a_failure_is_blamed_on_the_users_function():
    def length(record: Any) -> int:
        return len(record[5])

    for program in (_subtask, _key):
        harness = OperatorHarness.of(program(lambda p: p.sort_partition(length))).open()
        harness.process_element(("a", 1))
        with pytest.raises(UserFunctionError, match="length"):
            harness.finish()


def test_arguments_are_checked():
    for operation in (
        lambda p: p.map_partition(3),
        lambda p: p.sort_partition(None),
        lambda p: p.sort_partition(1, "up"),
        lambda p: p.reduce(None),
        lambda p: p.aggregate(max),
    ):
        with pytest.raises(InvalidProgramError):
            OperatorHarness.of(_subtask(operation))


def _numbers(env: Any, operation: Any) -> Any:
    source = env.from_source(ScriptedSource(list(range(40))), None, "numbers", Types.INT())
    return operation(
        source.map(lambda n: n, Types.INT()).set_parallelism(2).full_window_partition()
    )


def _run(operation: Any, faults: dict[int, Fault], *, batch: bool = False) -> list[Any]:
    configuration = Configuration()
    mode = RuntimeExecutionMode.BATCH if batch else RuntimeExecutionMode.STREAMING
    configuration.set_string("execution.runtime-mode", mode.name)
    harness = JobHarness(
        lambda env: _numbers(env, operation),
        parallelism=3,
        records_per_epoch=5,
        configuration=configuration,
    )
    places = harness.places()
    harness.run({epoch: dict.fromkeys(places, fault) for epoch, fault in faults.items()})
    return sorted(harness.collected)


_OPERATIONS = {
    "records": lambda p: p.map_partition(lambda values: [sorted(values)]),
    "sum": lambda p: p.reduce(lambda a, b: a + b),
    "count": lambda p: p.aggregate(Count()),
}


@pytest.mark.parametrize("operation", _OPERATIONS.values(), ids=_OPERATIONS)
def test_it_is_as_parallel_as_its_input_and_survives_faults(operation):
    expected = _run(operation, {})
    assert len(expected) == 2
    for fault in Fault:
        assert _run(operation, {2: fault, 3: fault}) == expected
    assert _run(operation, {1: Fault.RETRY}, batch=True) == _run(operation, {}, batch=True)


@pytest.mark.parametrize(
    ("operation", "total"),
    [
        (lambda p: p.map_partition(lambda values: values), 21),
        (lambda p: p.reduce(lambda a, b: a + b), 21),
        (lambda p: p.aggregate(Count()), 6),
    ],
)
@pytest.mark.parametrize("parallelism", [1, 2, 3, 4])
def test_partitions_go_on_with_any_parallelism(operation, total, parallelism):
    program = _subtask(operation)
    snapshots, results = [], []
    for subtask, values in enumerate(([1, 2], [3], [4])):
        with OperatorHarness.of(program, parallelism=3, subtask=subtask) as harness:
            harness.process_elements(values)
            snapshots.append(harness.snapshot())
    for subtask in range(parallelism):
        with OperatorHarness.restored(program, snapshots, parallelism, subtask) as harness:
            if subtask == 0:
                harness.process_elements([5, 6])
            harness.finish()
            results += harness.output
    assert sum(results) == total


@pytest.mark.parametrize("parallelism", [1, 3])
def test_a_savepoint_has_the_partitions(parallelism):
    def program(env: Any) -> Any:
        numbers = env.from_source(ScriptedSource(list(range(40))), None, "numbers")
        return numbers.rebalance().full_window_partition().map_partition(lambda values: values)

    harness = JobHarness(program, parallelism=2, records_per_epoch=5)
    harness.run_epoch()
    harness.run_epoch()
    resumed = harness.resume(harness.stop(), parallelism=parallelism)
    resumed.run()
    assert sorted(resumed.collected) == list(range(40))
