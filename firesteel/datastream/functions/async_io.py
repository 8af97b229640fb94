"""One request to the outside world per record, many of them at once."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from enum import Enum
from typing import Any, Generic, TypeVar

from firesteel.datastream.functions.basic import Function
from firesteel.errors import shorten

OUT = TypeVar("OUT")

ResultPredicate = Callable[[list[OUT]], bool]
ExceptionPredicate = Callable[[Exception], bool]


class AsyncRetryPredicate(ABC, Generic[OUT]):
    """Which answers are not good enough. A predicate that is None never asks for a retry."""

    @abstractmethod
    def result_predicate(self) -> ResultPredicate[OUT] | None:
        """Return a function of the list of results that says whether to try again."""

    @abstractmethod
    def exception_predicate(self) -> ExceptionPredicate | None:
        """Return a function of the exception that says whether to try again."""


class AsyncRetryStrategy(ABC, Generic[OUT]):
    """How often to try again, and after which delay. It is asked by many requests at once."""

    @abstractmethod
    def can_retry(self, current_attempts: int) -> bool:
        """Whether there may be another attempt after so many, the first one included."""

    @abstractmethod
    def get_backoff_time_millis(self, current_attempts: int) -> int:
        """The delay before the next attempt."""

    @abstractmethod
    def get_retry_predicate(self) -> AsyncRetryPredicate[OUT]: ...

    @staticmethod
    def no_restart() -> AsyncRetryStrategy[Any]:
        """Every request is made once."""
        from firesteel.datastream.async_retry_strategies import NO_RETRY_STRATEGY

        return NO_RETRY_STRATEGY

    @staticmethod
    def fixed_delay(
        max_attempts: int,
        backoff_time_millis: int,
        result_predicate: ResultPredicate[Any] | None,
        exception_predicate: ExceptionPredicate | None,
    ) -> AsyncRetryStrategy[Any]:
        """Up to ``max_attempts`` retries, each after the same delay."""
        from firesteel.datastream.async_retry_strategies import FixedDelayRetryStrategy

        return FixedDelayRetryStrategy(
            max_attempts, backoff_time_millis, result_predicate, exception_predicate
        )

    @staticmethod
    def exponential_backoff(
        max_attempts: int,
        initial_delay: int,
        max_retry_delay: int,
        multiplier: float,
        result_predicate: ResultPredicate[Any] | None,
        exception_predicate: ExceptionPredicate | None,
    ) -> AsyncRetryStrategy[Any]:
        """Up to ``max_attempts`` retries; each waits ``multiplier`` times as long as the last."""
        from firesteel.datastream.async_retry_strategies import (
            ExponentialBackoffDelayRetryStrategy,
        )

        return ExponentialBackoffDelayRetryStrategy(
            max_attempts,
            initial_delay,
            max_retry_delay,
            multiplier,
            result_predicate,
            exception_predicate,
        )


IN = TypeVar("IN")


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
