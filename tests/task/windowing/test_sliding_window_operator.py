"""Sliding windows: keys with panes, keys with runs, and the way from one to the other."""

from __future__ import annotations

import pytest

from firesteel.common.constants import MAX_WATERMARK
from firesteel.datastream.functions import AggregateFunction, ReduceFunction
from firesteel.errors import UserFunctionError
from firesteel.testing import OperatorHarness
from tests.task.windows import Count, Tell, feed, sliding, windows

_PANES, _RUNS = "_pane/", "_sliding-windows"


def _kinds(harness: OperatorHarness) -> set[str]:
    """The kinds of tables that have entries."""
    return {
        _PANES if name.startswith(_PANES) else name
        for name, entries in harness.keyed_state().items()
        if entries
    }


def _numbers(count: int) -> list[tuple[str, int, int]]:
    return [("a", number, number) for number in range(count)]


class Calls(AggregateFunction):
    """Counts records, and the calls of its own methods."""

    commutative = True
    added = 0
    merged = 0

    def create_accumulator(self):
        return 0

    def add(self, value, accumulator):
        Calls.added += 1
        return accumulator + 1

    def get_result(self, accumulator):
        return accumulator

    def merge(self, acc_a, acc_b):
        Calls.merged += 1
        return acc_a + acc_b


def test_the_calls_per_record_do_not_depend_on_the_number_of_windows():
    Calls.added = Calls.merged = 0
    program = windows(sliding(60, 1), lambda w: w.aggregate(Calls()))
    with OperatorHarness.of(program) as harness:
        for number in range(600):
            feed(harness, ("a", number, number))
            harness.process_watermark(number)
        assert len(harness.output) == 600
        assert harness.output[-1] == 60
    # Up to three merges for each of the 600 windows.
    assert Calls.added == 600
    assert Calls.merged <= 3 * 600


def test_a_commutative_function_has_panes_for_any_order():
    program = windows(sliding(10, 2), lambda w: w.aggregate(Calls(), Tell()))
    with OperatorHarness.of(program) as harness:
        feed(harness, *reversed(_numbers(9)))
        feed(harness, ("a", 0, 2))
        assert _kinds(harness) == {_PANES}
        harness.process_watermark(3)
        assert harness.extract_output() == [("a", -8, 2, 2), ("a", -6, 4, 5)]
        # This record is late for two of its windows. The merged parts of later ones change.
        feed(harness, ("a", 0, 1))
        harness.process_watermark(MAX_WATERMARK)
        assert harness.output[0] == ("a", -4, 6, 8)
        assert harness.output[-1] == ("a", 8, 18, 1)
        assert _kinds(harness) == set()


def test_an_associative_function_has_panes_for_records_in_order():
    program = windows(sliding(10, 2), lambda w: w.max_by(1))
    with OperatorHarness.of(program) as harness:
        feed(harness, ("a", 5, 0), ("b", 5, 0), ("a", 5, 3), ("b", 6, 3))
        assert _kinds(harness) == {_PANES}
        feed(harness, ("a", 7, 1), ("b", 7, 4))
        state = harness.keyed_state()
        assert set(state[_RUNS]) == {"a"}
        assert {key for name in state if name.startswith(_PANES) for key in state[name]} == {"b"}
        harness.process_watermark(MAX_WATERMARK)
        assert harness.output.count(("a", 7)) == 5
        assert harness.output.count(("a", 5)) == 1
        assert sorted(set(harness.output)) == [("a", 5), ("a", 7), ("b", 5), ("b", 6), ("b", 7)]


@pytest.mark.parametrize(("one", "kind"), [(1, _PANES), (1.0, _RUNS)])
def test_sums_of_floats_are_added_in_the_order_of_arrival(one, kind):
    program = windows(sliding(10, 2), lambda w: w.sum(1))
    with OperatorHarness.of(program) as harness:
        feed(harness, *[("a", one, time) for time in range(8)])
        assert _kinds(harness) == {kind}
        harness.process_watermark(9)
        assert harness.output[-1] == ("a", 8 * one)


def test_a_late_record_that_changes_results_is_added_to_its_windows():
    program = windows(sliding(10, 5), lambda w: w.aggregate(Calls(), Tell()), lateness=10)
    with OperatorHarness.of(program) as harness:
        feed(harness, *_numbers(9))
        harness.process_watermark(10)
        assert harness.extract_output() == [("a", -5, 5, 5), ("a", 0, 10, 9)]
        feed(harness, ("a", 0, 0))
        # As in Flink, the last window comes first.
        assert harness.extract_output() == [("a", 0, 10, 10), ("a", -5, 5, 6)]
        assert _kinds(harness) == {_RUNS}
        harness.process_watermark(MAX_WATERMARK)
        assert harness.extract_output() == [("a", 5, 15, 4)]


def test_a_function_that_does_not_say_so_has_runs():
    program = windows(sliding(10, 2), lambda w: w.aggregate(Count()))
    with OperatorHarness.of(program) as harness:
        feed(harness, *_numbers(9))
        assert _kinds(harness) == {_RUNS}
        harness.process_watermark(9)
        assert harness.output == [2, 4, 6, 8, 9]


class _Sum(ReduceFunction):
    commutative = True

    def reduce(self, value1, value2):
        return value1[0], value1[1] + value2[1]


def test_a_reduction_merges_with_its_own_function():
    program = windows(sliding(10, 2), lambda w: w.reduce(_Sum()))
    with OperatorHarness.of(program) as harness:
        feed(harness, *_numbers(9))
        assert _kinds(harness) == {_PANES}
        harness.process_watermark(9)
        assert harness.output[-1] == ("a", 36)


class _Broken(Calls):
    def merge(self, acc_a, acc_b):
        raise ValueError("no merge")


def test_an_error_of_merge_names_it():
    program = windows(sliding(10, 2), lambda w: w.aggregate(_Broken()))
    with OperatorHarness.of(program) as harness:
        feed(harness, *_numbers(9))
        with pytest.raises(UserFunctionError, match=r"_Broken\.merge"):
            harness.process_watermark(9)


def test_panes_move_with_their_keys():
    program = windows(sliding(10, 2), lambda w: w.aggregate(Calls(), Tell()))
    keys = "abcdefgh"
    with OperatorHarness.of(program, max_parallelism=8) as harness:
        feed(harness, *[(key, 1, time) for time in range(8) for key in keys])
        harness.process_watermark(4)
        first = harness.output
        snapshot = harness.snapshot()
    results = list(first)
    for index in range(2):
        with OperatorHarness.restored(program, snapshot, 2, index) as restored:
            assert _kinds(restored) <= {_PANES}
            restored.process_watermark(MAX_WATERMARK)
            results += restored.output
    assert sorted(results) == sorted(
        (key, end - 10, end, len(range(max(0, end - 10), min(8, end))))
        for key in keys
        for end in range(2, 18, 2)
    )


def test_restored_panes_are_merged_without_a_new_record():
    program = windows(sliding(10, 5), lambda w: w.sum(1))
    with OperatorHarness.of(program) as harness:
        feed(harness, ("a", 1, 1), ("a", 2, 6))
        snapshot = harness.snapshot()
    with OperatorHarness.restored(program, snapshot) as restored:
        restored.process_watermark(9)
        assert [record[1] for record in restored.output] == [1, 3]


def test_a_window_that_expired_before_a_savepoint_begins_again_without_old_records():
    program = windows(sliding(10, 5), lambda w: w.aggregate(Calls(), Tell()))
    with OperatorHarness.of(program) as harness:
        feed(harness, *_numbers(9))
        harness.process_watermark(4)
        assert harness.output == [("a", -5, 5, 5)]
        snapshot = harness.snapshot()
    # A savepoint has no watermark.
    with OperatorHarness.restored(program, snapshot) as restored:
        feed(restored, ("a", 7, 1))
        restored.process_watermark(4)
        assert restored.extract_output() == [("a", -5, 5, 1)]
        restored.process_watermark(9)
        assert restored.extract_output() == [("a", 0, 10, 10)]


def test_many_slices_cost_nothing_that_grows_with_them():
    """A window of a day by a second. Looking at all windows of a record would take minutes."""
    size, count = 86_400, 3_000
    program = windows(sliding(size, 1), lambda w: w.aggregate(Calls()))
    with OperatorHarness.of(program) as harness:
        for number in range(count):
            feed(harness, ("a", number, number))
            harness.process_watermark(number)
        assert harness.output == list(range(1, count + 1))
