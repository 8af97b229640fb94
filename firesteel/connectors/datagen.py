"""DataGeneratorSource, which computes records from their index, and rate limits."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from firesteel.connectors.base import (
    Boundedness,
    ReaderContext,
    Source,
    SourceReader,
    SourceSplit,
    SplitEnumerator,
)
from firesteel.connectors.index_ranges import IndexRangeEnumerator, IndexRangeReader
from firesteel.stability import public_evolving
from firesteel.usercode.failures import is_failure, user_function_error

__all__ = ["DataGeneratorSource", "RateLimiter", "RateLimiterStrategy"]


@public_evolving
class RateLimiter(ABC):
    """Limits the records of a subtask. Not in PyFlink.

    >>> from firesteel.datastream.connectors.datagen import RateLimiterStrategy
    >>> limiter = RateLimiterStrategy.per_second(10).create_rate_limiter(parallelism=2)
    >>> limiter.acquire(5)
    1
    >>> limiter.delay() > 0
    True
    >>> limiter.give_back(1)
    >>> limiter.acquire(5)
    1
    """

    @abstractmethod
    def acquire(self, wanted: int) -> int:
        """Take permits for records.

        Args:
            wanted: The number of records.

        Returns:
            The number of records that may be emitted now.
        """

    @abstractmethod
    def give_back(self, unused: int) -> None:
        """Return permits that were not used.

        Args:
            unused: The number of permits.
        """

    @abstractmethod
    def delay(self) -> float:
        """Return the seconds until at least one record may be emitted."""


@public_evolving
class RateLimiterStrategy(ABC):
    """Creates the rate limiter of each subtask. Derive from it for a rule of your own.

    >>> from firesteel.datastream.connectors.datagen import DataGeneratorSource, RateLimiterStrategy
    >>> source = DataGeneratorSource(
    ...     lambda index: index, count=3, rate_limiter_strategy=RateLimiterStrategy.per_second(1000)
    ... )
    >>> stream = env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers")
    >>> list(stream.execute_and_collect())
    [0, 1, 2]
    """

    @abstractmethod
    @public_evolving
    def create_rate_limiter(self, parallelism: int) -> RateLimiter | None:
        """Create the limiter of a subtask. Not in PyFlink.

        Args:
            parallelism: The number of subtasks that share the rate.

        Returns:
            A limiter, or None for no limit.

        >>> from firesteel.datastream.connectors.datagen import RateLimiterStrategy
        >>> print(RateLimiterStrategy.no_op().create_rate_limiter(parallelism=2))
        None
        """

    @staticmethod
    def per_second(records_per_second: float) -> RateLimiterStrategy:
        """Return a limit on the records per second.

        Args:
            records_per_second: The rate of all subtasks together.

        Raises:
            ValueError: The rate is not positive.
        """
        return _PerSecond(records_per_second)

    @staticmethod
    def no_op() -> RateLimiterStrategy:
        """Return a strategy without a limit.

        >>> from firesteel.datastream.connectors.datagen import RateLimiterStrategy
        >>> print(RateLimiterStrategy.no_op().create_rate_limiter(parallelism=1))
        None
        """
        return _NoLimit()


@public_evolving
class DataGeneratorSource(Source):
    """Computes records from their index.

    The indexes are divided evenly among the subtasks. As in Flink, the source is bounded. A very
    large count makes it practically endless.

    Args:
        generator_function: A function from an index to a record. It must return the same record
            for the same index, because a failure repeats records.
        count: The number of records. The indexes are 0 to ``count - 1``.
        rate_limiter_strategy: A limit on the records per second. The default is no limit.
        type_info: The type of the records. The default is any Python object.

    >>> from firesteel.datastream.connectors.datagen import DataGeneratorSource
    >>> source = DataGeneratorSource(lambda index: f"user-{index % 2}", count=4)
    >>> stream = env.from_source(source, WatermarkStrategy.no_watermarks(), "users")
    >>> list(stream.execute_and_collect())
    ['user-0', 'user-1', 'user-0', 'user-1']
    """

    side_by_side = False

    def __init__(
        self,
        generator_function: Callable[[int], Any],
        count: int,
        rate_limiter_strategy: RateLimiterStrategy | None = None,
        type_info: Any = None,
    ) -> None:
        if not callable(generator_function):
            raise TypeError(
                "DataGeneratorSource needs a function from an index to a record, got "
                f"{type(generator_function).__qualname__}"
            )
        if count < 0:
            raise ValueError(f"DataGeneratorSource: count must not be negative, got {count}")
        self._generator_function = generator_function
        self._count = count
        self._strategy = rate_limiter_strategy or RateLimiterStrategy.no_op()
        self._type_info = type_info

    def get_boundedness(self) -> Boundedness:
        return Boundedness.BOUNDED

    def create_enumerator(self, parallelism: int, state: Any = None) -> SplitEnumerator:
        if isinstance(self._strategy, _NoLimit):
            return IndexRangeEnumerator(0, self._count, parallelism, state)
        return _RateLimitedEnumerator(0, self._count, parallelism, state)

    def create_reader(self, context: ReaderContext) -> SourceReader:
        limiter = self._strategy.create_rate_limiter(context.parallelism)
        if limiter is None:
            return _GeneratorReader(self._generator_function)
        return _RateLimitedReader(self._generator_function, limiter)

    def get_produced_type(self) -> Any:
        return self._type_info

    def __repr__(self) -> str:
        return f"DataGeneratorSource({self._count} records)"


class TokenBucket(RateLimiter):
    """A limiter whose permits grow with time, up to those of one second.

    A pause is therefore made up only in part. A new bucket holds one permit, so that a restart does
    not cause a burst.
    """

    def __init__(self, permits_per_second: float, clock: Callable[[], float]) -> None:
        self._rate = permits_per_second
        self._capacity = max(1.0, permits_per_second)
        self._clock = clock
        self._permits = 1.0
        self._updated = clock()

    def acquire(self, wanted: int) -> int:
        self._refill()
        granted = min(wanted, int(self._permits))
        self._permits -= granted
        return granted

    def give_back(self, unused: int) -> None:
        self._permits += unused

    def delay(self) -> float:
        self._refill()
        return max(0.0, (1.0 - self._permits) / self._rate)

    def _refill(self) -> None:
        now = self._clock()
        accrued = max(0.0, now - self._updated) * self._rate
        self._permits = min(self._capacity, self._permits + accrued)
        self._updated = now


@dataclass(frozen=True, slots=True)
class _PerSecond(RateLimiterStrategy):
    records_per_second: float

    def __post_init__(self) -> None:
        if not self.records_per_second > 0:
            raise ValueError(f"A rate must be positive, got {self.records_per_second}")

    def create_rate_limiter(self, parallelism: int) -> RateLimiter:
        return TokenBucket(self.records_per_second / parallelism, time.monotonic)


class _NoLimit(RateLimiterStrategy):
    def create_rate_limiter(self, parallelism: int) -> None:
        return None


class _RateLimitedEnumerator(IndexRangeEnumerator):
    def has_pending(self, splits: Sequence[SourceSplit]) -> bool | None:
        """Return None for unfinished splits: only the readers know if the rate allows a record now."""
        return None if super().has_pending(splits) else False


class _GeneratorReader(IndexRangeReader):
    def __init__(self, generator_function: Callable[[int], Any]) -> None:
        super().__init__()
        self._generator_function = generator_function

    def fetch(self, start: int, stop: int) -> list[Any]:
        generate = self._generator_function
        indexes = range(start, stop)
        iterator = iter(indexes)
        try:
            return [generate(index) for index in iterator]
        except BaseException as error:
            if not is_failure(error):
                raise
            raise user_function_error(error, "", generate, indexes, iterator) from error


class _RateLimitedReader(_GeneratorReader):
    def __init__(self, generator_function: Callable[[int], Any], limiter: RateLimiter) -> None:
        super().__init__(generator_function)
        self._limiter = limiter

    def read(self, limit: int) -> list[Any] | range:
        granted = self._limiter.acquire(limit)
        records = super().read(granted)
        self._limiter.give_back(granted - len(records))
        return records

    def next_read_delay(self) -> float:
        return max(super().next_read_delay(), self._limiter.delay())
