"""Asynchronous requests on a stream."""

from __future__ import annotations

import inspect
from typing import Any

from firesteel.common.time import Time
from firesteel.common.typeinfo import TypeInformation
from firesteel.datastream.async_retry_strategies import NO_RETRY_STRATEGY
from firesteel.datastream.data_stream.arguments import ProgramTypeError, as_type, require_instance
from firesteel.datastream.data_stream.data_stream import DataStream
from firesteel.datastream.data_stream.stream_base import StreamBase, add_operator
from firesteel.datastream.functions import (
    AsyncFunction,
    AsyncFunctionDescriptor,
    AsyncRetryPredicate,
    AsyncRetryStrategy,
)
from firesteel.errors import InvalidProgramError, shorten
from firesteel.graph.operator_specs import AsyncWaitSpec

__all__ = ["AsyncDataStream"]

_Mode = AsyncFunctionDescriptor.OutputMode


class AsyncDataStream:
    """Applies an AsyncFunction to a stream, with many requests at the same time.

    Up to ``capacity`` records of a subtask are in flight. Ordered results come in the order of the
    records. Unordered results come as soon as they are there, but never overtake a watermark.
    ``timeout`` counts from the first attempt for a record, and bounds all its attempts; zero turns it
    off.

    >>> import asyncio
    >>> class Price(AsyncFunction):
    ...     async def async_invoke(self, value):
    ...         await asyncio.sleep(0)  # ask the shop
    ...         return [(value, len(value))]
    >>> items = env.from_collection(["tea", "milk"])
    >>> prices = AsyncDataStream.ordered_wait(items, Price(), Time.seconds(5))
    >>> list(prices.execute_and_collect())
    [('tea', 3), ('milk', 4)]
    """

    @staticmethod
    def ordered_wait(
        data_stream: StreamBase,
        async_function: AsyncFunction[Any, Any],
        timeout: Time,
        capacity: int = 100,
        output_type: TypeInformation | None = None,
    ) -> DataStream:
        """Emit results in the order of the records.

        Args:
            data_stream: The stream.
            async_function: The function.
            timeout: The time for a record. After it, ``AsyncFunction.timeout`` is called.
            capacity: The number of records of a subtask that are in flight at most.
            output_type: The type of the results.
        """
        return _wait(
            _Mode.ORDERED,
            data_stream,
            async_function,
            timeout,
            NO_RETRY_STRATEGY,
            capacity,
            output_type,
        )

    @staticmethod
    def ordered_wait_with_retry(
        data_stream: StreamBase,
        async_function: AsyncFunction[Any, Any],
        timeout: Time,
        async_retry_strategy: AsyncRetryStrategy[Any],
        capacity: int = 100,
        output_type: TypeInformation | None = None,
    ) -> DataStream:
        """Emit results in the order of the records, and repeat requests that fail.

        Args:
            data_stream: The stream.
            async_function: The function.
            timeout: The time for all attempts of a record. It must be positive.
            async_retry_strategy: Decides which requests are repeated, how often and when.
            capacity: The number of records of a subtask that are in flight at most.
            output_type: The type of the results.

        >>> class Flaky(AsyncFunction):
        ...     def open(self, runtime_context):
        ...         self.asked = set()
        ...     async def async_invoke(self, value):
        ...         if value not in self.asked:
        ...             self.asked.add(value)
        ...             raise ConnectionError
        ...         return [value.upper()]
        >>> retry = AsyncRetryStrategy.fixed_delay(3, 10, None, lambda error: True)
        >>> items = env.from_collection(["a", "b"])
        >>> answers = AsyncDataStream.ordered_wait_with_retry(items, Flaky(), Time.seconds(5), retry)
        >>> list(answers.execute_and_collect())
        ['A', 'B']
        """
        return _wait(
            _Mode.ORDERED,
            data_stream,
            async_function,
            timeout,
            async_retry_strategy,
            capacity,
            output_type,
        )

    @staticmethod
    def unordered_wait(
        data_stream: StreamBase,
        async_function: AsyncFunction[Any, Any],
        timeout: Time,
        capacity: int = 100,
        output_type: TypeInformation | None = None,
    ) -> DataStream:
        """Emit results as soon as they are there.

        Args:
            data_stream: The stream.
            async_function: The function.
            timeout: The time for a record. After it, ``AsyncFunction.timeout`` is called.
            capacity: The number of records of a subtask that are in flight at most.
            output_type: The type of the results.

        >>> class Upper(AsyncFunction):
        ...     async def async_invoke(self, value):
        ...         return [value.upper()]
        >>> items = env.from_collection(["a", "b"])
        >>> answers = AsyncDataStream.unordered_wait(items, Upper(), Time.seconds(5), capacity=10)
        >>> sorted(answers.execute_and_collect())
        ['A', 'B']
        """
        return _wait(
            _Mode.UNORDERED,
            data_stream,
            async_function,
            timeout,
            NO_RETRY_STRATEGY,
            capacity,
            output_type,
        )

    @staticmethod
    def unordered_wait_with_retry(
        data_stream: StreamBase,
        async_function: AsyncFunction[Any, Any],
        timeout: Time,
        async_retry_strategy: AsyncRetryStrategy[Any],
        capacity: int = 100,
        output_type: TypeInformation | None = None,
    ) -> DataStream:
        """Emit results as soon as they are there, and repeat requests that fail.

        Args:
            data_stream: The stream.
            async_function: The function.
            timeout: The time for all attempts of a record. It must be positive.
            async_retry_strategy: Decides which requests are repeated, how often and when.
            capacity: The number of records of a subtask that are in flight at most.
            output_type: The type of the results.

        >>> from firesteel.datastream.async_retry_predicates import empty_result_predicate
        >>> class Later(AsyncFunction):
        ...     def open(self, runtime_context):
        ...         self.asked = set()
        ...     async def async_invoke(self, value):
        ...         if value in self.asked:
        ...             return [value.upper()]
        ...         self.asked.add(value)
        ...         return []
        >>> retry = AsyncRetryStrategy.fixed_delay(3, 10, empty_result_predicate, None)
        >>> items = env.from_collection(["a", "b"])
        >>> answers = AsyncDataStream.unordered_wait_with_retry(items, Later(), Time.seconds(5), retry)
        >>> sorted(answers.execute_and_collect())
        ['A', 'B']
        """
        return _wait(
            _Mode.UNORDERED,
            data_stream,
            async_function,
            timeout,
            async_retry_strategy,
            capacity,
            output_type,
        )


def _wait(
    mode: AsyncFunctionDescriptor.OutputMode,
    data_stream: StreamBase,
    async_function: AsyncFunction[Any, Any],
    timeout: Time,
    strategy: AsyncRetryStrategy[Any],
    capacity: int,
    output_type: TypeInformation | None,
) -> DataStream:
    operation = f"{mode.name.lower()}_wait"
    if not isinstance(data_stream, StreamBase):
        raise ProgramTypeError(
            f"{operation} expects a DataStream or a KeyedStream, but got {shorten(data_stream)}."
        )
    descriptor = AsyncFunctionDescriptor(async_function, timeout, capacity, strategy, mode)
    _check_function(operation, async_function)
    _check_limits(operation, descriptor)
    return add_operator(
        "async wait operator",
        AsyncWaitSpec(descriptor),
        as_type(operation, output_type),
        data_stream,
    )


def _check_function(operation: str, function: Any) -> None:
    require_instance(operation, function, AsyncFunction)
    name = type(function).__qualname__
    if not inspect.iscoroutinefunction(function.async_invoke):
        raise InvalidProgramError(
            f"{operation}: {name}.async_invoke must be declared with 'async def'."
        )
    if inspect.iscoroutinefunction(function.timeout):
        raise InvalidProgramError(
            f"{operation}: {name}.timeout must be a regular method that returns immediately, not a "
            f"coroutine."
        )


def _check_limits(operation: str, descriptor: AsyncFunctionDescriptor) -> None:
    require_instance(operation, descriptor.timeout, Time, hint="For example Time.seconds(5).")
    capacity: Any = descriptor.capacity
    if not isinstance(capacity, int) or isinstance(capacity, bool) or capacity < 1:
        raise InvalidProgramError(
            f"{operation}: the capacity must be a whole number of at least 1, not {capacity!r}."
        )
    strategy = descriptor.async_retry_strategy
    require_instance(operation, strategy, AsyncRetryStrategy)
    if strategy is not NO_RETRY_STRATEGY and descriptor.timeout.to_milliseconds() <= 0:
        raise InvalidProgramError(
            f"{operation}: retries need a timeout, which limits all attempts for a record together."
        )
    require_instance(
        f"{operation}: get_retry_predicate() of {type(strategy).__qualname__}",
        strategy.get_retry_predicate(),
        AsyncRetryPredicate,
    )
