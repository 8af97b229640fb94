"""Collected streams: the iterator of ``execute_and_collect``, and the buffer that fills it."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Any, Self

_CAPACITY = 1_000_000


class CollectBuffer:
    """A queue between the thread of the job and that of the program.

    A job that is ahead of its reader by more than ``capacity`` records waits in ``add``, so that the
    driver does not grow.
    """

    def __init__(self, capacity: int = _CAPACITY) -> None:
        self._capacity = capacity
        self._records: deque[Any] = deque()
        self._changed = threading.Condition()
        self._ended = False
        self._closed = False
        self._released = False
        self._error: BaseException | None = None

    def add(self, records: list[Any]) -> None:
        """Add records, called by the job. Records that come after ``close`` are dropped."""
        with self._changed:
            self._changed.wait_for(
                lambda: self._closed or self._released or len(self._records) < self._capacity
            )
            if self._closed:
                return
            self._records.extend(records)
            self._changed.notify_all()

    def release(self) -> None:
        """Called by a job that is being canceled: ``add`` waits for the reader no longer."""
        with self._changed:
            self._released = True
            self._changed.notify_all()

    def end(self, error: BaseException | None = None) -> None:
        """End the iterator when the job has ended. The reader gets the remaining records, then the error."""
        with self._changed:
            self._ended = True
            self._error = error
            self._changed.notify_all()

    def close(self) -> None:
        """Drop all records, now and later: the reader has stopped."""
        with self._changed:
            self._closed = True
            self._records.clear()
            self._changed.notify_all()

    def __iter__(self) -> Iterator[Any]:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._records or self._ended or self._closed)
                if not self._records:
                    break
                # All that is there in one go: one lock per epoch, not per record.
                available = list(self._records)
                self._records.clear()
                self._changed.notify_all()
            yield from available
        if self._error is not None and not self._closed:
            raise self._error


class CloseableIterator:
    """Iterates over the results of a job while it runs. Closing it cancels the job.

    >>> with env.from_collection([1, 2, 3]).execute_and_collect() as results:
    ...     for result in results:
    ...         print(result)
    ...         if result == 2:
    ...             break
    1
    2
    """

    def __init__(self, records: Iterator[Any], close: Callable[[], None] | None = None) -> None:
        self._records = records
        self._close = close

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Any:
        return next(self._records)

    def next(self) -> Any:
        """Return the next record.

        Raises:
            StopIteration: There are no more records.

        >>> results = env.from_collection([1]).execute_and_collect()
        >>> results.next()
        1
        """
        return next(self._records)

    def close(self) -> None:
        """Cancel the job if it still runs. A second call does nothing.

        >>> results = env.from_collection([1]).execute_and_collect()
        >>> results.close()
        >>> list(results)
        []
        """
        close, self._close = self._close, None
        self._records = iter(())
        if close is not None:
            close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc_val: BaseException | None,
        exc_tb: TracebackType | None,
    ) -> None:
        self.close()
