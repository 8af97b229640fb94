"""PyFlink's CompletableFuture, on top of the standard library's Future."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import CancelledError, Future
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
        self._future = future
        self._convert = convert

    @staticmethod
    def completed(value: T) -> CompletableFuture[T]:
        """A future whose result is there already."""
        future: Future[T] = Future()
        future.set_result(value)
        return CompletableFuture(future)

    def cancel(self) -> bool:
        """Try to cancel; False if it is too late."""
        return self._future.cancel()

    def cancelled(self) -> bool:
        return self._future.cancelled()

    def done(self) -> bool:
        return self._future.done()

    def result(self, timeout: float | None = None) -> T:
        """Wait for the result. Raises what the work raised, or TimeoutError."""
        value = self._future.result(timeout)
        return value if self._convert is None else self._convert(value)

    def exception(self, timeout: float | None = None) -> BaseException | None:
        """Wait for the end, and return the exception if there was one."""
        try:
            return self._future.exception(timeout)
        except CancelledError as error:
            return error

    def __repr__(self) -> str:
        return f"CompletableFuture({self._future!r})"
