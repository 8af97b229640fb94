"""Latency of PyFlink, with settings for low latency.

Flink's socket source reads the records, because PyFlink has no source that can be paced from Python.
A record has arrived when the Python function after the reduction gets it. Its way back to the JVM
does not count, in PyFlink's favor.
"""

import sys
import tempfile
import time
from contextlib import suppress
from typing import Any

from pyflink.common import Configuration, Types
from pyflink.datastream import DataStream, MapFunction, StreamExecutionEnvironment
from pyflink.datastream.connectors.base import Sink
from pyflink.java_gateway import get_gateway

from benchmarks.latency import (
    COMMON_CASES,
    GRACE_SECONDS,
    WINDOW_RECORDS,
    Arrivals,
    LatencyCase,
    LineServer,
    key_of,
    latencies,
    report_latency,
    second_key_of,
    window_key_of,
)
from benchmarks.measure import Arguments, report_skipped

# The defaults are bundles of 1,000 ms and a buffer timeout of 100 ms.
SETTINGS = {
    "python.fn-execution.bundle.time": "1",
    "execution.buffer-timeout.interval": "1 ms",
}
_START_SECONDS = 180.0


class Arrive(MapFunction):  # type: ignore[misc]
    def __init__(self, directory: str) -> None:
        self.directory = directory

    def open(self, runtime_context: Any) -> None:
        self.arrivals = Arrivals(self.directory)

    def map(self, value: str) -> str:
        self.arrivals.add(int(value))
        return value

    def close(self) -> None:
        self.arrivals.flush()


def results(stream: DataStream, case: LatencyCase) -> DataStream:
    def first_key(line: str) -> int:
        return key_of(int(line)) if case.exchanges == 1 else window_key_of(int(line))

    def second_key(line: str) -> int:
        return second_key_of(int(line))

    def latest(_: str, line: str) -> str:
        return line

    keyed = stream.key_by(first_key, Types.LONG())
    if case.exchanges == 1:
        return keyed.reduce(latest)
    windows = keyed.count_window(WINDOW_RECORDS).reduce(latest)
    return windows.key_by(second_key, Types.LONG()).reduce(latest)


def environment(arguments: Arguments, case: LatencyCase, mode: str) -> StreamExecutionEnvironment:
    configuration = Configuration()
    settings = SETTINGS | {"python.execution-mode": mode}
    if case.checkpoints:
        settings["execution.checkpointing.interval"] = "1 s"
    settings["python.executable"] = sys.executable
    settings["python.client.executable"] = sys.executable
    for name, value in settings.items():
        configuration.set_string(name, value)
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    env.set_parallelism(arguments.parallelism)
    return env


def measure(arguments: Arguments, mode: str) -> None:
    for case in COMMON_CASES:
        try:
            measure_case(arguments, case, mode)
        except Exception as error:  # noqa: BLE001 - the other cases are measured
            report_skipped("latency", case.title, f"{type(error).__name__}: {error}"[:300])


def measure_case(arguments: Arguments, case: LatencyCase, mode: str) -> None:
    env = environment(arguments, case, mode)
    server = LineServer(case, arguments.scale)
    server.start()
    lines = env._j_stream_execution_environment.socketTextStream("127.0.0.1", server.port)  # noqa: SLF001 - not in PyFlink's own API
    with tempfile.TemporaryDirectory() as directory:
        stream = results(DataStream(lines), case).map(Arrive(directory), Types.STRING())
        sinks = get_gateway().jvm.org.apache.flink.streaming.api.functions.sink.v2
        stream.sink_to(Sink(sinks.DiscardingSink()))
        client = env.execute_async("latency")
        try:
            deadline = time.monotonic() + _START_SECONDS
            while server.timeline is None:
                if time.monotonic() > deadline:
                    raise TimeoutError("the job did not start")
                time.sleep(0.1)
            timeline = server.timeline
            server.wait(timeline.end / 1e9 - time.time() + 1.0)
            # Lines that were sent late may still be on their way.
            with suppress(Exception):
                client.get_job_execution_result().result(GRACE_SECONDS)
        finally:
            server.close()
            with suppress(Exception):
                client.cancel().result()
        found = latencies(directory, timeline)
        if not found:
            raise RuntimeError("no record arrived")
        report_latency(case, found, timeline.results(case))
