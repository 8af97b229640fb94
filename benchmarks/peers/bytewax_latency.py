"""Latency of bytewax: a source that looks for due records at least every millisecond."""

import multiprocessing
import tempfile
import time
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import bytewax.operators as op
from bytewax.dataflow import Dataflow
from bytewax.inputs import DynamicSource, StatelessSourcePartition
from bytewax.operators import StatefulBatchLogic
from bytewax.outputs import DynamicSink, StatelessSinkPartition
from bytewax.recovery import RecoveryConfig, init_db_dir
from bytewax.testing import cluster_main

from benchmarks.latency import (
    COMMON_CASES,
    GRACE_SECONDS,
    WINDOW_RECORDS,
    Arrivals,
    LatencyCase,
    Timeline,
    key_of,
    latencies,
    report_latency,
    second_key_of,
    window_key_of,
)
from benchmarks.measure import Arguments

_START_SECONDS = 0.5
# From the start of the first member to the first record.
_LEAD_NANOSECONDS = 4_000_000_000


class DuePartition(StatelessSourcePartition[int]):
    def __init__(self, timeline: Timeline, worker: int, workers: int) -> None:
        self.timeline = timeline
        self.indexes = range(worker, timeline.records, workers)

    def next_batch(self) -> Iterable[int]:
        if not self.indexes:
            raise StopIteration
        timeline, indexes = self.timeline, self.indexes
        passed = int((time.time_ns() - timeline.begin) / timeline.step)
        count = len(range(indexes.start, min(passed, indexes.stop), indexes.step))
        due, self.indexes = indexes[:count], indexes[count:]
        return [timeline.due(index) for index in due]


@dataclass
class DueSource(DynamicSource[int]):
    timeline: Timeline

    def build(self, step_id: str, worker_index: int, worker_count: int) -> DuePartition:
        return DuePartition(self.timeline, worker_index, worker_count)


class ArrivalPartition(StatelessSinkPartition[tuple[str, int]]):
    def __init__(self, directory: str) -> None:
        self.arrivals = Arrivals(directory)

    def write_batch(self, items: list[tuple[str, int]]) -> None:
        add = self.arrivals.add
        for _, due in items:
            add(due)

    def close(self) -> None:
        self.arrivals.flush()


@dataclass
class ArrivalSink(DynamicSink[tuple[str, int]]):
    directory: str

    def build(self, step_id: str, worker_index: int, worker_count: int) -> ArrivalPartition:
        return ArrivalPartition(self.directory)


class Latest(StatefulBatchLogic[int, int, int]):
    """A rolling reduction to the latest record."""

    def __init__(self, state: int | None) -> None:
        self.state = state

    def on_batch(self, values: list[int]) -> tuple[list[int], bool]:
        self.state = values[-1]
        return values, False

    def snapshot(self) -> Any:
        return self.state


class CountWindow(StatefulBatchLogic[int, int, int]):
    """Yields the record that completes a window."""

    def __init__(self, state: int | None) -> None:
        self.count = state or 0

    def on_batch(self, values: list[int]) -> tuple[list[int], bool]:
        first = WINDOW_RECORDS - self.count - 1
        self.count = (self.count + len(values)) % WINDOW_RECORDS
        return values[first::WINDOW_RECORDS], False

    def snapshot(self) -> Any:
        return self.count


def dataflow(case: LatencyCase, timeline: Timeline, directory: str) -> Dataflow:
    flow = Dataflow("latency")
    records = op.input("due", flow, DueSource(timeline))
    first_key = key_of if case.exchanges == 1 else window_key_of
    keyed = op.key_on("key", records, lambda due: str(first_key(due)))
    if case.exchanges > 1:
        windows = op.stateful_batch("window", keyed, CountWindow)
        keyed = op.key_on("second_key", windows, lambda pair: str(second_key_of(pair[1])))
        keyed = op.map_value("record", keyed, lambda pair: pair[1])
    results = op.stateful_batch("reduce", keyed, Latest)
    op.output("sink", results, ArrivalSink(directory))
    return flow


def run_member(
    case: LatencyCase,
    timeline: Timeline,
    root: str,
    arrivals: str,
    addresses: list[str],
    index: int,
) -> None:
    execute = partial(cluster_main, addresses=addresses, proc_id=index)
    if case.checkpoints:
        execute = partial(
            execute,
            epoch_interval=timedelta(seconds=1),
            recovery_config=RecoveryConfig(Path(root, "recovery")),
        )
    execute(dataflow(case, timeline, arrivals))


def measure(arguments: Arguments, free_addresses: Any) -> None:
    for case in COMMON_CASES:
        with tempfile.TemporaryDirectory() as root:
            arrivals, recovery = Path(root, "arrivals"), Path(root, "recovery")
            arrivals.mkdir()
            recovery.mkdir()
            init_db_dir(recovery, arguments.parallelism)
            timeline = Timeline.of(case, arguments.scale, time.time_ns() + _LEAD_NANOSECONDS)
            addresses = free_addresses(arguments.parallelism)
            members = [
                multiprocessing.Process(
                    target=run_member,
                    args=(case, timeline, root, str(arrivals), addresses, index),
                )
                for index in range(arguments.parallelism)
            ]
            for member in members:
                member.start()
                time.sleep(_START_SECONDS)
            deadline = timeline.end / 1e9 + GRACE_SECONDS
            for member in members:
                member.join(max(0.0, deadline - time.time()))
                member.kill()
                member.join()
            report_latency(case, latencies(str(arrivals), timeline), timeline.results(case))
