"""Aggregations as statements: alone in a function, and within a keyed loop."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firesteel.task.codegen.aggregations import (
    combining_function,
    of_tuples,
    of_values,
    of_whole_records,
)
from firesteel.task.codegen.fusion import FusedNode, KeyedLoop, Step, StepKind
from firesteel.task.record_batch import RecordBatch

COMBINE: dict[str, Callable[[Any, Any], Any]] = {
    "sum": lambda kept, new: kept + new,
    "min": min,
    "max": max,
}
NUMBERS = st.one_of(st.integers(-3, 3), st.floats(allow_nan=False, allow_infinity=False))


def never_called(kept: Any, record: Any) -> Any:
    raise AssertionError((kept, record))


def rolling(statements: tuple[str, ...], otherwise: Any, records: list[Any]) -> list[Any]:
    """The results of a keyed loop for records of one key."""
    results: list[Any] = []
    step = Step(
        StepKind.REDUCE, otherwise, lambda error, _: AssertionError(error), combine=statements
    )
    root = FusedNode(step, emit=lambda batch: results.extend(batch.values))
    KeyedLoop(root).process(RecordBatch(records, sent_keys=[0] * len(records)), {}, {}.get)
    return results


def folded(function: Any, records: list[Any]) -> list[Any]:
    kept = records[0]
    results = [kept]
    for record in records[1:]:
        kept = function(kept, record)
        results.append(kept)
    return results


def exactly(results: list[Any]) -> list[str]:
    """1, 1.0 and True are equal, and the earlier of equal values is kept."""
    return [repr(result) for result in results]


@pytest.mark.parametrize("kind", COMBINE)
@given(records=st.lists(NUMBERS, min_size=1))
def test_values(kind: str, records: list[Any]) -> None:
    statements = of_values(kind)
    expected = exactly(folded(COMBINE[kind], records))
    assert exactly(folded(combining_function(kind, statements), records)) == expected
    assert exactly(rolling(statements, never_called, records)) == expected


@pytest.mark.parametrize("kind", COMBINE)
@given(data=st.data(), size=st.integers(1, 12))
def test_a_field_of_tuples(kind: str, data: st.DataObject, size: int) -> None:
    index = data.draw(st.integers(0, size - 1))
    records = data.draw(st.lists(st.tuples(*[NUMBERS] * size), min_size=1))

    def model(kept: Any, new: Any) -> Any:
        combined = COMBINE[kind](kept[index], new[index])
        return (*kept[:index], combined, *kept[index + 1 :])

    statements = of_tuples(kind, index, size)
    expected = exactly(folded(model, records))
    function = combining_function(kind, statements, never_called)
    assert exactly(folded(function, records)) == expected
    assert exactly(rolling(statements, never_called, records)) == expected


@pytest.mark.parametrize(("kind", "choose"), [("min_by", min), ("max_by", max)])
@pytest.mark.parametrize("position", [0, "amount"])
@given(numbers=st.lists(NUMBERS, min_size=1))
def test_whole_records(kind: str, choose: Any, position: Any, numbers: list[Any]) -> None:
    records = [{position: n, "number": index} for index, n in enumerate(numbers)]
    expected = exactly(
        folded(lambda kept, new: choose(kept, new, key=lambda r: r[position]), records)
    )
    statements = of_whole_records(kind, position)
    assert exactly(folded(combining_function(kind, statements), records)) == expected
    assert exactly(rolling(statements, never_called, records)) == expected


def test_tuples_of_a_different_size_go_to_the_function() -> None:
    def otherwise(kept: Any, record: Any) -> Any:
        return ("called", kept, record)

    statements = of_tuples("sum", 1, 2)
    expected = ("called", ("a", 1, "more"), ("a", 2))
    assert combining_function("sum", statements, otherwise)(*expected[1:]) == expected
    assert rolling(statements, otherwise, list(expected[1:]))[1] == expected


def test_an_error_of_the_values_is_not_taken_for_a_different_size() -> None:
    class Odd:
        def __add__(self, other: Any) -> Any:
            raise ValueError("odd")

    function = combining_function("sum", of_tuples("sum", 0, 1), never_called)
    with pytest.raises(ValueError, match="odd"):
        function((Odd(),), (1,))


def test_an_error_names_the_aggregation() -> None:
    function = combining_function("max", of_values("max"))
    assert function.__qualname__ == "max"
