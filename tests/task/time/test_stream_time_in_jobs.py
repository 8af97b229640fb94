"""Watermarks and idleness through whole jobs, with the real master and exchanges."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from firesteel.common import Configuration, Duration, Time, WatermarkStrategy
from firesteel.common.constants import MIN_WATERMARK
from firesteel.connectors.index_ranges import IndexRangeEnumerator
from firesteel.datastream.connectors.base import (
    Boundedness,
    Source,
    SourceReader,
    SourceSplit,
)
from firesteel.datastream.connectors.file_system import FileSource, StreamFormat
from firesteel.datastream.functions import ProcessFunction
from firesteel.datastream.window import TumblingEventTimeWindows
from firesteel.testing import Fault, JobHarness, Pause, ScriptedSource, Timed

_ASCENDING = WatermarkStrategy.for_monotonous_timestamps()


def _windowed(stream: Any) -> Any:
    windows = TumblingEventTimeWindows.of(Time.milliseconds(10))
    return stream.key_by(lambda _: "all").window(windows).sum()


def _two_sources(silent: WatermarkStrategy) -> Any:
    """One source speaks, the other one says something once and then nothing."""

    def program(env: Any) -> Any:
        busy = ScriptedSource([Timed(1, 1), Timed(1, 12)], bounded=False)
        quiet = ScriptedSource([Timed(1, 2)], bounded=False)
        return _windowed(
            env.from_source(busy, _ASCENDING, "busy").union(env.from_source(quiet, silent, "quiet"))
        )

    return program


def _run_until(harness: JobHarness, millis: int) -> None:
    while harness.now_millis() < millis:
        harness.run_epoch()


@pytest.mark.parametrize("faults", [None, Fault.LOSE_HOST])
def test_nobody_waits_for_an_idle_source(faults):
    harness = JobHarness(_two_sources(_ASCENDING.with_idleness(Duration.of_millis(1_000))))
    lost = dict.fromkeys(harness.places(), faults) if faults else None
    while harness.now_millis() < 900:
        harness.run_epoch(lost)
    assert harness.collected == []
    while harness.now_millis() < 1_300:
        harness.run_epoch(lost)
    assert harness.collected == [2]


def test_without_idleness_everybody_waits():
    harness = JobHarness(_two_sources(_ASCENDING))
    _run_until(harness, 60_000)
    assert harness.collected == []


@pytest.mark.parametrize("execution", ["micro-batch", "real-time"])
@pytest.mark.parametrize("parallelism", [1, 2])
def test_a_source_becomes_idle_although_its_reader_asks_for_a_long_pause(parallelism, execution):
    """The scripted pauses are long; only idleness wakes the job in between."""

    def program(env: Any) -> Any:
        busy = ScriptedSource([Timed(1, 1), Timed(1, 12), Pause(600.0)], bounded=False)
        quiet = ScriptedSource([Timed(1, 2), Pause(600.0)], bounded=False)
        idle = _ASCENDING.with_idleness(Duration.of_millis(1_000))
        return _windowed(
            env.from_source(busy, _ASCENDING, "busy").union(env.from_source(quiet, idle, "quiet"))
        )

    configuration = Configuration()
    configuration.set_string("firesteel.execution", execution)
    harness = JobHarness(program, parallelism=parallelism, configuration=configuration)
    while not harness.collected and harness.now_millis() < 10_000:
        harness.run_epoch()
    assert harness.collected == [2]
    assert 1_000 <= harness.now_millis() <= 2_000


def test_the_end_of_a_source_is_the_end_of_its_time():
    def program(env: Any) -> Any:
        short = ScriptedSource([Timed(1, 1)])
        long = ScriptedSource([Timed(1, 2), Timed(1, 50)], bounded=False)
        one = env.from_source(short, _ASCENDING, "short")
        return _windowed(one.union(env.from_source(long, _ASCENDING, "long")))

    harness = JobHarness(program)
    _run_until(harness, 1_000)
    assert harness.collected == [2]


class Watermark(ProcessFunction):
    def process_element(self, value, ctx):
        yield ctx.timer_service().current_watermark()


@pytest.mark.parametrize(("interval", "last"), [("200 ms", 3), ("0 ms", MIN_WATERMARK)])
def test_an_interval_of_0_switches_periodic_watermarks_off(interval, last):
    def program(env: Any) -> Any:
        source = ScriptedSource([Timed("a", 2), Timed("b", 4), Timed("c", 6)])
        return env.from_source(source, _ASCENDING, "letters").process(Watermark())

    configuration = Configuration()
    configuration.set_string("pipeline.auto-watermark-interval", interval)
    harness = JobHarness(program, records_per_epoch=1, configuration=configuration)
    harness.run()
    assert harness.collected[-1] == last


class TwoPartitions(Source):
    """Two splits, which the one reader reads in turn, a record at a time."""

    def __init__(self, *partitions: list[int]) -> None:
        self._partitions = partitions

    def get_boundedness(self):
        return Boundedness.BOUNDED

    def create_enumerator(self, parallelism, state=None):
        return IndexRangeEnumerator(0, len(self._partitions), len(self._partitions), state)

    def create_reader(self, context):
        return InTurn(self._partitions)


class ManyPartitions(TwoPartitions):
    side_by_side = True


class InTurn(SourceReader):
    def __init__(self, partitions: tuple[list[int], ...]) -> None:
        self._partitions = partitions
        self._splits: list[SourceSplit] = []
        self._current: str | None = None
        self._paused: set[str] = set()

    def add_splits(self, splits):
        self._splits += [split.at(split.position or 0) for split in splits]

    def pause_or_resume_splits(self, splits_to_pause, splits_to_resume):
        self._paused = (self._paused | splits_to_pause) - splits_to_resume

    def read(self, limit):
        split = next((s for s in self._splits if s.split_id not in self._paused), None)
        if split is None:
            return []
        self._splits.remove(split)
        self._current = split.split_id
        records = self._partitions[int(split.split_id)]
        if split.position + 1 < len(records):
            self._splits.append(split.at(split.position + 1))
        return [records[split.position]]

    def current_split(self):
        return self._current

    def snapshot_splits(self):
        return list(self._splits)


def _greatest_of_windows(source: Source, strategy: WatermarkStrategy) -> Any:
    stamped = strategy.with_timestamp_assigner(lambda number, _: number)

    def program(env: Any) -> Any:
        windows = TumblingEventTimeWindows.of(Time.milliseconds(10))
        numbers = env.from_source(source, stamped, "numbers")
        return numbers.key_by(lambda _: "all").window(windows).reduce(max)

    return program


def _dropped(harness: JobHarness) -> int:
    (dropped,) = harness.metrics().values()
    return int(dropped["count"])


@pytest.mark.parametrize("faults", [None, Fault.LOSE_HOST])
@pytest.mark.parametrize("records", [1, 3, 1000])
def test_two_splits_of_one_reader_do_not_make_each_other_late(records, faults):
    """Whichever is read first, and however much an epoch reads: with one record, only of one."""
    source = TwoPartitions([1000, 1004, 1008, 1012, 1016], [0, 4, 8, 12, 16])
    harness = JobHarness(_greatest_of_windows(source, _ASCENDING), records_per_epoch=records)
    lost = dict.fromkeys(harness.places(), faults) if faults else None
    harness.run(dict.fromkeys(range(2, 20), lost) if lost else None)
    assert sorted(harness.collected) == [8, 16, 1008, 1016]
    assert _dropped(harness) == 0


def test_splits_that_are_read_side_by_side_wait_for_each_other_however_many_they_are():
    source = ManyPartitions(*([start, start + 12] for start in range(700, -1, -100)))
    harness = JobHarness(_greatest_of_windows(source, _ASCENDING), records_per_epoch=1)
    harness.run()
    assert _dropped(harness) == 0
    assert len(harness.collected) == 16


def _watermarks_at_the_lines_of_three_files(tmp_path: Path, *, in_time_order: bool) -> list[int]:
    for number in range(3):
        lines = "\n".join(str(number * 100 + n) for n in range(0, 40, 10))
        (tmp_path / f"{number}.txt").write_text(lines)
    builder = FileSource.for_record_stream_format(StreamFormat.text_line_format(), str(tmp_path))
    if in_time_order:
        builder = builder.set_files_in_time_order()
    strategy = _ASCENDING.with_timestamp_assigner(lambda line, _: int(line))

    def program(env: Any) -> Any:
        return env.from_source(builder.build(), strategy, "lines").process(Watermark())

    harness = JobHarness(program, records_per_epoch=1)
    harness.run()
    return harness.collected


def test_the_watermark_waits_until_no_file_is_unread(tmp_path):
    watermarks = _watermarks_at_the_lines_of_three_files(tmp_path, in_time_order=False)
    assert watermarks == [*[MIN_WATERMARK] * 9, 199, 209, 219]


def test_files_in_time_order_do_not_hold_the_watermark(tmp_path):
    watermarks = _watermarks_at_the_lines_of_three_files(tmp_path, in_time_order=True)
    assert watermarks == [MIN_WATERMARK, -1, 9, 19, 29, 99, 109, 119, 129, 199, 209, 219]


def test_slow_epochs_do_not_make_splits_idle():
    source = TwoPartitions([1000, 1004, 1008, 1012, 1016], [0, 4, 8, 12, 16])
    strategy = _ASCENDING.with_idleness(Duration.of_seconds(5))
    harness = JobHarness(_greatest_of_windows(source, strategy), records_per_epoch=[2, 1, 2])
    while harness.run_epoch():
        harness.let_pass(10)
    assert sorted(harness.collected) == [8, 16, 1008, 1016]
    assert _dropped(harness) == 0


def test_in_an_alignment_group_a_split_that_is_ahead_waits_for_the_others_of_its_reader():
    source = ManyPartitions([*range(8)], [1000, 1005, 1010, 2000, 2001])
    strategy = _ASCENDING.with_timestamp_assigner(lambda number, _: number)
    aligned = strategy.with_watermark_alignment("g", Duration.of_millis(10), Duration.of_millis(1))
    harness = JobHarness(
        lambda env: env.from_source(source, aligned, "numbers"), records_per_epoch=2
    )
    harness.run()
    # One record of each; then the second split is far ahead until the first one has ended.
    assert harness.collected == [0, 1000, *range(1, 8), 1005, 1010, 2000, 2001]
    assert harness.now_millis() < 3_000
