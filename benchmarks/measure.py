"""Measurement of rates, the same for every peer.

A case runs with a small and with a large number of records. The difference of both runs excludes
the cost that they share (starting the job, workers, connections). The result is the steady rate.
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
"""Runs a case with a number of records and returns the seconds.

Raises an error if the sinks did not receive every result.
"""

# The first run has this size. It warms up the peer, and its results are checked.
CHECKED_RECORDS = 10_000
# The part for which peers wait before they warm up.
WARMING_UP = "warming up"
# Time limit in seconds for a case of a peer, and for a section.
LONGEST_SECONDS = 120.0


@dataclass(frozen=True, slots=True)
class Measurement:
    """The median time of several runs per size, and the rate between the two sizes."""

    case: str
    small_records: int
    small_seconds: float
    large_records: int
    large_seconds: float
    turns: list[tuple[float, float]]
    """The seconds of each turn, small and large. They show changes in the speed of the machine."""

    @property
    def rate(self) -> float | None:
        """Records per second.

        None if the runs were too short, or the machine too busy, for a difference.
        """
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
    """Measure several ways to run a case against each other.

    Ways and sizes take turns, so that a slow minute of the machine affects all of them. The median
    of each counts. No further turn starts if the runs would then take more than `seconds`.
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
    """Arguments that the runner passes to a peer."""

    cases: tuple[Case, ...]
    scale: float
    records: int | None
    repeats: int
    parallelism: int
    options: frozenset[str]
    in_turns: bool = False

    def wait_for_turn(self, part: str) -> None:
        """Wait until the runner starts the next run.

        Peers take turns run by run, so that a slow minute of the machine affects all of them.
        """
        if self.in_turns:
            report(waiting=part)
            sys.stdin.readline()

    def records_of(self, case: Case, records: int) -> int:
        """Return the size of the large run for a peer that uses `records` of a full-size case."""
        if self.records is not None:
            records = records * self.records // case.records
        return max(CHECKED_RECORDS, int(records * self.scale))


def parse_arguments(description: str, argv: list[str] | None = None) -> Arguments:
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--cases", nargs="*", choices=list(BY_NAME), default=list(BY_NAME))
    parser.add_argument("--scale", type=float, default=1.0, help="share of the records to run")
    parser.add_argument(
        "--records", type=int, help="records of a full-size case; slow peers use a share of them"
    )
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--parallelism", type=int, default=2)
    parser.add_argument("--options", nargs="*", default=[], help="further options of this peer")
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
    """Raise an error if a peer returns wrong results."""
    wanted = expected(case, records)
    if not outcome.agrees(wanted, case):
        raise ValueError(f"{case.name}: expected {wanted}, but this peer returned {outcome}")


def check_count(name: str, count: int, wanted: int) -> None:
    """Raise an error if a timed run has lost or duplicated records."""
    if count != wanted:
        raise ValueError(f"{name}: expected {wanted:,} records, but there were {count:,}")


def check_results(case: Case, count: int, records: int) -> None:
    check_count(case.name, count, result_count(case, records))


def report(**figures: object) -> None:
    """Write one line of JSON to standard output, for the runner."""
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
    """Check all requested cases, then measure them.

    `records` is the size of the large run per case, for a slow peer: the number of records that
    take a few seconds. A peer skips the cases that are not in it.

    With `warm_up`, a large run of each case comes before the timed runs. A JVM compiles code for a
    minute or two, and the first cases would otherwise pay for the others.
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
    """Report a failed case and continue with the next one."""
    try:
        yield
    except Exception as error:  # noqa: BLE001 - any failure is reported
        print(f"{case.name}: {error!r}", file=sys.stderr)
        report(case=case.name, failed=f"{type(error).__name__}: {error}"[:500])
