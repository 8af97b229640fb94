"""Tumbling, sliding and session windows, compared with a keyed reduction of the same records.

The cost is mainly per record. There are few results, except for sliding windows, which fire every
second for every key.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from benchmarks.cases import BY_NAME, Case, add_second_field, first_field
from benchmarks.measure import Arguments, Figures, report, steady_rates
from benchmarks.peers.firesteel_jobs import (
    Count,
    Firesteel,
    numbers,
    run_timed,
    with_event_time,
)
from benchmarks.sections.section import Section
from benchmarks.text import rate_text, ratio_text
from firesteel.common import Time
from firesteel.datastream import DataStream, KeyedStream
from firesteel.datastream.window import (
    EventTimeSessionWindows,
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
)

_CASE = replace(BY_NAME["tumbling_1k"], records=3_000_000)
_KEYS = (1_000, 100_000)
# By shape: its reference, and the minimum share of the rate of the reference.
_GOALS = {"tumbling": ("reduce", 0.5), "sliding 60/1": ("tumbling", 0.5)}

Build = Callable[[KeyedStream], DataStream]


def windowed(assigner: Any) -> Build:
    return lambda keyed: keyed.window(assigner).aggregate(Count())


SHAPES: dict[str, Build] = {
    "reduce": lambda keyed: keyed.reduce(add_second_field),
    "tumbling": windowed(TumblingEventTimeWindows.of(Time.seconds(10))),
    "sliding 60/1": windowed(SlidingEventTimeWindows.of(Time.seconds(60), Time.seconds(1))),
    "session": windowed(EventTimeSessionWindows.with_gap(Time.seconds(1))),
}


class Shape:
    """Runs one kind of job with a number of keys."""

    def __init__(self, peer: Firesteel, keys: int, build: Build) -> None:
        self.peer = peer
        self.keys = keys
        self.build = build

    def run(self, case: Case, records: int) -> float:
        keys = self.keys
        env = self.peer.environment()
        pairs = numbers(env, 0, records).map(lambda number: (number % keys, number))
        stream = self.build(with_event_time(pairs, records).key_by(first_field))
        # The number of windows depends on the sizes of the runs.
        results = records if self.build is SHAPES["reduce"] else None
        return run_timed(env, "windows", [stream], results)


def measure(arguments: Arguments) -> None:
    peer = Firesteel(arguments.parallelism)
    for keys in _KEYS:
        found = steady_rates(
            _CASE,
            {name: Shape(peer, keys, build).run for name, build in SHAPES.items()},
            records=arguments.records_of(_CASE, _CASE.records),
            repeats=arguments.repeats,
            seconds=120,
        )
        for name, measured in found.items():
            reference, goal = _GOALS.get(name, (None, None))
            base = found[reference].rate if reference else None
            report(
                section="window",
                shape=name,
                keys=keys,
                rate=measured.rate,
                reference=reference,
                ratio=measured.rate / base if measured.rate and base else None,
                goal=goal,
            )


def row(figures: Figures) -> list[str]:
    against = f"of {figures['reference']}" if figures["reference"] else ""
    return [
        figures["shape"],
        f"{figures['keys']:,} keys",
        rate_text(figures["rate"]),
        ratio_text(figures["ratio"], figures["goal"]) if against else "",
        against,
    ]


SECTION = Section("window", ("window count of tuples", "", "records/s", "", ""), row, measure)
