"""Measure Firesteel and its references in one run, and print rates and ratios."""

import argparse
import signal
import sys
from collections.abc import Sequence

from benchmarks import history, table
from benchmarks.cases import BY_NAME, CASES, Case
from benchmarks.machine import Facts, is_busy, machine_facts
from benchmarks.measure import Figures
from benchmarks.peers.catalog import FIRESTEEL, PEERS, Peer
from benchmarks.runner import PeerResult, Progress, run_peers
from benchmarks.sections.catalog import SECTIONS

QUICK_SCALE = 0.5


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    names = [peer.name for peer in PEERS]
    parser.add_argument("--cases", nargs="*", choices=list(BY_NAME), default=list(BY_NAME))
    parser.add_argument("--peers", nargs="+", choices=names, default=names)
    parser.add_argument("--sections", nargs="*", choices=list(SECTIONS), default=None)
    parser.add_argument(
        "--records", type=int, help="records of the large run; slow peers use a share of them"
    )
    parser.add_argument(
        "--repeats", type=int, default=3, help="runs of each size; the median counts"
    )
    parser.add_argument("--parallelism", type=int, default=2)
    parser.add_argument(
        "--quick", action="store_true", help="half the records, one run, no extra sections"
    )
    parser.add_argument(
        "--no-history", action="store_true", help="do not write the figures to the history"
    )
    options = parser.parse_args()
    if options.quick:
        options.repeats = 1
    if options.sections is None:
        options.sections = [] if options.quick else list(SECTIONS)
    return options


def peer_arguments(peer: Peer, options: argparse.Namespace) -> list[str]:
    arguments = ["--in-turns", "--cases", *options.cases]
    arguments += ["--repeats", str(1 if peer.slow else options.repeats)]
    arguments += ["--parallelism", str(options.parallelism)]
    if options.quick:
        arguments += ["--scale", str(QUICK_SCALE)]
    if options.records is not None:
        arguments += ["--records", str(options.records)]
    own = options.sections if peer == FIRESTEEL else peer.sections
    sections = [section for section in options.sections if section in own]
    if peer.options or sections:
        arguments += ["--options", *peer.options, *sections]
    return arguments


def measure(options: argparse.Namespace, results: list[PeerResult]) -> None:
    """Add each result as it arrives, so that an interrupted run keeps its results."""
    progress = Progress()
    asked = [peer for peer in PEERS if peer.name in options.peers]
    groups = [[peer for peer in asked if not peer.slow]]
    groups += [[peer] for peer in asked if peer.slow]
    cases = [case.name for case in CASES if case.name in options.cases]
    for group in groups:
        arguments = {peer: peer_arguments(peer, options) for peer in group}
        run_peers(arguments, cases, progress, tell, results)


def tell(peer: Peer, figures: Figures) -> None:
    """Print a figure as soon as it is measured. Tables follow at the end."""
    line = table.line(peer, figures)
    if line is not None:
        print(line, flush=True)


def tell_problem(result: PeerResult) -> None:
    if result.problem is not None:
        print(f"{result.peer.title}: {result.problem}", file=sys.stderr)


def show(cases: Sequence[Case], results: list[PeerResult]) -> None:
    measured = [result for result in results if result.cases]
    if cases and measured:
        print(f"\n{table.rates_table(cases, measured)}")
    ratios = table.ratios_table(cases, measured)
    if ratios is not None:
        print(f"\n{ratios}")
        print("! below the goal; * goal for keyed reductions and windows only")
    for section in table.sections_text(results):
        print(f"\n{section}")


def give_up(*_: object) -> None:
    """Raise an exception, so that the runner ends the processes of the peers."""
    raise KeyboardInterrupt


def keep(results: list[PeerResult], facts: Facts, options: argparse.Namespace) -> None:
    settings = {
        name: getattr(options, name) for name in ("records", "repeats", "parallelism", "quick")
    }
    history.append(history.entry(results, facts, settings))
    print(f"\nwritten to {history.HISTORY.relative_to(history.HISTORY.parents[1])}")


def exit_code(results: Sequence[PeerResult]) -> int:
    """Return 1 if there was a problem other than a reference that is not installed."""
    return 1 if any(result.problem is not None and result.installed for result in results) else 0


def main() -> int:
    options = parse()
    signal.signal(signal.SIGTERM, give_up)
    facts = machine_facts()
    print(
        f"{facts['processor']}, {facts['cores']} cores, {facts['memory_gib']} GiB, "
        f"Python {facts['python']}; {options.parallelism} slots; "
        f"a plain loop takes {facts['loop_nanoseconds']} ns per pass"
    )
    if is_busy(facts):
        print(
            f"This machine is busy (load {facts['load']}). The figures will be too low.",
            file=sys.stderr,
        )
    results: list[PeerResult] = []
    try:
        measure(options, results)
    finally:
        results.sort(key=lambda result: PEERS.index(result.peer))
        if results and not options.no_history:
            keep(results, facts, options)
        for result in results:
            tell_problem(result)
        show([case for case in CASES if case.name in options.cases], results)
    return exit_code(results)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
