"""Back pressure: a sink that takes 1 ms per record, and a source without a limit.

Memory must not grow, the sink must be busy all the time, and the source must wait for it.
"""

import time
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from benchmarks.machine import sum_by_part
from benchmarks.measure import Arguments, Figures, report
from benchmarks.peers.firesteel_jobs import Firesteel, numbers
from benchmarks.sections.latency import wait_for_first_epoch
from benchmarks.sections.section import Section
from benchmarks.text import below, rate_text
from firesteel.common.job_client import JobClient
from firesteel.datastream.functions import SinkFunction

# Buffers are full, and the JVM has compiled most of what it will.
_SETTLING_SECONDS = 20.0
_SECONDS = 100.0
_RECORD_BYTES = 1_000
_MEGABYTE = 1 << 20
# Growth in the measured time.
_GOAL_MEGABYTES = 20.0


class Slow(SinkFunction):
    def invoke(self, value: bytes, context: SinkFunction.Context) -> None:
        time.sleep(0.001)


def python_megabytes() -> dict[str, float]:
    """Return the memory of the driver and of the workers. Shared pages count in part."""

    def used(entry: Path) -> float:
        lines = (entry / "smaps_rollup").read_text().splitlines()
        return sum(int(line.split()[1]) for line in lines if line.startswith("Pss:")) / 1024

    return sum_by_part(used)


def heap_megabytes() -> float:
    """Return what is alive in the heap of the JVM."""
    session = SparkSession.getActiveSession()
    assert session is not None
    jvm: Any = session._jvm  # noqa: SLF001 - PySpark has no public way into its JVM
    jvm.java.lang.System.gc()
    runtime = jvm.java.lang.Runtime.getRuntime()
    return float(runtime.totalMemory() - runtime.freeMemory()) / _MEGABYTE


def records_written(client: JobClient) -> int:
    sink = client.get_overview()["vertices"][-1]["subtasks"]
    return sum(int(subtask["records_in"]) for subtask in sink)


def measure(arguments: Arguments) -> None:
    env = Firesteel(arguments.parallelism).environment()
    stream = numbers(env, 0, 1 << 40).map(lambda number: bytes(_RECORD_BYTES)).rebalance()
    stream.add_sink(Slow())
    client = env.execute_async("back pressure")
    try:
        wait_for_first_epoch(client)
        time.sleep(_SETTLING_SECONDS * arguments.scale)
        before = python_megabytes() | {"heap": heap_megabytes()}
        written, began = records_written(client), time.monotonic()
        time.sleep(_SECONDS * arguments.scale)
        seconds = time.monotonic() - began
        written = records_written(client) - written
        after = python_megabytes() | {"heap": heap_megabytes()}
    finally:
        client.cancel().result()
    for part in ("driver", "workers", "heap"):
        report(
            section="back_pressure",
            part=part,
            seconds=seconds,
            rate=written / seconds,
            megabytes=after[part],
            growth=after[part] - before[part],
        )


def row(figures: Figures) -> list[str]:
    growth = figures["growth"]
    title = "heap of the JVM" if figures["part"] == "heap" else figures["part"]
    return [
        title,
        f"{figures['megabytes']:,.0f} MB",
        below(growth, _GOAL_MEGABYTES, f"{growth:+.1f} MB in {figures['seconds']:.0f} s"),
        rate_text(figures["rate"]),
    ]


SECTION = Section(
    "back_pressure", ("a sink that takes 1 ms", "memory", "growth", "records/s"), row, measure
)
