"""How a rate is measured, the same way for every peer.

A case runs with a small and with a large number of records. What both runs have in common (starting the job,
workers, connections) cancels out in the difference, and what stays is the steady rate.
"""

import argparse
import json
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from importlib.metadata import version
from statistics import median
from typing import Any

from benchmarks.cases import (
    BY_NAME,
    CASES,
    Case,
    Outcome,
    expected,
    for_checking,
    result_count,
)

Figures = dict[str, Any]
Run = Callable[[Case, int], float]
"""Runs a case with so many records; the seconds it took. Raises if the sinks did not get every result."""

# A run of this size comes first: it warms the peer up, and its results are compared with the plain loop.
CHECKED_RECORDS = 10_000
# What peers wait for before they warm up.
WARMING_UP = "warming up"
# A case of a peer, or a section, should not take longer than this.
LONGEST_SECONDS = 120.0


@dataclass(frozen=True, slots=True)
class Measurement:
    """The median of several runs of each size, and the rate between the two sizes."""

    case: str
    small_records: int
    small_seconds: float
    large_records: int
    large_seconds: float
    turns: list[tuple[float, float]]
    """The seconds of each turn, small and large: how much the machine's speed changed meanwhile."""

    @property
    def rate(self) -> float | None:
        """None: the runs were too short, or the machine too busy, for a difference to show."""
        seconds = self.large_seconds - self.small_seconds
        if seconds <= 0:
            return None
        return (self.large_records - self.small_records) / seconds


def steady_rate(case: Case, run: Run, *, records: int, repeats: int) -> Measurement:
    return steady_rates(case, {"": run}, records=records, repeats=repeats)[""]


def steady_rates(
    case: Case,
    runs: Mapping[str, Run],
    *,
    records: int,
    repeats: int,
    seconds: float = LONGEST_SECONDS,
) -> dict[str, Measurement]:
    """Several ways to run a case, against each other.

    Ways and sizes take turns, so that a slow minute of the machine hits all of them, and the median of
    each counts: one run in a lucky second says as little as one in an unlucky one. No further turn begins
    that would make the runs take more than so many seconds.
    """
    small, large = records // 4, records
    took: dict[tuple[str, int], list[float]] = {
        (way, size): [] for way in runs for size in (small, large)
    }
    spent = 0.0
    for turn in range(1, repeats + 1):
        for (way, size), each in took.items():
            each.append(runs[way](case, size))
            spent += each[-1]
        if spent + spent / turn > seconds:
            break
    return {
        way: Measurement(
            case.name,
            small,
            median(took[way, small]),
            large,
            median(took[way, large]),
            [
                (round(a, 2), round(b, 2))
                for a, b in zip(took[way, small], took[way, large], strict=True)
            ],
        )
        for way in runs
    }


@dataclass(frozen=True, slots=True)
class Arguments:
    """What the runner tells a peer."""

    cases: tuple[Case, ...]
    scale: float
    records: int | None
    repeats: int
    parallelism: int
    options: frozenset[str]
    in_turns: bool = False

    def wait_for_turn(self, part: str) -> None:
        """Several peers are measured run by run, so that a slow minute of the machine hits all of them."""
        if self.in_turns:
            report(waiting=part)
            sys.stdin.readline()

    def records_of(self, case: Case, records: int) -> int:
        """The size of the large run, where a peer takes `records` of a full-size case."""
        if self.records is not None:
            records = records * self.records // case.records
        return max(CHECKED_RECORDS, int(records * self.scale))


def parse_arguments(description: str, argv: list[str] | None = None) -> Arguments:
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--cases", nargs="*", choices=list(BY_NAME), default=list(BY_NAME))
    parser.add_argument("--scale", type=float, default=1.0, help="share of the records to run")
    parser.add_argument(
        "--records", type=int, help="records of a full-size case; slow peers take their share"
    )
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--parallelism", type=int, default=2)
    parser.add_argument("--options", nargs="*", default=[], help="what else this peer understands")
    parser.add_argument(
        "--in-turns", action="store_true", help="wait for a line of input before each run"
    )
    options = parser.parse_args(argv)
    return Arguments(
        cases=tuple(case for case in CASES if case.name in options.cases),
        scale=options.scale,
        records=options.records,
        repeats=options.repeats,
        parallelism=options.parallelism,
        options=frozenset(options.options),
        in_turns=options.in_turns,
    )


def check(case: Case, outcome: Outcome, records: int = CHECKED_RECORDS) -> None:
    """A peer that computes something else is not a reference."""
    wanted = expected(case, records)
    if not outcome.agrees(wanted, case):
        raise ValueError(f"{case.name}: expected {wanted}, and this peer came to {outcome}")


def check_count(name: str, count: int, wanted: int) -> None:
    """A timed run that lost records, or made more of them, does not count."""
    if count != wanted:
        raise ValueError(f"{name}: expected {wanted:,} records, and there were {count:,}")


def check_results(case: Case, count: int, records: int) -> None:
    check_count(case.name, count, result_count(case, records))


def report(**figures: object) -> None:
    """One line of JSON on standard output is what the runner reads."""
    print(json.dumps(figures), flush=True)


def report_skipped(section: str, what: str, why: str) -> None:
    report(section=section, skipped=f"{what}: {why}")


def report_versions(*packages: str, **known: str) -> None:
    report(versions=known | {package: version(package) for package in packages})


def report_case(measurement: Measurement) -> None:
    report(**asdict(measurement), rate=measurement.rate)


def run_cases(
    arguments: Arguments,
    run: Run,
    run_checked: Callable[[Case, int], Outcome],
    *,
    records: Mapping[str, int] | None = None,
    warm_up: bool = True,
) -> None:
    """Checks every case that was asked for, then measures them.

    A slow peer says how many `records` of a case it can do in a few seconds; cases it leaves out, it cannot express.
    `warm_up`: a large run of each case comes before all that are timed. A JVM compiles what it runs for a minute or two,
    and the first cases would pay for the others.
    """
    sizes = {case.name: case.records for case in CASES} if records is None else records
    ready: list[tuple[Case, int]] = []
    for case in arguments.cases:
        if case.name not in sizes:
            report(case=case.name, skipped="not a case for this peer")
            continue
        with failure_reported(case):
            arguments.wait_for_turn(WARMING_UP)
            checked = for_checking(case)
            check(checked, run_checked(checked, CHECKED_RECORDS))
            large = arguments.records_of(case, sizes[case.name])
            if warm_up:
                run(case, large)
            ready.append((case, large))

    def run_in_turn(case: Case, records: int) -> float:
        arguments.wait_for_turn(case.name)
        return run(case, records)

    for case, large in ready:
        with failure_reported(case):
            report_case(steady_rate(case, run_in_turn, records=large, repeats=arguments.repeats))


@contextmanager
def failure_reported(case: Case) -> Iterator[None]:
    """One case that fails must not hide the others."""
    try:
        yield
    except Exception as error:  # noqa: BLE001 - whatever it is
        print(f"{case.name}: {error!r}", file=sys.stderr)
        report(case=case.name, failed=f"{type(error).__name__}: {error}"[:500])
