"""Run peers in their own processes and collect the lines of JSON that they print."""

import json
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from typing import IO

from benchmarks.measure import WARMING_UP, Figures
from benchmarks.peers.catalog import ROOT, Peer

Tell = Callable[[Peer, Figures], None]
"""Receives each report of a peer as soon as it arrives."""

# A peer that reports nothing for this many seconds has hung. A part takes about one minute, or
# several minutes on a busy machine.
PATIENCE = 300


@dataclass(slots=True)
class PeerResult:
    """The reports of a peer. `problem` gives the reason for missing reports."""

    peer: Peer
    cases: dict[str, Figures] = field(default_factory=dict)
    sections: list[Figures] = field(default_factory=list)
    versions: dict[str, str] = field(default_factory=dict)
    problem: str | None = None
    installed: bool = True

    def rate(self, case: str) -> float | None:
        return self.cases.get(case, {}).get("rate")

    def take(self, figures: Figures) -> None:
        if "versions" in figures:
            self.versions = figures["versions"]
        elif "section" in figures:
            self.sections.append(figures)
        else:
            self.cases[figures["case"]] = {
                name: figure for name, figure in figures.items() if name != "case"
            }

    def failures(self) -> dict[str, str]:
        """Return failed cases and sections with their errors."""
        failed = {
            name: figures["failed"] for name, figures in self.cases.items() if "failed" in figures
        }
        return failed | {
            figures["section"]: figures["failed"]
            for figures in self.sections
            if "failed" in figures
        }


class Progress:
    """One line of progress on standard error. Does nothing if that is not a terminal."""

    def __init__(self) -> None:
        self.shown = sys.stderr.isatty()
        self.begin = time.monotonic()

    def show(self, text: str) -> None:
        if self.shown:
            seconds = time.monotonic() - self.begin
            print(f"\r\033[K{text} ({seconds:.0f} s)", end="", file=sys.stderr, flush=True)

    def clear(self) -> None:
        if self.shown:
            print("\r\033[K", end="", file=sys.stderr, flush=True)


class RunningPeer:
    """The process of a peer. It waits for a signal before each run of a case."""

    def __init__(self, peer: Peer, command: list[str], progress: Progress, tell: Tell) -> None:
        self.result = PeerResult(peer)
        self.waiting_for: str | None = None
        self.progress = progress
        self.tell = tell
        self.resources = ExitStack()
        self.log = self.resources.enter_context(tempfile.TemporaryFile())  # noqa: SIM115 - closed with the process
        self.process = self.resources.enter_context(started(command, self.log))
        self.reports = reported(self.process)

    def go_on(self) -> None:
        assert self.process.stdin is not None
        with suppress(BrokenPipeError):
            self.process.stdin.write("\n")
            self.process.stdin.flush()
        self.read_on(f"{len(self.result.cases)} cases measured")

    def read_on(self, status: str) -> None:
        """Read the reports of the peer until it waits again or ends."""
        self.waiting_for = None
        self.progress.show(f"{self.result.peer.title}: {status}")
        try:
            for figures in self.reports:
                if "waiting" in figures:
                    self.waiting_for = figures["waiting"]
                    return
                self.result.take(figures)
                self.progress.clear()
                self.tell(self.result.peer, figures)
        except TimeoutError as error:
            self.result.problem = str(error)
        else:
            self.find_problem()
        self.resources.close()

    def find_problem(self) -> None:
        if self.process.wait() != 0:
            words = last_words(self.log)
            self.result.problem = f"ended with exit code {self.process.returncode}: {words}"
            return
        failures = self.result.failures()
        if failures:
            reason = next(iter(failures.values())).splitlines()[0]
            self.result.problem = f"failed in {', '.join(failures)}: {reason}"


def run_peers(
    arguments: Mapping[Peer, list[str]],
    cases: Sequence[str],
    progress: Progress,
    tell: Tell,
    results: list[PeerResult],
) -> None:
    """Run these peers together.

    They take turns in each run of a case. Everything else runs one peer after the other. The result
    of a peer is in `results` from its start, and grows.
    """
    running: list[RunningPeer] = []
    try:
        with ExitStack() as resources:
            for peer, own_arguments in arguments.items():
                python = peer.python(sys.executable)
                if python is None:
                    why = "not installed; `make bench-peers` installs it"
                    results.append(PeerResult(peer, problem=why, installed=False))
                    continue
                command = [python, "-m", peer.module, *own_arguments]
                started_peer = RunningPeer(peer, command, progress, tell)
                resources.push(started_peer.resources)
                results.append(started_peer.result)
                running.append(started_peer)
                started_peer.read_on("starting")
            take_turns(running, cases)
    except KeyboardInterrupt:
        for one in running:
            if one.waiting_for is not None or one.process.returncode != 0:
                one.result.problem = (
                    one.result.problem or "interrupted: not everything was measured"
                )
        raise
    progress.clear()


def take_turns(running: Sequence[RunningPeer], cases: Sequence[str]) -> None:
    for part in (WARMING_UP, *cases):
        while at_it := [one for one in running if one.waiting_for == part]:
            for one in at_it:
                one.go_on()
    # Firesteel is the first peer and has sections to measure after the cases.
    for one in reversed(running):
        while one.waiting_for is not None:
            one.go_on()


@contextmanager
def started(command: list[str], log: IO[bytes]) -> Iterator[subprocess.Popen[str]]:
    """Start a command in its own session, so that no process of it remains afterward."""
    process = subprocess.Popen(
        command,
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=log,
        text=True,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            end_group(process, signal.SIGTERM)
            with suppress(subprocess.TimeoutExpired):
                process.wait(timeout=10)
        end_group(process, signal.SIGKILL)
        process.wait()


def end_group(process: subprocess.Popen[str], how: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, how)


def reported(process: subprocess.Popen[str]) -> Iterator[Figures]:
    """Yield the lines of JSON as they arrive. Ignore other output of the peer."""
    lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()

    def read() -> None:
        for line in process.stdout or ():
            lines.put(line)
        lines.put(None)

    threading.Thread(target=read, daemon=True).start()
    while True:
        try:
            line = lines.get(timeout=PATIENCE)
        except queue.Empty:
            raise TimeoutError(f"stopped: no report for {PATIENCE} s") from None
        if line is None:
            return
        figures = parsed(line)
        if figures is not None:
            yield figures


def parsed(line: str) -> Figures | None:
    try:
        figures = json.loads(line)
    except json.JSONDecodeError:
        return None
    return figures if isinstance(figures, dict) else None


def last_words(log: IO[bytes]) -> str:
    log.seek(0)
    lines = [line for line in log.read().decode(errors="replace").splitlines() if line.strip()]
    return lines[-1][:300] if lines else "no message"
