"""Triggers: firing, and the state they keep."""

from __future__ import annotations

from typing import Any

import pytest

from firesteel.common.time import Time
from firesteel.common.typeinfo import Types
from firesteel.datastream.state import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    ReducingStateDescriptor,
    ValueStateDescriptor,
)
from firesteel.datastream.window import (
    ContinuousEventTimeTrigger,
    ContinuousProcessingTimeTrigger,
    CountTrigger,
    DeltaTrigger,
    EventTimeSessionWindows,
    EventTimeTrigger,
    GlobalWindows,
    NeverTrigger,
    ProcessingTimeoutTrigger,
    ProcessingTimeTrigger,
    PurgingTrigger,
    Trigger,
    TriggerResult,
)
from firesteel.errors import InvalidProgramError, UserFunctionError
from firesteel.testing import OperatorHarness
from tests.task.windows import Count, Values, feed, sliding, tumbling, values, windows

_MS = Time.milliseconds


def _contents(windowed: Any) -> Any:
    return windowed.aggregate(Values())


def _harness(assigner: Any, trigger: Any, operation: Any = _contents, **more: Any):
    return OperatorHarness.of(windows(assigner, operation, trigger=trigger, **more))


def _is_clean(harness: OperatorHarness) -> bool:
    return not any(harness.keyed_state().values()) and not any(
        any(service.count()) for service in harness._operator.context.timers
    )


# Count


def test_a_count_trigger_fires_with_every_nth_record_and_keeps_all():
    with _harness(GlobalWindows.create(), CountTrigger.of(2)) as harness:
        feed(harness, *[("a", n, n) for n in range(5)], ("b", 9, 0))
        assert harness.output == ["01", "0123"]


def test_a_count_trigger_counts_each_window_for_itself():
    with _harness(sliding(10, 5), CountTrigger.of(2), values) as harness:
        feed(harness, ("a", 1, 3), ("a", 2, 7))
        assert harness.output == [("a", 0, 10, "12")]


def test_counts_of_merged_windows_are_added():
    sessions = EventTimeSessionWindows.with_gap(_MS(5))
    with _harness(sessions, CountTrigger.of(3), values) as harness:
        feed(harness, ("a", 1, 0), ("a", 2, 8))
        assert harness.output == []
        feed(harness, ("a", 3, 4))
        assert [(r[1], r[2], sorted(r[3])) for r in harness.output] == [(0, 13, ["1", "2", "3"])]


def test_what_a_count_trigger_remembers_goes_with_the_window():
    with _harness(tumbling(), CountTrigger.of(3)) as harness:
        feed(harness, ("a", 1, 0), ("a", 2, 1))
        assert not _is_clean(harness)
        harness.process_watermark(9)
        assert harness.output == []
        assert _is_clean(harness)


# Purging


def test_a_purging_trigger_drops_what_has_fired():
    trigger = PurgingTrigger.of(CountTrigger.of(2))
    with _harness(GlobalWindows.create(), trigger) as harness:
        feed(harness, *[("a", n, n) for n in range(5)])
        assert harness.output == ["01", "23"]


def test_a_purged_window_gives_late_records_only():
    trigger = PurgingTrigger.of(EventTimeTrigger.create())
    with _harness(tumbling(), trigger, lateness=50) as harness:
        feed(harness, ("a", 1, 0))
        harness.process_watermark(9)
        feed(harness, ("a", 2, 1))
        feed(harness, ("a", 3, 1))
        assert harness.output == ["1", "2", "3"]


def test_a_window_whose_contents_were_purged_does_not_fire():
    trigger = PurgingTrigger.of(CountTrigger.of(1))
    with _harness(tumbling(), trigger) as harness:
        feed(harness, ("a", 1, 0))
        harness.process_watermark(9)
        assert harness.output == ["1"]


# Continuous


def test_a_continuous_trigger_fires_at_every_interval_of_event_time_and_at_the_end():
    with _harness(tumbling(100), ContinuousEventTimeTrigger.of(_MS(20))) as harness:
        feed(harness, ("a", 1, 5))
        harness.process_watermark(19)
        assert harness.output == []
        harness.process_watermark(20)
        feed(harness, ("a", 2, 25))
        harness.process_watermark(45)
        assert harness.output == ["1", "12"]
        harness.process_watermark(99)
        # At 60, 80 and at the last moment.
        assert harness.output == ["1", "12", "12", "12", "12"]
        assert _is_clean(harness)


def test_a_continuous_trigger_fires_for_each_late_record():
    trigger = ContinuousEventTimeTrigger.of(_MS(50))
    with _harness(tumbling(100), trigger, lateness=10) as harness:
        harness.process_watermark(99)
        feed(harness, ("a", 1, 5), ("a", 2, 6))
        assert harness.output == ["1", "12"]


def test_the_fire_times_of_merged_windows_become_one():
    sessions = EventTimeSessionWindows.with_gap(_MS(30))
    with _harness(sessions, ContinuousEventTimeTrigger.of(_MS(20))) as harness:
        feed(harness, ("a", 1, 5))
        feed(harness, ("a", 2, 25))
        harness.process_watermark(20)
        assert [sorted(r) for r in harness.output] == [["1", "2"]]
        harness.process_watermark(200)
        assert _is_clean(harness)


def test_a_continuous_trigger_fires_as_the_clock_goes_on():
    with _harness(tumbling(1000), ContinuousProcessingTimeTrigger.of(_MS(20))) as harness:
        harness.set_processing_time(5)
        feed(harness, ("a", 1, 5))
        harness.set_processing_time(19)
        assert harness.output == []
        harness.set_processing_time(20)
        feed(harness, ("a", 2, 6))
        harness.set_processing_time(65)
        assert harness.output == ["1", "12", "12"]
        harness.process_watermark(999)
        assert _is_clean(harness)


# The others


def test_a_delta_trigger_fires_when_a_record_differs_enough_from_the_last_that_fired():
    trigger = DeltaTrigger.of(2, lambda last, new: new[1] - last[1])
    with _harness(GlobalWindows.create(), trigger) as harness:
        feed(harness, *[("a", n, n) for n in (0, 1, 2, 3, 4, 5, 6)])
        assert harness.output == ["0123", "0123456"]


# Timeout


def test_a_timeout_fires_what_has_waited_long_enough_for_its_trigger():
    trigger = ProcessingTimeoutTrigger.of(CountTrigger.of(3), _MS(100))
    with _harness(GlobalWindows.create(), trigger) as harness:
        harness.set_processing_time(1_000)
        feed(harness, ("a", 1, 0))
        harness.set_processing_time(1_050)
        feed(harness, ("a", 2, 0))
        harness.set_processing_time(1_099)
        assert harness.output == []
        harness.set_processing_time(1_100)
        assert harness.extract_output() == ["12"]
        feed(harness, ("a", 3, 0), ("a", 4, 0), ("a", 5, 0))
        assert harness.extract_output() == ["12345"]
        harness.set_processing_time(9_000)
        assert harness.output == []


def test_a_timeout_may_begin_anew_with_each_record():
    trigger = ProcessingTimeoutTrigger.of(CountTrigger.of(3), _MS(100), True)
    with _harness(GlobalWindows.create(), PurgingTrigger.of(trigger)) as harness:
        for now in (0, 90, 180):
            harness.set_processing_time(now)
            feed(harness, ("a", now, 0) if now < 180 else ("b", now, 0))
        harness.set_processing_time(189)
        assert harness.output == []
        harness.set_processing_time(190)
        assert harness.output == ["090"]


@pytest.mark.parametrize(("clears", "firing"), [(True, ["12", "12345"]), (False, ["12", "123"])])
def test_a_timeout_may_leave_the_nested_trigger_as_it_is(clears, firing):
    trigger = ProcessingTimeoutTrigger.of(CountTrigger.of(3), _MS(100), False, clears)
    with _harness(GlobalWindows.create(), trigger) as harness:
        feed(harness, ("a", 1, 0), ("a", 2, 0))
        harness.advance_processing_time(100)
        feed(harness, ("a", 3, 0), ("a", 4, 0), ("a", 5, 0))
        assert harness.output == firing


def test_what_a_timeout_remembers_goes_with_the_window():
    trigger = ProcessingTimeoutTrigger.of(EventTimeTrigger(), _MS(100))
    with _harness(tumbling(), trigger) as harness:
        feed(harness, ("a", 1, 0))
        harness.process_watermark(9)
        assert harness.output == ["1"]
        assert _is_clean(harness)


def test_a_timeout_needs_a_trigger_and_windows_that_do_not_merge():
    with pytest.raises(InvalidProgramError, match="needs a Trigger"):
        ProcessingTimeoutTrigger.of("count", _MS(1))  # type: ignore[arg-type]  # no trigger
    sessions = EventTimeSessionWindows.with_gap(_MS(5))
    with pytest.raises(InvalidProgramError, match="can_merge"):
        _harness(sessions, ProcessingTimeoutTrigger.of(EventTimeTrigger(), _MS(1)))


# End of the stream


@pytest.mark.parametrize("batch", [False, True])
def test_a_global_window_may_fire_when_the_input_has_ended(batch):
    program = windows(GlobalWindows.create_with_end_of_stream_trigger(), _contents)
    with OperatorHarness.of(program, batch=batch) as harness:
        harness.process_elements([("a", 1), ("b", 2), ("a", 3)])
        harness.process_watermark(2**63 - 2)
        assert harness.output == []
        harness.finish()
        assert sorted(harness.output) == ["13", "2"]


def test_the_end_of_the_stream_is_told_after_a_restore():
    program = windows(GlobalWindows.create_with_end_of_stream_trigger(), _contents)
    with OperatorHarness.of(program) as harness:
        harness.process_elements([("a", 1)])
        snapshot = harness.snapshot()
    with OperatorHarness.restored(program, snapshot) as restored:
        restored.process_elements([("a", 2)])
        restored.finish()
        assert restored.output == ["12"]


def test_never_means_never():
    with _harness(GlobalWindows.create(), NeverTrigger()) as harness:
        feed(harness, ("a", 1, 0))
        harness.finish()
        assert harness.output == []


def test_windows_of_event_time_may_fire_by_the_clock():
    with _harness(tumbling(), ProcessingTimeTrigger.create()) as harness:
        feed(harness, ("a", 1, 0))
        harness.set_processing_time(9)
        assert harness.output == ["1"]
        harness.process_watermark(9)
        assert harness.output == ["1"]
        assert _is_clean(harness)


def test_a_trigger_that_cannot_merge_is_refused_for_windows_that_do():
    sessions = EventTimeSessionWindows.with_gap(_MS(5))
    with pytest.raises(InvalidProgramError, match="can_merge"):
        _harness(sessions, DeltaTrigger.of(1, lambda a, b: 0))


# One's own


class EarlyAndLate(Trigger):
    """Fires early with the second record, on time, and late; notes what it is told."""

    log: list[Any] = []
    seen = ListStateDescriptor("seen", Types.PICKLED_BYTE_ARRAY())
    total = ReducingStateDescriptor("total", lambda a, b: a + b, Types.LONG())
    count = AggregatingStateDescriptor("count", Count(), Types.LONG())

    def on_element(self, element, timestamp, window, ctx):
        ctx.get_partitioned_state(self.seen).add(element[1])
        ctx.get_partitioned_state(self.total).add(element[1])
        count = ctx.get_partitioned_state(self.count)
        count.add(element)
        ctx.register_event_time_timer(window.max_timestamp())
        if window.max_timestamp() <= ctx.get_current_watermark():
            return TriggerResult.FIRE
        return TriggerResult.FIRE if count.get() == 2 else TriggerResult.CONTINUE

    def on_event_time(self, time, window, ctx):
        self.log.append(("time", time))
        return TriggerResult.FIRE if time == window.max_timestamp() else TriggerResult.CONTINUE

    def on_processing_time(self, time, window, ctx):
        return TriggerResult.CONTINUE

    def can_merge(self):
        return True

    def on_merge(self, window, ctx):
        for state in (self.seen, self.total, self.count):
            ctx.merge_partitioned_state(state)
        self.log.append(
            (
                "merge",
                tuple(window),
                sorted(ctx.get_partitioned_state(self.seen).get()),
                ctx.get_partitioned_state(self.total).get(),
                ctx.get_partitioned_state(self.count).get(),
            )
        )
        ctx.register_event_time_timer(window.max_timestamp())

    def clear(self, window, ctx):
        for state in (self.seen, self.total, self.count):
            ctx.get_partitioned_state(state).clear()
        ctx.delete_event_time_timer(window.max_timestamp())
        self.log.append(("clear", tuple(window)))


def test_a_trigger_of_ones_own_has_state_timers_and_a_say_in_merging():
    EarlyAndLate.log.clear()
    sessions = EventTimeSessionWindows.with_gap(_MS(5))
    with _harness(sessions, EarlyAndLate(), values, lateness=10) as harness:
        feed(harness, ("a", 1, 0), ("a", 2, 8))
        feed(harness, ("a", 3, 4))
        assert EarlyAndLate.log == [
            ("merge", (0, 13), [1, 2], 3, 2),
            ("clear", (0, 5)),
            ("clear", (8, 13)),
        ]
        harness.process_watermark(12)
        feed(harness, ("a", 4, 1))
        assert [sorted(r[3]) for r in harness.output] == [["1", "2", "3"], ["1", "2", "3", "4"]]
        harness.process_watermark(22)
        assert EarlyAndLate.log[-2:] == [("time", 22), ("clear", (0, 13))]
        assert _is_clean(harness)


class MergesAValue(EarlyAndLate):
    value = ValueStateDescriptor("value", Types.LONG())

    def on_merge(self, window, ctx):
        ctx.merge_partitioned_state(self.value)


def test_a_single_value_cannot_be_merged():
    sessions = EventTimeSessionWindows.with_gap(_MS(5))
    with _harness(sessions, MergesAValue()) as harness:
        feed(harness, ("a", 1, 0))
        with pytest.raises(
            UserFunctionError, match="reducing, aggregating and list state"
        ) as caught:
            feed(harness, ("a", 1, 2))
        assert caught.value.function == "MergesAValue.on_merge"


class Fails(EventTimeTrigger):
    def on_event_time(self, time, window, ctx):
        raise ZeroDivisionError


def test_a_trigger_that_fails_is_blamed_with_its_window():
    with _harness(tumbling(), Fails()) as harness:
        feed(harness, ("a", 1, 0))
        with pytest.raises(UserFunctionError) as caught:
            harness.process_watermark(9)
        assert caught.value.function == "Fails.on_event_time"
        assert "TimeWindow(start=0, end=10) of key 'a'" in str(caught.value)
