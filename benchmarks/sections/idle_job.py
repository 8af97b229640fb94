"""Cost of an idle job: the CPU of all its processes while no record is due."""

import os
import time
from pathlib import Path

from benchmarks.machine import sum_by_part
from benchmarks.measure import Arguments, Figures, report
from benchmarks.peers.firesteel_jobs import Firesteel
from benchmarks.sections.latency import wait_for_first_epoch
from benchmarks.sections.section import Section
from benchmarks.text import below
from firesteel.common import WatermarkStrategy
from firesteel.datastream.connectors.datagen import DataGeneratorSource, RateLimiterStrategy
from firesteel.datastream.functions import SinkFunction

# The JVM compiles what starting the job has used for about this long.
_SETTLING_SECONDS = 30.0
_SECONDS = 30.0
_GOAL = 0.03


class Drop(SinkFunction):
    def invoke(self, value: int, context: SinkFunction.Context) -> None:
        pass


def cpu_seconds() -> dict[str, float]:
    """Return the CPU seconds of the driver, of the JVM and of the Python workers."""
    ticks = os.sysconf("SC_CLK_TCK")

    def used(entry: Path) -> float:
        times = (entry / "stat").read_text().rpartition(")")[2].split()
        return (int(times[11]) + int(times[12])) / ticks

    return sum_by_part(used)


def measure(arguments: Arguments) -> None:
    for execution in ("real-time", "micro-batch"):
        env = Firesteel(arguments.parallelism, {"firesteel.execution": execution}).environment()
        source = DataGeneratorSource(int, 10**9, RateLimiterStrategy.per_second(0.001))
        stream = env.from_source(source, WatermarkStrategy.no_watermarks(), "nothing")
        stream.key_by(lambda number: number % 10).reduce(max).add_sink(Drop())
        client = env.execute_async("idle")
        try:
            wait_for_first_epoch(client)
            time.sleep(_SETTLING_SECONDS * arguments.scale)
            before, began = cpu_seconds(), time.monotonic()
            time.sleep(_SECONDS * arguments.scale)
            after, seconds = cpu_seconds(), time.monotonic() - began
        finally:
            client.cancel().result()
        shares = {part: (after[part] - before[part]) / seconds for part in after}
        report(section="idle", execution=execution, cores=sum(shares.values()), parts=shares)


def row(figures: Figures) -> list[str]:
    parts = ", ".join(f"{part} {share:.1%}" for part, share in figures["parts"].items())
    cores = figures["cores"]
    text = f"{cores:.1%} of a core"
    if figures["execution"] == "real-time":
        text = below(cores, _GOAL, text)
    return [figures["execution"], text, parts]


SECTION = Section("idle", ("a job without records", "CPU", ""), row, measure)
