"""Aggregations of batch jobs. The facts are those of Flink's BatchGroupedReduceOperatorTest."""

from __future__ import annotations

from typing import Any

import pytest

from firesteel.common.constants import MAX_WATERMARK
from firesteel.common.typeinfo import Types
from firesteel.datastream import ReduceFunction
from firesteel.datastream.state import ValueStateDescriptor
from firesteel.testing import OperatorHarness


def _joined(words: Any) -> Any:
    return words.key_by(lambda word: word).reduce(lambda first, second: first + second)


def test_there_are_no_incremental_results() -> None:
    with OperatorHarness.of(_joined, batch=True) as harness:
        harness.process_elements(["hello", "hello", "ciao", "ciao"])
        assert harness.output == []


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["hello", "ciao", "hello", "ciao", "ciao"], ["ciaociaociao", "hellohello"]),
        (["hello", "ciao"], ["ciao", "hello"]),
    ],
)
def test_results_come_before_the_last_watermark_with_the_maximum_timestamp(
    words: list[str], expected: list[str]
) -> None:
    with OperatorHarness.of(_joined, batch=True) as harness:
        harness.process_elements(words, range(len(words)))
        harness.process_watermark(MAX_WATERMARK)
        assert harness.output_with_timestamps == [(word, MAX_WATERMARK) for word in expected]
        assert harness.watermarks == [MAX_WATERMARK]


def test_records_are_combined_in_the_order_of_their_timestamps() -> None:
    with OperatorHarness.of(lambda s: s.key_by(len).reduce(lambda a, b: b), batch=True) as harness:
        harness.process_elements(["ox", "an", "as"], [2, 3, 1])
        harness.finish()
        assert harness.output == ["an"]


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        ("append", [("a", MAX_WATERMARK), ("bc", MAX_WATERMARK)]),
        ("update", [((1, "a"), 7), ((2, "bc"), 5)]),
        ("complete", [((1, "a"), 7), ((2, "bc"), 5)]),
    ],
)
def test_output_modes_give_one_result_per_key(mode: str, expected: list[Any]) -> None:
    def program(words: Any) -> Any:
        return words.key_by(len).output_mode(mode).reduce(max)

    with OperatorHarness.of(program, batch=True) as harness:
        harness.process_elements(["bc", "a", "bb"], [5, 7, 4])
        harness.finish()
        assert harness.output_with_timestamps == expected


class Counting(ReduceFunction):
    """Counts its calls in a state of the key."""

    def open(self, runtime_context: Any) -> None:
        self._calls = runtime_context.get_state(ValueStateDescriptor("calls", Types.INT()))

    def reduce(self, value1: Any, value2: Any) -> Any:
        self._calls.update((self._calls.value() or 0) + 1)
        return value2[0], self._calls.value()


def test_a_function_with_state_begins_anew_with_each_key() -> None:
    with OperatorHarness.of(lambda s: s.key_by(lambda v: v[0]).reduce(Counting()), batch=True) as h:
        h.process_elements([("a", 0), ("b", 0), ("a", 0), ("b", 0), ("a", 0)])
        h.finish()
        assert h.output == [("a", 2), ("b", 1)]


def test_many_keys_leave_no_state() -> None:
    with OperatorHarness.of(lambda s: s.key_by(lambda n: n).reduce(max), batch=True) as harness:
        harness.process_elements(range(25_000))
        harness.finish()
        assert len(harness.output) == 25_000
        assert not any(harness.keyed_state().values())
