"""One thread that does what it is given, in order, also while the program is ending."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Executor, Future
from queue import SimpleQueue
from typing import Any, TypeVar

__all__ = ["SingleThread"]

T = TypeVar("T")

_Work = tuple["Future[Any]", Callable[[], Any]]


class SingleThread(Executor):
    """A ThreadPoolExecutor takes nothing any more once the main thread has ended; jobs may run on."""

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
            except BaseException as error:  # noqa: BLE001 - it reaches whoever waits for the future
                future.set_exception(error)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Take nothing more. What was submitted is done all the same."""
        with self._lock:
            if not self._is_shut_down:
                self._is_shut_down = True
                self._work.put(None)
            thread = self._thread
        if wait and thread is not None:
            thread.join()
