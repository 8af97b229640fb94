"""PartitionWindowedStream: all records of a subtask, or of a key, as one window that ends with the input."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from firesteel.common.typeinfo import TypeInformation
from firesteel.datastream.data_stream.function_arguments import (
    ProgramTypeError,
    as_type,
    key_selector_of,
    require_function_or_callable,
    require_instance,
)
from firesteel.datastream.functions import (
    AggregateFunction,
    KeySelector,
    MapPartitionFunction,
    ReduceFunction,
)
from firesteel.datastream.functions.sort_partition import SortPartition, field_of
from firesteel.datastream.order import Order
from firesteel.datastream.window import GlobalWindows
from firesteel.errors import shorten
from firesteel.graph.operator_specs import (
    AggregatedRecords,
    AllRecords,
    FullPartitionSpec,
    ReducedRecords,
    WindowContents,
)

if TYPE_CHECKING:
    from firesteel.datastream.data_stream.data_stream import DataStream
    from firesteel.datastream.data_stream.keyed_stream import KeyedStream
    from firesteel.datastream.data_stream.stream_base import StreamBase

__all__ = [
    "KeyedPartitionWindowedStream",
    "NonKeyedPartitionWindowedStream",
    "PartitionWindowedStream",
]


class PartitionWindowedStream(ABC):
    """What ``full_window_partition()`` gives. Flink's Java class, not in PyFlink."""

    def __init__(self, stream: StreamBase) -> None:
        self._type = stream.get_type()

    def map_partition(
        self,
        map_partition_function: Callable[[Iterable[Any]], Iterable[Any]] | MapPartitionFunction,
        output_type: TypeInformation | None = None,
    ) -> DataStream:
        """Call a function once, with all records of the partition, when the input has ended."""
        require_function_or_callable("map_partition", map_partition_function, MapPartitionFunction)
        result_type = as_type("map_partition", output_type)
        return self._applied(
            "MapPartition", AllRecords(self._type), map_partition_function, result_type
        )

    def sort_partition(
        self,
        field: int | str | Callable[[Any], Any] | KeySelector,
        order: Order = Order.ASCENDING,
    ) -> DataStream:
        """All records of the partition, sorted by a field or by what a key selector says."""
        if not isinstance(order, Order):
            raise ProgramTypeError(
                f"sort_partition: the order must be an Order, but it is {shorten(order)}."
            )
        descending = order is Order.DESCENDING
        if isinstance(field, int | str) and not isinstance(field, bool):
            sort = SortPartition(field_of(field), descending=descending)
        else:
            select, functions = key_selector_of("sort_partition", field)
            sort = SortPartition(select, functions, descending=descending)
        return self._applied("SortPartition", AllRecords(self._type), sort, self._type)

    def aggregate(
        self,
        aggregate_function: AggregateFunction,
        accumulator_type: TypeInformation | None = None,
        output_type: TypeInformation | None = None,
    ) -> DataStream:
        """Add the records to an accumulator as they come; one result when the input has ended."""
        require_instance("aggregate", aggregate_function, AggregateFunction)
        contents = AggregatedRecords(
            aggregate_function, as_type("aggregate", accumulator_type, "accumulator type")
        )
        result_type = as_type("aggregate", output_type)
        return self._applied("PartitionAggregate", contents, None, result_type)

    def reduce(self, reduce_function: Callable[[Any, Any], Any] | ReduceFunction) -> DataStream:
        """Combine the records as they come; one result when the input has ended."""
        require_function_or_callable("reduce", reduce_function, ReduceFunction)
        contents = ReducedRecords(reduce_function, self._type)
        return self._applied("PartitionReduce", contents, None, self._type)

    @abstractmethod
    def _applied(
        self, name: str, contents: WindowContents, function: Any, result_type: TypeInformation
    ) -> DataStream: ...


class NonKeyedPartitionWindowedStream(PartitionWindowedStream):
    """A partition is what a subtask of the stream has."""

    def __init__(self, stream: DataStream) -> None:
        super().__init__(stream)
        self._stream = stream

    def _applied(
        self, name: str, contents: WindowContents, function: Any, result_type: TypeInformation
    ) -> DataStream:
        results = self._stream._apply(name, FullPartitionSpec(contents, function), result_type)
        origins = self._stream._origins
        if len(origins) == 1:
            # Subtask i has what subtask i before it gives.
            results._operator(name).parallelism = origins[0].transformation.parallelism
        return results


class KeyedPartitionWindowedStream(PartitionWindowedStream):
    """A partition is what a key has."""

    def __init__(self, stream: KeyedStream) -> None:
        super().__init__(stream)
        self._stream = stream

    def _applied(
        self, name: str, contents: WindowContents, function: Any, result_type: TypeInformation
    ) -> DataStream:
        windowed = self._stream.window(GlobalWindows.create_with_end_of_stream_trigger())
        return windowed._windowed(contents, function, result_type, name)
