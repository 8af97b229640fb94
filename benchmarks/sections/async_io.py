"""Asynchronous I/O: requests that take 100 ms, with 100 in flight per slot."""

import asyncio
from typing import Any

from benchmarks.cases import BY_NAME, Case
from benchmarks.measure import Arguments, Figures, report, steady_rates
from benchmarks.peers.firesteel_jobs import Firesteel, numbers, run_timed
from benchmarks.sections.section import Section
from benchmarks.text import rate_text, ratio_text
from firesteel.common import Time
from firesteel.datastream import AsyncDataStream
from firesteel.datastream.functions import AsyncFunction

_CASE = BY_NAME["map_filter"]
_RECORDS = 12_000
_LATENCY_SECONDS = 0.1
_CAPACITY = 100
_GOAL = 0.8


class Ask(AsyncFunction[Any, Any]):
    """Simulates a service with a fixed response time, regardless of its load."""

    async def async_invoke(self, value: Any) -> list[Any]:
        await asyncio.sleep(_LATENCY_SECONDS)
        return [value]


class Job:
    def __init__(self, peer: Firesteel, *, ordered: bool) -> None:
        self.peer = peer
        self.ordered = ordered

    def run(self, case: Case, records: int) -> float:
        wait = AsyncDataStream.ordered_wait if self.ordered else AsyncDataStream.unordered_wait
        env = self.peer.environment()
        answers = wait(numbers(env, 0, records), Ask(), Time.seconds(30), _CAPACITY)
        return run_timed(env, "asynchronous I/O", [answers], records)


def measure(arguments: Arguments) -> None:
    peer = Firesteel(arguments.parallelism)
    found = steady_rates(
        _CASE,
        {
            "ordered": Job(peer, ordered=True).run,
            "unordered": Job(peer, ordered=False).run,
        },
        records=arguments.records_of(_CASE, _RECORDS),
        repeats=arguments.repeats,
    )
    possible = arguments.parallelism * _CAPACITY / _LATENCY_SECONDS
    for order, measured in found.items():
        share = measured.rate / possible if measured.rate else None
        report(section="async", order=order, rate=measured.rate, share=share)


def row(figures: Figures) -> list[str]:
    return [
        figures["order"],
        rate_text(figures["rate"]),
        ratio_text(figures["share"], goal=_GOAL),
    ]


SECTION = Section(
    "async",
    ("requests of 100 ms, 100 in flight per slot", "records/s", "of maximum"),
    row,
    measure,
)
