"""The life of event-time windows: both operators follow the same rules."""

from __future__ import annotations

from typing import Any

import pytest

from firesteel.common.constants import MAX_WATERMARK
from firesteel.common.time import Time
from firesteel.common.typeinfo import Types
from firesteel.datastream.functions import ProcessWindowFunction
from firesteel.datastream.state import ValueStateDescriptor
from firesteel.datastream.window import EventTimeSessionWindows, EventTimeTrigger
from firesteel.errors import UserFunctionError
from firesteel.task.windowing.tumbling_window_operator import TumblingWindowOperator
from firesteel.task.windowing.window_operator import WindowOperator
from firesteel.testing import OperatorHarness
from tests.task.windows import (
    LATE,
    Count,
    GeneralEventTimeTrigger,
    Tell,
    dropped,
    feed,
    sliding,
    tumbling,
    values,
    windows,
)


@pytest.fixture(params=["sliced", "general"])
def trigger(request: pytest.FixtureRequest) -> Any:
    """With its default trigger a window is sliced; with any other it is not."""
    return None if request.param == "sliced" else GeneralEventTimeTrigger()


def _state(harness: OperatorHarness) -> dict[str, Any]:
    return {name: table for name, table in harness.keyed_state().items() if table}


def _timers(harness: OperatorHarness) -> int:
    return sum(sum(service.count()) for service in harness._operator.context.timers)


def test_each_operator_does_its_part(trigger):
    harness = OperatorHarness.of(windows(tumbling(), values, trigger=trigger))
    expected = TumblingWindowOperator if trigger is None else WindowOperator
    assert type(harness._operator) is expected


# Firing


def test_a_window_fires_when_the_watermark_reaches_its_last_moment(trigger):
    with OperatorHarness.of(windows(tumbling(), values, trigger=trigger)) as harness:
        feed(harness, ("a", 1, 0), ("b", 2, 5), ("a", 3, 9))
        harness.process_watermark(8)
        assert harness.output == []
        harness.process_watermark(9)
        assert harness.output_with_timestamps == [(("a", 0, 10, "13"), 9), (("b", 0, 10, "2"), 9)]


def test_results_go_out_before_the_watermark_does(trigger):
    with OperatorHarness.of(windows(tumbling(), values, trigger=trigger)) as harness:
        seen = []
        watermark = harness._operator.output.watermark

        def note_output(timestamp: int) -> None:
            seen.append(harness.output)
            watermark(timestamp)

        harness._operator.output.watermark = note_output
        feed(harness, ("a", 1, 0))
        harness.process_watermark(9)
        assert seen == [[("a", 0, 10, "1")]]
        assert harness.watermarks == [9]


def test_windows_fire_in_the_order_of_time(trigger):
    with OperatorHarness.of(windows(tumbling(), values, trigger=trigger)) as harness:
        feed(harness, ("a", 1, 25), ("a", 2, 5), ("a", 3, 15))
        harness.process_watermark(100)
        assert [r[1] for r in harness.output] == [0, 10, 20]


def test_a_record_is_in_all_windows_that_hold_its_time(trigger):
    with OperatorHarness.of(windows(sliding(10, 5), values, trigger=trigger)) as harness:
        feed(harness, ("a", 1, 3), ("a", 2, 7), ("a", 3, 12))
        harness.process_watermark(100)
        assert [r[1:] for r in harness.output] == [
            (-5, 5, "1"),
            (0, 10, "12"),
            (5, 15, "23"),
            (10, 20, "3"),
        ]


def test_windows_of_sizes_that_are_no_multiple_of_the_slide(trigger):
    with OperatorHarness.of(windows(sliding(10, 4), values, trigger=trigger)) as harness:
        feed(harness, *[("a", n, n) for n in range(10)])
        harness.process_watermark(100)
        assert harness.output == [
            ("a", start, start + 10, "".join(str(n) for n in range(10) if start <= n < start + 10))
            for start in (-8, -4, 0, 4, 8)
        ]


def test_an_offset_moves_all_windows(trigger):
    with OperatorHarness.of(windows(tumbling(10, 3), values, trigger=trigger)) as harness:
        feed(harness, ("a", 1, 2), ("a", 2, 3), ("a", 3, -8))
        harness.process_watermark(100)
        assert [r[1:] for r in harness.output] == [(-17, -7, "3"), (-7, 3, "1"), (3, 13, "2")]


def test_the_end_of_the_input_fires_everything(trigger):
    with OperatorHarness.of(windows(tumbling(), values, trigger=trigger)) as harness:
        feed(harness, ("a", 1, 25), ("a", 2, 5))
        harness.finish()
        assert len(harness.output) == 2
        assert harness.watermarks == [MAX_WATERMARK]
        assert _state(harness) == {}


def test_a_batch_fires_at_its_end(trigger):
    program = windows(tumbling(), values, trigger=trigger)
    with OperatorHarness.of(program, batch=True) as harness:
        feed(harness, ("a", 1, 25), ("a", 2, 5))
        assert harness.output == []
        harness.finish()
        assert [r[1] for r in harness.output] == [0, 20]


def test_a_window_without_records_does_not_fire(trigger):
    with OperatorHarness.of(windows(sliding(10, 5), values, trigger=trigger)) as harness:
        feed(harness, ("a", 1, 3), ("a", 2, 103))
        harness.process_watermark(1_000)
        assert [r[1] for r in harness.output] == [-5, 0, 95, 100]


# Lateness


def test_without_lateness_a_record_behind_the_end_of_its_window_is_dropped(trigger):
    with OperatorHarness.of(windows(tumbling(), values, trigger=trigger)) as harness:
        harness.process_watermark(9)
        feed(harness, ("a", 1, 0), ("a", 2, 9), ("a", 3, 10))
        assert dropped(harness) == 2
        harness.process_watermark(19)
        assert harness.output == [("a", 10, 20, "3")]


def test_a_record_behind_the_watermark_is_not_late_while_its_window_is_open(trigger):
    with OperatorHarness.of(windows(tumbling(), values, trigger=trigger)) as harness:
        harness.process_watermark(8)
        feed(harness, ("a", 1, 0))
        harness.process_watermark(9)
        assert harness.output == [("a", 0, 10, "1")]
        assert dropped(harness) == 0


def test_a_late_record_within_the_lateness_fires_its_window_again(trigger):
    program = windows(tumbling(), values, trigger=trigger, lateness=5)
    with OperatorHarness.of(program) as harness:
        feed(harness, ("a", 1, 0), ("b", 7, 0))
        harness.process_watermark(13)
        harness.extract_output()
        feed(harness, ("a", 2, 1), ("a", 3, 2), ("c", 4, 3))
        assert harness.output_with_timestamps == [
            (("a", 0, 10, "12"), 9),
            (("a", 0, 10, "123"), 9),
            (("c", 0, 10, "4"), 9),
        ]
        assert dropped(harness) == 0


def test_the_lateness_ends_at_the_last_moment_plus_lateness(trigger):
    program = windows(tumbling(), values, trigger=trigger, lateness=5)
    with OperatorHarness.of(program) as harness:
        feed(harness, ("a", 1, 0))
        harness.process_watermark(13)
        feed(harness, ("a", 2, 1))
        harness.process_watermark(14)
        feed(harness, ("a", 3, 2))
        assert [r[-1] for r in harness.output] == ["1", "12"]
        assert dropped(harness) == 1


def test_a_record_is_late_only_if_all_of_its_windows_are(trigger):
    with OperatorHarness.of(windows(sliding(10, 5), values, trigger=trigger)) as harness:
        harness.process_watermark(9)
        feed(harness, ("a", 1, 7), ("a", 2, 4))
        assert dropped(harness) == 1
        harness.process_watermark(100)
        assert harness.output == [("a", 5, 15, "1")]


def test_a_record_can_be_late_for_one_window_fire_a_second_and_wait_for_a_third(trigger):
    program = windows(sliding(15, 5), values, trigger=trigger, lateness=3)
    with OperatorHarness.of(program) as harness:
        # Windows that hold 7: [-5, 10), [0, 15), [5, 20).
        harness.process_watermark(15)
        feed(harness, ("a", 1, 7))
        assert harness.output_with_timestamps == [(("a", 0, 15, "1"), 14)]
        harness.process_watermark(100)
        assert [r[1:3] for r in harness.output] == [(0, 15), (5, 20)]


def test_late_records_of_several_slices_fire_in_the_order_of_their_arrival(trigger):
    program = windows(sliding(10, 5), values, trigger=trigger, lateness=100)
    with OperatorHarness.of(program) as harness:
        harness.process_watermark(30)
        feed(harness, ("a", 1, 7), ("a", 2, 3), ("a", 3, 8))
        fired = [(r[1], sorted(r[-1])) for r in harness.output]
        assert fired == [
            (5, ["1"]),
            (0, ["1"]),
            (0, ["1", "2"]),
            (-5, ["2"]),
            (5, ["1", "3"]),
            (0, ["1", "2", "3"]),
        ]


def test_late_records_go_to_the_side_output_if_there_is_one(trigger):
    program = windows(tumbling(), values, trigger=trigger, late_tag=LATE)
    with OperatorHarness.of(program) as harness:
        harness.process_watermark(19)
        feed(harness, ("a", 1, 5), ("a", 2, 25), ("a", 3, 15))
        assert harness.side_output(LATE) == [("a", 1), ("a", 3)]
        assert dropped(harness) == 0


def test_dropped_records_are_counted_once_however_often_an_epoch_runs(trigger):
    program = windows(tumbling(), values, trigger=trigger)
    with OperatorHarness.of(program) as harness:
        harness.process_watermark(9)
        feed(harness, ("a", 1, 0))
        snapshot = harness.snapshot()
        feed(harness, ("a", 1, 0))
        assert dropped(harness) == 2
    with OperatorHarness.restored(program, snapshot) as restored:
        assert dropped(restored) == 1
    pair = [
        OperatorHarness.restored(program, snapshot, parallelism=2, subtask=index)
        for index in range(2)
    ]
    assert sum(map(dropped, pair)) == 1


# State


def test_state_is_dropped_exactly_at_the_last_moment_plus_lateness(trigger):
    program = windows(tumbling(), values, trigger=trigger, lateness=5)
    with OperatorHarness.of(program) as harness:
        feed(harness, ("a", 1, 0), ("b", 2, 3))
        for watermark in (8, 9, 13):
            harness.process_watermark(watermark)
            assert sum(map(len, _state(harness).values())) == 2
        harness.process_watermark(14)
        assert _state(harness) == {}
        assert _timers(harness) == 0
        harness.snapshot()
        assert sum(map(len, harness.keyed_state().values())) == 0


def test_windows_with_the_same_records_share_an_accumulator():
    program = windows(sliding(60, 1), lambda w: w.aggregate(Count()), mode="update")
    with OperatorHarness.of(program) as harness:
        feed(harness, *[("a", n, 30) for n in range(1_000)])
        assert _state(harness) == {"_sliding-windows": {"a": [(31, [90], [1_000])]}}
        harness.process_watermark(1_000)
        assert [total for _, total in harness.output] == [1_000] * 60


def test_a_general_aggregate_keeps_one_accumulator_for_a_key_and_window():
    program = windows(
        sliding(60, 1), lambda w: w.aggregate(Count()), trigger=GeneralEventTimeTrigger()
    )
    with OperatorHarness.of(program) as harness:
        feed(harness, *[("a", n, 30) for n in range(10)])
        (table,) = [t for n, t in _state(harness).items() if n == "_window-contents"]
        assert list(table.values()) == [10] * 60


def test_a_window_goes_on_after_a_restore(trigger):
    program = windows(tumbling(), values, trigger=trigger)
    with OperatorHarness.of(program) as harness:
        feed(harness, ("a", 1, 0), ("b", 2, 12))
        snapshot = harness.snapshot()
    with OperatorHarness.restored(program, snapshot) as restored:
        feed(restored, ("a", 3, 1))
        restored.process_watermark(9)
        assert restored.output == [("a", 0, 10, "13")]
        restored.process_watermark(19)
        assert restored.output == [("a", 0, 10, "13"), ("b", 10, 20, "2")]


def test_a_window_that_has_fired_does_not_fire_again_after_a_restore(trigger):
    program = windows(tumbling(), values, trigger=trigger, lateness=100)
    with OperatorHarness.of(program) as harness:
        feed(harness, ("a", 1, 0), ("b", 1, 0))
        harness.process_watermark(20)
        snapshot = harness.snapshot()
    # The watermark is not part of an operator's snapshot: it starts from the beginning.
    with OperatorHarness.restored(program, snapshot) as restored:
        feed(restored, ("a", 2, 1))
        assert restored.output == []
        restored.process_watermark(20)
        assert restored.output == [("a", 0, 10, "12")]


def test_a_session_that_has_fired_does_not_fire_again_after_a_restore(trigger):
    sessions = EventTimeSessionWindows.with_gap(Time.milliseconds(10))
    program = windows(sessions, values, trigger=trigger, lateness=100)
    with OperatorHarness.of(program) as harness:
        feed(harness, ("a", 1, 0), ("b", 1, 0))
        harness.process_watermark(20)
        snapshot = harness.snapshot()
    with OperatorHarness.restored(program, snapshot) as restored:
        feed(restored, ("a", 2, 1))
        assert restored.output == []
        restored.process_watermark(20)
        assert restored.output == [("a", 0, 11, "12")]
        restored.process_watermark(109)
        assert _state(restored) != {}
        restored.process_watermark(110)
        assert _state(restored) == {}


# Functions


class Remember(ProcessWindowFunction):
    """Counts its firings in the window's state and in the key's; notes what is cleared."""

    cleared: list[Any] = []
    count = ValueStateDescriptor("count", Types.LONG())

    def process(self, key, context, elements):
        counts = []
        for store in (context.window_state(), context.global_state()):
            state = store.get_state(self.count)
            state.update((state.value() or 0) + 1)
            counts.append(state.value())
        yield key, context.window().start, context.current_watermark(), *counts

    def clear(self, context):
        state = context.window_state().get_state(self.count)
        Remember.cleared.append(
            (context.window().start, state.value(), context.current_watermark())
        )
        state.clear()


def test_a_process_function_has_state_of_the_window_and_of_the_key(trigger):
    Remember.cleared.clear()
    program = windows(
        tumbling(), lambda w: w.aggregate(Count(), Remember()), trigger=trigger, lateness=50
    )
    with OperatorHarness.of(program) as harness:
        feed(harness, ("a", 1, 0), ("a", 1, 10), ("b", 1, 0))
        harness.process_watermark(30)
        feed(harness, ("a", 1, 1))
        assert harness.output == [
            ("a", 0, 30, 1, 1),
            ("b", 0, 30, 1, 1),
            ("a", 10, 30, 1, 2),
            ("a", 0, 30, 2, 3),
        ]
        harness.process_watermark(59)
        assert sorted(Remember.cleared) == [(0, 1, 59), (0, 2, 59)]
        harness.process_watermark(1_000)
        assert _state(harness) == {"count": {"a": 3, "b": 1}}


class Fails(ProcessWindowFunction):
    def process(self, key, context, elements):
        raise ZeroDivisionError


def test_a_function_that_fails_is_blamed_with_its_window(trigger):
    program = windows(tumbling(), lambda w: w.aggregate(Count(), Fails()), trigger=trigger)
    with OperatorHarness.of(program) as harness:
        feed(harness, ("a", 1, 0))
        with pytest.raises(UserFunctionError) as caught:
            harness.process_watermark(9)
        error = caught.value
        assert error.operator == "TumblingEventTimeWindows"
        assert error.function == "Fails.process"
        assert error.record == "TimeWindow(start=0, end=10) of key 'a'"


def test_a_reduction_that_fails_is_blamed_with_its_record(trigger):
    def divide(a, b):
        return ("a", a[1] / b[1])

    program = windows(tumbling(), lambda w: w.reduce(divide), trigger=trigger)
    with OperatorHarness.of(program) as harness:
        with pytest.raises(UserFunctionError) as caught:
            feed(harness, ("a", 1, 0), ("a", 0, 1), ("a", 2, 2))
        assert caught.value.record == "('a', 0)"
        assert caught.value.function.endswith("divide")


def test_a_record_without_a_timestamp_is_explained(trigger):
    harness = OperatorHarness.of(windows(tumbling(), values, trigger=trigger))
    with pytest.raises(UserFunctionError, match="assign_timestamps_and_watermarks"):
        harness.process_element(("a", 1))


@pytest.mark.parametrize(
    ("operation", "expected"),
    [
        (lambda w: w.reduce(lambda a, b: (a[0], a[1] + b[1])), [("a", 6)]),
        (lambda w: w.reduce(max, Tell()), [("a", 0, 10, ("a", 3))]),
        (lambda w: w.sum(1), [("a", 6)]),
        (lambda w: w.min(1), [("a", 1)]),
        (lambda w: w.max(1), [("a", 3)]),
        (lambda w: w.min_by(1), [("a", 1)]),
        (lambda w: w.max_by(1), [("a", 3)]),
        (lambda w: w.aggregate(Count()), [3]),
    ],
)
def test_aggregations(trigger, operation, expected):
    with OperatorHarness.of(windows(tumbling(), operation, trigger=trigger)) as harness:
        feed(harness, ("a", 3, 0), ("a", 1, 1), ("a", 2, 2))
        harness.process_watermark(9)
        assert harness.output == expected


def test_accumulators_that_change_in_place_do_not_change_what_was_emitted(trigger):
    def extend(kept, new):
        kept[1].extend(new[1])
        return kept

    program = windows(sliding(10, 5), lambda w: w.reduce(extend), trigger=trigger, lateness=100)
    with OperatorHarness.of(program) as harness:
        feed(harness, ("a", [1], 1), ("a", [2], 6), ("a", [3], 7))
        harness.snapshot()
        harness.process_watermark(50)
        expected = [("a", [1]), ("a", [1, 2, 3]), ("a", [2, 3])]
        assert harness.output == expected
        feed(harness, ("a", [4], 8))
        assert harness.output[:3] == expected
        assert [sorted(r[1]) for r in harness.output[3:]] == [[2, 3, 4], [1, 2, 3, 4]]


# Sharing slices


def test_a_reduction_that_only_works_record_by_record_is_done_record_by_record(trigger):
    def count(total, _):
        return total[0], total[1] + 1

    program = windows(sliding(20, 5), lambda w: w.reduce(count), trigger=trigger)
    with OperatorHarness.of(program) as harness:
        feed(harness, *[("a", 1, time) for time in range(10, 20)])
        harness.process_watermark(1_000)
        assert [count for _, count in harness.output] == [5, 10, 10, 10, 5]


class NoMerge(Count):
    def merge(self, acc_a, acc_b):
        raise NotImplementedError


@pytest.mark.parametrize("function", [NoMerge(), Count()])
def test_a_merge_function_is_not_needed_for_sliding_windows(trigger, function):
    program = windows(sliding(20, 5), lambda w: w.aggregate(function), trigger=trigger)
    with OperatorHarness.of(program) as harness:
        feed(harness, *[("a", 1, time) for time in range(10, 20)])
        snapshot = harness.snapshot()
    with OperatorHarness.restored(program, snapshot) as restored:
        feed(restored, ("a", 1, 19))
        restored.process_watermark(1_000)
        assert restored.output == [5, 11, 11, 11, 6]
        assert _state(restored) == {}


class Silent(EventTimeTrigger):
    def on_event_time(self, time, window, ctx):
        return None


def test_a_trigger_must_answer():
    with OperatorHarness.of(windows(tumbling(), values, trigger=Silent())) as harness:
        feed(harness, ("a", 1, 0))
        with pytest.raises(UserFunctionError, match="TriggerResult, but it returned None"):
            harness.process_watermark(9)
