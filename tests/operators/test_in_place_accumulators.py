"""A function may change its accumulator in place: what was emitted before stays as it was."""

from __future__ import annotations

from typing import Any

from firesteel.common import Row
from firesteel.datastream.functions import MapFunction
from firesteel.testing import JobHarness, OperatorHarness


def append(accumulator: list[Any], value: Any) -> list[Any]:
    accumulator.append(value)
    return accumulator


def test_fold_emits_each_state_of_a_list_that_grows_in_place() -> None:
    with OperatorHarness.of(lambda s: s.key_by(lambda x: x % 2).fold([], append)) as harness:
        harness.process_elements([1, 3, 5])
        assert harness.output == [[1], [1, 3], [1, 3, 5]]


def add_to_row(kept: Row, new: Row) -> Row:
    kept[1] += new[1]
    return kept


def test_reduce_emits_each_state_of_a_row_that_is_changed_in_place() -> None:
    with OperatorHarness.of(lambda s: s.key_by(lambda r: r[0]).reduce(add_to_row)) as harness:
        harness.process_elements([Row("a", 1), Row("a", 2), Row("a", 3)])
        assert [row[1] for row in harness.output] == [1, 3, 6]


class Counting(MapFunction):
    def open(self, runtime_context: object) -> None:
        self._count = 0

    def map(self, value: int) -> int:
        self._count += 1
        return self._count


def test_one_function_object_in_two_operators_is_two_functions() -> None:
    def program(env: Any) -> Any:
        counting = Counting()
        return env.from_collection([10, 20, 30]).map(counting).map(counting)

    harness = JobHarness(program, parallelism=1)
    harness.run()
    assert harness.collected == [1, 2, 3]
