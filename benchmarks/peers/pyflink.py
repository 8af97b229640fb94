"""PyFlink in process mode: Python functions run in Python processes beside a local Flink cluster.

PyFlink gets the faster alternative where there is one. Types are declared, and the sink is Flink's
DiscardingSink, so that no result returns to Python. `--options tuned` raises bundle size and state
cache far above their defaults, which trades latency for speed.
"""

import os
import sys
import sysconfig
import time
from typing import Any

from pyflink.common import Configuration, Time, Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import AggregateFunction, DataStream, StreamExecutionEnvironment
from pyflink.datastream.connectors.base import Sink
from pyflink.datastream.connectors.number_seq import NumberSequenceSource
from pyflink.datastream.window import TumblingEventTimeWindows
from pyflink.java_gateway import get_gateway

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
)
from benchmarks.measure import parse_arguments, report_versions, run_cases
from benchmarks.peers import pyflink_latency
from benchmarks.peers.catalog import ROOT

# Each run takes a few seconds. State is written after every bundle, by default 1,000 records.
RECORDS = {
    "map_filter": 800_000,
    "reduce_1k": 40_000,
    "reduce_1m": 40_000,
    "sum_tuples": 40_000,
    "union": 800_000,
    "fan_out": 400_000,
    "wide_rows": 200_000,
    "strings_1kb": 80_000,
    "tumbling_1k": 40_000,
}
# Tuning only affects cases with state.
RECORDS_TUNED = {
    "reduce_1k": 400_000,
    "reduce_1m": 200_000,
    "sum_tuples": 400_000,
    "tumbling_1k": 400_000,
}

TUNED = {
    "python.fn-execution.bundle.size": "100000",
    "python.state.cache-size": "1000000",
    "pipeline.object-reuse": "true",
}
# State is written after every bundle, so reductions benefit from even larger bundles.
TUNED_REDUCTIONS = TUNED | {"python.fn-execution.bundle.size": "1000000"}

WIDE_ROW = Types.TUPLE(
    [Types.LONG()] * 8
    + [Types.DOUBLE()] * 4
    + [Types.BOOLEAN()] * 2
    + [Types.STRING()] * 5
    + [Types.PICKLED_BYTE_ARRAY()]
)
MADE_TYPES = {
    "sum_tuples": Types.TUPLE([Types.LONG(), Types.LONG()]),
    "tumbling_1k": Types.TUPLE([Types.LONG(), Types.LONG()]),
    "wide_rows": WIDE_ROW,
    "strings_1kb": Types.STRING(),
}


class EventTime(TimestampAssigner):  # type: ignore[misc]
    def __init__(self, timeline: Timeline) -> None:
        self.timeline = timeline

    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        return self.timeline.of(value[1])


class Count(AggregateFunction):  # type: ignore[misc]
    def create_accumulator(self) -> int:
        return 0

    def add(self, value: Any, accumulator: int) -> int:
        return accumulator + 1

    def get_result(self, accumulator: int) -> int:
        return accumulator

    def merge(self, acc_a: int, acc_b: int) -> int:
        return acc_a + acc_b


def results(env: StreamExecutionEnvironment, case: Case, records: int) -> list[DataStream]:
    """Return the streams that end in sinks."""
    made = MADE_TYPES.get(case.name, Types.LONG())
    if isinstance(case, Union):
        half = records // 2
        first = numbers(env, 0, half).map(case.make, made)
        second = numbers(env, half, records).map(case.other, made)
        return [first.union(second).map(case.then, Types.LONG())]
    source = numbers(env, 0, records)
    match case:
        case MapFilter():
            return [source.map(case.make, made).filter(case.keep)]
        case Reduce():
            return [source.key_by(case.key, Types.LONG()).reduce(case.combine)]
        case Sum():
            return [source.map(case.make, made).key_by(case.key, Types.LONG()).sum(1)]
        case FanOut():
            shared = source.map(case.make, made)
            return [shared.map(branch, Types.LONG()) for branch in case.branches]
        case KeyedMap():
            keyed = source.map(case.make, made).key_by(case.key, Types.LONG())
            return [keyed.map(case.then, Types.LONG())]
        case WindowCount():
            strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(
                EventTime(Timeline(records))
            )
            timed = source.map(case.make, made).assign_timestamps_and_watermarks(strategy)
            windows = timed.key_by(case.key, Types.LONG()).window(
                TumblingEventTimeWindows.of(Time.milliseconds(case.window_millis))
            )
            counts = windows.aggregate(
                Count(), accumulator_type=Types.LONG(), output_type=Types.LONG()
            )
            return [counts]
    raise TypeError(f"{case.name} is of an unknown shape, {type(case).__name__}")


def numbers(env: StreamExecutionEnvironment, start: int, end: int) -> DataStream:
    return env.from_source(
        NumberSequenceSource(start, end - 1),
        WatermarkStrategy.no_watermarks(),
        "numbers",
        Types.LONG(),
    )


class PyFlink:
    """Runs cases as jobs on a local cluster inside one Java process."""

    def __init__(self, parallelism: int, *, tuned: bool) -> None:
        self.parallelism = parallelism
        self.tuned = tuned

    def settings(self, case: Case) -> dict[str, str]:
        if not self.tuned:
            return {}
        return TUNED_REDUCTIONS if isinstance(case, Reduce | Sum | WindowCount) else TUNED

    def environment(self, case: Case) -> StreamExecutionEnvironment:
        configuration = Configuration()
        for name, value in self.settings(case).items():
            configuration.set_string(name, value)
        configuration.set_string("python.executable", sys.executable)
        configuration.set_string("python.client.executable", sys.executable)
        env = StreamExecutionEnvironment.get_execution_environment(configuration)
        env.set_parallelism(self.parallelism)
        return env

    def run(self, case: Case, records: int) -> float:
        env = self.environment(case)
        sinks = get_gateway().jvm.org.apache.flink.streaming.api.functions.sink.v2
        for stream in results(env, case, records):
            stream.sink_to(Sink(sinks.DiscardingSink()))
        begin = time.perf_counter()
        env.execute(case.name)
        return time.perf_counter() - begin

    def run_checked(self, case: Case, records: int) -> Outcome:
        outcome = Outcome()
        first, *others = results(self.environment(case), case, records)
        together: Any = first.union(*others) if others else first
        with together.execute_and_collect() as values:
            for value in values:
                outcome.add(value)
        return outcome


def main() -> None:
    arguments = parse_arguments("PyFlink in process mode, or in thread mode")
    report_versions("apache-flink", "apache-beam")
    tuned, in_threads = "tuned" in arguments.options, "thread" in arguments.options
    if in_threads:
        # The interpreter inside the JVM does not find the packages of a virtual environment.
        os.environ["PYTHONPATH"] = os.pathsep.join([str(ROOT), sysconfig.get_path("purelib")])
    else:
        os.environ["_python_worker_execution_mode"] = "process"  # noqa: SIM112 - PyFlink's name
    peer = PyFlink(arguments.parallelism, tuned=tuned)
    records = RECORDS_TUNED if tuned else RECORDS
    if in_threads:
        # Thread mode is here for its latency only.
        records = {}
    # PyFlink is the slowest peer, and a warm JVM would hardly change its ratio.
    run_cases(arguments, peer.run, peer.run_checked, records=records, warm_up=False)
    if "latency" in arguments.options:
        arguments.wait_for_turn("sections")
        pyflink_latency.measure(arguments, mode="thread" if in_threads else "process")


if __name__ == "__main__":
    main()
