"""Watermarks and idleness through whole jobs, with the real master and exchanges."""

from __future__ import annotations

from typing import Any

import pytest

from firesteel.common import Configuration, Duration, Time, WatermarkStrategy
from firesteel.datastream.connectors.base import (
    Boundedness,
    Source,
    SourceReader,
    SourceSplit,
)
from firesteel.datastream.connectors.range_splits import IndexRangeEnumerator
from firesteel.datastream.functions import ProcessFunction
from firesteel.datastream.window import TumblingEventTimeWindows
from firesteel.task.watermarks import MIN_WATERMARK
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


def test_an_epoch_comes_when_a_source_becomes_idle_though_no_source_asks_for_it():
    """The scripted pauses are long; only idleness wakes the job in between."""

    def program(env: Any) -> Any:
        busy = ScriptedSource([Timed(1, 1), Timed(1, 12), Pause(600.0)], bounded=False)
        quiet = ScriptedSource([Timed(1, 2), Pause(600.0)], bounded=False)
        idle = _ASCENDING.with_idleness(Duration.of_millis(1_000))
        return _windowed(
            env.from_source(busy, _ASCENDING, "busy").union(env.from_source(quiet, idle, "quiet"))
        )

    harness = JobHarness(program)
    for _ in range(10):
        harness.run_epoch()
    assert harness.collected == [2]


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


class InTurn(SourceReader):
    def __init__(self, partitions: tuple[list[int], ...]) -> None:
        self._partitions = partitions
        self._splits: list[SourceSplit] = []
        self._current: str | None = None

    def add_splits(self, splits):
        self._splits += [split.at(split.position or 0) for split in splits]

    def read(self, limit):
        if not self._splits:
            return []
        split = self._splits.pop(0)
        self._current = split.split_id
        records = self._partitions[int(split.split_id)]
        if split.position + 1 < len(records):
            self._splits.append(split.at(split.position + 1))
        return [records[split.position]]

    def current_split(self):
        return self._current

    def snapshot_splits(self):
        return list(self._splits)


@pytest.mark.parametrize("faults", [None, Fault.LOSE_HOST])
def test_two_splits_of_one_reader_do_not_make_each_other_late(faults):
    source = TwoPartitions([0, 4, 8, 12, 16], [1000, 1004, 1008, 1012, 1016])
    strategy = _ASCENDING.with_timestamp_assigner(lambda number, _: number)

    def program(env: Any) -> Any:
        windows = TumblingEventTimeWindows.of(Time.milliseconds(10))
        numbers = env.from_source(source, strategy, "numbers")
        return numbers.key_by(lambda _: "all").window(windows).reduce(max)

    harness = JobHarness(program, records_per_epoch=3)
    lost = dict.fromkeys(harness.places(), faults) if faults else None
    harness.run(dict.fromkeys(range(2, 9), lost) if lost else None)
    assert sorted(harness.collected) == [8, 16, 1008, 1016]
    (dropped,) = harness.metrics().values()
    assert dropped["count"] == 0
