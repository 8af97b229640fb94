"""Firesteel jobs for the benchmark cases: PyFlink programs with different imports."""

import pickle
import tempfile
import time
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.cases import (
    Case,
    FanOut,
    KeyedMap,
    MapFilter,
    Outcome,
    Reduce,
    Sum,
    Timeline,
    Union,
    WindowCount,
    result_count,
)
from benchmarks.measure import check_count
from firesteel.common import Configuration, Time, WatermarkStrategy
from firesteel.common.watermark_strategy import TimestampAssigner
from firesteel.datastream import DataStream, StreamExecutionEnvironment
from firesteel.datastream.connectors.number_seq import NumberSequenceSource
from firesteel.datastream.functions import AggregateFunction, SinkFunction
from firesteel.datastream.window import TumblingEventTimeWindows


class Counting(SinkFunction):
    """The sink of every timed run. It writes its count to a file when the job closes it."""

    def __init__(self, directory: str) -> None:
        self.directory = directory
        self.count = 0

    def invoke(self, value: Any, context: SinkFunction.Context) -> None:
        self.count += 1

    def close(self) -> None:
        leave(self.directory, Outcome(self.count))


class Checking(SinkFunction):
    """The sink of a checked run."""

    def __init__(self, directory: str) -> None:
        self.directory = directory
        self.outcome = Outcome()

    def invoke(self, value: Any, context: SinkFunction.Context) -> None:
        self.outcome.add(value)

    def close(self) -> None:
        leave(self.directory, self.outcome)


def leave(directory: str, outcome: Outcome) -> None:
    Path(directory, uuid.uuid4().hex).write_bytes(pickle.dumps(outcome))


def left(directory: str) -> Outcome:
    """Return the combined results of all sinks of a job."""
    return Outcome().merge(pickle.loads(path.read_bytes()) for path in Path(directory).iterdir())


def results(env: StreamExecutionEnvironment, case: Case, records: int) -> list[DataStream]:
    """Return the streams that end in sinks."""
    if isinstance(case, Union):
        half = records // 2
        first = numbers(env, 0, half).map(case.make)
        second = numbers(env, half, records).map(case.other)
        return [first.union(second).map(case.then)]
    source = numbers(env, 0, records)
    match case:
        case MapFilter():
            return [source.map(case.make).filter(case.keep)]
        case Reduce():
            return [source.key_by(case.key).reduce(case.combine)]
        case Sum():
            return [source.map(case.make).key_by(case.key).sum(1)]
        case FanOut():
            shared = source.map(case.make)
            return [shared.map(branch) for branch in case.branches]
        case KeyedMap():
            return [source.map(case.make).key_by(case.key).map(case.then)]
        case WindowCount():
            window = TumblingEventTimeWindows.of(Time.milliseconds(case.window_millis))
            timed = with_event_time(source.map(case.make), records)
            return [timed.key_by(case.key).window(window).aggregate(Count())]
    raise TypeError(f"{case.name} is of an unknown shape, {type(case).__name__}")


def numbers(env: StreamExecutionEnvironment, start: int, end: int) -> DataStream:
    return env.from_source(
        NumberSequenceSource(start, end - 1), WatermarkStrategy.no_watermarks(), "numbers"
    )


class EventTime(TimestampAssigner):
    """Assign event time by the second field, which is the number of the record."""

    def __init__(self, timeline: Timeline) -> None:
        self.timeline = timeline

    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        return self.timeline.of(value[1])


def with_event_time(pairs: DataStream, records: int) -> DataStream:
    strategy = WatermarkStrategy.for_monotonous_timestamps()
    assigner = EventTime(Timeline(records))
    return pairs.assign_timestamps_and_watermarks(strategy.with_timestamp_assigner(assigner))


class Count(AggregateFunction):
    commutative = True

    def create_accumulator(self) -> int:
        return 0

    def add(self, value: Any, accumulator: int) -> int:
        return accumulator + 1

    def get_result(self, accumulator: int) -> int:
        return accumulator

    def merge(self, acc_a: int, acc_b: int) -> int:
        return acc_a + acc_b


class Firesteel:
    """Runs jobs with one configuration, in real time unless it says something else.

    Firesteel starts a Spark with enough threads for all levels of a job.
    """

    def __init__(self, parallelism: int, settings: dict[str, str] | None = None) -> None:
        self.parallelism = parallelism
        self.settings = {
            "taskmanager.numberOfTaskSlots": str(parallelism),
            "firesteel.execution": "real-time",
        } | (settings or {})

    def environment(self) -> StreamExecutionEnvironment:
        configuration = Configuration()
        for name, value in self.settings.items():
            configuration.set_string(name, value)
        env = StreamExecutionEnvironment.get_execution_environment(configuration)
        env.set_parallelism(self.parallelism)
        return env

    def run(self, case: Case, records: int) -> float:
        env = self.environment()
        streams = results(env, case, records)
        return run_timed(env, case.name, streams, result_count(case, records))

    def run_checked(self, case: Case, records: int) -> Outcome:
        env = self.environment()
        with tempfile.TemporaryDirectory() as directory:
            for stream in results(env, case, records):
                stream.add_sink(Checking(directory))
            env.execute(case.name)
            return left(directory)


@contextmanager
def counted(name: str, streams: Iterable[DataStream], results: int | None) -> Iterator[None]:
    """End the streams in counting sinks, and check their number of results after the job.

    None if the number depends on the order of arrival.
    """
    with tempfile.TemporaryDirectory() as directory:
        for stream in streams:
            stream.add_sink(Counting(directory))
        yield
        if results is not None:
            check_count(name, left(directory).count, results)


def run_timed(
    env: StreamExecutionEnvironment, name: str, streams: Iterable[DataStream], results: int | None
) -> float:
    """Run the job and return its duration in seconds."""
    with counted(name, streams, results):
        begin = time.perf_counter()
        env.execute(name)
        return time.perf_counter() - begin
