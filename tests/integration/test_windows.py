"""Event time and windows on Spark: several sources and subtasks, epochs, and the clock."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from firesteel.common import Duration, Time, WatermarkStrategy
from firesteel.datastream import (
    AggregateFunction,
    OutputTag,
    ProcessWindowFunction,
    StreamExecutionEnvironment,
)
from firesteel.datastream.connectors.datagen import DataGeneratorSource, RateLimiterStrategy
from firesteel.datastream.connectors.file_system import FileSource, StreamFormat
from firesteel.datastream.connectors.number_seq import NumberSequenceSource
from firesteel.datastream.window import (
    EventTimeSessionWindows,
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
    TumblingProcessingTimeWindows,
)

pytestmark = pytest.mark.both_ways

_RECORDS = 20_000
_KEYS = 7
_LATE = OutputTag("late")


class Count(AggregateFunction):
    def create_accumulator(self) -> int:
        return 0

    def add(self, value: int, accumulator: int) -> int:
        return accumulator + 1

    def get_result(self, accumulator: int) -> int:
        return accumulator

    def merge(self, acc_a: int, acc_b: int) -> int:
        return acc_a + acc_b


class Tell(ProcessWindowFunction[Any, Any, Any, Any]):
    def __init__(self, name: str) -> None:
        self._name = name

    def process(self, key: Any, context: Any, elements: Any) -> Any:
        (count,) = elements
        yield self._name, key, context.window().start, context.window().end, count


def _time(number: int) -> int:
    """Ascending in steps, with some disorder, and a gap in the middle."""
    return number * 10 + (number * 7919) % 50 + (1_000_000 if number >= _RECORDS // 2 else 0)


def test_windows_of_event_time_hold_what_belongs_to_them(env: StreamExecutionEnvironment) -> None:
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(50))
    strategy = strategy.with_timestamp_assigner(lambda number, _: _time(number))
    first = env.from_source(NumberSequenceSource(0, _RECORDS - 1), strategy, "first")
    second = env.from_source(NumberSequenceSource(0, _RECORDS - 1), strategy, "second")
    keyed = first.union(second).key_by(lambda number: number % _KEYS)
    tumbling = keyed.window(TumblingEventTimeWindows.of(Time.seconds(5)))
    sliding = keyed.window(SlidingEventTimeWindows.of(Time.seconds(9), Time.seconds(3)))
    sessions = keyed.window(EventTimeSessionWindows.with_gap(Time.seconds(10)))
    results = tumbling.side_output_late_data(_LATE).aggregate(Count(), Tell("tumbling"))
    late = results.get_side_output(_LATE).map(lambda number: ("late", number))
    both = results.union(
        sliding.aggregate(Count(), Tell("sliding")),
        sessions.aggregate(Count(), Tell("session")),
        late,
    )
    with both.execute_and_collect("windows") as collected:
        found = Counter(collected)

    expected: Counter[Any] = Counter()
    for number in range(_RECORDS):
        time, key = _time(number), number % _KEYS
        expected["tumbling", key, time - time % 5000, time - time % 5000 + 5000] += 2
        last = time - time % 3000
        for start in range(last, time - 9000, -3000):
            expected["sliding", key, start, start + 9000] += 2
    for key in range(_KEYS):
        times = [_time(number) for number in range(key, _RECORDS, _KEYS)]
        for part in (times[: len(times) // 2], times[len(times) // 2 :]):
            within = [t for t in times if abs(t - part[len(part) // 2]) < 900_000]
            window = ("session", key, min(within), max(within) + 10_000)
            expected[window] = 2 * len(within)
    assert found == Counter((*window, count) for window, count in expected.items())


def test_windows_of_the_clock_fire_while_the_job_goes_on(env: StreamExecutionEnvironment) -> None:
    source = DataGeneratorSource(
        lambda index: index,
        count=100_000,
        rate_limiter_strategy=RateLimiterStrategy.per_second(200),
    )
    stream = env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers")
    windows = stream.key_by(lambda _: 0).window(TumblingProcessingTimeWindows.of(Time.seconds(1)))
    results = windows.aggregate(Count()).execute_and_collect("clock", limit=3)
    assert isinstance(results, list)
    assert len(results) == 3
    assert sum(results) > 0


def test_no_line_of_two_files_over_the_same_time_is_late(
    env: StreamExecutionEnvironment, tmp_path: Path
) -> None:
    """The larger one was once cut in two, and its second half read after the smaller one."""
    counts = [100_000, 105_000]
    for number, count in enumerate(counts):
        lines = "".join(f"{stamp:010}\n" for stamp in range(count))
        (tmp_path / f"{number}.log").write_text(lines)
    text = StreamFormat.text_line_format()
    source = FileSource.for_record_stream_format(text, str(tmp_path)).build()
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(
        lambda line, _: int(line)
    )
    counted = (
        env.set_parallelism(2)
        .from_source(source, strategy, "logs")
        .key_by(lambda _: 0)
        .window(TumblingEventTimeWindows.of(Time.seconds(10)))
        .aggregate(Count())
    )
    with counted.execute_and_collect() as results:
        assert sum(results) == sum(counts)
