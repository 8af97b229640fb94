"""The job of the soak, and its results by plain Python.

Two paced sources feed operator state, windows, timers, an interval join and a window join on
RocksDB. Windows go to a FileSink, everything else to a sink with two-phase commit. Each record is
computed from its split and its number, so the results of any run are known.
"""

from __future__ import annotations

import json
import os
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from firesteel.common import Configuration, Encoder, Time, Types, WatermarkStrategy
from firesteel.datastream import (
    KeyedProcessFunction,
    MapFunction,
    ProcessJoinFunction,
    ProcessWindowFunction,
    StreamExecutionEnvironment,
    TwoPhaseCommitSinkFunction,
)
from firesteel.datastream.connectors.base import (
    Boundedness,
    ReaderContext,
    Source,
    SourceReader,
    SourceSplit,
    SplitEnumerator,
)
from firesteel.datastream.connectors.file_system import BucketAssigner, FileSink, RollingPolicy
from firesteel.datastream.functions import CheckpointedFunction
from firesteel.datastream.state import ListStateDescriptor, ValueStateDescriptor
from firesteel.datastream.window import TumblingEventTimeWindows

_WINDOW_MS = 2_000
_JOIN_WINDOW_MS = 1_000
_INTERVAL_MS = 300
_TIMER_MS = 1_500
_END_OF_TIME = 2**62
# A function looks for the order to fail this often.
_RECORDS_PER_LOOK = 20


class Event(NamedTuple):
    """A record of a source."""

    split: int
    number: int
    timestamp: int
    key: int


@dataclass(frozen=True, slots=True)
class Stream:
    """The records of a source. Each split has ``rate`` records a second."""

    name: str
    splits: int
    rate: int
    keys: int

    def event(self, split: int, number: int) -> Event:
        return Event(
            split, number, number * 1000 // self.rate, (number * 7 + split * 3) % self.keys
        )

    def events(self, seconds: int) -> Iterator[Event]:
        """All records of a run, split by split."""
        for split in range(self.splits):
            for number in range(seconds * self.rate):
                yield self.event(split, number)


CLICKS = Stream("clicks", splits=4, rate=40, keys=24)
ORDERS = Stream("orders", splits=2, rate=8, keys=24)


@dataclass(frozen=True, slots=True)
class Place:
    """The directories of a soak."""

    root: Path

    @property
    def storage(self) -> Path:
        """Checkpoints and savepoints. It is taken away now and then."""
        return self.root / "storage"

    @property
    def checkpoints(self) -> Path:
        return self.storage / "checkpoints"

    @property
    def savepoints(self) -> Path:
        return self.storage / "savepoints"

    @property
    def work(self) -> Path:
        """Temporary files of drivers, Spark and tasks."""
        return self.root / "work"

    @property
    def transactions(self) -> Path:
        return self.root / "transactions"

    @property
    def files(self) -> Path:
        return self.root / "files"

    @property
    def fail(self) -> Path:
        """A function that finds this file removes it and raises an error."""
        return self.root / "fail"

    @staticmethod
    def at(root: str | Path) -> Place:
        return Place(Path(root)).make()

    def make(self) -> Place:
        for path in (self.checkpoints, self.savepoints, self.work, self.transactions, self.files):
            path.mkdir(parents=True, exist_ok=True)
        return self


class PacedSource(Source):
    """Record n of a split is due n / rate seconds after ``start``, so downtime has to be made up."""

    side_by_side = True

    def __init__(self, stream: Stream, start: float, seconds: int) -> None:
        self.stream = stream
        self.start = start
        self.seconds = seconds

    def get_boundedness(self) -> Boundedness:
        return Boundedness.BOUNDED

    def create_enumerator(self, parallelism: int, state: Any = None) -> SplitEnumerator:
        return _AllSplits(self.stream.splits, bool(state))

    def create_reader(self, context: ReaderContext) -> SourceReader:
        return _PacedReader(self)


class _AllSplits(SplitEnumerator):
    def __init__(self, splits: int, found: bool) -> None:
        self._splits = splits
        self._found = found

    def discover_splits(self) -> list[SourceSplit]:
        if self._found:
            return []
        self._found = True
        return [SourceSplit(str(split)) for split in range(self._splits)]

    def snapshot_state(self) -> bool:
        return self._found


class _PacedReader(SourceReader):
    def __init__(self, source: PacedSource) -> None:
        self._source = source
        # The next number of each split, in the order in which they are read.
        self._next: dict[str, int] = {}
        self._current: str | None = None
        self._timestamps: list[int] = []

    def add_splits(self, splits: Sequence[SourceSplit]) -> None:
        self._next |= {split.split_id: split.position or 0 for split in splits}

    def read(self, limit: int) -> list[Any]:
        source = self._source
        total = source.seconds * source.stream.rate
        due = min(total, int((time.time() - source.start) * source.stream.rate))
        for split, begin in self._next.items():
            end = min(due, begin + limit)
            if end > begin:
                # The next call begins with a different split.
                del self._next[split]
                if end < total:
                    self._next[split] = end
                events = [source.stream.event(int(split), n) for n in range(begin, end)]
                self._current = split
                self._timestamps = [event.timestamp for event in events]
                return events
        self._timestamps = []
        return []

    def next_read_delay(self) -> float:
        return 0.02

    def timestamps(self) -> list[int]:
        return self._timestamps

    def current_split(self) -> str | None:
        return self._current

    def snapshot_splits(self) -> list[SourceSplit]:
        return [SourceSplit(split, position=number) for split, number in self._next.items()]


class Numbering(MapFunction, CheckpointedFunction):
    """Numbers records without gaps, by operator state, and fails when it is told to.

    A list element is the name of a counter and its last number. After rescaling a subtask may have
    several counters, of which it uses the first, or none, and makes a new one.
    """

    def __init__(self, fail: Path) -> None:
        self._fail = fail

    def initialize_state(self, context: Any) -> None:
        store = context.get_operator_state_store()
        self._saved = store.get_list_state(
            ListStateDescriptor("counters", Types.PICKLED_BYTE_ARRAY())
        )
        self._counters = list(self._saved.get()) or [(uuid.uuid4().hex, 0)]
        self._looked = 0

    def snapshot_state(self, context: Any) -> None:
        self._saved.update(self._counters)

    def map(self, value: Event) -> Any:
        self._looked += 1
        if self._looked % _RECORDS_PER_LOOK == 0 and self._fail.exists():
            self._fail.unlink(missing_ok=True)
            raise RuntimeError("the soak told this function to fail")
        name, number = self._counters[0]
        self._counters[0] = (name, number + 1)
        return value, name, number + 1


class Bursts(KeyedProcessFunction):
    """Counts the records of a key until a timer fires, of event time or of processing time."""

    def open(self, runtime_context: Any) -> None:
        self._count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
        event = value[0]
        timers = ctx.timer_service()
        count = self._count.value() or 0
        if not count:
            timers.register_event_time_timer(event.timestamp + _TIMER_MS)
            timers.register_processing_time_timer(timers.current_processing_time() + _TIMER_MS)
            # Whatever is left at the end.
            timers.register_event_time_timer(_END_OF_TIME)
        self._count.update(count + 1)
        return iter(())

    def on_timer(self, timestamp: int, ctx: Any) -> Iterator[Any]:
        count = self._count.value()
        if count:
            self._count.clear()
            yield ["burst", ctx.get_current_key(), count]


class WindowTotals(ProcessWindowFunction[Any, Any, int, Any]):
    def process(self, key: int, context: Any, elements: Iterable[Any]) -> Iterator[str]:
        numbers = [value[0].number for value in elements]
        yield json.dumps([key, context.window().start, len(numbers), sum(numbers)])

    def clear(self, context: Any) -> None:
        pass


class Pairs(ProcessJoinFunction):
    def process_element(self, left: Any, right: Event, ctx: Any) -> Iterator[Any]:
        yield _pair("interval", left[0], right)


def _pair(kind: str, click: Event, order: Event) -> list[Any]:
    return [kind, click.split, click.number, order.split, order.number]


class Transactions(TwoPhaseCommitSinkFunction[Any, str, None]):
    """A transaction is a file, first ``.open``, then ``.prepared``, then ``.committed``."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._file: BinaryIO | None = None

    def begin_transaction(self) -> str:
        name = uuid.uuid4().hex
        self._close()
        self._file = self._path(name, "open").open("wb")
        return name

    def invoke(  # type: ignore[override]  # Flink's overload of the name
        self, transaction: str, value: Any, context: Any
    ) -> None:
        assert self._file is not None
        self._file.write(json.dumps(value).encode() + b"\n")

    def pre_commit(self, transaction: str) -> None:
        self._close()
        self._path(transaction, "open").rename(self._path(transaction, "prepared"))

    def commit(self, transaction: str) -> None:
        if not self._path(transaction, "committed").exists():
            # Fails if it was aborted: that would be a loss.
            self._path(transaction, "prepared").rename(self._path(transaction, "committed"))

    def abort(self, transaction: str) -> None:
        if self._path(transaction, "committed").exists():
            raise AssertionError("a committed transaction is aborted")
        for phase in ("open", "prepared"):
            self._path(transaction, phase).unlink(missing_ok=True)

    def close(self) -> None:
        self._close()

    def _close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def _path(self, transaction: str, phase: str) -> Path:
        return self._directory / f"{transaction}.{phase}"


def build(
    configuration: Configuration, place: Place, start: float, seconds: int
) -> StreamExecutionEnvironment:
    """Return an environment with the job."""
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    watermarks = WatermarkStrategy.for_monotonous_timestamps()
    clicks = env.from_source(PacedSource(CLICKS, start, seconds), watermarks, "clicks").uid(
        "clicks"
    )
    orders = env.from_source(PacedSource(ORDERS, start, seconds), watermarks, "orders").uid(
        "orders"
    )
    numbered = clicks.map(Numbering(place.fail)).uid("numbering")
    by_key = numbered.key_by(lambda value: value[0].key)
    windows = by_key.window(TumblingEventTimeWindows.of(Time.milliseconds(_WINDOW_MS)))
    totals = windows.process(WindowTotals(), Types.STRING()).uid("windows")
    totals.sink_to(_file_sink(place.files)).uid("files")
    bursts = by_key.process(Bursts()).uid("bursts")
    orders_by_key = orders.key_by(lambda order: order.key)
    near = (
        by_key.interval_join(orders_by_key)
        .between(Time.milliseconds(-_INTERVAL_MS), Time.milliseconds(_INTERVAL_MS))
        .process(Pairs())
        .uid("interval-join")
    )
    together = (
        numbered.join(orders)
        .where(lambda value: value[0].key)
        .equal_to(lambda order: order.key)
        .window(TumblingEventTimeWindows.of(Time.milliseconds(_JOIN_WINDOW_MS)))
        .apply(lambda value, order: _pair("window", value[0], order))
        .uid("window-join")
    )
    numbers = numbered.map(
        lambda value: ["number", value[1], value[2], value[0].split, value[0].number]
    )
    sink = Transactions(place.transactions)
    numbers.union(bursts, near, together).add_sink(sink).uid("transactions")
    return env


def _file_sink(directory: Path) -> FileSink:
    policy = RollingPolicy.default_rolling_policy(part_size=1 << 16, rollover_interval=4_000)
    return (
        FileSink.for_row_format(str(directory), Encoder.simple_string_encoder())
        .with_bucket_assigner(BucketAssigner.base_path_bucket_assigner())
        .with_rolling_policy(policy)
        .build()
    )


# The check


class Findings:
    """Differences between the output and the expected results. There must be none."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.records = 0

    def compare(self, title: str, found: Counter[Any], expected: Counter[Any]) -> None:
        self.records += found.total()
        for kind, difference in (("lost", expected - found), ("doubled", found - expected)):
            if difference:
                some = ", ".join(map(str, list(difference)[:3]))
                self.texts.append(f"{title}: {difference.total()} {kind}, for example {some}")


def check(place: Place, seconds: int) -> Findings:
    """Compare the committed output of a finished run with the expected results."""
    findings = Findings()
    lines = _lines(place.transactions.glob("*.committed"))
    kinds: dict[str, Counter[Any]] = {}
    for kind, *rest in lines:
        kinds.setdefault(kind, Counter())[tuple(rest)] += 1
    clicks = list(CLICKS.events(seconds))
    orders = list(ORDERS.events(seconds))
    _check_numbers(findings, kinds.get("number", Counter()), clicks)
    bursts: Counter[int] = Counter()
    for (key, count), times in kinds.get("burst", Counter()).items():
        bursts[key] += count * times
    findings.compare("timers", bursts, Counter(event.key for event in clicks))
    found = Counter(map(tuple, _lines(place.files.glob("part-*"))))
    findings.compare("windows", found, Counter(_windows(clicks)))
    near = _near(clicks, orders, lambda event: event.timestamp // _INTERVAL_MS, _is_near)
    findings.compare("interval join", kinds.get("interval", Counter()), Counter(near))
    same = _near(clicks, orders, lambda event: event.timestamp // _JOIN_WINDOW_MS, _is_together)
    findings.compare("window join", kinds.get("window", Counter()), Counter(same))
    return findings


def _lines(files: Iterable[Path]) -> Iterator[Any]:
    for file in files:
        yield from map(json.loads, file.read_text().splitlines())


def _check_numbers(findings: Findings, found: Counter[Any], clicks: Iterable[Event]) -> None:
    """Each record once, and the numbers of each counter without gaps."""
    records: Counter[Any] = Counter()
    counters: dict[str, Counter[int]] = {}
    for (name, number, split, position), times in found.items():
        records[split, position] += times
        counters.setdefault(name, Counter())[number] += times
    findings.compare("records", records, Counter((e.split, e.number) for e in clicks))
    for name, numbers in counters.items():
        expected = Counter(range(1, max(numbers) + 1))
        findings.compare(f"operator state {name}", numbers, expected)


def _windows(clicks: Iterable[Event]) -> Iterator[tuple[int, int, int, int]]:
    windows: dict[tuple[int, int], list[int]] = {}
    for event in clicks:
        start = event.timestamp // _WINDOW_MS * _WINDOW_MS
        windows.setdefault((event.key, start), []).append(event.number)
    for (key, start), numbers in windows.items():
        yield key, start, len(numbers), sum(numbers)


def _is_near(click: Event, order: Event) -> bool:
    return abs(click.timestamp - order.timestamp) <= _INTERVAL_MS


def _is_together(click: Event, order: Event) -> bool:
    return click.timestamp // _JOIN_WINDOW_MS == order.timestamp // _JOIN_WINDOW_MS


def _near(
    clicks: Iterable[Event],
    orders: Iterable[Event],
    bucket: Callable[[Event], int],
    belong: Callable[[Event, Event], bool],
) -> Iterator[tuple[int, ...]]:
    """Pairs of the same key that belong together. Their buckets are the same, or neighbors."""
    by_bucket: dict[tuple[int, int], list[Event]] = {}
    for order in orders:
        by_bucket.setdefault((order.key, bucket(order)), []).append(order)
    for click in clicks:
        middle = bucket(click)
        for number in (middle - 1, middle, middle + 1):
            for order in by_bucket.get((click.key, number), ()):
                if belong(click, order):
                    yield click.split, click.number, order.split, order.number


def environment(place: Place) -> dict[str, str]:
    """Return the variables of a driver process: all its temporary files are below ``place``."""
    repository = str(Path(__file__).parents[2])
    return {
        # Drivers are killed, and the optimizing compiler would delay each start.
        "SPARK_SUBMIT_OPTS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        **os.environ,
        "PYTHONPATH": repository,
        "TMPDIR": str(place.work),
    }
