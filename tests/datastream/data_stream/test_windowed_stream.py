"""Windowed streams: the transformations they record, and the programs they refuse."""

from __future__ import annotations

import pytest

from firesteel.common import Time, Types
from firesteel.datastream import OutputTag, TimeWindow
from firesteel.datastream.functions import (
    AggregateFunction,
    AllWindowFunction,
    ProcessWindowFunction,
    WindowFunction,
)
from firesteel.datastream.window import (
    CountTrigger,
    EventTimeTrigger,
    TumblingEventTimeWindows,
)
from firesteel.errors import InvalidProgramError
from firesteel.graph.operator_specs import AggregatedField, AllRecords, WindowSpec

_WINDOWS = TumblingEventTimeWindows.of(Time.seconds(5))
_PAIR = Types.TUPLE([Types.STRING(), Types.INT()])


class Apply(WindowFunction):
    def apply(self, key, window, inputs):
        return []


class ApplyAll(AllWindowFunction):
    def apply(self, window, inputs):
        return []


class Process(ProcessWindowFunction):
    def process(self, key, context, elements):
        return []


class Aggregate(AggregateFunction):
    def create_accumulator(self):
        return 0

    def add(self, value, accumulator):
        return accumulator

    def get_result(self, accumulator):
        return accumulator

    def merge(self, acc_a, acc_b):
        return acc_a


@pytest.fixture
def keyed(env):
    return env.from_collection([("a", 1)], _PAIR).key_by(lambda pair: pair[0])


def _operator(stream):
    return stream.recorded.origins[0].transformation


def test_the_operator_is_named_after_its_windows(keyed):
    operator = _operator(keyed.window(_WINDOWS).apply(Apply()))
    assert operator.name == "TumblingEventTimeWindows"
    expected = "Window(TumblingEventTimeWindows(5000, 0), EventTimeTrigger, Apply)"
    assert operator.description == expected


def test_everything_said_reaches_the_operator(keyed):
    late = OutputTag("late")
    windowed = keyed.window(_WINDOWS).trigger(CountTrigger.of(3)).allowed_lateness(7)
    spec = _operator(windowed.side_output_late_data(late).output_mode("update").max_by(1)).spec
    assert isinstance(spec, WindowSpec)
    assert (spec.allowed_lateness, spec.late_tag, spec.output_mode) == (7, "late", "update")
    assert isinstance(spec.trigger, CountTrigger)
    assert spec.contents == AggregatedField("max_by", 1, _PAIR)


def test_the_default_trigger_is_the_assigners(keyed):
    spec = _operator(keyed.window(_WINDOWS).process(Process())).spec
    assert isinstance(spec.trigger, EventTimeTrigger)
    assert spec.contents == AllRecords(_PAIR)


def test_types_of_results(keyed):
    windowed = keyed.window(_WINDOWS)
    assert windowed.get_input_type() == _PAIR
    assert windowed.reduce(max).get_type() == _PAIR
    assert windowed.reduce(max, Apply()).get_type() == Types.PICKLED_BYTE_ARRAY()
    assert windowed.aggregate(Aggregate(), output_type=Types.LONG()).get_type() == Types.LONG()
    assert windowed.apply(Apply(), Types.STRING()).get_type() == Types.STRING()
    assert windowed.sum(1).get_type() == _PAIR


def test_late_data_is_a_side_output_of_the_result(keyed):
    late = OutputTag("late", _PAIR)
    result = keyed.window(_WINDOWS).side_output_late_data(late).sum(1)
    assert result.get_side_output(late).get_type() == _PAIR


def test_lateness_may_be_a_time(keyed):
    windowed = keyed.window(_WINDOWS).allowed_lateness(Time.seconds(1))
    assert _operator(windowed.sum(1)).spec.allowed_lateness == 1000


@pytest.mark.parametrize(
    "wrong",
    [
        lambda keyed: keyed.window("5 seconds"),
        lambda keyed: keyed.window(_WINDOWS).trigger("every second"),
        lambda keyed: keyed.window(_WINDOWS).evictor(None),
        lambda keyed: keyed.window(_WINDOWS).allowed_lateness(-1),
        lambda keyed: keyed.window(_WINDOWS).allowed_lateness("1 s"),
        lambda keyed: keyed.window(_WINDOWS).side_output_late_data("late"),
        lambda keyed: keyed.window(_WINDOWS).reduce("max"),
        lambda keyed: keyed.window(_WINDOWS).reduce(max, ApplyAll()),
        lambda keyed: keyed.window(_WINDOWS).aggregate(max),
        lambda keyed: keyed.window(_WINDOWS).apply(Process()),
        lambda keyed: keyed.window(_WINDOWS).process(Apply()),
        lambda keyed: keyed.window(_WINDOWS).sum(1.5),
        lambda keyed: keyed.window_all(_WINDOWS).apply(Apply()),
        lambda keyed: keyed.count_window(0),
        lambda keyed: keyed.count_window(3, -1),
    ],
)
def test_what_makes_no_sense_is_refused_at_its_line(keyed, wrong):
    with pytest.raises(InvalidProgramError):
        wrong(keyed)


def test_windows_over_a_whole_stream_cannot_be_made_parallel(env):
    result = env.from_collection([1]).window_all(_WINDOWS).sum()
    assert _operator(result).non_parallel
    with pytest.raises(InvalidProgramError):
        result.set_parallelism(2)


def test_a_window_is_what_pyflink_has():
    assert str(TimeWindow(0, 5)) == "TimeWindow(start=0, end=5)"
