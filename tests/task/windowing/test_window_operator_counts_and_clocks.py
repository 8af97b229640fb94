"""Count windows, processing-time windows, and windows over whole streams."""

from __future__ import annotations

import pytest

from firesteel.common.time import Time
from firesteel.datastream.functions import (
    AllWindowFunction,
    ProcessAllWindowFunction,
    WindowFunction,
)
from firesteel.datastream.window import (
    CountEvictor,
    CountTrigger,
    GlobalWindows,
    SlidingProcessingTimeWindows,
    TumblingProcessingTimeWindows,
)
from firesteel.testing import JobHarness, OperatorHarness, Pause, ScriptedSource
from tests.task.windows import Count, tumbling

_MS = Time.milliseconds


class All(WindowFunction):
    def apply(self, key, window, inputs):
        yield key, [value for _, value in inputs]


def _key(record):
    return record[0]


def _state(harness):
    return {name: table for name, table in harness.keyed_state().items() if table}


# Counts


def test_count_windows_follow_each_other():
    with OperatorHarness.of(lambda s: s.key_by(_key).count_window(2).apply(All())) as harness:
        harness.process_elements([("a", 1), ("b", 2), ("a", 3), ("a", 4), ("b", 5)])
        assert harness.output == [("a", [1, 3]), ("b", [2, 5])]


def test_a_full_count_window_leaves_only_its_number():
    with OperatorHarness.of(lambda s: s.key_by(_key).count_window(2).sum(1)) as harness:
        harness.process_elements([("a", 1), ("a", 2)])
        assert _state(harness) == {"tumble-count-assigner": {"a": 2}}


def test_sliding_count_windows_fire_when_they_are_full():
    with OperatorHarness.of(lambda s: s.key_by(_key).count_window(3, 2).apply(All())) as harness:
        harness.process_elements([("a", n) for n in range(8)])
        assert harness.output == [("a", [0, 1, 2]), ("a", [2, 3, 4]), ("a", [4, 5, 6])]


def test_a_slide_longer_than_the_window_leaves_records_out():
    with OperatorHarness.of(lambda s: s.key_by(_key).count_window(2, 3).apply(All())) as harness:
        harness.process_elements([("a", n) for n in range(8)])
        assert harness.output == [("a", [0, 1]), ("a", [3, 4]), ("a", [6, 7])]


def test_javas_sliding_count_windows_are_a_trigger_and_an_evictor():
    def program(stream):
        windowed = stream.key_by(_key).window(GlobalWindows.create())
        return windowed.trigger(CountTrigger.of(2)).evictor(CountEvictor.of(3)).apply(All())

    with OperatorHarness.of(program) as harness:
        harness.process_elements([("a", n) for n in range(6)])
        assert harness.output == [("a", [0, 1]), ("a", [1, 2, 3]), ("a", [3, 4, 5])]


# The clock


@pytest.mark.parametrize("batches", [1, 2])
def test_windows_of_the_clock_take_records_as_they_come(batches):
    def program(stream):
        return stream.key_by(_key).window(TumblingProcessingTimeWindows.of(_MS(10))).apply(All())

    with OperatorHarness.of(program) as harness:
        harness.set_processing_time(1_003)
        for number in range(batches):
            harness.process_element(("a", number), timestamp=5)
        harness.set_processing_time(1_008)
        assert harness.output == []
        harness.set_processing_time(1_009)
        assert harness.output_with_timestamps == [(("a", list(range(batches))), 1_009)]
        assert _state(harness) == {}


def test_sliding_windows_of_the_clock():
    def program(stream):
        windows = SlidingProcessingTimeWindows.of(_MS(10), _MS(5))
        return stream.key_by(_key).window(windows).apply(All())

    with OperatorHarness.of(program) as harness:
        harness.set_processing_time(1_003)
        harness.process_element(("a", 1))
        harness.set_processing_time(1_007)
        harness.process_element(("a", 2))
        harness.set_processing_time(2_000)
        assert harness.output == [("a", [1]), ("a", [1, 2]), ("a", [2])]


def test_windows_of_the_clock_fire_though_nothing_comes():
    def program(env):
        source = ScriptedSource([("a", 1), ("a", 2), Pause(30.0), ("a", 3)], bounded=False)
        stream = env.from_source(source, None, "records")
        return stream.key_by(_key).window(TumblingProcessingTimeWindows.of(Time.seconds(5))).sum(1)

    harness = JobHarness(program)
    while not harness.collected:
        harness.run_epoch()
    assert harness.collected == [("a", 3)]
    assert harness.now_millis() < 6_000


def test_a_batch_fires_windows_of_the_clock_at_its_end():
    def program(stream):
        windows = TumblingProcessingTimeWindows.of(_MS(10))
        return stream.key_by(_key).window(windows).apply(All())

    with OperatorHarness.of(program, batch=True) as harness:
        harness.process_elements([("a", 1), ("b", 2)])
        harness.finish()
        assert harness.output == [("a", [1]), ("b", [2])]


# Whole streams


class Everything(AllWindowFunction):
    def apply(self, window, inputs):
        yield window.start, sorted(inputs)


class EverythingAndMore(ProcessAllWindowFunction):
    def process(self, context, elements):
        yield context.window().start, context.current_watermark(), list(elements)


def test_windows_over_a_whole_stream_have_no_key():
    with OperatorHarness.of(lambda s: s.window_all(tumbling()).apply(Everything())) as harness:
        harness.process_elements([3, 1, 2], [0, 5, 12])
        harness.process_watermark(100)
        assert harness.output == [(0, [1, 3]), (10, [2])]
    program = lambda s: s.window_all(tumbling()).aggregate(Count(), EverythingAndMore())  # noqa: E731
    with OperatorHarness.of(program) as harness:
        harness.process_elements([3, 1, 2], [0, 5, 12])
        harness.process_watermark(9)
        assert harness.output == [(0, 9, [2])]


@pytest.mark.parametrize(
    ("operation", "expected"),
    [
        (lambda w: w.sum(), [6]),
        (lambda w: w.min(), [1]),
        (lambda w: w.max(0), [3]),
        (lambda w: w.min_by(), [1]),
        (lambda w: w.max_by(), [3]),
        (lambda w: w.reduce(max), [3]),
    ],
)
def test_aggregations_of_a_whole_stream(operation, expected):
    with OperatorHarness.of(lambda s: operation(s.window_all(tumbling()))) as harness:
        harness.process_elements([3, 1, 2], [0, 5, 6])
        harness.process_watermark(9)
        assert harness.output == expected


def test_windows_over_a_whole_stream_are_one_subtask():
    def program(env):
        return env.from_sequence(1, 10).count_window_all(5).sum()

    job = JobHarness(program, parallelism=3)
    node = next(n for n in job._graph.nodes.values() if "Count" in n.name)
    assert node.parallelism == 1
    job.run()
    assert sum(job.collected) == 55
    keyed = OperatorHarness.of(lambda s: s.key_by(_key).count_window_all(2, 1).reduce(max))
    with keyed as harness:
        harness.process_elements([("a", 1), ("b", 2), ("c", 0)])
        assert harness.output == [("b", 2), ("c", 0)]
    with OperatorHarness.of(lambda s: s.key_by(_key).window_all(tumbling()).reduce(max)) as harness:
        harness.process_elements([("a", 1), ("b", 2)], [0, 1])
        harness.process_watermark(9)
        assert harness.output == [("b", 2)]
