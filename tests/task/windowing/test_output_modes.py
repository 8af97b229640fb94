"""output_mode: the window results that are emitted."""

from __future__ import annotations

from typing import Any

import pytest

from firesteel.common import Types, WatermarkStrategy
from firesteel.common.time import Time
from firesteel.datastream.window import (
    ContinuousEventTimeTrigger,
    CountEvictor,
    CountTrigger,
    EventTimeSessionWindows,
    EventTimeTrigger,
    GlobalWindows,
    PurgingTrigger,
    TriggerResult,
)
from firesteel.errors import InvalidProgramError
from firesteel.testing import JobHarness, OperatorHarness, ScriptedSource, Timed
from tests.task.windows import (
    Count,
    GeneralEventTimeTrigger,
    Tell,
    feed,
    sliding,
    tumbling,
    windows,
)


@pytest.fixture(params=["sliced", "general"])
def trigger(request: pytest.FixtureRequest) -> Any:
    return None if request.param == "sliced" else GeneralEventTimeTrigger()


def _sum(windowed: Any) -> Any:
    return windowed.sum(1)


def test_append_emits_a_window_once_when_nothing_can_change_it(trigger):
    program = windows(tumbling(), _sum, trigger=trigger, lateness=5, mode="append")
    with OperatorHarness.of(program) as harness:
        feed(harness, ("a", 1, 0))
        harness.process_watermark(12)
        feed(harness, ("a", 2, 1))
        assert harness.output == []
        harness.process_watermark(13)
        assert harness.output == []
        harness.process_watermark(14)
        assert harness.output_with_timestamps == [(("a", 3), 9)]
        harness.process_watermark(100)
        assert len(harness.output) == 1
        assert not any(harness.keyed_state().values())


def test_append_leaves_early_firings_out():
    early = ContinuousEventTimeTrigger.of(Time.milliseconds(2))
    with OperatorHarness.of(windows(tumbling(), _sum, trigger=early, mode="append")) as harness:
        feed(harness, ("a", 1, 0))
        harness.process_watermark(8)
        assert harness.output == []
        harness.process_watermark(9)
        assert harness.output == [("a", 1)]


def test_append_takes_any_function(trigger):
    program = windows(
        tumbling(), lambda w: w.aggregate(Count(), Tell()), trigger=trigger, mode="append"
    )
    with OperatorHarness.of(program) as harness:
        feed(harness, ("a", 1, 0))
        harness.process_watermark(9)
        assert harness.output == [("a", 0, 10, 1)]


def test_append_with_an_evictor_emits_what_is_left_at_the_end():
    program = windows(tumbling(), _sum, evictor=CountEvictor.of(2), lateness=5, mode="append")
    with OperatorHarness.of(program) as harness:
        feed(harness, ("a", 1, 0), ("a", 2, 1), ("a", 4, 2))
        harness.process_watermark(13)
        assert harness.output == []
        harness.process_watermark(14)
        assert harness.output == [("a", 6)]


@pytest.mark.parametrize(
    "settings",
    [
        {"trigger": PurgingTrigger.of(CountTrigger.of(2))},
        {"trigger": PurgingTrigger.of(EventTimeTrigger())},
        {"trigger": CountTrigger.of(1), "evictor": CountEvictor.of(1, True)},
    ],
)
def test_append_loses_nothing_by_firings_that_purge_or_evict(settings):
    program = windows(tumbling(), _sum, lateness=5, mode="append", **settings)
    with OperatorHarness.of(program) as harness:
        feed(harness, ("a", 1, 1), ("a", 2, 2), ("a", 4, 3))
        harness.process_watermark(10)
        feed(harness, ("a", 8, 4))
        assert harness.output == []
        harness.process_watermark(14)
        assert harness.output == [("a", 15)]
        assert not any(harness.keyed_state().values())


def test_a_trigger_that_only_purges_drops_what_append_has_not_emitted():
    class Restart(GeneralEventTimeTrigger):
        def on_element(self, element, timestamp, window, ctx):
            super().on_element(element, timestamp, window, ctx)
            return TriggerResult.PURGE if element[1] < 0 else TriggerResult.CONTINUE

    with OperatorHarness.of(windows(tumbling(), _sum, trigger=Restart(), mode="append")) as harness:
        feed(harness, ("a", 1, 1), ("a", -1, 2), ("a", 4, 3))
        harness.process_watermark(9)
        assert harness.output == [("a", 4)]


@pytest.mark.parametrize("mode", ["update", "complete"])
def test_a_result_that_replaces_the_last_one_is_of_all_records_though_the_trigger_purges(mode):
    trigger = PurgingTrigger.of(EventTimeTrigger())
    with OperatorHarness.of(
        windows(tumbling(), _sum, trigger=trigger, lateness=50, mode=mode)
    ) as harness:
        feed(harness, ("a", 1, 5))
        harness.process_watermark(9)
        feed(harness, ("a", 1, 6))
        assert [result for _, result in harness.output] == [("a", 1), ("a", 2)]


def test_update_forgets_windows_that_are_purged_and_have_no_end():
    program = lambda s: s.key_by(lambda r: r[0]).count_window(2).output_mode("update").sum(1)  # noqa: E731
    with OperatorHarness.of(program) as harness:
        harness.process_elements([("a", 1)] * 10)
        assert [result for _, result in harness.output] == [("a", 2)] * 5
        kept = {name for name, table in harness.keyed_state().items() if table}
        assert kept == {"tumble-count-assigner"}


def test_update_emits_what_has_changed_by_key_and_window(trigger):
    program = windows(tumbling(), lambda w: w.max(1), trigger=trigger, lateness=50, mode="update")
    with OperatorHarness.of(program) as harness:
        feed(harness, ("a", 5, 0), ("b", 1, 0))
        harness.process_watermark(9)
        first = [(("a", (0, 10)), ("a", 5)), (("b", (0, 10)), ("b", 1))]
        assert harness.output == first
        feed(harness, ("a", 3, 1), ("b", 2, 1), ("c", 0, 1))
        assert harness.output[2:] == [(("b", (0, 10)), ("b", 2)), (("c", (0, 10)), ("c", 0))]
        harness.process_watermark(100)
        assert not any(harness.keyed_state().values())


def test_update_with_early_firings_tells_only_changes():
    early = ContinuousEventTimeTrigger.of(Time.milliseconds(2))
    with OperatorHarness.of(windows(tumbling(), _sum, trigger=early, mode="update")) as harness:
        feed(harness, ("a", 1, 0))
        harness.process_watermark(6)
        feed(harness, ("a", 2, 7))
        harness.process_watermark(100)
        assert [result for _, result in harness.output] == [("a", 1), ("a", 3)]


def test_update_takes_back_windows_that_have_merged():
    sessions = EventTimeSessionWindows.with_gap(Time.milliseconds(5))
    program = windows(sessions, _sum, trigger=CountTrigger.of(1), mode="update")
    with OperatorHarness.of(program) as harness:
        feed(harness, ("a", 1, 0), ("a", 2, 3))
        assert harness.output == [
            (("a", (0, 5)), ("a", 1)),
            (("a", (0, 5)), None),
            (("a", (0, 8)), ("a", 3)),
        ]


def test_complete_emits_the_whole_table_whenever_something_fires(trigger):
    program = windows(tumbling(), _sum, trigger=trigger, mode="complete")
    with OperatorHarness.of(program) as harness:
        feed(harness, ("a", 1, 0), ("b", 2, 0), ("a", 3, 10))
        harness.process_watermark(5)
        assert harness.output == []
        harness.process_watermark(9)
        first = [(("a", (0, 10)), ("a", 1)), (("b", (0, 10)), ("b", 2))]
        assert sorted(harness.extract_output()) == first
        harness.snapshot()
        harness.process_watermark(19)
        assert sorted(harness.output) == [first[0], (("a", (10, 20)), ("a", 3)), first[1]]


@pytest.mark.parametrize("mode", ["update", "complete"])
def test_results_with_their_window_travel_though_the_records_are_typed(mode):
    def program(env: Any) -> Any:
        pairs = Types.TUPLE([Types.STRING(), Types.INT()])
        strategy = WatermarkStrategy.for_monotonous_timestamps()
        stream = env.from_source(ScriptedSource([Timed(("a", 1), 3)]), strategy, "records", pairs)
        windowed = stream.key_by(lambda r: r[0], Types.STRING()).window(tumbling())
        return windowed.output_mode(mode).sum(1).rebalance().map(lambda pair: pair)

    harness = JobHarness(program, parallelism=2)
    harness.run()
    assert harness.collected == [(("a", (0, 10)), ("a", 1))]


def test_modes_work_for_windows_without_an_end():
    program = windows(GlobalWindows.create(), _sum, trigger=CountTrigger.of(2), mode="update")
    with OperatorHarness.of(program) as harness:
        harness.process_elements([("a", 1), ("a", 2), ("b", 1)])
        assert [result for _, result in harness.output] == [("a", 3)]


@pytest.mark.parametrize(
    ("assigner", "operation", "mode"),
    [
        (tumbling(), _sum, "replace"),
        (GlobalWindows.create(), _sum, "append"),
        (sliding(), lambda w: w.reduce(max, Tell()), "update"),
        (sliding(), lambda w: w.process(Tell()), "complete"),
    ],
)
def test_modes_that_make_no_sense_are_refused(assigner, operation, mode):
    with pytest.raises(InvalidProgramError, match="output_mode"):
        OperatorHarness.of(windows(assigner, operation, mode=mode))
