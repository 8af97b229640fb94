"""CompletableFuture of PyFlink, built on the standard library's Future."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, CancelledError, Future, wait
from threading import Lock
from typing import Any, Generic, TypeVar

from firesteel.stability import public_evolving

__all__ = ["CompletableFuture"]

T = TypeVar("T")


class CompletableFuture(Generic[T]):
    """A result that may arrive later.

    Methods of JobClient return one. ``result()`` waits for the value.

    >>> from concurrent.futures import Future
    >>> work = Future()
    >>> future = CompletableFuture(work)
    >>> future.done()
    False
    >>> work.set_result("file:///savepoints/savepoint-1")
    >>> future.result()
    'file:///savepoints/savepoint-1'
    >>> future.done(), future.cancelled(), future.exception()
    (True, False, None)
    """

    def __init__(self, future: Future[Any], convert: Callable[[Any], T] | None = None) -> None:
        """Wrap a future of the standard library.

        Args:
            future: The future that the work completes.
            convert: A function that turns the future's value into the value that callers see.
        """
        # The future is never canceled, because other callers may wait for it too.
        self._future = future
        self._convert = convert
        self._given_up: Future[None] = Future()
        self._canceling = Lock()

    @staticmethod
    @public_evolving
    def completed(value: T) -> CompletableFuture[T]:
        """Return a future that already has its result. Not in PyFlink.

        Args:
            value: The result.

        >>> CompletableFuture.completed(1).result()
        1
        """
        future: Future[T] = Future()
        future.set_result(value)
        return CompletableFuture(future)

    def cancel(self) -> bool:
        """Stop waiting for the result, here and in other threads.

        The work continues, and other futures for the same work are not affected. To end a job, call
        ``JobClient.cancel``.

        Returns:
            False if the result had already arrived.

        >>> from concurrent.futures import Future
        >>> future = CompletableFuture(Future())
        >>> future.cancel(), future.cancelled()
        (True, True)
        >>> CompletableFuture.completed(1).cancel()
        False
        """
        with self._canceling:
            if not self.done():
                self._given_up.set_result(None)
        return self.cancelled()

    def cancelled(self) -> bool:
        """Return True if ``cancel`` was called before the result arrived."""
        return self._given_up.done()

    def done(self) -> bool:
        """Return True if the result has arrived, the work failed, or the future was canceled."""
        return self.cancelled() or self._future.done()

    def result(self, timeout: float | None = None) -> T:
        """Wait for the result and return it.

        Args:
            timeout: Seconds to wait. None waits without a limit.

        Raises:
            TimeoutError: The result did not arrive in time.
            CancelledError: ``cancel`` was called.
            Exception: The error that the work raised.

        >>> from concurrent.futures import Future
        >>> CompletableFuture(Future()).result(timeout=0)
        Traceback (most recent call last):
        TimeoutError
        """
        self._wait(timeout)
        value = self._future.result()
        return value if self._convert is None else self._convert(value)

    def exception(self, timeout: float | None = None) -> BaseException | None:
        """Wait for the end of the work and return its error.

        Args:
            timeout: Seconds to wait. None waits without a limit.

        Returns:
            The exception of the work, or None if it succeeded.

        >>> from concurrent.futures import Future
        >>> work = Future()
        >>> work.set_exception(ValueError("no such directory"))
        >>> CompletableFuture(work).exception()
        ValueError('no such directory')
        """
        try:
            self._wait(timeout)
        except CancelledError as error:
            return error
        return self._future.exception()

    def _wait(self, timeout: float | None) -> None:
        # A callback per wait would stay with the job, also after a caller that polls has left.
        wait((self._future, self._given_up), timeout, return_when=FIRST_COMPLETED)
        if self.cancelled():
            raise CancelledError
        if not self._future.done():
            raise TimeoutError

    def __repr__(self) -> str:
        return f"CompletableFuture({self._future!r})"
