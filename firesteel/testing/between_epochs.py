"""The thread of checkpoint storage, without a thread: a harness lets it work between epochs."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Any


class BetweenEpochs(Executor):
    """What is submitted waits for ``run``, or for somebody who wants to know how it ended."""

    def __init__(self) -> None:
        self._waiting: deque[tuple[_Work, Callable[[], Any]]] = deque()

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        work = _Work(self)
        self._waiting.append((work, lambda: fn(*args, **kwargs)))
        return work

    def run(self) -> None:
        while self._waiting:
            work, call = self._waiting.popleft()
            try:
                work.set_result(call())
            except BaseException as error:  # noqa: BLE001 - it belongs to whoever asks
                work.set_exception(error)

    def drop(self) -> None:
        """The process is gone before it came to it."""
        self._waiting.clear()

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        self.run()


class _Work(Future[Any]):
    def __init__(self, executor: BetweenEpochs) -> None:
        super().__init__()
        self._executor = executor

    def result(self, timeout: float | None = None) -> Any:
        self._executor.run()
        return super().result(timeout)
