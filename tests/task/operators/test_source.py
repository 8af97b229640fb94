"""The source operator: budgets, chunks and the end of epochs."""

from __future__ import annotations

from typing import Any

import pytest

from firesteel.common import Types
from firesteel.common.time import Duration
from firesteel.common.watermark_strategy import WatermarkStrategy
from firesteel.datastream.connectors import base as connectors
from firesteel.datastream.connectors.base import SourceSplit
from firesteel.datastream.connectors.number_seq import NumberSequenceSource
from firesteel.errors import UserFunctionError
from firesteel.graph.operator_specs import SourceSpec
from firesteel.graph.stream_graph import StreamNode
from firesteel.graph.transformations import ChainingStrategy
from firesteel.metrics import MetricRegistry
from firesteel.protocol.messages import ReadBudget, SourceStatus
from firesteel.task.operator_factory import create_operator
from firesteel.task.operators import source as source_operator
from firesteel.task.operators.base import OperatorContext
from firesteel.task.operators.source import SourceOperator
from firesteel.task.record_batch import RecordBatch
from firesteel.task.runtime_context import SubtaskInfo
from firesteel.task.time.clock import SubtaskClock
from firesteel.testing import Crash, JobHarness, ManualClock, Pause, ScriptedSource, Timed

_SPLIT = SourceSplit("script", position=0)
_LONG = ReadBudget(records=1_000_000, seconds=1_000.0)


class Source:
    """A source operator and the batches that it emitted."""

    def __init__(
        self,
        script: Any,
        buffer_timeout: int = 100,
        whole: Any = None,
        strategy: WatermarkStrategy | None = None,
        splits: tuple[SourceSplit, ...] = (_SPLIT,),
    ) -> None:
        """``script`` may be a source, too, which then has ``splits``."""
        played = script if isinstance(script, connectors.Source) else ScriptedSource(script)
        node = StreamNode(
            id=1,
            operator_id="source",
            name="Source: script",
            description="",
            spec=SourceSpec(played, strategy),
            parallelism=1,
            max_parallelism=1,
            slot_sharing_group="default",
            chaining=ChainingStrategy.ALWAYS,
            buffer_timeout=buffer_timeout,
        )
        self.now = ManualClock()
        clock = SubtaskClock(now_millis=self.now)
        context = OperatorContext(
            node, SubtaskInfo("job", 0), clock, MetricRegistry(), lambda *_: None
        )
        operator = create_operator(context)
        assert isinstance(operator, SourceOperator)
        self.operator = operator
        self.batches: list[list[Any]] = []
        self.timestamps: list[list[int] | None] = []
        operator.output.emit = self._take
        self.watermarks: list[int] = []
        operator.output.watermark = self.watermarks.append
        operator.restore(whole)
        if whole is None:
            operator.add_splits(splits, complete=True)
        else:
            operator.add_splits([], complete=True)

    def _take(self, batch: RecordBatch) -> None:
        self.batches.append(batch.values)
        self.timestamps.append(batch.timestamps)

    def status(self) -> SourceStatus:
        """The status that the operator reported at the end of the last epoch."""
        assert self.operator.status is not None
        return self.operator.status

    def read(self, budget: ReadBudget = _LONG) -> list[Any]:
        """The records of an epoch."""
        before = len(self.batches)
        for _ in self.operator.read_epoch(budget):
            self.operator.tick()
        return [value for batch in self.batches[before:] for value in batch]


class StepClock:
    """Stands for the time module; every look at the clock costs what the test says."""

    def __init__(self) -> None:
        self.now = 0.0
        self.step = 0.0

    def perf_counter(self) -> float:
        self.now += self.step
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> StepClock:
    clock = StepClock()
    monkeypatch.setattr(source_operator, "time", clock)
    return clock


def test_an_epoch_reads_as_many_records_as_its_budget():
    source = Source(range(10))
    assert source.read(ReadBudget(4, 1_000.0)) == [0, 1, 2, 3]
    assert source.status().available
    assert not source.status().finished
    assert source.status().splits == (_SPLIT.at(4),)
    assert source.read(ReadBudget(4, 1_000.0)) == [4, 5, 6, 7]
    assert source.read(ReadBudget(4, 1_000.0)) == [8, 9]
    assert source.operator.finished


def test_no_budget_reads_nothing():
    source = Source(range(10))
    assert source.read(ReadBudget(0, 0.0)) == []
    assert source.status().available


def test_an_epoch_ends_when_its_time_is_up(clock):
    clock.step = 0.3
    source = Source(range(100_000))
    first = source.read(ReadBudget(100_000, 1.0))
    assert 0 < len(first) < 100_000
    assert source.status().available


def test_a_pause_ends_the_epoch():
    source = Source([1, 2, Pause(0.5), 3])
    assert source.read() == [1, 2]
    assert not source.status().available
    assert source.status().delay == 0.5
    assert source.read() == [3]
    assert source.operator.finished


def test_the_one_epoch_of_a_batch_job_waits_for_its_splits():
    source = Source([1, Pause(0.001), 2, Pause(0.001), 3])
    assert source.read(ReadBudget(1_000_000, 1_000.0, to_the_end=True)) == [1, 2, 3]
    assert source.operator.finished


def test_chunks_grow_while_they_are_fast(clock):
    source = Source(range(1_000))
    source.read()
    sizes = [len(batch) for batch in source.batches]
    assert sizes == [1, 2, 4, 8, 16, 32, 64, 128, 256, 489]


def test_chunks_shrink_when_they_are_slow(clock):
    source = Source(range(200))
    take = source._take

    def slow(batch):
        take(batch)
        if len(batch) == 64 or len(source.batches) > 7:
            clock.now += 0.0005 * len(batch)

    source.operator.output.emit = slow
    source.read()
    sizes = [len(batch) for batch in source.batches]
    assert sizes[6] == 64
    # Half a millisecond a record: a chunk of two takes the millisecond that a chunk shall take.
    assert set(sizes[7:-1]) == {2}


def test_buffer_timeout_0_reads_record_by_record():
    source = Source(range(5), buffer_timeout=0)
    source.read()
    assert source.batches == [[0], [1], [2], [3], [4]]


def test_timestamps_of_the_source_go_with_its_records():
    source = Source([Timed("a", 10), Timed("b", 20)])
    source.read()
    assert source.timestamps == [[10], [20]]


def test_it_goes_on_from_its_snapshot():
    source = Source(range(10))
    source.read(ReadBudget(4, 1_000.0))
    restored = Source(range(10), whole=source.operator.snapshot())
    assert restored.read() == [4, 5, 6, 7, 8, 9]
    ended = Source(range(10), whole=restored.operator.snapshot())
    assert ended.operator.finished
    assert ended.read() == []
    assert ended.operator.finished


def test_it_has_not_ended_while_splits_may_come():
    source = Source([1])
    source.operator.add_splits([], complete=False)
    assert source.read() == [1]
    assert not source.operator.finished
    source.operator.add_splits([], complete=True)
    source.read()
    assert source.operator.finished


def test_a_crash_happens_once():
    source = Source([1, Crash("disk full"), 2])
    with pytest.raises(UserFunctionError, match="disk full") as caught:
        source.read()
    assert caught.value.operator == "Source: script"
    assert source.read() == [2]


_ASCENDING = WatermarkStrategy.for_monotonous_timestamps()


def _timed(count: int) -> list[Timed]:
    return [Timed(number, number * 10) for number in range(count)]


def test_watermarks_go_on_within_an_epoch_however_slow_what_follows_is(clock):
    source = Source(_timed(200), strategy=_ASCENDING)
    take = source._take

    def slow(batch):
        """150 ms a record: an interval passes after every second one."""
        take(batch)
        clock.now += 0.15 * len(batch)
        source.now.advance(150 * len(batch))

    source.operator.output.emit = slow
    source.read(ReadBudget(100, 1_000.0))
    # No record waits longer than the interval and one more record.
    assert source.watermarks == [*range(10 - 1, 990, 20)]


def test_the_end_of_an_epoch_asks_the_generators():
    source = Source([*_timed(3), Pause(), *_timed(6)[3:]], strategy=_ASCENDING)
    source.read()
    assert source.watermarks == [19]
    assert source.status().watermark == 19


def test_a_source_that_is_ahead_of_its_group_stops_reading():
    source = Source([*_timed(3), Pause(), *_timed(6)[3:]], strategy=_ASCENDING)
    source.operator.align(5)
    assert source.read() == [0, 1, 2]
    assert not source.status().ahead
    assert source.read() == []
    assert source.status().ahead
    source.operator.align(19)
    assert source.read() == [3, 4, 5]


def test_a_source_that_waits_for_its_group_does_not_become_idle():
    strategy = _ASCENDING.with_idleness(Duration.of_seconds(5))
    source = Source([*_timed(3), Pause(), *_timed(6)[3:]], strategy=strategy)
    source.read()
    source.operator.align(5)
    for _ in range(3):
        source.now.advance(10_000)
        assert source.read() == []
        assert source.status().ahead
        assert not source.status().idle
        assert source.operator.next_tick() is None


def test_a_source_that_has_nothing_becomes_idle_though_its_epochs_are_long():
    strategy = _ASCENDING.with_idleness(Duration.of_seconds(5))
    source = Source([*_timed(1), *[Pause()] * 4, *_timed(1)], strategy=strategy)
    idle = []
    for _ in range(3):
        source.read()
        idle.append(source.status().idle)
        source.now.advance(4_000)
    assert idle == [False, False, True]


class InTurn(connectors.Source, connectors.SourceReader):
    """Reads its two splits in turn, a record at a time; a split's id is its first timestamp."""

    def get_boundedness(self):
        return connectors.Boundedness.CONTINUOUS_UNBOUNDED

    def create_enumerator(self, parallelism, state=None):
        raise NotImplementedError

    def create_reader(self, context):
        self.splits = []
        return self

    def add_splits(self, splits):
        self.splits += splits

    def read(self, limit):
        first, *rest = self.splits
        self.splits = [*rest, first.at((first.position or 0) + 1)]
        return [int(first.split_id) + (first.position or 0)]

    def timestamps(self):
        last = self.splits[-1]
        return [int(last.split_id) + last.position - 1]

    def current_split(self):
        return self.splits[-1].split_id

    def snapshot_splits(self):
        return self.splits


_BEHIND_AND_AHEAD = SourceSplit("0"), SourceSplit("1000")


def test_a_split_that_is_assigned_holds_the_watermark_back_before_it_is_read():
    source = Source(InTurn(), strategy=_ASCENDING, splits=_BEHIND_AND_AHEAD[::-1])
    assert source.read(ReadBudget(1, 1_000.0)) == [1000]
    assert source.watermarks == []
    assert source.read(ReadBudget(1, 1_000.0)) == [0]
    assert source.watermarks == [-1]


def test_splits_are_not_idle_while_functions_work_on_the_records_of_others():
    strategy = _ASCENDING.with_idleness(Duration.of_seconds(5))
    source = Source(InTurn(), strategy=strategy, splits=_BEHIND_AND_AHEAD)
    take = source._take

    def slow(batch):
        take(batch)
        source.now.advance(6_000)

    source.operator.output.emit = slow
    assert source.read(ReadBudget(5, 1_000.0)) == [0, 1000, 1, 1001, 2]
    assert source.watermarks == [-1, 0, 1]


def test_a_split_becomes_idle_while_the_reader_only_has_records_of_others():
    class Slow(InTurn):
        def read(self, limit):
            source.now.advance(1_000)
            if self.splits[0].split_id == "0" and self.splits[0].position:
                self.splits.reverse()
            return super().read(limit)

    strategy = _ASCENDING.with_idleness(Duration.of_seconds(5))
    source = Source(Slow(), strategy=strategy, splits=_BEHIND_AND_AHEAD)
    source.read(ReadBudget(8, 1_000.0))
    assert source.watermarks == [-1, 1003, 1004, 1005]


def test_watermarks_go_on_from_its_snapshot():
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(5))
    script = [Timed("a", 100), Pause(), Timed("b", 50), Pause(), Timed("c", 120)]
    source = Source(script, strategy=strategy)
    source.read()
    restored = Source(script, whole=source.operator.snapshot(), strategy=strategy)
    restored.operator.add_splits([], complete=False)
    restored.read()
    assert restored.operator.emitted_watermark(0) == 94
    assert restored.watermarks == []
    restored.read()
    assert restored.watermarks == [114]


_CONSUMERS: dict[str, Any] = {
    "collected": lambda numbers: numbers,
    "map": lambda numbers: numbers.map(lambda n: n + 1),
    "filter": lambda numbers: numbers.filter(lambda n: n % 2),
    "flat_map": lambda numbers: numbers.flat_map(lambda n: [n, n]),
    "key_by": lambda numbers: numbers.key_by(lambda n: n % 3).map(lambda n: n),
    "typed key_by": lambda numbers: numbers.key_by(lambda n: n % 3, Types.LONG()).map(lambda n: n),
    "key_by text": lambda numbers: numbers.key_by(str).map(lambda n: n),
    "rebalance": lambda numbers: numbers.rebalance().map(lambda n: n),
    "shuffle": lambda numbers: numbers.shuffle().map(lambda n: n),
    "broadcast": lambda numbers: numbers.broadcast().map(lambda n: n),
    "partition_custom": lambda numbers: numbers.partition_custom(
        lambda key, partitions: key % partitions, lambda n: n
    ).map(lambda n: n),
    "union with itself": lambda numbers: numbers.union(numbers).map(lambda n: n),
    "map and flat_map": lambda numbers: numbers.map(lambda n: -n).union(
        numbers.flat_map(lambda n: [n])
    ),
    "timed": lambda numbers: numbers.assign_timestamps_and_watermarks(
        WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda n, _: n)
    ).map(lambda n: n),
}


@pytest.mark.parametrize("consumer", _CONSUMERS)
def test_a_source_may_give_a_range_whoever_consumes_it(consumer: str) -> None:
    def results(source: Any) -> list[Any]:
        harness = JobHarness(
            lambda env: _CONSUMERS[consumer](source(env)), parallelism=2, records_per_epoch=7
        )
        harness.run()
        return sorted(harness.collected)

    def numbers(env: Any) -> Any:
        source = NumberSequenceSource(0, 29)
        return env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers")

    assert results(numbers) == results(lambda env: env.from_collection(list(range(30))))
