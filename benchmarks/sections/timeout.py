"""What the buffer timeout trades: throughput at full speed against the age of results at a modest rate."""

import pickle
import statistics
import tempfile
import time
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.cases import BY_NAME
from benchmarks.measure import Arguments, Figures, check_count, report, steady_rate
from benchmarks.peers.firesteel_jobs import Firesteel
from benchmarks.sections.section import Section
from benchmarks.text import rate_text
from firesteel.common import WatermarkStrategy
from firesteel.datastream.connectors.datagen import (
    DataGeneratorSource,
    RateLimiter,
    RateLimiterStrategy,
)
from firesteel.datastream.functions import SinkFunction

# Less than any of the timeouts can do: behind a job that cannot keep up, ages only tell how long it has run.
_LATENCY_RATE = 200
# By timeout: records at full speed. With timeout 0 an epoch is as short as it can be, and reads as little as
# rate control lets it; without one, epochs are as long as they may.
_RECORDS = {0: 8_000, 100: 8_000_000, -1: 12_000_000}
_LATENCY_SECONDS = 10
# The first record is due so long after the job was submitted. By then it runs.
_LEAD_SECONDS = 8


@dataclass(frozen=True, slots=True)
class Schedule(RateLimiterStrategy):
    """Records are due at a fixed rate, whether or not anybody is there to read them.

    A limiter that gave only what time and the reader allow would let a slow epoch delay records
    without anybody noticing.
    """

    begin: int
    rate: float

    def create_rate_limiter(self, parallelism: int) -> RateLimiter:
        return ScheduledLimiter(self.begin, self.rate / parallelism)


class ScheduledLimiter(RateLimiter):
    def __init__(self, begin: int, rate: float) -> None:
        self.begin = begin
        self.rate = rate
        self.granted = 0

    def acquire(self, wanted: int) -> int:
        due = int((time.time_ns() - self.begin) / 1e9 * self.rate) - self.granted
        granted = max(0, min(wanted, due))
        self.granted += granted
        return granted

    def give_back(self, unused: int) -> None:
        self.granted -= unused

    def delay(self) -> float:
        next_due = self.begin + (self.granted + 1) / self.rate * 1e9
        return max(0.0, (next_due - time.time_ns()) / 1e9)


class DueTime:
    """A record is the nanosecond at which it was due. A subtask makes its records one after the other."""

    def __init__(self, schedule: Schedule, parallelism: int) -> None:
        self.begin = schedule.begin
        self.step = int(1e9 * parallelism / schedule.rate)
        self.made = 0

    def __call__(self, index: int) -> int:
        self.made += 1
        return self.begin + self.made * self.step


class Latency(SinkFunction):
    """Keeps the age of the records that were due after some moment."""

    def __init__(self, directory: str, after: int) -> None:
        self.directory = directory
        self.after = after
        self.ages: list[int] = []

    def invoke(self, value: int, context: SinkFunction.Context) -> None:
        if value > self.after:
            self.ages.append(time.time_ns() - value)

    def close(self) -> None:
        Path(self.directory, uuid.uuid4().hex).write_bytes(pickle.dumps(self.ages))


def millisecond_digits(value: int) -> int:
    return value // 1_000_000 % 1_000


def identity(value: Any) -> Any:
    return value


def median_latency(peer: Firesteel, seconds: int = _LATENCY_SECONDS) -> float:
    """Milliseconds from the moment a record was due to the sink behind a key_by, over the second half of the records."""
    env = peer.environment()
    count = _LATENCY_RATE * seconds
    schedule = Schedule(time.time_ns() + int(_LEAD_SECONDS * 1e9), _LATENCY_RATE)
    source = DataGeneratorSource(DueTime(schedule, peer.parallelism), count, schedule)
    stream = env.from_source(source, WatermarkStrategy.no_watermarks(), "moments")
    with tempfile.TemporaryDirectory() as directory:
        latency = Latency(directory, schedule.begin + int(seconds / 2 * 1e9))
        stream.key_by(millisecond_digits).map(identity).add_sink(latency)
        env.execute("latency")
        ages: list[int] = [
            age for path in Path(directory).iterdir() for age in pickle.loads(path.read_bytes())
        ]
    check_count("latency", len(ages), count // 2)
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
        median = median_latency(peer)
        report(section="timeout", milliseconds=timeout, rate=found.rate, median_latency=median)


def row(figures: Figures) -> list[str]:
    timeout = figures["milliseconds"]
    return [
        f"{timeout} ms" if timeout >= 0 else "-1 (off)",
        rate_text(figures["rate"]),
        f"{figures['median_latency']:,.0f} ms",
    ]


SECTION = Section("timeout", ("buffer timeout", "records/s", "median latency"), row, measure)
