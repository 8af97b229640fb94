"""Timers: 1,000,000 keys with one pending timer each, including the time to fire them all."""

from collections.abc import Iterable
from typing import Any

from benchmarks.cases import BY_NAME, Case, first_field, modulo_million
from benchmarks.measure import Arguments, Figures, report, steady_rates
from benchmarks.peers.firesteel_jobs import Firesteel, numbers, run_timed, with_event_time
from benchmarks.sections.section import Section
from benchmarks.text import rate_text, ratio_text
from firesteel.datastream.functions import KeyedProcessFunction

_CASE = BY_NAME["reduce_1m"]
_RECORDS = 4_000_000
_KEYS = 1_000_000
# Later than every watermark except the last.
_FAR_AWAY = 1 << 60


class Plain(KeyedProcessFunction):
    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Iterable[Any]:
        yield value


class WithTimer(KeyedProcessFunction):
    """Registers the same timer for every record of a key. Only the first one is new."""

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Iterable[Any]:
        ctx.timer_service().register_event_time_timer(_FAR_AWAY)
        yield value

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Iterable[Any]:
        yield timestamp


class Job:
    def __init__(self, peer: Firesteel, function: type[KeyedProcessFunction]) -> None:
        self.peer = peer
        self.function = function

    def run(self, case: Case, records: int) -> float:
        env = self.peer.environment()
        pairs = numbers(env, 0, records).map(lambda number: (modulo_million(number), number))
        keyed = with_event_time(pairs, records).key_by(first_field)
        fired = min(records, _KEYS) if self.function is WithTimer else 0
        return run_timed(env, "timers", [keyed.process(self.function())], records + fired)


def measure(arguments: Arguments) -> None:
    peer = Firesteel(arguments.parallelism)
    found = steady_rates(
        _CASE,
        {"none": Job(peer, Plain).run, "one per key": Job(peer, WithTimer).run},
        records=arguments.records_of(_CASE, _RECORDS),
        repeats=arguments.repeats,
    )
    base = found["none"].rate
    for timers, measured in found.items():
        ratio = measured.rate / base if measured.rate and base else None
        report(section="timer", timers=timers, rate=measured.rate, ratio=ratio)


def row(figures: Figures) -> list[str]:
    return [figures["timers"], rate_text(figures["rate"]), ratio_text(figures["ratio"])]


SECTION = Section("timer", ("process, 1,000,000 keys; timers", "records/s", ""), row, measure)
