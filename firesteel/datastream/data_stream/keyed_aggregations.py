"""The aggregations of keyed streams: reduce, fold, sum, min, max, min_by, max_by."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from firesteel.common.typeinfo import TypeInformation
from firesteel.datastream.data_stream.function_arguments import (
    ProgramTypeError,
    as_type,
    require_function_or_callable,
)
from firesteel.datastream.functions import FoldFunction, ReduceFunction
from firesteel.errors import shorten
from firesteel.graph.operator_specs import (
    AggregationSpec,
    FoldSpec,
    KeyedAggregationSpec,
    ReduceSpec,
)

if TYPE_CHECKING:
    from firesteel.datastream.data_stream.data_stream import DataStream

__all__ = ["KeyedAggregations"]


class KeyedAggregations(ABC):
    """What they combine belongs to one key."""

    @abstractmethod
    def get_type(self) -> TypeInformation:
        """The type of the records."""

    @abstractmethod
    def _aggregated(
        self, name: str, spec: KeyedAggregationSpec, result_type: TypeInformation
    ) -> DataStream:
        """The stream of results."""

    def reduce(self, func: Callable[[Any, Any], Any] | ReduceFunction) -> DataStream:
        """Combine each record with the last result of its key, and emit the new one."""
        require_function_or_callable("reduce", func, ReduceFunction)
        return self._aggregated("Reduce", ReduceSpec(func), self.get_type())

    def fold(
        self,
        initial_value: Any,
        func: Callable[[Any, Any], Any] | FoldFunction,
        output_type: TypeInformation | None = None,
    ) -> DataStream:
        """As reduce, from an initial value that may be of another type. Not in PyFlink."""
        require_function_or_callable("fold", func, FoldFunction)
        return self._aggregated("Fold", FoldSpec(initial_value, func), as_type("fold", output_type))

    def sum(self, position_to_sum: int | str = 0) -> DataStream:
        """The running sum of a field, in the first record of the key."""
        return self._aggregate("sum", position_to_sum)

    def min(self, position_to_min: int | str = 0) -> DataStream:
        """The smallest value of a field so far, in the first record of the key."""
        return self._aggregate("min", position_to_min)

    def max(self, position_to_max: int | str = 0) -> DataStream:
        """The largest value of a field so far, in the first record of the key."""
        return self._aggregate("max", position_to_max)

    def min_by(self, position_to_min_by: int | str = 0) -> DataStream:
        """The record with the smallest value of a field so far; the first one of equals."""
        return self._aggregate("min_by", position_to_min_by)

    def max_by(self, position_to_max_by: int | str = 0) -> DataStream:
        """The record with the largest value of a field so far; the first one of equals."""
        return self._aggregate("max_by", position_to_max_by)

    def _aggregate(self, kind: str, position: object) -> DataStream:
        if not isinstance(position, int | str) or isinstance(position, bool):
            raise ProgramTypeError(
                f"{kind}: the field must be an int (its position) or a str (its name), but it is "
                f"{shorten(position)}."
            )
        return self._aggregated("Reduce", AggregationSpec(kind, position), self.get_type())
