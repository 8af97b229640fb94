"""PyFlink's CompletableFuture, on top of the standard library's Future."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, CancelledError, Future, wait
from threading import Lock
from typing import Any, Generic, TypeVar

__all__ = ["CompletableFuture"]

T = TypeVar("T")


class CompletableFuture(Generic[T]):
    """A result that may not be there yet.

    >>> CompletableFuture.completed(1).result()
    1
    """

    def __init__(self, future: Future[Any], convert: Callable[[Any], T] | None = None) -> None:
        """``convert`` turns the future's value into the one that callers see."""
        # Others may wait for it too, and whoever does the work completes it: it is never canceled.
        self._future = future
        self._convert = convert
        self._given_up: Future[None] = Future()
        self._canceling = Lock()

    @staticmethod
    def completed(value: T) -> CompletableFuture[T]:
        """A future whose result is there already."""
        future: Future[T] = Future()
        future.set_result(value)
        return CompletableFuture(future)

    def cancel(self) -> bool:
        """Give up waiting, here and in other threads; False if the result is there already.

        The work goes on, and so do other futures for it. ``JobClient.cancel`` ends a job.
        """
        with self._canceling:
            if not self.done():
                self._given_up.set_result(None)
        return self.cancelled()

    def cancelled(self) -> bool:
        return self._given_up.done()

    def done(self) -> bool:
        return self.cancelled() or self._future.done()

    def result(self, timeout: float | None = None) -> T:
        """Wait for the result. Raises what the work raised, TimeoutError, or CancelledError."""
        self._wait(timeout)
        value = self._future.result()
        return value if self._convert is None else self._convert(value)

    def exception(self, timeout: float | None = None) -> BaseException | None:
        """Wait for the end, and return the exception if there was one."""
        try:
            self._wait(timeout)
        except CancelledError as error:
            return error
        return self._future.exception()

    def _wait(self, timeout: float | None) -> None:
        # Callbacks instead would stay with the job for each future that someone polled it with.
        wait((self._future, self._given_up), timeout, return_when=FIRST_COMPLETED)
        if self.cancelled():
            raise CancelledError
        if not self._future.done():
            raise TimeoutError

    def __repr__(self) -> str:
        return f"CompletableFuture({self._future!r})"
