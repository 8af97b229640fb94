"""The operators of windowed streams, with a key and without one."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar

from firesteel.common.typeinfo import TypeInformation
from firesteel.datastream.data_stream.function_arguments import (
    as_type,
    require_function_or_callable,
    require_instance,
)
from firesteel.datastream.data_stream.window_definition import WindowDefinition
from firesteel.datastream.functions import AggregateFunction, Function, ReduceFunction
from firesteel.graph.operator_specs import AggregatedRecords, AllRecords, ReducedRecords

if TYPE_CHECKING:
    from firesteel.datastream.data_stream.data_stream import DataStream

__all__ = ["WindowOperations"]


class WindowOperations(WindowDefinition):
    """Subclasses say which classes their window functions are of."""

    _plain: ClassVar[type[Function]]
    _processing: ClassVar[type[Function]]

    def reduce(
        self,
        reduce_function: Callable[[Any, Any], Any] | ReduceFunction,
        window_function: Function | None = None,
        output_type: TypeInformation | None = None,
    ) -> DataStream:
        """Combine the records of a window into one, as they come."""
        require_function_or_callable("reduce", reduce_function, ReduceFunction)
        self._require_window_function("reduce", window_function)
        input_type = self.get_input_type()
        result_type = (
            input_type
            if window_function is None and output_type is None
            else as_type("reduce", output_type)
        )
        contents = ReducedRecords(reduce_function, input_type)
        return self._windowed(
            contents, window_function, result_type, reduce_function, window_function
        )

    def aggregate(
        self,
        aggregate_function: AggregateFunction,
        window_function: Function | None = None,
        accumulator_type: TypeInformation | None = None,
        output_type: TypeInformation | None = None,
    ) -> DataStream:
        """Add the records of a window to an accumulator, as they come."""
        require_instance("aggregate", aggregate_function, AggregateFunction)
        self._require_window_function("aggregate", window_function)
        contents = AggregatedRecords(
            aggregate_function, as_type("aggregate", accumulator_type, "accumulator type")
        )
        return self._windowed(
            contents,
            window_function,
            as_type("aggregate", output_type),
            aggregate_function,
            window_function,
        )

    def apply(
        self,
        window_function: Function,
        output_type: TypeInformation | None = None,
    ) -> DataStream:
        """Call a function with all records of a window, which are kept until then."""
        require_instance("apply", window_function, self._plain)
        contents = AllRecords(self.get_input_type())
        return self._windowed(
            contents, window_function, as_type("apply", output_type), window_function
        )

    def process(
        self,
        process_window_function: Function,
        output_type: TypeInformation | None = None,
    ) -> DataStream:
        """As apply, with a context: times, state, side outputs."""
        require_instance("process on windows", process_window_function, self._processing)
        contents = AllRecords(self.get_input_type())
        return self._windowed(
            contents,
            process_window_function,
            as_type("process", output_type),
            process_window_function,
        )

    # Not in PyFlink, but in Flink.

    def sum(self, position_to_sum: int | str = 0) -> DataStream:
        """The sum of a field, in the first record of the window."""
        return self._aggregate_field("sum", position_to_sum)

    def min(self, position_to_min: int | str = 0) -> DataStream:
        """The smallest value of a field, in the first record of the window."""
        return self._aggregate_field("min", position_to_min)

    def max(self, position_to_max: int | str = 0) -> DataStream:
        """The largest value of a field, in the first record of the window."""
        return self._aggregate_field("max", position_to_max)

    def min_by(self, position_to_min_by: int | str = 0) -> DataStream:
        """The record with the smallest value of a field; the first one of equals."""
        return self._aggregate_field("min_by", position_to_min_by)

    def max_by(self, position_to_max_by: int | str = 0) -> DataStream:
        """The record with the largest value of a field; the first one of equals."""
        return self._aggregate_field("max_by", position_to_max_by)

    def _require_window_function(self, operation: str, window_function: object) -> None:
        if window_function is not None:
            require_instance(operation, window_function, self._plain, self._processing)
