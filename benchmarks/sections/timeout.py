"""Buffer timeout: throughput at full speed, and latency at a moderate rate."""

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

# A rate that all timeouts can sustain. In an overloaded job, ages only show how long it has run.
_LATENCY_RATE = 200
# Records at full speed, by timeout. Timeout 0 has the shortest epochs and reads the fewest records.
# Without a timeout, epochs have their maximum length.
_RECORDS = {0: 8_000, 100: 8_000_000, -1: 12_000_000}
_LATENCY_SECONDS = 10
# Time from the submission of the job to the first due record. The job is running by then.
_LEAD_SECONDS = 8


@dataclass(frozen=True, slots=True)
class Schedule(RateLimiterStrategy):
    """Makes records due at a fixed rate, even if no epoch is ready to read them.

    A limiter that depends on the reader would hide the delay that a slow epoch causes.
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
    """Generates records that contain their due time in nanoseconds.

    A subtask creates its records in order.
    """

    def __init__(self, schedule: Schedule, parallelism: int) -> None:
        self.begin = schedule.begin
        self.step = int(1e9 * parallelism / schedule.rate)
        self.made = 0

    def __call__(self, index: int) -> int:
        self.made += 1
        return self.begin + self.made * self.step


class Latency(SinkFunction):
    """Records the age of each record that was due after a given time."""

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
    """Return the median milliseconds from the due time of a record to the sink after a key_by.

    Only the second half of the records counts.
    """
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
