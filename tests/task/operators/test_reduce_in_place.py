"""A function may change its accumulator in place: results emitted earlier do not change."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from firesteel.common import Row
from firesteel.datastream.functions import MapFunction
from firesteel.testing import Fault, JobHarness, OperatorHarness


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


class Seen(NamedTuple):
    key: str
    numbers: list[int]


# What is changed is a list inside a tuple that stays the same.
TUPLES: dict[str, tuple[Callable[[int], Any], Callable[[Any], list[int]]]] = {
    "tuple": (lambda n: ("k", [n]), lambda t: t[1]),
    "named tuple": (lambda n: Seen("k", [n]), lambda t: t.numbers),
    "nested": (lambda n: (("k", ([n],)), 0), lambda t: t[0][1][0]),
    "frozen set and tuple": (lambda n: (frozenset({1}), [n]), lambda t: t[1]),
}


@pytest.mark.parametrize("kind", TUPLES)
@pytest.mark.parametrize("operator", ["reduce", "fold"])
def test_a_list_in_a_tuple_may_grow_in_place_and_a_retried_epoch_finds_it_as_it_was(
    operator: str, kind: str
) -> None:
    make, numbers_in = TUPLES[kind]

    def add(kept: Any, new: Any) -> Any:
        numbers_in(kept).extend(numbers_in(new))
        return kept

    def program(env: Any) -> Any:
        keyed = env.from_collection([1, 2, 3, 4]).map(make).key_by(lambda _: 0)
        if operator == "reduce":
            return keyed.reduce(add)
        start = make(0)
        numbers_in(start).clear()
        return keyed.fold(start, add)

    harness = JobHarness(program, parallelism=1, records_per_epoch=2)
    broken = dict.fromkeys(harness.places(), Fault.RETRY)
    harness.run({2: broken})
    assert [numbers_in(t) for t in harness.collected] == [[1], [1, 2], [1, 2, 3], [1, 2, 3, 4]]
    assert {type(t) for t in harness.collected} == {type(make(0))}


@pytest.mark.parametrize("initial", [None, (), ("k", None)], ids=repr)
def test_what_an_empty_initial_value_becomes_may_be_changed_in_place(initial: Any) -> None:
    def add(kept: Any, value: int) -> Any:
        if kept == initial:
            return ("k", [value])
        kept[1].append(value)
        return kept

    with OperatorHarness.of(lambda s: s.key_by(lambda _: 0).fold(initial, add)) as harness:
        harness.process_elements([1, 2, 3])
        assert harness.output == [("k", [1]), ("k", [1, 2]), ("k", [1, 2, 3])]


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
