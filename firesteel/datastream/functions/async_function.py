"""One request to the outside world per record, many of them at once."""

from __future__ import annotations

from abc import abstractmethod
from enum import Enum
from typing import Any, Generic, TypeVar

from firesteel.datastream.functions.async_retry import AsyncRetryStrategy
from firesteel.datastream.functions.base import Function
from firesteel.errors import shorten

IN = TypeVar("IN")
OUT = TypeVar("OUT")


class AsyncFunction(Function, Generic[IN, OUT]):
    """Asks a service about each record, without waiting for one answer before the next question.

    All methods are called in one thread, in which the event loop runs: ``async_invoke`` must await
    and never block. ``open`` and ``close`` may be coroutines too (in PyFlink they may not).

    >>> import asyncio
    >>> class Price(AsyncFunction[str, tuple[str, int]]):
    ...     async def async_invoke(self, value):
    ...         await asyncio.sleep(0)  # ask the shop
    ...         return [(value, 3)]
    >>> asyncio.run(Price().async_invoke("tea"))
    [('tea', 3)]
    """

    @abstractmethod
    async def async_invoke(self, value: IN) -> list[OUT]:
        """Return the list of results for this record; it may be empty, but not None."""

    def timeout(self, value: IN) -> list[OUT]:
        """Called when the time for a record is up: return its results, or raise.

        Where this is not overridden, the job fails.
        """
        raise TimeoutError(f"async_invoke did not answer in time for the record {shorten(value)}")


class AsyncFunctionDescriptor:
    """An AsyncFunction with everything the operator must know about how to call it."""

    class OutputMode(Enum):
        ORDERED = 0
        UNORDERED = 1

    def __init__(
        self,
        async_function: AsyncFunction[Any, Any],
        timeout: Any,
        capacity: int,
        async_retry_strategy: AsyncRetryStrategy[Any],
        output_mode: OutputMode,
    ) -> None:
        self.async_function = async_function
        self.timeout = timeout
        self.capacity = capacity
        self.async_retry_strategy = async_retry_strategy
        self.output_mode = output_mode
