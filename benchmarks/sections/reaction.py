"""Reaction to time: timers, watermarks past an idle input, and rounds of a loop, in milliseconds."""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from benchmarks.latency import (
    GRACE_SECONDS,
    LatencyCase,
    Timeline,
    key_of,
    latencies,
    percentile,
)
from benchmarks.measure import Arguments, Figures, report
from benchmarks.peers.firesteel_jobs import Firesteel
from benchmarks.sections.latency import LatencyJob, milliseconds, wait_until_passed
from benchmarks.sections.section import Section
from firesteel.common import Duration
from firesteel.common.watermark_strategy import TimestampAssigner, WatermarkStrategy
from firesteel.datastream import DataStream
from firesteel.datastream.connectors.datagen import DataGeneratorSource, RateLimiterStrategy
from firesteel.datastream.functions import KeyedProcessFunction

_RATE = 200
_MILLION = 1_000_000
# From a record to its timer.
_AHEAD_MILLIS = 50
_WATERMARK_MILLIS = 20
_IDLE_MILLIS = 100
_ROUNDS = 5


class AtProcessingTime(KeyedProcessFunction):
    """Emits the time of a timer, in nanoseconds, when the timer fires."""

    def process_element(self, value: int, ctx: KeyedProcessFunction.Context) -> Iterable[Any]:
        due = value // _MILLION + _AHEAD_MILLIS
        ctx.timer_service().register_processing_time_timer(due)
        return ()

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Iterable[Any]:
        yield timestamp * _MILLION


class AtEventTime(KeyedProcessFunction):
    """Emits a record when the watermark has passed it."""

    def process_element(self, value: int, ctx: KeyedProcessFunction.Context) -> Iterable[Any]:
        if value:
            ctx.timer_service().register_event_time_timer(value // _MILLION)
        return ()

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Iterable[Any]:
        yield timestamp * _MILLION


class DueMillis(TimestampAssigner):
    def extract_timestamp(self, value: int, record_timestamp: int) -> int:
        return value // _MILLION


def timers(job: LatencyJob) -> DataStream:
    return job.stream.key_by(key_of).process(AtProcessingTime())


def watermarks(job: LatencyJob) -> DataStream:
    """Unite the records with an input that is silent after its first record."""
    job.env.get_config().set_auto_watermark_interval(_WATERMARK_MILLIS)
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(DueMillis())
    rarely = RateLimiterStrategy.per_second(0.01)
    silent = job.env.from_source(
        DataGeneratorSource(lambda _: 0, 1 << 40, rarely),
        strategy.with_idleness(Duration.of_millis(_IDLE_MILLIS)),
        "silent",
    )
    timed = job.stream.assign_timestamps_and_watermarks(strategy)
    return timed.union(silent).key_by(key_of).process(AtEventTime())


def rounds(job: LatencyJob) -> DataStream:
    """Send each record round a loop with an exchange, and emit it after its last round."""
    loop = job.stream.map(lambda due: (due, _ROUNDS)).iterate(max_wait=0)
    counted = loop.key_by(lambda pair: key_of(pair[0])).map(lambda pair: (pair[0], pair[1] - 1))
    loop.close_with(counted.filter(lambda pair: pair[1] > 0))
    return counted.filter(lambda pair: pair[1] == 0).map(lambda pair: pair[0])


@dataclass(frozen=True, slots=True)
class Reaction:
    """A job whose results are the due times of what it emits. ``parts`` divides the latencies."""

    name: str
    title: str
    results: Callable[[LatencyJob], DataStream]
    goal: float | None = None
    parts: int = 1


REACTIONS = (
    Reaction("timer", "timer of processing time", timers, goal=5.0),
    Reaction(
        "watermark",
        f"timer of event time, watermarks every {_WATERMARK_MILLIS} ms, one idle input",
        watermarks,
    ),
    Reaction("round", f"a round of a loop with key_by, {_ROUNDS} rounds", rounds, parts=_ROUNDS),
)
BY_NAME = {reaction.name: reaction for reaction in REACTIONS}


def measure(arguments: Arguments) -> None:
    for reaction in REACTIONS:
        case = LatencyCase(reaction.name, "", _RATE, (math.inf, math.inf))
        job = LatencyJob(
            Firesteel(arguments.parallelism),
            case.rate,
            Timeline.of(case, arguments.scale, 0).records,
        )
        try:
            with job.running(reaction.results(job)) as client:
                timeline = Timeline.of(case, arguments.scale, job.begin())
                wait_until_passed(client, timeline.end + int(GRACE_SECONDS * 1e9))
            found = [one / reaction.parts for one in latencies(job.arrivals, timeline)]
        finally:
            job.close()
        report(
            section="reaction",
            name=reaction.name,
            p50=percentile(found, len(found), 0.5),
            p99=percentile(found, len(found), 0.99),
            results=len(found),
        )


def row(figures: Figures) -> list[str]:
    reaction = BY_NAME[figures["name"]]
    return [
        reaction.title,
        milliseconds(figures["p50"], reaction.goal),
        milliseconds(figures["p99"], None),
        f"{figures['results']:,}",
    ]


SECTION = Section("reaction", ("from due to the result", "median", "99 %", "results"), row, measure)
