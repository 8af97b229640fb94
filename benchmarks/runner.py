"""Runs a peer in a process of its own and gathers the lines of JSON it prints."""

import json
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import IO

from benchmarks.measure import Figures
from benchmarks.peers.catalog import ROOT, Peer

Tell = Callable[[Peer, Figures], None]
"""Is told what a peer reports, as soon as it does."""

# A peer that reports nothing for so many seconds hangs. A part of it takes about one minute, on a busy machine several.
PATIENCE = 300


@dataclass(slots=True)
class PeerResult:
    """What a peer reported. `problem` says why there is nothing, or not everything."""

    peer: Peer
    cases: dict[str, Figures] = field(default_factory=dict)
    sections: list[Figures] = field(default_factory=list)
    versions: dict[str, str] = field(default_factory=dict)
    problem: str | None = None

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
        """Cases and sections that went wrong, and how."""
        failed = {
            name: figures["failed"] for name, figures in self.cases.items() if "failed" in figures
        }
        return failed | {
            figures["section"]: figures["failed"]
            for figures in self.sections
            if "failed" in figures
        }


class Progress:
    """One line on standard error that is written over; silent where that is not a terminal."""

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


def run_peer(peer: Peer, arguments: list[str], progress: Progress, tell: Tell) -> PeerResult:
    result = PeerResult(peer)
    python = peer.python(sys.executable)
    if python is None:
        result.problem = "not installed; `make bench-peers` installs it"
        return result
    options = ["--options", *peer.options] if peer.options else []
    command = [python, "-m", peer.module, *arguments, *options]
    with tempfile.TemporaryFile() as log, started(command, log) as process:
        progress.show(f"{peer.title}: starting")
        try:
            for figures in reported(process):
                result.take(figures)
                progress.clear()
                tell(peer, figures)
                progress.show(f"{peer.title}: {len(result.cases)} cases measured")
        except TimeoutError as error:
            result.problem = str(error)
            return result
        if process.wait() != 0:
            result.problem = f"ended with exit code {process.returncode}: {last_words(log)}"
    failures = result.failures()
    if failures and result.problem is None:
        reason = next(iter(failures.values())).splitlines()[0]
        result.problem = f"failed in {', '.join(failures)}: {reason}"
    return result


@contextmanager
def started(command: list[str], log: IO[bytes]) -> Iterator[subprocess.Popen[str]]:
    """In a session of its own, so that nothing of it is left when it ends or the user gives up."""
    process = subprocess.Popen(
        command,
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
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
    """The lines of JSON as they come; anything else on standard output is the peer's chatter."""
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
            raise TimeoutError(f"given up: it reported nothing for {PATIENCE} s") from None
        if line is None:
            return
        if line.startswith("{"):
            yield json.loads(line)


def last_words(log: IO[bytes]) -> str:
    log.seek(0)
    lines = [line for line in log.read().decode(errors="replace").splitlines() if line.strip()]
    return lines[-1][:300] if lines else "no message"
