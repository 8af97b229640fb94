"""Measure Nexmark on Firesteel and on Flink SQL in one run, and print the ratios.

The ratio is the time of Flink SQL divided by that of Firesteel, so more than 1 means that
Firesteel is faster. Peers take turns query by query, and the median of the turns counts.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from contextlib import ExitStack
from dataclasses import dataclass
from math import exp, log
from pathlib import Path
from statistics import median

from benchmarks.machine import is_busy, machine_facts
from benchmarks.measure import Figures
from benchmarks.nexmark import generator
from benchmarks.nexmark.programs import QUERIES
from benchmarks.peers.catalog import ROOT, Peer
from benchmarks.runner import Progress, last_words, reported, started

FIRESTEEL = Peer("firesteel", "Firesteel", "benchmarks.nexmark.peers.firesteel")
FLINK_SQL = Peer("flink_sql", "Flink SQL", "benchmarks.nexmark.peers.flink_sql", "pyflink")
PEERS = (FIRESTEEL, FLINK_SQL)


class Engine:
    """The process of a peer, which runs one query at a time."""

    def __init__(self, peer: Peer, python: str, backend: str | None, resources: ExitStack) -> None:
        self.peer = peer
        self._log = resources.enter_context(tempfile.TemporaryFile())  # noqa: SIM115 - closed with the process
        command = [python, "-m", peer.module, *([backend] if backend else [])]
        self._process = resources.enter_context(started(command, self._log))
        self._reports = reported(self._process)
        self._next_report()

    def run(self, query: str, directory: Path) -> Figures:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{query} {directory}\n")
        self._process.stdin.flush()
        return self._next_report()

    def _next_report(self) -> Figures:
        for figures in self._reports:
            return figures
        raise RuntimeError(f"{self.peer.title} ended: {last_words(self._log)}")


@dataclass(frozen=True, slots=True)
class Timing:
    """Medians of the turns of a query, in seconds."""

    wall: float
    cpu: float


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.nexmark", description=__doc__)
    parser.add_argument("--events", type=int, nargs="+", default=[1_000_000])
    parser.add_argument("--queries", nargs="+", choices=QUERIES, default=list(QUERIES))
    names = [peer.name for peer in PEERS]
    parser.add_argument("--peers", nargs="+", choices=names, default=names)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument(
        "--backend", choices=["hashmap", "rocksdb"], help="the state backend of all"
    )
    return parser.parse_args()


def events_of(count: int, progress: Progress) -> Path:
    """Return the directory of the events. They are made once and kept under .bench."""
    directory = ROOT / ".bench" / "nexmark" / str(count)
    done = directory.with_suffix(".done")
    if not done.exists():
        progress.show(f"making {count:,} events")
        generator.write(directory, count)
        done.touch()
    return directory


def measure(
    engines: list[Engine], query: str, directory: Path, turns: int, progress: Progress
) -> dict[str, Timing]:
    """Return the timings of the peers that could run the query."""
    taken: dict[str, list[Figures]] = {}
    failed: set[str] = set()
    for turn in range(turns + 1):
        for engine in engines:
            name = engine.peer.name
            if name in failed:
                continue
            progress.show(f"{query}: {engine.peer.title}, turn {turn} of {turns}")
            figures = engine.run(query, directory)
            if "failed" in figures:
                failed.add(name)
                progress.clear()
                print(f"{query}: {engine.peer.title} failed: {figures['failed']}", file=sys.stderr)
            elif turn:
                # The first turn warms up caches and compilers.
                taken.setdefault(name, []).append(figures)
    progress.clear()
    return {
        name: Timing(median(one["seconds"] for one in each), median(one["cpu"] for one in each))
        for name, each in taken.items()
        if name not in failed
    }


def show(query: str, count: int, timings: dict[str, Timing], peers: list[Peer]) -> None:
    line = f"{query:>4} {count:>11,}"
    for peer in peers:
        timing = timings.get(peer.name)
        line += f" {timing.wall:>8.2f} {timing.cpu:>8.2f}" if timing else f" {'-':>8} {'-':>8}"
    ours, theirs = timings.get(FIRESTEEL.name), timings.get(FLINK_SQL.name)
    if ours and theirs:
        line += f" {theirs.wall / ours.wall:>7.2f} {theirs.cpu / ours.cpu:>7.2f}"
    if ours:
        line += f" {ours.cpu / count * 1e6:>9.2f}"
    print(line, flush=True)


def show_means(count: int, table: dict[str, dict[str, Timing]]) -> None:
    pairs = [
        (each[FLINK_SQL.name], each[FIRESTEEL.name])
        for each in table.values()
        if FLINK_SQL.name in each and FIRESTEEL.name in each
    ]
    if pairs:
        wall = geometric_mean([theirs.wall / ours.wall for theirs, ours in pairs])
        cpu = geometric_mean([theirs.cpu / ours.cpu for theirs, ours in pairs])
        print(
            f"{count:,} events: geometric mean of {len(pairs)} queries, Firesteel against Flink "
            f"SQL: {wall:.2f} by wall clock, {cpu:.2f} by processor time"
        )


def geometric_mean(ratios: list[float]) -> float:
    return exp(sum(map(log, ratios)) / len(ratios))


def main() -> None:
    options = parse()
    if is_busy(machine_facts()):
        print("Other programs use the processors, so the figures are noisy.", file=sys.stderr)
    progress = Progress()
    with ExitStack() as resources:
        engines = []
        for peer in PEERS:
            if peer.name not in options.peers:
                continue
            python = peer.python(sys.executable)
            if python is None:
                print(f"{peer.title} is not installed: `make bench-peers`", file=sys.stderr)
                continue
            progress.show(f"starting {peer.title}")
            engines.append(Engine(peer, python, options.backend, resources))
        peers = [engine.peer for engine in engines]
        titles = "".join(f" {peer.title:>17}" for peer in peers)
        print(
            f"{'':16}{titles}   ratio\n{'':4} {'events':>11}"
            + f" {'wall s':>8} {'cpu s':>8}" * len(peers)
            + "    wall     cpu  µs/event"
        )
        for count in options.events:
            directory = events_of(count, progress)
            table = {}
            for query in options.queries:
                table[query] = measure(engines, query, directory, options.turns, progress)
                show(query, count, table[query], peers)
            show_means(count, table)


if __name__ == "__main__":
    main()
