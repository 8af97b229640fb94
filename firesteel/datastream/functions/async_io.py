"""Asynchronous functions, and strategies to retry their requests."""

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
    """Decides which answers are not good enough. A predicate that is None never asks for a retry.

    >>> class OnEmpty(AsyncRetryPredicate):
    ...     def result_predicate(self):
    ...         return lambda results: not results
    ...     def exception_predicate(self):
    ...         return None
    >>> OnEmpty().result_predicate()([])
    True
    """

    @abstractmethod
    def result_predicate(self) -> ResultPredicate[OUT] | None:
        """Return a function of the list of results that returns True to try again, or None."""

    @abstractmethod
    def exception_predicate(self) -> ExceptionPredicate | None:
        """Return a function of the exception that returns True to try again, or None."""


class AsyncRetryStrategy(ABC, Generic[OUT]):
    """Decides how often to try again, and after which delay. Many requests ask it at once.

    >>> strategy = AsyncRetryStrategy.fixed_delay(
    ...     max_attempts=2,
    ...     backoff_time_millis=100,
    ...     result_predicate=None,
    ...     exception_predicate=lambda error: isinstance(error, ConnectionError),
    ... )
    >>> strategy.can_retry(2), strategy.can_retry(3)
    (True, False)
    >>> strategy.get_backoff_time_millis(1)
    100
    >>> strategy.get_retry_predicate().exception_predicate()(ConnectionError())
    True
    """

    @abstractmethod
    def can_retry(self, current_attempts: int) -> bool:
        """Return True if one more attempt is allowed.

        Args:
            current_attempts: The attempts so far, with the first one.
        """

    @abstractmethod
    def get_backoff_time_millis(self, current_attempts: int) -> int:
        """Return the delay before the next attempt, in milliseconds.

        Args:
            current_attempts: The attempts so far, with the first one.
        """

    @abstractmethod
    def get_retry_predicate(self) -> AsyncRetryPredicate[OUT]:
        """Return the predicate that decides which answers are not good enough."""

    @staticmethod
    def no_restart() -> AsyncRetryStrategy[Any]:
        """Return a strategy that never retries.

        >>> AsyncRetryStrategy.no_restart().can_retry(1)
        False
        """
        from firesteel.datastream.async_retry_strategies import NO_RETRY_STRATEGY

        return NO_RETRY_STRATEGY

    @staticmethod
    def fixed_delay(
        max_attempts: int,
        backoff_time_millis: int,
        result_predicate: ResultPredicate[Any] | None,
        exception_predicate: ExceptionPredicate | None,
    ) -> AsyncRetryStrategy[Any]:
        """Return a strategy with the same delay before each retry.

        Args:
            max_attempts: The number of retries.
            backoff_time_millis: The delay in milliseconds.
            result_predicate: Returns True for a list of results that is not good enough.
            exception_predicate: Returns True for an exception that allows a retry.
        """
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
        """Return a strategy with a growing delay.

        Args:
            max_attempts: The number of retries.
            initial_delay: The first delay in milliseconds.
            max_retry_delay: The longest delay in milliseconds.
            multiplier: The factor from one delay to the next.
            result_predicate: Returns True for a list of results that is not good enough.
            exception_predicate: Returns True for an exception that allows a retry.

        >>> strategy = AsyncRetryStrategy.exponential_backoff(5, 100, 1000, 2.0, None, lambda error: True)
        >>> [strategy.get_backoff_time_millis(attempts) for attempts in (1, 2, 3)]
        [100, 200, 400]
        """
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
    """Asks a service about each record, with many requests at the same time.

    All methods run in the thread of the event loop: ``async_invoke`` must await and never block.
    ``open`` and ``close`` may be coroutines, too; in PyFlink they may not.

    >>> import asyncio
    >>> class Price(AsyncFunction):
    ...     async def async_invoke(self, value):
    ...         await asyncio.sleep(0)  # ask the shop
    ...         return [(value, 3)]
    ...     def timeout(self, value):
    ...         return [(value, None)]
    >>> items = env.from_collection(["tea", "milk"])
    >>> prices = AsyncDataStream.ordered_wait(items, Price(), Time.seconds(5))
    >>> list(prices.execute_and_collect())
    [('tea', 3), ('milk', 3)]
    """

    @abstractmethod
    async def async_invoke(self, value: IN) -> list[OUT]:
        """Return the list of results of a record. It may be empty, but not None.

        Args:
            value: The record.
        """

    def timeout(self, value: IN) -> list[OUT]:
        """Return the results of a record whose time is up, or raise. By default the job fails.

        Args:
            value: The record.
        """
        raise TimeoutError(f"async_invoke did not answer in time for the record {shorten(value)}")


class AsyncFunctionDescriptor:
    """An AsyncFunction with the settings of its operator. ``AsyncDataStream`` makes it.

    Args:
        async_function: The function.
        timeout: The time for all attempts of a record.
        capacity: The number of records of a subtask that are in flight at most.
        async_retry_strategy: The retry strategy.
        output_mode: The order of the results.

    >>> AsyncFunctionDescriptor.OutputMode.ORDERED.name
    'ORDERED'
    """

    class OutputMode(Enum):
        """The order of the results: that of the records, or that of the answers."""

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
