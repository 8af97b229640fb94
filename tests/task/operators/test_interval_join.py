from __future__ import annotations

import time

import pytest

from firesteel.common.time import Time
from firesteel.common.typeinfo import Types
from firesteel.datastream import OutputTag
from firesteel.datastream.functions import ProcessJoinFunction
from firesteel.datastream.state import ValueStateDescriptor
from firesteel.errors import UserFunctionError
from firesteel.testing import OperatorHarness
from tests.task.joins import JoinSubtasks

_ODD = OutputTag("odd")


class Pair(ProcessJoinFunction):
    def process_element(self, left, right, ctx):
        yield left[1], right[1], ctx.get_left_timestamp(), ctx.get_right_timestamp()


def interval_join(lower, upper, function=None, *, exclusive="", tags=False):
    def program(a, b):
        left, right = a.key_by(lambda r: r[0]), b.key_by(lambda r: r[0])
        joined = left.interval_join(right).between(
            Time.milliseconds(lower), Time.milliseconds(upper)
        )
        if "lower" in exclusive:
            joined.lower_bound_exclusive()
        if "upper" in exclusive:
            joined.upper_bound_exclusive()
        if tags:
            joined.side_output_left_late_data(OutputTag("0"))
            joined.side_output_right_late_data(OutputTag("1"))
        return joined.process(Pair() if function is None else function)

    return program


@pytest.mark.usefixtures("every_backend")
@pytest.mark.parametrize("first", [0, 1])
@pytest.mark.parametrize(
    ("exclusive", "expected"),
    [
        ("", [8, 9, 10, 11, 12]),
        ("lower", [9, 10, 11, 12]),
        ("upper", [8, 9, 10, 11]),
        ("lower upper", [9, 10, 11]),
    ],
)
def test_records_within_the_bounds_are_joined_whichever_comes_first(first, exclusive, expected):
    join = JoinSubtasks(interval_join(-2, 2, exclusive=exclusive))
    sides = [
        lambda: join.add(0, [(("a", "x"), 10)]),
        lambda: join.add(1, [((key, t), t) for t in range(5, 16) for key in "ab"]),
    ]
    sides[first]()
    join.end_epoch()
    sides[1 - first]()
    results = join.take()
    assert sorted(results) == [(("x", t, 10, t), max(10, t)) for t in expected]


def test_equal_records_are_joined_as_often_as_they_came():
    join = JoinSubtasks(interval_join(0, 0))
    join.add(0, [(("a", "x"), 1), (("a", "x"), 1)])
    join.end_epoch()
    join.add(1, [(("a", 1), 1), (("a", 1), 1)])
    assert join.take() == [(("x", 1, 1, 1), 1)] * 4


@pytest.mark.usefixtures("every_backend")
@pytest.mark.parametrize(
    ("lower", "upper", "left_goes", "right_goes"),
    [(-3, 5, 15, 13), (2, 5, 15, 10), (-5, -2, 10, 15), (0, 0, 10, 10)],
)
def test_each_side_is_kept_until_the_watermark_has_passed_its_bound(
    lower, upper, left_goes, right_goes
):
    """As in Flink: a left record goes at its time + upper, a right one at its time - lower."""
    for side, goes in ((0, left_goes), (1, right_goes)):
        join = JoinSubtasks(interval_join(lower, upper))
        join.add(side, [(("a", 1), 10), (("b", 2), 10)])
        join.end_epoch()
        join.advance(goes - 1)
        join.end_epoch()
        (entries,) = join.state().values()
        assert set(entries) == {("a", 10), ("b", 10)}
        join.advance(goes)
        join.end_epoch()
        assert join.state() == {}
        assert join.timers() == 0


def test_late_records_are_not_joined_but_counted():
    join = JoinSubtasks(interval_join(-10, 10))
    join.add(0, [(("a", "x"), 20)])
    join.advance(20)
    join.add(1, [(("a", 1), 19), (("a", 2), 20)])
    join.add(0, [(("a", "y"), 12)])
    assert join.take() == [(("x", 2, 20, 20), 20)]
    assert join.dropped() == 2
    join.restart(1)
    assert join.dropped() == 2


def test_late_records_go_to_the_side_output_of_their_side():
    join = JoinSubtasks(interval_join(-10, 10, tags=True))
    join.advance(20)
    join.add(0, [(("a", "x"), 3), (("a", "ok"), 30)])
    join.add(1, [(("a", 1), 19)])
    assert join.side_output("0") == [("a", "x")]
    assert join.side_output("1") == [("a", 1)]
    assert join.dropped() == 0


def test_a_function_has_side_outputs_and_state_of_the_key():
    class Numbered(ProcessJoinFunction):
        def open(self, runtime_context):
            self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

        def process_element(self, left, right, ctx):
            count = (self.count.value() or 0) + 1
            self.count.update(count)
            yield (_ODD, (left[0], count)) if count % 2 else (left[0], count)

    join = JoinSubtasks(interval_join(-5, 5, Numbered()))
    join.add(0, [(("a", 1), 1), (("b", 1), 1)])
    join.add(1, [(("a", 1), 1), (("b", 1), 2), (("a", 2), 3)])
    assert join.take() == [(("a", 2), 3)]
    assert join.side_output("odd") == [("a", 1), ("b", 1)]


def test_what_a_function_does_to_a_record_does_not_reach_the_state():
    class Spoil(ProcessJoinFunction):
        def process_element(self, left, right, ctx):
            yield len(left), len(right)
            left.append("spoiled")
            right.append("spoiled")

    join = JoinSubtasks(interval_join(-5, 5, Spoil()))
    join.add(0, [(["a"], 1)])
    join.add(1, [(["a", 1], 1), (["a", 1], 2)])
    join.end_epoch()
    join.add(1, [(["a", 1], 1), (["a", 1], 2)])
    assert {value for value, _ in join.take()} == {(1, 2)}
    join.add(0, [(["a"], 1)])
    assert {right for (_, right), _ in join.take()} == {2}


def test_a_record_without_a_timestamp_is_refused():
    harness = OperatorHarness.of(interval_join(0, 1))
    with pytest.raises(UserFunctionError, match="without a timestamp reached an interval join"):
        harness.process_element1(("a", 1))


def test_a_failing_function_is_named_with_the_record():
    class Fail(ProcessJoinFunction):
        def process_element(self, left, right, ctx):
            return 1 // 0

    join = JoinSubtasks(interval_join(0, 1, Fail()))
    join.add(0, [(("a", 1), 1)])
    with pytest.raises(UserFunctionError) as caught:
        join.add(1, [(("a", 2), 1), (("a", 3), 1)])
    assert caught.value.operator == "Interval Join"
    assert caught.value.record == "('a', 2)"


@pytest.mark.slow
def test_a_key_with_many_records_is_not_searched_through():
    """Ten times the records take about ten times as long, not a hundred times."""

    def seconds(records: int) -> float:
        join = JoinSubtasks(interval_join(0, 1))
        batch = [(("a", t), t) for t in range(records)]
        join.add(0, batch)
        started = time.process_time()
        join.add(1, batch)
        assert len(join.take()) == 2 * records - 1
        return time.process_time() - started

    seconds(100)
    assert seconds(20_000) < 50 * max(seconds(2_000), 0.005)
