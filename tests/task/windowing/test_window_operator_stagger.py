"""Staggered windows: each subtask shifts all its windows by a constant."""

from __future__ import annotations

from firesteel.common.time import Time
from firesteel.datastream.window import TumblingEventTimeWindows, WindowStagger
from firesteel.testing import OperatorHarness
from tests.task.windows import feed, values, windows


def _staggered() -> TumblingEventTimeWindows:
    ten = Time.milliseconds(10)
    return TumblingEventTimeWindows.of(ten, Time.milliseconds(0), WindowStagger.NATURAL)


def test_windows_of_event_time_are_shifted_by_the_clock_of_the_first_record():
    with OperatorHarness.of(windows(_staggered(), values)) as harness:
        harness.set_processing_time(1_003)
        feed(harness, ("a", 1, 0))
        harness.set_processing_time(1_007)
        feed(harness, ("a", 2, 4), ("b", 3, 12))
        harness.process_watermark(100)
        assert harness.output == [("a", -7, 3, "1"), ("a", 3, 13, "2"), ("b", 3, 13, "3")]


def test_a_restored_subtask_does_not_cut_its_windows_in_two():
    program = windows(_staggered(), values)
    with OperatorHarness.of(program) as harness:
        harness.set_processing_time(1_003)
        feed(harness, ("a", 1, 4))
        snapshot = harness.snapshot()
    with OperatorHarness.restored(program, snapshot) as restored:
        restored.set_processing_time(2_009)
        feed(restored, ("a", 2, 5))
        restored.process_watermark(100)
        assert restored.output == [("a", 3, 13, "12")]


def test_operators_that_share_an_assigner_shift_their_windows_by_themselves():
    program = windows(_staggered(), values)
    for now, window in ((1_001, (1, 11)), (1_006, (-4, 6))):
        with OperatorHarness.of(program) as harness:
            harness.set_processing_time(now)
            feed(harness, ("a", 1, 5))
            harness.process_watermark(100)
            assert harness.output == [("a", *window, "1")]
