"""The iterator that execute_and_collect returns."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Any, Self

__all__ = ["CloseableIterator"]


class CloseableIterator:
    """Iterates over a job's results while the job runs; closing it ends the job.

    >>> with CloseableIterator(iter([1, 2]), close=lambda: print("closed")) as results:
    ...     list(results)
    [1, 2]
    closed
    """

    def __init__(self, records: Iterator[Any], close: Callable[[], None] | None = None) -> None:
        self._records = records
        self._close = close

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Any:
        return next(self._records)

    def next(self) -> Any:
        """The next record; StopIteration after the last one."""
        return next(self._records)

    def close(self) -> None:
        """End the job if it still runs. A second call does nothing."""
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
