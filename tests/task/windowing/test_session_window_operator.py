"""Session windows, which merge."""

from __future__ import annotations

from typing import Any

import pytest

from firesteel.common.time import Time
from firesteel.common.typeinfo import Types
from firesteel.datastream.functions import ProcessWindowFunction, WindowFunction
from firesteel.datastream.state import ValueStateDescriptor
from firesteel.datastream.window import (
    EventTimeSessionWindows,
    EventTimeTrigger,
    MergingWindowAssigner,
    ProcessingTimeSessionWindows,
    SessionWindowTimeGapExtractor,
    TimeWindow,
)
from firesteel.datastream.window.windows import TimeWindowSerializer
from firesteel.errors import UserFunctionError
from firesteel.testing import OperatorHarness
from tests.task.windows import LATE, dropped, feed, values, windows

_SESSIONS = EventTimeSessionWindows.with_gap(Time.milliseconds(5))


class All(WindowFunction):
    """(key, start, end, values as they were kept)."""

    def apply(self, key, window, inputs):
        yield key, window.start, window.end, sorted(value for _, value in inputs)


def _records(windowed: Any) -> Any:
    return windowed.apply(All())


def _harness(assigner: Any = _SESSIONS, operation: Any = _records, **more: Any):
    return OperatorHarness.of(windows(assigner, operation, **more))


def _is_clean(harness: OperatorHarness) -> bool:
    return not any(harness.keyed_state().values()) and not any(
        any(service.count()) for service in harness._operator.context.timers
    )


def test_a_session_lasts_until_nothing_comes_for_the_gap():
    with _harness() as harness:
        feed(harness, ("a", 1, 0), ("a", 2, 4), ("a", 3, 20), ("b", 4, 2))
        harness.process_watermark(100)
        assert harness.output_with_timestamps == [
            (("b", 2, 7, [4]), 6),
            (("a", 0, 9, [1, 2]), 8),
            (("a", 20, 25, [3]), 24),
        ]
        assert _is_clean(harness)


def test_a_record_exactly_at_the_end_of_a_session_still_belongs_to_it():
    with _harness() as harness:
        feed(harness, ("a", 1, 0), ("a", 2, 5))
        harness.process_watermark(100)
        assert harness.output == [("a", 0, 10, [1, 2])]


def test_a_record_between_two_sessions_makes_one_of_them():
    with _harness() as harness:
        feed(harness, ("a", 1, 0), ("a", 2, 9))
        feed(harness, ("a", 3, 5))
        harness.process_watermark(100)
        assert harness.output == [("a", 0, 14, [1, 2, 3])]
        assert _is_clean(harness)


def test_accumulators_of_sessions_are_merged():
    with _harness(operation=values) as harness:
        feed(harness, ("a", 1, 0), ("a", 2, 9), ("a", 3, 5))
        harness.process_watermark(100)
        ((key, start, end, merged),) = harness.output
        assert (key, start, end, sorted(merged)) == ("a", 0, 14, ["1", "2", "3"])


def test_a_late_record_fires_its_session_again_and_may_join_it_with_another():
    with _harness(lateness=20) as harness:
        feed(harness, ("a", 1, 0), ("a", 2, 10))
        harness.process_watermark(15)
        assert harness.output == [("a", 0, 5, [1]), ("a", 10, 15, [2])]
        feed(harness, ("a", 3, 5))
        assert harness.output[2:] == [("a", 0, 15, [1, 2, 3])]
        harness.process_watermark(33)
        assert not _is_clean(harness)
        harness.process_watermark(34)
        assert _is_clean(harness)


def test_a_record_too_late_for_a_session_of_its_own_may_still_join_an_open_one():
    with _harness(late_tag=LATE) as harness:
        feed(harness, ("a", 1, 10))
        harness.process_watermark(12)
        # Alone it would be [6, 11), which is over; with its neighbor it is not.
        feed(harness, ("a", 2, 6), ("a", 3, 0))
        assert harness.side_output(LATE) == [("a", 3)]
        harness.process_watermark(100)
        assert harness.output == [("a", 6, 15, [1, 2])]


def test_a_late_record_leaves_no_window_behind():
    with _harness() as harness:
        harness.process_watermark(50)
        feed(harness, ("a", 1, 10))
        assert dropped(harness) == 1
        assert _is_clean(harness)


class Length(SessionWindowTimeGapExtractor):
    def extract(self, element):
        return element[1]


def test_a_record_may_say_itself_how_long_the_session_waits():
    sessions = EventTimeSessionWindows.with_dynamic_gap(Length())
    with _harness(sessions) as harness:
        feed(harness, ("a", 100, 0), ("a", 1, 50), ("a", 2, 101))
        harness.process_watermark(1_000)
        assert harness.output == [("a", 0, 100, [1, 100]), ("a", 101, 103, [2])]


def test_sessions_of_the_clock():
    sessions = ProcessingTimeSessionWindows.with_gap(Time.milliseconds(5))
    with _harness(sessions) as harness:
        harness.set_processing_time(100)
        harness.process_element(("a", 1))
        harness.set_processing_time(103)
        harness.process_element(("a", 2))
        harness.set_processing_time(106)
        assert harness.output == []
        harness.set_processing_time(107)
        assert harness.output == [("a", 100, 108, [1, 2])]
        assert _is_clean(harness)


def test_sessions_go_on_after_a_restore():
    program = windows(_SESSIONS, _records)
    with OperatorHarness.of(program) as harness:
        feed(harness, ("a", 1, 0), ("a", 2, 4))
        snapshot = harness.snapshot()
    with OperatorHarness.restored(program, snapshot) as restored:
        feed(restored, ("a", 3, 8))
        restored.process_watermark(100)
        assert restored.output == [("a", 0, 13, [1, 2, 3])]


class WithWindowState(ProcessWindowFunction):
    def process(self, key, context, elements):
        context.window_state()


def test_windows_that_merge_have_no_state_of_their_own():
    with _harness(operation=lambda w: w.process(WithWindowState())) as harness:
        feed(harness, ("a", 1, 0))
        with pytest.raises(UserFunctionError, match="global_state"):
            harness.process_watermark(100)


class CountsSessions(ProcessWindowFunction):
    """Has a state with the name of a table of the operator."""

    def process(self, key, context, elements):
        count = context.global_state().get_state(ValueStateDescriptor("sessions", Types.LONG()))
        count.update((count.value() or 0) + 1)
        yield count.value()


def test_a_function_names_its_state_as_it_likes():
    with _harness(operation=lambda w: w.reduce(max, CountsSessions())) as harness:
        feed(harness, ("a", 1, 0), ("a", 1, 100))
        harness.process_watermark(1_000)
        assert harness.output == [1, 2]


class Shrinking(MergingWindowAssigner):
    """Merges two windows into one that ends before them."""

    def assign_windows(self, element, timestamp, context):
        return [TimeWindow(timestamp, timestamp + 10)]

    def merge_windows(self, windows, callback):
        windows = list(windows)
        if len(windows) > 1:
            callback.merge(windows, TimeWindow(0, 5))

    def get_default_trigger(self, env):
        return EventTimeTrigger()

    def get_window_serializer(self):
        return TimeWindowSerializer()

    def is_event_time(self):
        return True


def test_merging_must_not_end_a_window_in_the_past():
    with _harness(Shrinking()) as harness:
        harness.process_watermark(7)
        feed(harness, ("a", 1, 0))
        with pytest.raises(Exception, match="whose end has already passed"):
            feed(harness, ("a", 2, 1))
