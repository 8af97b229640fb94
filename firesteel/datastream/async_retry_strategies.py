"""Retry strategies of asynchronous requests."""

from __future__ import annotations

from typing import Any, Generic, TypeVar

from firesteel.datastream.functions.async_io import (
    AsyncRetryPredicate,
    AsyncRetryStrategy,
    ExceptionPredicate,
    ResultPredicate,
)
from firesteel.errors import InvalidProgramError

__all__ = [
    "NO_RETRY_STRATEGY",
    "ExponentialBackoffDelayRetryStrategy",
    "FixedDelayRetryStrategy",
    "NoRetryStrategy",
    "RetryPredicate",
]

OUT = TypeVar("OUT")


class RetryPredicate(AsyncRetryPredicate[OUT], Generic[OUT]):
    """Two predicates as one object."""

    def __init__(
        self,
        result_predicate: ResultPredicate[OUT] | None,
        exception_predicate: ExceptionPredicate | None,
    ) -> None:
        self._result_predicate = result_predicate
        self._exception_predicate = exception_predicate

    def result_predicate(self) -> ResultPredicate[OUT] | None:
        return self._result_predicate

    def exception_predicate(self) -> ExceptionPredicate | None:
        return self._exception_predicate


class NoRetryStrategy(AsyncRetryStrategy[OUT], Generic[OUT]):
    """Makes each request once.

    >>> NoRetryStrategy().can_retry(1)
    False
    """

    def can_retry(self, current_attempts: int) -> bool:
        return False

    def get_backoff_time_millis(self, current_attempts: int) -> int:
        return -1

    def get_retry_predicate(self) -> AsyncRetryPredicate[OUT]:
        return RetryPredicate(None, None)


class FixedDelayRetryStrategy(AsyncRetryStrategy[OUT], Generic[OUT]):
    """Retries after the same delay each time.

    Args:
        max_attempts: The number of retries.
        backoff_time_millis: The delay in milliseconds.
        result_predicate: Returns True for a list of results that is not good enough.
        exception_predicate: Returns True for an exception that allows a retry.

    >>> strategy = FixedDelayRetryStrategy(2, 100, None, lambda error: True)
    >>> [strategy.can_retry(attempts) for attempts in (1, 2, 3)]
    [True, True, False]
    """

    def __init__(
        self,
        max_attempts: int,
        backoff_time_millis: int,
        result_predicate: ResultPredicate[OUT] | None,
        exception_predicate: ExceptionPredicate | None,
    ) -> None:
        _require_positive(max_attempts=max_attempts, backoff_time_millis=backoff_time_millis)
        self._max_attempts = max_attempts
        self._backoff_time_millis = backoff_time_millis
        self._predicate = RetryPredicate(result_predicate, exception_predicate)

    def can_retry(self, current_attempts: int) -> bool:
        return current_attempts <= self._max_attempts

    def get_backoff_time_millis(self, current_attempts: int) -> int:
        return self._backoff_time_millis

    def get_retry_predicate(self) -> AsyncRetryPredicate[OUT]:
        return self._predicate


class ExponentialBackoffDelayRetryStrategy(AsyncRetryStrategy[OUT], Generic[OUT]):
    """Retries after a growing delay.

    The delay follows from the number of attempts alone: requests that fail at the same time do not
    lengthen each other's delays.

    Args:
        max_attempts: The number of retries.
        initial_delay: The first delay in milliseconds.
        max_retry_delay: The longest delay in milliseconds.
        multiplier: The factor from one delay to the next.
        result_predicate: Returns True for a list of results that is not good enough.
        exception_predicate: Returns True for an exception that allows a retry.

    >>> strategy = ExponentialBackoffDelayRetryStrategy(9, 100, 1000, 2.0, None, None)
    >>> [strategy.get_backoff_time_millis(attempts) for attempts in (1, 2, 3, 4, 5, 6)]
    [100, 200, 400, 800, 1000, 1000]
    """

    def __init__(
        self,
        max_attempts: int,
        initial_delay: int,
        max_retry_delay: int,
        multiplier: float,
        result_predicate: ResultPredicate[OUT] | None,
        exception_predicate: ExceptionPredicate | None,
    ) -> None:
        _require_positive(
            max_attempts=max_attempts,
            initial_delay=initial_delay,
            max_retry_delay=max_retry_delay,
            multiplier=multiplier,
        )
        self._max_attempts = max_attempts
        self._initial_delay = initial_delay
        self._max_retry_delay = max_retry_delay
        self._multiplier = multiplier
        self._predicate = RetryPredicate(result_predicate, exception_predicate)

    def can_retry(self, current_attempts: int) -> bool:
        return current_attempts <= self._max_attempts

    def get_backoff_time_millis(self, current_attempts: int) -> int:
        delay = self._initial_delay
        for _ in range(1, current_attempts):
            longer = int(min(delay * self._multiplier, self._max_retry_delay))
            if longer == delay:
                break
            delay = longer
        return delay

    def get_retry_predicate(self) -> AsyncRetryPredicate[OUT]:
        return self._predicate


def _require_positive(**settings: float) -> None:
    for name, value in settings.items():
        if not value > 0:
            raise InvalidProgramError(f"{name} must be greater than zero, not {value!r}.")


NO_RETRY_STRATEGY: AsyncRetryStrategy[Any] = NoRetryStrategy()
