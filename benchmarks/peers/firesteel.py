"""Firesteel: each case as a user would write it, a PyFlink program with other imports.

Beyond the cases, `--options` asks for more: `hop` (what a resident slot costs against one inside Spark's worker), `timeout` (what the
buffer timeout trades), `epoch` (how long an epoch takes that has next to nothing to do).
"""

import pickle
import statistics
import tempfile
import time
import uuid
from pathlib import Path
from typing import Any

from benchmarks.cases import (
    BY_NAME,
    Case,
    FanOut,
    KeyedMap,
    MapFilter,
    Outcome,
    Reduce,
    Sum,
    Union,
    double,
)
from benchmarks.measure import (
    Arguments,
    parse_arguments,
    report,
    report_versions,
    run_cases,
    steady_rate,
)
from firesteel import __version__
from firesteel.common import Configuration, WatermarkStrategy
from firesteel.datastream import DataStream, StreamExecutionEnvironment
from firesteel.datastream.connectors.datagen import DataGeneratorSource, RateLimiterStrategy
from firesteel.datastream.connectors.number_seq import NumberSequenceSource
from firesteel.datastream.functions import SinkFunction

EPOCH_RECORDS = 100
EPOCHS = (40, 160)
EXCHANGES = (0, 1, 2, 3)
LATENCY_RATE = 1_000
LATENCY_SECONDS = 12


class Counting(SinkFunction):
    """The sink of every timed run."""

    def __init__(self) -> None:
        self.count = 0

    def invoke(self, value: Any, context: SinkFunction.Context) -> None:
        self.count += 1


class Checking(SinkFunction):
    """Leaves what it saw in a file when the job closes it."""

    def __init__(self, directory: str) -> None:
        self.directory = directory
        self.outcome = Outcome()

    def invoke(self, value: Any, context: SinkFunction.Context) -> None:
        self.outcome.add(value)

    def close(self) -> None:
        Path(self.directory, uuid.uuid4().hex).write_bytes(pickle.dumps(self.outcome))


class Latency(SinkFunction):
    """Keeps the age of every record; records are the nanosecond in which they were made."""

    def __init__(self, directory: str) -> None:
        self.directory = directory
        self.ages: list[int] = []

    def invoke(self, value: int, context: SinkFunction.Context) -> None:
        self.ages.append(time.time_ns() - value)

    def close(self) -> None:
        Path(self.directory, uuid.uuid4().hex).write_bytes(pickle.dumps(self.ages))


def nanosecond(index: int) -> int:
    return time.time_ns()


def microsecond_digits(value: int) -> int:
    return value // 1_000 % 1_000


def results(env: StreamExecutionEnvironment, case: Case, records: int) -> list[DataStream]:
    """The streams that end in sinks."""
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
    raise TypeError(f"{case.name} is of an unknown shape, {type(case).__name__}")


def numbers(env: StreamExecutionEnvironment, start: int, end: int) -> DataStream:
    return env.from_source(
        NumberSequenceSource(start, end - 1), WatermarkStrategy.no_watermarks(), "numbers"
    )


class Firesteel:
    """Runs jobs with one configuration."""

    def __init__(self, parallelism: int, settings: dict[str, str] | None = None) -> None:
        self.parallelism = parallelism
        self.settings = {"firesteel.spark.master": f"local[{parallelism}]"} | (settings or {})

    def environment(self) -> StreamExecutionEnvironment:
        configuration = Configuration()
        for name, value in self.settings.items():
            configuration.set_string(name, value)
        env = StreamExecutionEnvironment.get_execution_environment(configuration)
        env.set_parallelism(self.parallelism)
        return env

    def run(self, case: Case, records: int) -> float:
        env = self.environment()
        for stream in results(env, case, records):
            stream.add_sink(Counting())
        return timed(env, case.name)

    def run_checked(self, case: Case, records: int) -> Outcome:
        env = self.environment()
        with tempfile.TemporaryDirectory() as directory:
            for stream in results(env, case, records):
                stream.add_sink(Checking(directory))
            env.execute(case.name)
            return Outcome().merge(
                pickle.loads(path.read_bytes()) for path in Path(directory).iterdir()
            )

    def latencies(self) -> list[int]:
        """Nanoseconds from a record's making to the sink behind a key_by, at a modest rate."""
        env = self.environment()
        source = DataGeneratorSource(
            nanosecond,
            count=LATENCY_RATE * LATENCY_SECONDS,
            rate_limiter_strategy=RateLimiterStrategy.per_second(LATENCY_RATE),
        )
        stream = env.from_source(source, WatermarkStrategy.no_watermarks(), "moments")
        with tempfile.TemporaryDirectory() as directory:
            stream.key_by(microsecond_digits).map(identity).add_sink(Latency(directory))
            env.execute("latency")
            return [
                age for path in Path(directory).iterdir() for age in pickle.loads(path.read_bytes())
            ]

    def epoch_milliseconds(self, exchanges: int) -> float:
        """The difference between many and few epochs of a hundred records each."""
        few, many = EPOCHS
        seconds = self.epochs(many, exchanges) - self.epochs(few, exchanges)
        return seconds / (many - few) * 1_000

    def epochs(self, count: int, exchanges: int) -> float:
        env = self.environment()
        stream = numbers(env, 0, count * EPOCH_RECORDS).map(double)
        for _ in range(exchanges):
            stream = stream.rebalance().map(double)
        stream.add_sink(Counting())
        return timed(env, "epochs")


def identity(value: Any) -> Any:
    return value


def timed(env: StreamExecutionEnvironment, name: str) -> float:
    begin = time.perf_counter()
    env.execute(name)
    return time.perf_counter() - begin


def measure_hop(arguments: Arguments) -> None:
    for name in ("map_filter", "reduce_1k"):
        case = BY_NAME[name]
        records = arguments.records_of(case, case.records)
        for host in ("in-worker", "resident"):
            peer = Firesteel(arguments.parallelism, {"firesteel.slot-host": host})
            found = steady_rate(case, peer.run, records=records, repeats=arguments.repeats)
            report(section="hop", case=name, slot_host=host, rate=found.rate)


def measure_timeout(arguments: Arguments) -> None:
    case = BY_NAME["reduce_1k"]
    records = arguments.records_of(case, case.records)
    for timeout in (0, 100, -1):
        setting = (
            {"execution.buffer-timeout.enabled": "false"}
            if timeout < 0
            else {"execution.buffer-timeout.interval": f"{timeout} ms"}
        )
        peer = Firesteel(arguments.parallelism, setting)
        found = steady_rate(case, peer.run, records=records, repeats=1)
        median = statistics.median(peer.latencies()) / 1e6
        report(section="timeout", milliseconds=timeout, rate=found.rate, median_latency=median)


def measure_epoch(arguments: Arguments) -> None:
    setting = {"firesteel.epoch.max-records": str(EPOCH_RECORDS // arguments.parallelism)}
    peer = Firesteel(arguments.parallelism, setting)
    for exchanges in EXCHANGES:
        milliseconds = peer.epoch_milliseconds(exchanges)
        report(section="epoch", exchanges=exchanges, milliseconds=milliseconds)


def main() -> None:
    arguments = parse_arguments("Firesteel")
    report_versions("pyspark", "pyarrow", firesteel=__version__)
    peer = Firesteel(arguments.parallelism)
    run_cases(arguments, peer.run, peer.run_checked)
    sections = {"hop": measure_hop, "timeout": measure_timeout, "epoch": measure_epoch}
    for name, measure in sections.items():
        if name in arguments.options:
            measure(arguments)


if __name__ == "__main__":
    main()
