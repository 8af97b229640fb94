"""Growth with the cluster: executors, slots and subtasks, on Spark's `local-cluster`.

All executors share the cores of one machine, so the rate should stay the same. The driver's part of
an epoch should grow with the number of slots, and no faster. Each row is a driver of its own, because
a process has one Spark application.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import pyspark

from benchmarks.measure import Arguments, Figures, report
from benchmarks.peers.firesteel_jobs import Firesteel, counted, numbers
from benchmarks.sections.section import Section
from benchmarks.text import rate_text

_KEYS = 1_000
_SECONDS = 300
# The rate is measured with few large epochs, the driver's part of an epoch with many small ones.
_RECORDS, _MANY_EPOCHS = 4_000_000, 80
_SMALL_EPOCH = 2_000


@dataclass(frozen=True, slots=True)
class Size:
    """A job of ``levels`` levels with ``parallelism`` subtasks each."""

    executors: int
    parallelism: int
    levels: int = 2

    @property
    def subtasks(self) -> int:
        return self.parallelism * self.levels


_THROUGHPUT = (Size(1, 2), Size(2, 2), Size(4, 4))
_GROWTH = (Size(2, 4), Size(2, 16), Size(2, 32), Size(2, 50, 4))


def measure(arguments: Arguments) -> None:
    records = int(_RECORDS * arguments.scale)
    for execution in ("real-time", "micro-batch"):
        for size in _THROUGHPUT:
            _report(size, execution, records, epoch_records=None)
        costs = [
            (
                size.subtasks,
                _report(size, execution, _MANY_EPOCHS * _SMALL_EPOCH, epoch_records=_SMALL_EPOCH),
            )
            for size in _GROWTH
        ]
        _report_line(execution, [(subtasks, cost) for subtasks, cost in costs if cost is not None])


def _report_line(execution: str, costs: list[tuple[int, float]]) -> None:
    """Report the straight line through the driver's milliseconds per epoch, by subtasks."""
    if len(costs) < 2:
        return
    subtasks, cpu = zip(*costs, strict=True)
    slope, intercept = statistics.linear_regression(subtasks, cpu)
    report(
        section="scale",
        execution=execution,
        slope=slope,
        intercept=intercept,
        correlation=statistics.correlation(subtasks, cpu),
    )


def _report(size: Size, execution: str, records: int, epoch_records: int | None) -> float | None:
    """Run a job in a driver of its own, and report its figures.

    Returns the CPU milliseconds of the driver per epoch.
    """
    command = [sys.executable, "-m", "benchmarks.sections.scale", execution]
    command += map(str, (size.executors, size.parallelism, size.levels, records))
    command += [] if epoch_records is None else [str(epoch_records)]
    environment = {**os.environ, "SPARK_HOME": str(Path(pyspark.__file__).parent)}
    ended = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=_SECONDS, check=False
    )
    if ended.returncode != 0:
        raise RuntimeError(f"{size} in {execution} failed: {ended.stderr[-500:]}")
    found = json.loads(ended.stdout.splitlines()[-1])
    report(
        section="scale",
        execution=execution,
        executors=size.executors,
        subtasks=size.subtasks,
        **found,
    )
    cost: float | None = found["driver_ms_per_epoch"]
    return cost


def row(figures: Figures) -> list[str]:
    if "slope" in figures:
        line = f"{figures['intercept']:.1f} ms + {figures['slope']:.3f} ms per subtask"
        title = f"{figures['execution']}, a line (correlation {figures['correlation']:.3f})"
        return [title, "", line, f"{figures['slope']:.3f} ms"]
    execution, executors, subtasks, cpu = (
        figures[name] for name in ("execution", "executors", "subtasks", "driver_ms_per_epoch")
    )
    title = f"{execution}, {executors} executor{'' if executors == 1 else 's'}, {subtasks} subtasks"
    driver = ["-", "-"] if cpu is None else [f"{cpu:.1f} ms", f"{cpu / subtasks:.2f} ms"]
    return [title, rate_text(figures["rate"]), *driver]


SECTION = Section(
    "scale", ("on a cluster", "records/s", "driver CPU per epoch", "per subtask"), row, measure
)


def main() -> None:
    """The driver of one row: print its figures as one line of JSON."""
    parser = argparse.ArgumentParser()
    parser.add_argument("execution")
    for name in ("executors", "parallelism", "levels", "records"):
        parser.add_argument(name, type=int)
    parser.add_argument("epoch_records", type=int, nargs="?")
    options = parser.parse_args()
    cores = -(-options.parallelism * options.levels // options.executors)
    settings = {
        "firesteel.spark.master": f"local-cluster[{options.executors},{cores},1024]",
        "firesteel.execution": options.execution,
        "spark.executor.memory": "1024m",
        # The job starts when all executors are there.
        "spark.scheduler.minRegisteredResourcesRatio": "1.0",
    }
    if options.epoch_records is not None:
        of_subtask = max(1, options.epoch_records // options.parallelism)
        settings["firesteel.epoch.max-records"] = str(of_subtask)
    peer = Firesteel(options.parallelism, settings)
    # The difference of two runs excludes the start of the job. The first run warms up.
    _, small, large = (
        _run(peer, options.levels, records)
        for records in (options.records // 4, options.records // 4, options.records)
    )
    seconds, cpu, epochs, records = (b - a for a, b in zip(small, large, strict=True))
    figures = {
        "rate": records / seconds if seconds > 0 else None,
        "epochs": epochs,
        "driver_ms_per_epoch": 1_000 * cpu / epochs if epochs > 0 else None,
    }
    print(json.dumps(figures))


def _run(peer: Firesteel, levels: int, records: int) -> tuple[float, float, int, int]:
    """Return seconds, CPU seconds of the driver, epochs and records of a job."""
    env = peer.environment()
    stream = numbers(env, 0, records)
    for _ in range(levels - 2):
        stream = stream.rebalance().map(int)
    reduced = stream.key_by(lambda number: number % _KEYS).reduce(max)
    with counted("scale", [reduced], records):
        began, cpu = time.perf_counter(), time.process_time()
        client = env.execute_async("scale")
        client.get_job_execution_result().result()
        took = time.perf_counter() - began, time.process_time() - cpu
    return *took, client.get_overview()["epochs"], records


if __name__ == "__main__":
    main()
