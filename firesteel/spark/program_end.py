"""The end of the program: cancels running jobs first, then stops Spark.

A non-daemon thread waits for the end of the main thread. Functions registered with atexit run too
late: Python starts no threads by then, and Spark needs some.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import Any

from firesteel.datastream.stream_execution_environment.program_process import is_interactive
from firesteel.master.running_jobs import RunningJobs, running_jobs

__all__ = ["ProgramEnd", "program_end"]

_TERMINATED = 128 + signal.SIGTERM
_POLL_SECONDS = 0.1


class ProgramEnd:
    """Ends jobs and Spark when the program ends, or when a signal arrives."""

    def __init__(self, jobs: RunningJobs) -> None:
        self._jobs = jobs
        self._lock = threading.Lock()
        self._process = 0
        # Set when jobs must end without further waiting.
        self._ending = threading.Event()
        #: The program has come to its end, and no signal has ended it.
        self.is_at_leisure = False
        self._interrupt: KeyboardInterrupt | None = None
        self._handle_interrupt: Callable[[int, FrameType | None], Any] = signal.default_int_handler
        self._show_error: Callable[..., Any] = sys.__excepthook__

    def watch(self, stop: Callable[[], None]) -> None:
        """Call ``stop`` at the end of the program, also after a signal.

        ``stop`` cancels the jobs, then stops Spark.
        """
        with self._lock:
            if self._process != os.getpid():
                self._process = os.getpid()
                threading.Thread(
                    target=self._wait, args=(stop,), name="firesteel-end", daemon=False
                ).start()
        if threading.current_thread() is threading.main_thread():
            self._take_signals()

    @contextmanager
    def interrupts_wait(self) -> Iterator[Callable[[], None]]:
        """Let Ctrl-C wait for the end of the block, in which Spark starts. A second one does not.

        An interrupted call to the JVM would log several tracebacks. The block calls the function that
        it gets after PySpark has set its own signal handler.
        """
        before = signal.getsignal(signal.SIGINT)
        is_main = threading.current_thread() is threading.main_thread()
        if not is_main or before is not signal.default_int_handler:
            yield lambda: None
            return
        noted = 0

        def note(number: int, frame: FrameType | None) -> None:
            nonlocal noted
            noted += 1
            if noted > 1:
                signal.default_int_handler(number, frame)

        def take_over() -> None:
            nonlocal before
            before = signal.signal(signal.SIGINT, note)

        signal.signal(signal.SIGINT, note)
        try:
            yield take_over
        finally:
            signal.signal(signal.SIGINT, before)
        if noted:
            raise KeyboardInterrupt

    def _wait(self, stop: Callable[[], None]) -> None:
        threading.main_thread().join()
        # Python waits for these threads too, so their jobs continue, unless a signal ends them.
        while not self._ending.is_set() and (thread := _other_thread()) is not None:
            thread.join(_POLL_SECONDS)
        self.is_at_leisure = not self._ending.is_set()
        self._ending.set()
        stop()

    # Signals. Handlers run in the main thread, between any two of its steps.

    def _take_signals(self) -> None:
        """Set handlers, unless the user has set some."""
        before = signal.getsignal(signal.SIGINT)
        if before is signal.default_int_handler or _is_of_pyspark(before):
            assert callable(before)
            self._handle_interrupt = before
            signal.signal(signal.SIGINT, self._interrupted)
        if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
            signal.signal(signal.SIGTERM, self._terminated)
            self._watch_terminations()
        if sys.excepthook is sys.__excepthook__:
            sys.excepthook = self._uncaught

    def _watch_terminations(self) -> None:
        """Let a thread count the signals, too.

        Linux may deliver a second signal to a different thread while the first one is being handled.
        The main thread, which waits for the jobs, would not wake up for it.
        """
        received, sent = os.pipe()
        os.set_blocking(sent, False)
        before = signal.set_wakeup_fd(sent, warn_on_full_buffer=False)
        if before != -1:
            # An event loop of the program uses it.
            signal.set_wakeup_fd(before)
            os.close(received)
            os.close(sent)
            return
        # A child that the program forks would write to the pipe of its parent.
        os.register_at_fork(after_in_child=lambda: signal.set_wakeup_fd(-1))
        threading.Thread(
            target=self._count_terminations, args=(received,), name="firesteel-signals", daemon=True
        ).start()

    def _count_terminations(self, received: int) -> None:
        count = 0
        while numbers := os.read(received, 64):
            count += numbers.count(signal.SIGTERM)
            if count > 1:
                # The main thread has handled the first one.
                self._ending.wait()
                self._jobs.give_up()

    def _interrupted(self, number: int, frame: FrameType | None) -> None:
        if _main_has_ended(frame):
            self._hurry()
        elif self._jobs and os.getpid() == self._process:
            # PySpark's handler would cancel Firesteel's Spark jobs in the middle of an epoch.
            self._interrupt = KeyboardInterrupt()
            raise self._interrupt
        else:
            self._handle_interrupt(number, frame)

    def _terminated(self, number: int, frame: FrameType | None) -> None:
        if os.getpid() != self._process:
            # A child that the program has forked.
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
        elif self._ending.is_set() or _main_has_ended(frame):
            self._hurry()
        else:
            self._jobs.suspended = True
            self._ending.set()
            raise SystemExit(_TERMINATED)

    def _hurry(self) -> None:
        """Handle a signal while the program is ending. An exception would not be caught."""
        if self._ending.is_set():
            self._jobs.give_up()
        self._ending.set()

    def _uncaught(
        self, kind: type[BaseException], error: BaseException, trace: TracebackType | None
    ) -> None:
        if error is self._interrupt and not is_interactive():
            # Ctrl-C is the way to end running jobs, so it leaves no traceback.
            self._ending.set()
            return
        self._show_error(kind, error, trace)


def _main_has_ended(frame: FrameType | None) -> bool:
    """Return True if the program's last line has run and Python waits for threads."""
    while frame is not None:
        if frame.f_globals is vars(threading) and frame.f_code.co_name == "_shutdown":
            return True
        frame = frame.f_back
    return not threading.main_thread().is_alive()


def _other_thread() -> threading.Thread | None:
    """Return a thread that keeps Python from ending."""
    own = (threading.main_thread(), threading.current_thread())
    return next((t for t in threading.enumerate() if not t.daemon and t not in own), None)


def _is_of_pyspark(handler: Any) -> bool:
    return str(getattr(handler, "__module__", "")).startswith("pyspark.")


program_end = ProgramEnd(running_jobs)
