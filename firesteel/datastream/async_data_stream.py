"""AsyncDataStream: applies an AsyncFunction to a stream."""

from __future__ import annotations

import inspect
from typing import Any

from firesteel.common.time import Time
from firesteel.common.typeinfo import TypeInformation
from firesteel.datastream.async_retry_strategies import NO_RETRY_STRATEGY
from firesteel.datastream.data_stream.arguments import ProgramTypeError, as_type, require_instance
from firesteel.datastream.data_stream.data_stream import DataStream
from firesteel.datastream.data_stream.stream_base import StreamBase
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
    """Up to ``capacity`` records of a subtask are with the function at the same time.

    Ordered: results come in the order of the input. Unordered: as they are ready, though never
    across a watermark. ``timeout`` counts from the first attempt for a record; zero means none.
    """

    @staticmethod
    def ordered_wait(
        data_stream: StreamBase,
        async_function: AsyncFunction[Any, Any],
        timeout: Time,
        capacity: int = 100,
        output_type: TypeInformation | None = None,
    ) -> DataStream:
        """Results in the order of their records."""
        return AsyncDataStream.ordered_wait_with_retry(
            data_stream, async_function, timeout, NO_RETRY_STRATEGY, capacity, output_type
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
        """As ordered_wait; requests that the strategy finds wanting are made again."""
        descriptor = AsyncFunctionDescriptor(
            async_function, timeout, capacity, async_retry_strategy, _Mode.ORDERED
        )
        return _wait("ordered_wait", data_stream, descriptor, output_type)

    @staticmethod
    def unordered_wait(
        data_stream: StreamBase,
        async_function: AsyncFunction[Any, Any],
        timeout: Time,
        capacity: int = 100,
        output_type: TypeInformation | None = None,
    ) -> DataStream:
        """Results as soon as they are there."""
        return AsyncDataStream.unordered_wait_with_retry(
            data_stream, async_function, timeout, NO_RETRY_STRATEGY, capacity, output_type
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
        """As unordered_wait; requests that the strategy finds wanting are made again."""
        descriptor = AsyncFunctionDescriptor(
            async_function, timeout, capacity, async_retry_strategy, _Mode.UNORDERED
        )
        return _wait("unordered_wait", data_stream, descriptor, output_type)


def _wait(
    operation: str,
    data_stream: StreamBase,
    descriptor: AsyncFunctionDescriptor,
    output_type: TypeInformation | None,
) -> DataStream:
    if not isinstance(data_stream, StreamBase):
        raise ProgramTypeError(
            f"{operation} expects a DataStream or a KeyedStream, but got {shorten(data_stream)}."
        )
    _check_function(operation, descriptor.async_function)
    _check_limits(operation, descriptor)
    return data_stream._apply(
        "async wait operator", AsyncWaitSpec(descriptor), as_type(operation, output_type)
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
            f"{operation}: {name}.timeout must be a plain method that answers at once, not a "
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
            f"{operation}: retries need a timeout, which bounds all attempts for a record together."
        )
    require_instance(
        f"{operation}: get_retry_predicate() of {type(strategy).__qualname__}",
        strategy.get_retry_predicate(),
        AsyncRetryPredicate,
    )
