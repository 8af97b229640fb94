from __future__ import annotations

import pytest

from firesteel.common.time import Time
from firesteel.datastream import OutputTag
from firesteel.datastream.functions import CoGroupFunction, FlatJoinFunction, JoinFunction
from firesteel.datastream.window import (
    CountEvictor,
    CountTrigger,
    EventTimeSessionWindows,
    GlobalWindows,
    TaggedUnion,
    Trigger,
    TriggerResult,
)
from firesteel.errors import UserFunctionError
from firesteel.task.windowing.window_joins import SlicedWindowJoinOperator
from firesteel.testing import OperatorHarness
from tests.task.joins import JoinSubtasks
from tests.task.windows import GeneralEventTimeTrigger, sliding, tumbling

pytestmark = pytest.mark.usefixtures("every_backend")

_SESSIONS = EventTimeSessionWindows.with_gap(Time.milliseconds(5))
_LEFT_LATE, _RIGHT_LATE = OutputTag("left late"), OutputTag("right late")


def _key(record):
    return record[0]


def _pair(first, second):
    return first[0], first[1], second[1]


class Group(CoGroupFunction):
    def co_group(self, first, second):
        yield "".join(sorted(r[1] for r in first)), "".join(sorted(r[1] for r in second))


def _join(
    assigner, function=_pair, *, how="join", trigger=None, evictor=None, lateness=0, tags=False
):
    def program(a, b):
        windowed = getattr(a, how)(b).where(_key).equal_to(_key).window(assigner)
        if trigger is not None:
            windowed.trigger(trigger)
        if evictor is not None:
            windowed.evictor(evictor)
        if tags:
            windowed.side_output_left_late_data(_LEFT_LATE)
            windowed.side_output_right_late_data(_RIGHT_LATE)
        return windowed.allowed_lateness(lateness).apply(function)

    return program


# The fast operator, and the general one.
both_operators = pytest.mark.parametrize("trigger", [None, GeneralEventTimeTrigger()])


@both_operators
def test_pairs_of_one_key_and_window_are_joined_when_the_window_fires(trigger):
    join = JoinSubtasks(_join(tumbling(10), trigger=trigger))
    join.add(0, [(("a", "x"), 1), (("b", "y"), 2), (("a", "z"), 11)])
    join.add(1, [(("a", "1"), 9), (("a", "2"), 3), (("c", "3"), 4)])
    assert join.take() == []
    join.advance(9)
    assert sorted(join.take()) == [(("a", "x", "1"), 9), (("a", "x", "2"), 9)]
    join.advance(100)
    assert join.take() == []
    join.end_epoch()
    assert join.state() == {}
    assert join.timers() == 0


@both_operators
def test_a_pair_is_joined_in_each_sliding_window_that_holds_both(trigger):
    join = JoinSubtasks(_join(sliding(10, 5), trigger=trigger))
    join.add(0, [(("a", "x"), 6)])
    join.add(1, [(("a", "1"), 7), (("a", "2"), 12)])
    join.advance(100)
    assert sorted(join.take(), key=lambda pair: (pair[1], pair[0])) == [
        (("a", "x", "1"), 9),
        (("a", "x", "1"), 14),
        (("a", "x", "2"), 14),
    ]


@both_operators
def test_a_co_group_also_sees_keys_of_one_side(trigger):
    group = JoinSubtasks(_join(tumbling(10), Group(), how="co_group", trigger=trigger))
    group.add(0, [(("a", "x"), 1), (("a", "y"), 2)])
    group.add(1, [(("a", "1"), 3), (("b", "2"), 4)])
    group.advance(9)
    assert sorted(group.take()) == [(("", "2"), 9), (("xy", "1"), 9)]


def test_sessions_of_both_sides_merge():
    join = JoinSubtasks(_join(_SESSIONS))
    join.add(0, [(("a", "x"), 0), (("a", "y"), 8)])
    join.add(1, [(("a", "1"), 4)])
    join.end_epoch()
    join.advance(100)
    assert sorted(join.take()) == [(("a", "x", "1"), 12), (("a", "y", "1"), 12)]
    join.end_epoch()
    assert join.state() == {}


@both_operators
def test_a_late_record_fires_its_window_again_with_all_pairs(trigger):
    join = JoinSubtasks(_join(tumbling(10), trigger=trigger, lateness=20, tags=True))
    join.add(0, [(("a", "x"), 1)])
    join.add(1, [(("a", "1"), 1)])
    join.advance(15)
    assert join.take() == [(("a", "x", "1"), 9)]
    join.add(1, [(("a", "2"), 2)])
    assert sorted(join.take()) == [(("a", "x", "1"), 9), (("a", "x", "2"), 9)]
    join.advance(29)
    join.end_epoch()
    assert join.state() == {}
    join.add(0, [(("a", "gone"), 3)])
    join.add(1, [(("a", "lost"), 3)])
    assert join.take() == []
    assert join.side_output("left late") == [("a", "gone")]
    assert join.side_output("right late") == [("a", "lost")]


@both_operators
def test_late_records_without_a_side_output_are_counted(trigger):
    join = JoinSubtasks(_join(tumbling(10), trigger=trigger))
    join.advance(50)
    join.add(0, [(("a", "x"), 1), (("a", "y"), 60)])
    join.add(1, [(("a", "1"), 1)])
    assert join.dropped() == 2


def test_a_trigger_sees_which_side_a_record_is_of():
    class OnSecond(Trigger):
        def on_element(self, element, timestamp, window, ctx):
            assert isinstance(element, TaggedUnion)
            return TriggerResult.FIRE if element.is_two() else TriggerResult.CONTINUE

        def on_processing_time(self, time, window, ctx):
            return TriggerResult.CONTINUE

        def on_event_time(self, time, window, ctx):
            return TriggerResult.CONTINUE

        def on_merge(self, window, ctx):
            pass

        def clear(self, window, ctx):
            pass

    join = JoinSubtasks(_join(GlobalWindows.create(), trigger=OnSecond()))
    join.add(0, [(("a", "x"), 1)])
    assert join.take() == []
    join.add(1, [(("a", "1"), 1)])
    assert [value for value, _ in join.take()] == [("a", "x", "1")]


def test_an_evictor_sees_the_records_of_both_sides_in_the_order_of_arrival():
    trigger = CountTrigger.of(3)
    program = _join(GlobalWindows.create(), trigger=trigger, evictor=CountEvictor.of(2))
    join = JoinSubtasks(program)
    join.add(0, [(("a", "x"), 1), (("a", "y"), 2)])
    join.add(1, [(("a", "1"), 3)])
    assert [value for value, _ in join.take()] == [("a", "y", "1")]


class Double(FlatJoinFunction):
    def join(self, first, second):
        yield from (first[1] + second[1]) * 2


class Opened(JoinFunction):
    def open(self, runtime_context):
        self.prefix = ">"

    def join(self, first, second):
        return self.prefix + first[1] + second[1]


@pytest.mark.parametrize(
    ("function", "expected"), [(Double(), ["x", "1", "x", "1"]), (Opened(), [">x1"])]
)
def test_functions_may_be_flat_and_are_opened(function, expected):
    join = JoinSubtasks(_join(tumbling(10), function))
    join.add(0, [(("a", "x"), 1)])
    join.add(1, [(("a", "1"), 1)])
    join.advance(9)
    assert [value for value, _ in join.take()] == expected


@both_operators
def test_a_failing_function_is_named_with_key_and_window(trigger):
    def fail(first, second):
        return 1 // 0

    join = JoinSubtasks(_join(tumbling(10), fail, trigger=trigger))
    join.add(0, [(("a", "x"), 1)])
    join.add(1, [(("a", "1"), 1)])
    with pytest.raises(UserFunctionError, match="'a'") as caught:
        join.advance(9)
    assert caught.value.operator == "Window Join"
    assert caught.value.function == fail.__qualname__


def test_aligned_windows_of_event_time_take_the_fast_way():
    harness = OperatorHarness.of(_join(tumbling(10)))
    assert isinstance(harness._operator, SlicedWindowJoinOperator)
