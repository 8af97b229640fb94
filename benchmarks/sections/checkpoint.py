"""Cost of checkpoints: a rolling count with 1,000,000 keys, with and without checkpoints."""

import tempfile
import time
from typing import Any

from benchmarks.cases import BY_NAME, Case, modulo_million
from benchmarks.measure import Arguments, Figures, report, steady_rates
from benchmarks.peers.firesteel_jobs import Firesteel, counted, numbers
from benchmarks.sections.section import Section
from benchmarks.text import rate_text, ratio_text

_CASE = BY_NAME["reduce_1m"]
_GOAL = 0.9


def count_one(count: int, _: Any) -> int:
    return count + 1


class Counts:
    """Runs the count with the given settings, and counts the checkpoints of the last run."""

    def __init__(self, parallelism: int, settings: dict[str, str]) -> None:
        self._peer = Firesteel(parallelism, settings)
        self.checkpoints = 0

    def run(self, case: Case, records: int) -> float:
        env = self._peer.environment()
        counts = numbers(env, 0, records).key_by(modulo_million).fold(0, count_one)
        with counted("keyed count", [counts], records):
            begin = time.perf_counter()
            client = env.execute_async("keyed count")
            client.get_job_execution_result().result()
            seconds = time.perf_counter() - begin
        self.checkpoints = client.get_checkpoints()["counts"]["completed"]
        return seconds


def measure(arguments: Arguments) -> None:
    with tempfile.TemporaryDirectory() as directory:
        every_second = {
            "execution.checkpointing.interval": "1 s",
            "execution.checkpointing.dir": directory,
        }
        without = Counts(arguments.parallelism, {})
        with_them = Counts(arguments.parallelism, every_second)
        found = steady_rates(
            _CASE,
            {"none": without.run, "1 s": with_them.run},
            records=arguments.records_of(_CASE, _CASE.records),
            repeats=arguments.repeats,
            seconds=90,
        )
    base = found["none"].rate
    for interval, measured in found.items():
        report(
            section="checkpoint",
            interval=interval,
            rate=measured.rate,
            checkpoints=with_them.checkpoints if interval != "none" else 0,
            ratio=measured.rate / base if measured.rate and base else None,
        )


def row(figures: Figures) -> list[str]:
    return [
        figures["interval"],
        rate_text(figures["rate"]),
        str(figures["checkpoints"]),
        ratio_text(figures["ratio"], _GOAL),
    ]


SECTION = Section(
    "checkpoint",
    ("count, 1,000,000 keys; checkpoint interval", "records/s", "checkpoints per run", ""),
    row,
    measure,
)
