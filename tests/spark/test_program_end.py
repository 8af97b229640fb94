"""Jobs are canceled before Spark stops, however the program ends. Observed from outside."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from firesteel.master.running_jobs import RunningJobs
from firesteel.spark.program_end import ProgramEnd

_PROGRAM = """
import signal, sys, threading, time
# A shell ignores it for programs in the background.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGWINCH, lambda *_: None)
from concurrent.futures import Future, ThreadPoolExecutor
from firesteel.master.running_jobs import running_jobs
from firesteel.spark.program_end import program_end

def say(word):
    sys.stdout.write(word + "\\n")
    sys.stdout.flush()

class Job:
    def __init__(self):
        self.end = Future()
        self.given_up = threading.Lock()
    def cancel(self):
        # Spark needs new threads for it, too.
        threading.Thread(target=self.close).start()
        return self.end
    suspend = cancel
    def close(self):
        say("canceled")
        if "{kind}" != "blocks":
            running_jobs.discard(self)
            self.end.set_result(None)
    def give_up(self):
        # The handler of a signal and a thread may both call it.
        if self.given_up.acquire(blocking=False):
            say("given up")
            running_jobs.discard(self)
            self.end.set_result(None)

def stop():
    # Longer than any test: only a second signal may end what blocks.
    running_jobs.cancel_all(3600.0)
    say("stopped")

running_jobs.add(Job())
program_end.watch(stop)
program_end.watch(stop)
say("ready")
{rest}
"""


class Program:
    def __init__(self, rest: str, kind: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", _PROGRAM.format(rest=rest, kind=kind)],
            cwd=Path(__file__).parents[2],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        assert self.line() == "ready"

    def line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def rest(self, *, wake: bool = True) -> list[str]:
        """Wait for the end, and return the remaining output with the errors."""
        assert self.process.stdout is not None
        if wake:
            threading.Thread(target=self._wake, daemon=True).start()
        lines = self.process.stdout.read().splitlines()
        self.process.wait()
        return lines

    def _wake(self) -> None:
        """Interrupt the main thread again and again until the program has ended.

        CPython does not run the handler of a signal that arrives just before the main thread
        blocks. It runs it when the next signal comes.
        """
        while self.process.poll() is None:
            self.process.send_signal(signal.SIGWINCH)
            time.sleep(0.2)


Start = Callable[..., Program]


@pytest.fixture
def start() -> Iterator[Start]:
    programs: list[Program] = []

    def start(rest: str, kind: str = "ends") -> Program:
        programs.append(Program(rest, kind))
        return programs[-1]

    yield start
    for program in programs:
        program.process.kill()
        program.process.wait()


def test_a_program_that_leaves_jobs_running_ends_them(start: Start) -> None:
    program = start("")
    assert program.rest() == ["canceled", "stopped"]
    assert program.process.returncode == 0


def test_threads_of_the_program_are_waited_for(start: Start) -> None:
    work = "time.sleep(0.5); say('worked')"
    program = start(
        f"def work(): {work}\n"
        "ThreadPoolExecutor(1).submit(work)\n"
        "threading.Thread(target=work).start()"
    )
    assert program.rest() == ["worked", "worked", "canceled", "stopped"]


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, -signal.SIGINT), (signal.SIGTERM, 128 + signal.SIGTERM)]
)
def test_a_signal_ends_the_program_without_a_traceback(
    start: Start, number: signal.Signals, code: int
) -> None:
    program = start("say('working')\ntime.sleep(60)")
    assert program.line() == "working"
    program.process.send_signal(number)
    assert program.rest() == ["canceled", "stopped"]
    assert program.process.returncode == code


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_second_signal_gives_up_what_blocks(start: Start, number: signal.Signals) -> None:
    program = start("say('working')\ntime.sleep(60)", kind="blocks")
    assert program.line() == "working"
    program.process.send_signal(number)
    assert program.line() == "canceled"
    program.process.send_signal(number)
    assert program.rest() == ["given up", "stopped"]


def test_a_second_termination_counts_although_the_main_thread_does_not_wake_up(
    start: Start,
) -> None:
    """Linux may deliver it to a different thread, while the main thread blocks."""
    program = start(
        # From here on only the thread that counts the signals gets any.
        "def end():\n"
        "    running_jobs.suspended = True\n"
        "    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])\n"
        "    raise SystemExit(143)\n"
        "try:\n"
        "    say('working')\n"
        "    time.sleep(60)\n"
        "except SystemExit:\n"
        "    end()",
        kind="blocks",
    )
    assert program.line() == "working"
    program.process.send_signal(signal.SIGTERM)
    assert program.line() == "canceled"
    program.process.send_signal(signal.SIGTERM)
    assert program.rest(wake=False) == ["given up", "stopped"]


def test_signals_of_a_forked_child_are_not_those_of_the_program(start: Start) -> None:
    program = start(
        "import os\n"
        "for _ in range(3):\n"
        "    received, sent = os.pipe()\n"
        "    child = os.fork()\n"
        "    if not child:\n"
        "        os.write(sent, b'ready')\n"
        "        time.sleep(60)\n"
        "        os._exit(1)\n"
        "    os.read(received, 5)\n"
        "    os.kill(child, signal.SIGTERM)\n"
        "    os.waitpid(child, 0)\n"
        "say('working')\n"
        "time.sleep(60)",
        kind="blocks",
    )
    assert program.line() == "working"
    program.process.send_signal(signal.SIGTERM)
    assert program.line() == "canceled"
    program.process.send_signal(signal.SIGTERM)
    assert program.rest() == ["given up", "stopped"]


def test_a_signal_does_not_wait_for_threads_of_the_program(start: Start) -> None:
    program = start(
        "def work():\n"
        "    while running_jobs: time.sleep(0.01)\n"
        "threading.Thread(target=work).start()\n"
        "say('working')"
    )
    assert program.line() == "working"
    program.process.send_signal(signal.SIGINT)
    assert program.rest() == ["canceled", "stopped"]


def test_a_program_with_handlers_of_its_own_keeps_them(start: Start) -> None:
    program = start(
        "came = []\n"
        "signal.signal(signal.SIGINT, lambda *_: came.append('its own'))\n"
        "program_end.watch(stop)\n"
        "say('working')\n"
        "while not came: time.sleep(0.01)\n"
        "say(*came)"
    )
    assert program.line() == "working"
    program.process.send_signal(signal.SIGINT)
    assert program.rest() == ["its own", "canceled", "stopped"]


@pytest.fixture
def default_interrupt() -> Iterator[None]:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def start_spark(steps: list[str]) -> None:
    """Receive an interrupt while Spark starts. If the first step is "twice", receive another one."""
    with ProgramEnd(RunningJobs()).interrupts_wait() as take_over:
        signal.raise_signal(signal.SIGINT)
        # As PySpark does at the end of a new context.
        signal.signal(signal.SIGINT, fail)
        take_over()
        steps.append("context")
        if steps[0] == "twice":
            signal.raise_signal(signal.SIGINT)
        steps.append("session")


@pytest.mark.usefixtures("default_interrupt")
def test_an_interrupt_waits_until_spark_has_started() -> None:
    steps = ["once"]
    with pytest.raises(KeyboardInterrupt):
        start_spark(steps)
    assert steps == ["once", "context", "session"]
    assert signal.getsignal(signal.SIGINT) is fail


def fail(number: int, frame: object) -> None:
    raise AssertionError("PySpark's handler was called")


@pytest.mark.usefixtures("default_interrupt")
def test_a_second_interrupt_does_not_wait_for_spark() -> None:
    steps = ["twice"]
    with pytest.raises(KeyboardInterrupt):
        start_spark(steps)
    assert steps == ["twice", "context"]


@pytest.mark.usefixtures("default_interrupt")
def test_a_handler_of_the_user_is_left_alone_while_spark_starts() -> None:
    signal.signal(signal.SIGINT, fail)
    with ProgramEnd(RunningJobs()).interrupts_wait() as take_over:
        assert signal.getsignal(signal.SIGINT) is fail
        take_over()
        assert signal.getsignal(signal.SIGINT) is fail
