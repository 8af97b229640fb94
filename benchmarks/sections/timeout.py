"""What the buffer timeout trades: throughput at full speed against the age of results at a modest rate."""

import pickle
import statistics
import tempfile
import time
import uuid
from pathlib import Path
from typing import Any

from benchmarks.cases import BY_NAME
from benchmarks.measure import Arguments, Figures, report, steady_rate
from benchmarks.peers.firesteel_jobs import Firesteel
from benchmarks.sections.section import Section
from benchmarks.text import rate_text
from firesteel.common import WatermarkStrategy
from firesteel.datastream.connectors.datagen import DataGeneratorSource, RateLimiterStrategy
from firesteel.datastream.functions import SinkFunction

_LATENCY_RATE = 1_000
# By timeout: records at full speed, and seconds at the modest rate. With timeout 0 an epoch is as short as
# it can be, and reads as little as rate control lets it; without one, epochs take 10 seconds.
_RECORDS = {0: 20_000, 100: 8_000_000, -1: 12_000_000}
_SECONDS = {0: 6, 100: 6, -1: 12}


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


def identity(value: Any) -> Any:
    return value


def median_latency(peer: Firesteel, seconds: int) -> float:
    """Milliseconds from a record's making to the sink behind a key_by."""
    env = peer.environment()
    source = DataGeneratorSource(
        nanosecond,
        count=_LATENCY_RATE * seconds,
        rate_limiter_strategy=RateLimiterStrategy.per_second(_LATENCY_RATE),
    )
    stream = env.from_source(source, WatermarkStrategy.no_watermarks(), "moments")
    with tempfile.TemporaryDirectory() as directory:
        stream.key_by(microsecond_digits).map(identity).add_sink(Latency(directory))
        env.execute("latency")
        ages: list[int] = [
            age for path in Path(directory).iterdir() for age in pickle.loads(path.read_bytes())
        ]
    return statistics.median(ages) / 1e6


def measure(arguments: Arguments) -> None:
    case = BY_NAME["reduce_1k"]
    for timeout, records in _RECORDS.items():
        setting = (
            {"execution.buffer-timeout.enabled": "false"}
            if timeout < 0
            else {"execution.buffer-timeout.interval": f"{timeout} ms"}
        )
        peer = Firesteel(arguments.parallelism, setting)
        found = steady_rate(case, peer.run, records=arguments.records_of(case, records), repeats=1)
        median = median_latency(peer, _SECONDS[timeout])
        report(section="timeout", milliseconds=timeout, rate=found.rate, median_latency=median)


def row(figures: Figures) -> list[str]:
    timeout = figures["milliseconds"]
    return [
        f"{timeout} ms" if timeout >= 0 else "-1 (off)",
        rate_text(figures["rate"]),
        f"{figures['median_latency']:,.0f} ms",
    ]


SECTION = Section("timeout", ("buffer timeout", "records/s", "median latency"), row, measure)
