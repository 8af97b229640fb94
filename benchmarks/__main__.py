"""`python -m benchmarks`: every case, for Firesteel and for each reference, in one run."""

import argparse
import signal
import sys
from collections.abc import Sequence

from benchmarks import history, table
from benchmarks.cases import BY_NAME, CASES, Case
from benchmarks.machine import is_busy, machine_facts
from benchmarks.measure import Figures
from benchmarks.peers.catalog import BARE_QUERY, FIRESTEEL, PEERS, Peer
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
        "--records", type=int, help="records of the large run; slow peers take their share of it"
    )
    parser.add_argument("--repeats", type=int, default=3, help="runs of each size, the best counts")
    parser.add_argument("--parallelism", type=int, default=2)
    parser.add_argument(
        "--quick", action="store_true", help="half the records, once, no extra sections"
    )
    parser.add_argument("--no-history", action="store_true", help="do not keep the figures")
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
    if peer == FIRESTEEL and options.sections:
        arguments += ["--options", *options.sections]
    return arguments


def measure(options: argparse.Namespace) -> tuple[list[PeerResult], PeerResult | None]:
    progress = Progress()
    asked = [peer for peer in PEERS if peer.name in options.peers]
    groups = [[peer for peer in asked if not peer.slow]]
    groups += [[peer] for peer in asked if peer.slow]
    cases = [case.name for case in CASES if case.name in options.cases]
    results = []
    for group in groups:
        arguments = {peer: peer_arguments(peer, options) for peer in group}
        results += run_peers(arguments, cases, progress, tell)
    bare = None
    if "epoch" in options.sections and FIRESTEEL in asked:
        own_arguments = {BARE_QUERY: ["--parallelism", str(options.parallelism)]}
        [bare] = run_peers(own_arguments, (), progress, tell)
    for result in [*results, bare] if bare is not None else results:
        tell_problem(result)
    return sorted(results, key=lambda result: asked.index(result.peer)), bare


def tell(peer: Peer, figures: Figures) -> None:
    """A run takes long: figures are shown as they come, and in tables at the end."""
    line = table.line(peer, figures)
    if line is not None:
        print(line, flush=True)


def tell_problem(result: PeerResult) -> None:
    if result.problem is not None:
        print(f"{result.peer.title}: {result.problem}", file=sys.stderr)


def show(cases: Sequence[Case], results: list[PeerResult], bare: PeerResult | None) -> None:
    measured = [result for result in results if result.cases]
    if cases and measured:
        print(f"\n{table.rates_table(cases, measured)}")
    ratios = table.ratios_table(cases, measured)
    if ratios is not None:
        print(f"\n{ratios}")
        print("! below the goal; * asked of the keyed reductions only")
    own = next((result for result in results if result.peer == FIRESTEEL), None)
    for section in table.sections_text(own, bare):
        print(f"\n{section}")


def give_up(*_: object) -> None:
    """Ending by an exception lets the runner end the peer's processes."""
    raise KeyboardInterrupt


def main() -> int:
    options = parse()
    signal.signal(signal.SIGTERM, give_up)
    facts = machine_facts()
    print(
        f"{facts['processor']}, {facts['cores']} cores, {facts['memory_gib']} GiB, "
        f"Python {facts['python']}; {options.parallelism} slots; "
        f"a plain loop takes {facts['loop_nanoseconds']} ns a pass"
    )
    if is_busy(facts):
        print(
            f"This machine is busy (load {facts['load']}): expect figures that are too low.",
            file=sys.stderr,
        )
    results, bare = measure(options)
    show([case for case in CASES if case.name in options.cases], results, bare)
    if not options.no_history:
        settings = {
            name: getattr(options, name) for name in ("records", "repeats", "parallelism", "quick")
        }
        everything = [*results, bare] if bare is not None else results
        history.append(history.entry(everything, facts, settings))
        print(f"\nkept in {history.HISTORY.relative_to(history.HISTORY.parents[1])}")
    return 0 if not any(map(is_broken, results)) else 1


def is_broken(result: PeerResult) -> bool:
    """A reference that is not installed is no failure."""
    return result.problem is not None and bool(result.cases or result.sections)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
