"""assign_timestamps_and_watermarks."""

from __future__ import annotations

import pytest

from firesteel.common.constants import MAX_WATERMARK, MIN_WATERMARK
from firesteel.common.time import Duration
from firesteel.common.watermark_strategy import WatermarkStrategy
from firesteel.datastream import StreamExecutionEnvironment
from firesteel.datastream.functions import ProcessFunction
from firesteel.errors import InvalidProgramError
from firesteel.testing import JobHarness, OperatorHarness, ScriptedSource, Timed


def _strategy() -> WatermarkStrategy:
    bounded = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(5))
    return bounded.with_timestamp_assigner(lambda value, _: value)


def _harness(strategy: WatermarkStrategy | None = None, **arguments) -> OperatorHarness:
    chosen = strategy or _strategy()
    return OperatorHarness.of(lambda s: s.assign_timestamps_and_watermarks(chosen), **arguments)


def test_records_get_timestamps_and_the_stream_watermarks():
    with _harness() as harness:
        harness.process_elements([30, 20])
        harness.advance_processing_time(200)
        harness.process_elements([40])
        assert harness.output_with_timestamps == [(30, 30), (20, 20), (40, 40)]
        assert harness.watermarks == [24]


def test_watermarks_of_the_input_do_not_count_but_its_end_does():
    with _harness() as harness:
        harness.process_watermark(1_000)
        harness.process_elements([30])
        harness.finish()
        assert harness.watermarks == [MAX_WATERMARK]


def test_the_end_of_an_epoch_asks_the_generator():
    with _harness() as harness:
        harness.process_elements([30])
        harness.snapshot()
        assert harness.watermarks == [24]


def test_a_snapshot_keeps_the_watermark():
    with _harness() as harness:
        harness.process_elements([30])
        snapshot = harness.snapshot()
    with OperatorHarness.restored(
        lambda s: s.assign_timestamps_and_watermarks(_strategy()), snapshot
    ) as restored:
        restored.process_elements([10])
        restored.snapshot()
        assert restored.watermarks == []


def test_only_this_operator_decides_about_idleness():
    with _harness(_strategy().with_idleness(Duration.of_millis(300))) as harness:
        harness.process_idleness(True)
        assert harness.idleness == []
        harness.process_elements([30])
        harness.advance_processing_time(299)
        assert harness.idleness == []
        harness.advance_processing_time(201)
        assert harness.idleness == [True]
        harness.process_elements([31])
        assert harness.idleness == [True, False]


def test_a_batch_has_no_watermark_but_the_last():
    with _harness(batch=True) as harness:
        harness.process_elements([30])
        harness.advance_processing_time(1_000)
        assert harness.output_with_timestamps == [(30, 30)]
        harness.finish()
        assert harness.watermarks == [MAX_WATERMARK]


def test_alignment_is_for_sources():
    env = StreamExecutionEnvironment()
    strategy = _strategy().with_watermark_alignment("group", Duration.of_seconds(1))
    with pytest.raises(InvalidProgramError, match="from_source"):
        env.from_collection([1]).assign_timestamps_and_watermarks(strategy)


class Times(ProcessFunction):
    """The record's timestamp and the watermark that holds."""

    def process_element(self, value, ctx):
        yield value, ctx.timestamp(), ctx.timer_service().current_watermark()


def test_event_time_is_another_in_front_of_the_operator_and_behind_it():
    def program(env):
        source = ScriptedSource([Timed("a", 1), Timed("b", 2), Timed("c", 3)])
        stream = env.from_source(source, WatermarkStrategy.for_monotonous_timestamps(), "letters")
        later = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(
            lambda value, timestamp: value[1] * 1000
        )
        return (
            stream.process(Times())
            .assign_timestamps_and_watermarks(later)
            .process(Times())
            .map(lambda result: (*result[0], *result[1:]))
        )

    harness = JobHarness(program, records_per_epoch=1)
    harness.run()
    assert harness.collected == [
        ("a", 1, MIN_WATERMARK, 1000, MIN_WATERMARK),
        ("b", 2, 0, 2000, 999),
        ("c", 3, 1, 3000, 1999),
    ]


def test_the_watermark_is_known_after_a_lost_process():
    """As the test above, but every epoch runs in a new process."""
    from firesteel.testing import Fault

    def program(env):
        source = ScriptedSource([Timed("a", 1), Timed("b", 2), Timed("c", 3)])
        stream = env.from_source(source, WatermarkStrategy.for_monotonous_timestamps(), "letters")
        return stream.process(Times()).key_by(lambda r: r[0]).map(lambda r: r)

    harness = JobHarness(program, records_per_epoch=1)
    lost = dict.fromkeys(harness.places(), Fault.LOSE_HOST)
    harness.run(faults=dict.fromkeys(range(2, 10), lost))
    assert harness.collected == [("a", 1, MIN_WATERMARK), ("b", 2, 0), ("c", 3, 1)]
