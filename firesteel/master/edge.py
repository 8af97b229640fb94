"""The edge of the job runner: its clock and its threads."""

from __future__ import annotations

import logging
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import Executor, Future
from queue import SimpleQueue
from threading import Condition
from typing import Any, Protocol, TypeVar

_log = logging.getLogger("firesteel")

T = TypeVar("T")

_Work = tuple["Future[Any]", Callable[[], Any]]


class Edge(Protocol):
    """The clock, the threads and the terminal of a job. Tests bring their own."""

    def now(self) -> float:
        """Return seconds of a clock that only goes forward."""

    def wait(self, changed: Condition, seconds: float | None) -> None:
        """Wait until ``changed`` is notified, at most for ``seconds``. The caller holds the lock."""

    def io_thread(self, name: str) -> Executor:
        """Return an executor that carries out what it is given, in order."""

    def print_lines(self, lines: list[str]) -> None:
        """Write the lines of ``print()``."""


class ThreadedEdge:
    """The real clock, real threads, and standard output."""

    def now(self) -> float:
        return time.monotonic()

    def wait(self, changed: Condition, seconds: float | None) -> None:
        changed.wait(seconds)

    def io_thread(self, name: str) -> Executor:
        return SingleThread(name)

    def print_lines(self, lines: list[str]) -> None:
        sys.stdout.write("\n".join(lines) + "\n")
        sys.stdout.flush()


class SingleThread(Executor):
    """One daemon thread, started with the first work.

    A ThreadPoolExecutor refuses work once the main thread has ended, but jobs may still run then.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._work: SimpleQueue[_Work | None] = SimpleQueue()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._is_shut_down = False

    def submit(self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]:
        future: Future[T] = Future()
        with self._lock:
            if self._is_shut_down:
                raise RuntimeError(f"{self._name} has been shut down")
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
                self._thread.start()
            self._work.put((future, lambda: fn(*args, **kwargs)))
        return future

    def _run(self) -> None:
        while (item := self._work.get()) is not None:
            future, call = item
            if not future.set_running_or_notify_cancel():
                continue
            try:
                future.set_result(call())
            except BaseException as error:  # noqa: BLE001 - the owner of the future gets it
                future.set_exception(error)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Refuse further work. Submitted work is still done."""
        with self._lock:
            if not self._is_shut_down:
                self._is_shut_down = True
                self._work.put(None)
            thread = self._thread
        if wait and thread is not None:
            thread.join()


def log_failure(future: Future[Any]) -> None:
    """Log the error of work whose result is not read. It is a callback for a future."""
    error = None if future.cancelled() else future.exception()
    if error is not None:
        _log.error("error in a thread of a job: %s", error, exc_info=error)
