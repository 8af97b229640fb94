"""Joins, compared with a keyed reduction of the same records.

Each record of one stream has exactly one match in the other.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from benchmarks.cases import BY_NAME, Case, add_second_field, first_field, second_field
from benchmarks.measure import Arguments, Figures, report, steady_rates
from benchmarks.peers.firesteel_jobs import Firesteel, numbers, run_timed, with_event_time
from benchmarks.sections.section import Section
from benchmarks.text import rate_text, ratio_text
from firesteel.common import Time
from firesteel.datastream import DataStream, ProcessJoinFunction
from firesteel.datastream.window import TumblingEventTimeWindows

# Records of both streams together. A join without a window keeps all of them.
_CASE = replace(BY_NAME["tumbling_1k"], records=2_000_000)
_KEYS = 100_000

Build = Callable[[DataStream, DataStream], DataStream]


class Pair(ProcessJoinFunction):
    def process_element(self, left: Any, right: Any, ctx: ProcessJoinFunction.Context) -> Any:
        yield left[0], left[1] + right[1]


def add_pair(left: tuple[int, int], right: tuple[int, int]) -> tuple[int, int]:
    return left[0], left[1] + right[1]


def reduced(left: DataStream, right: DataStream) -> DataStream:
    return left.union(right).key_by(first_field).reduce(add_second_field)


def window_join(left: DataStream, right: DataStream) -> DataStream:
    pairs = left.join(right).where(first_field).equal_to(first_field)
    return pairs.window(TumblingEventTimeWindows.of(Time.seconds(1))).apply(add_pair)


def interval_join(left: DataStream, right: DataStream) -> DataStream:
    pairs = left.key_by(first_field).interval_join(right.key_by(first_field))
    return pairs.between(Time.milliseconds(-1), Time.milliseconds(1)).process(Pair())


def unbounded_join(how: str) -> Build:
    """Join on the number itself, so there are as many keys as records."""
    return lambda left, right: (
        left.join_on(right, how).where(second_field).equal_to(second_field).apply()
    )


SHAPES: dict[str, Build] = {
    "reduce": reduced,
    "window join": window_join,
    "interval join": interval_join,
    "unbounded inner join": unbounded_join("inner"),
    "unbounded full join": unbounded_join("full"),
}


# Results per record of one stream. The number of retractions of a full join depends on the order.
_RESULTS = {"reduce": 2, "window join": 1, "interval join": 1, "unbounded inner join": 1}


def with_keys_of_its_half(half: int) -> Callable[[int], tuple[int, int]]:
    """Return a function that gives each half of the numbers its own keys.

    Both halves cover the same span of time (`Timeline`), so this makes every match unique.
    """
    middle, keys = half // 2, _KEYS // 2

    def keyed_pair(number: int) -> tuple[int, int]:
        return number % keys + (keys if number >= middle else 0), number

    return keyed_pair


class Shape:
    """Runs one kind of job, with half of the records in each stream."""

    def __init__(self, peer: Firesteel, name: str) -> None:
        self.peer = peer
        self.build = SHAPES[name]
        self.results = _RESULTS.get(name)

    def run(self, case: Case, records: int) -> float:
        half = records // 4 * 2
        env = self.peer.environment()
        keyed_pair = with_keys_of_its_half(half)
        left, right = (
            with_event_time(numbers(env, 0, half).map(keyed_pair), half) for _ in range(2)
        )
        results = None if self.results is None else self.results * half
        return run_timed(env, "joins", [self.build(left, right)], results)


def measure(arguments: Arguments) -> None:
    peer = Firesteel(arguments.parallelism)
    found = steady_rates(
        _CASE,
        {name: Shape(peer, name).run for name in SHAPES},
        records=arguments.records_of(_CASE, _CASE.records),
        repeats=arguments.repeats,
        seconds=120,
    )
    base = found["reduce"].rate
    for name, measured in found.items():
        ratio = measured.rate / base if measured.rate and base else None
        report(section="join", shape=name, rate=measured.rate, ratio=ratio)


def row(figures: Figures) -> list[str]:
    return [figures["shape"], rate_text(figures["rate"]), ratio_text(figures["ratio"])]


SECTION = Section(
    "join", ("joins, records of both streams", "records/s", "of reduce"), row, measure
)
