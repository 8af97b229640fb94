"""WindowedStream: a keyed stream cut into windows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, ClassVar, Self

from firesteel.common.time import Duration, Time
from firesteel.common.typeinfo import TypeInformation, Types
from firesteel.datastream.data_stream.arguments import (
    APPEND,
    COMPLETE,
    UPDATE,
    ProgramTypeError,
    as_type,
    check_output_mode,
    key_selector_of,
    require_function_or_callable,
    require_instance,
)
from firesteel.datastream.functions import (
    AggregateFunction,
    AllWindowFunction,
    Function,
    KeySelector,
    MapPartitionFunction,
    ProcessAllWindowFunction,
    ProcessWindowFunction,
    ReduceFunction,
    WindowFunction,
)
from firesteel.datastream.functions.basic import SortPartition, field_of
from firesteel.datastream.order import Order
from firesteel.datastream.output_tag import OutputTag
from firesteel.datastream.window import (
    Evictor,
    GlobalWindows,
    MergingWindowAssigner,
    Trigger,
    WindowAssigner,
)
from firesteel.datastream.window.assigners import (
    CountSlidingWindowAssigner,
    CountTumblingWindowAssigner,
)
from firesteel.datastream.window.windows import to_millis
from firesteel.errors import InvalidProgramError, shorten
from firesteel.graph.operator_specs import (
    AggregatedField,
    AggregatedRecords,
    AllRecords,
    FullPartitionSpec,
    ReducedRecords,
    WindowContents,
    WindowSpec,
)
from firesteel.graph.transformations import Transformation

if TYPE_CHECKING:
    from firesteel.datastream.data_stream.data_stream import DataStream
    from firesteel.datastream.data_stream.keyed_stream import KeyedStream
    from firesteel.datastream.data_stream.stream_base import StreamBase
    from firesteel.datastream.stream_execution_environment import StreamExecutionEnvironment


class WindowSettings:
    """Setters give the same object back."""

    def __init__(
        self, environment: StreamExecutionEnvironment, window_assigner: WindowAssigner[Any, Any]
    ) -> None:
        require_instance("window", window_assigner, WindowAssigner)
        self._environment = environment
        self._window_assigner = window_assigner
        self._allowed_lateness = 0
        self._window_trigger: Trigger[Any, Any] | None = None
        self._evictor: Evictor | None = None

    def trigger(self, trigger: Trigger[Any, Any]) -> Self:
        """Say when windows fire; otherwise the assigner's default trigger does."""
        require_instance("trigger", trigger, Trigger)
        self._window_trigger = trigger
        return self

    def evictor(self, evictor: Evictor) -> Self:
        """Let records leave windows that fire. All records are kept then. Not in PyFlink."""
        require_instance("evictor", evictor, Evictor)
        self._evictor = evictor
        return self

    def allowed_lateness(self, time_ms: int | Time | Duration) -> Self:
        """How long (in event time) a window is kept after its end, for late records."""
        lateness = (
            to_millis(time_ms, "The allowed lateness")
            if isinstance(time_ms, Time | Duration)
            else time_ms
        )
        if type(lateness) is not int or lateness < 0:
            raise ProgramTypeError(
                f"allowed_lateness expects milliseconds, at least 0, but got {shorten(time_ms)}."
            )
        self._allowed_lateness = lateness
        return self

    def _chosen_trigger(self) -> Trigger[Any, Any]:
        assigner, trigger = self._window_assigner, self._window_trigger
        if trigger is None:
            trigger = assigner.get_default_trigger(self._environment)
        if isinstance(assigner, MergingWindowAssigner) and not trigger.can_merge():
            raise InvalidProgramError(
                f"{assigner} merges windows, but {trigger} cannot: its can_merge() is False."
            )
        return trigger


# Windows that never become final by themselves.
_ENDLESS = (GlobalWindows, CountTumblingWindowAssigner, CountSlidingWindowAssigner)


class WindowDefinition(WindowSettings):
    """The operators of subclasses make a stream of it."""

    def __init__(
        self, keyed_stream: KeyedStream, window_assigner: WindowAssigner[Any, Any]
    ) -> None:
        super().__init__(keyed_stream.get_execution_environment(), window_assigner)
        self._keyed_stream = keyed_stream
        self._late_data_output_tag: OutputTag | None = None
        self._output_mode: str | None = None

    def get_execution_environment(self) -> StreamExecutionEnvironment:
        return self._environment

    def get_input_type(self) -> TypeInformation:
        """The type of the records that fall into windows."""
        return self._keyed_stream.get_type()

    def side_output_late_data(self, output_tag: OutputTag) -> Self:
        """Send records that are too late to a side output, instead of dropping them."""
        require_instance("side_output_late_data", output_tag, OutputTag)
        self._late_data_output_tag = output_tag
        return self

    def output_mode(self, mode: str) -> Self:
        """Choose which results an aggregation emits, in Spark's words. Not in PyFlink.

        - ``append``: one result of each key and window, once it is final;
        - ``update``: at each firing what has changed, as ``((key, window), result)``, for sinks
          that replace by key;
        - ``complete``: at each firing the whole table of results, as ``((key, window), result)``.
        """
        self._output_mode = check_output_mode(mode)
        return self

    # -- helpers -------------------------------------------------------------------------------

    def _aggregate_field(self, kind: str, position: object) -> DataStream:
        if not isinstance(position, int | str) or isinstance(position, bool):
            raise ProgramTypeError(
                f"{kind}: the field must be an int (its position) or a str (its name), but it is "
                f"{shorten(position)}."
            )
        contents = AggregatedField(kind, position, self.get_input_type())
        return self._windowed(contents, None, self.get_input_type(), kind)

    def _windowed(
        self,
        contents: WindowContents,
        window_function: Any,
        output_type: TypeInformation,
        *described: object,
    ) -> DataStream:
        assigner, trigger = self._window_assigner, self._chosen_trigger()
        self._check(contents, window_function)
        tag = self._late_data_output_tag
        spec = WindowSpec(
            assigner=assigner,
            trigger=trigger,
            contents=contents,
            window_function=window_function,
            evictor=self._evictor,
            allowed_lateness=self._allowed_lateness,
            late_tag=None if tag is None else tag.tag_id,
            output_mode=self._output_mode,
        )
        name = type(assigner).__name__
        functions = ", ".join(_name(function) for function in described if function is not None)
        if self._output_mode in (UPDATE, COMPLETE):
            # ((key, window), result)
            output_type = Types.PICKLED_BYTE_ARRAY()
        stream = self._keyed_stream._apply(name, spec, output_type)
        stream.set_description(f"Window({assigner}, {type(trigger).__name__}, {functions})")
        self._finish(stream._operator("window"))
        return stream

    def _finish(self, operator: Transformation) -> None:
        """What else is to be said about the operator."""

    def _check(self, contents: WindowContents, window_function: Any) -> None:
        assigner, mode = self._window_assigner, self._output_mode
        if mode == APPEND and isinstance(assigner, _ENDLESS):
            raise InvalidProgramError(
                f"output_mode('append') waits until a window is final, which one of {assigner} "
                f"never is. Use time windows, or another mode."
            )
        if mode in (UPDATE, COMPLETE) and (
            window_function is not None or not contents.is_aggregate
        ):
            raise InvalidProgramError(
                f"output_mode('{mode}') needs one result for each key and window: use reduce, "
                f"aggregate, sum, min, max, min_by or max_by without a window function."
            )


def _name(function: object) -> str:
    return function if isinstance(function, str) else type(function).__name__


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


class WindowedStream(WindowOperations):
    """What ``key_by(...).window(...)`` gives. Windows of different keys know nothing of each other.

    Its window functions are a WindowFunction or a ProcessWindowFunction.
    """

    _plain = WindowFunction
    _processing = ProcessWindowFunction

    def __init__(
        self, keyed_stream: KeyedStream, window_assigner: WindowAssigner[Any, Any]
    ) -> None:
        super().__init__(keyed_stream, window_assigner)


class AllWindowedStream(WindowOperations):
    """What ``window_all`` gives: windows over all records, whatever their key.

    Its window functions are an AllWindowFunction or a ProcessAllWindowFunction.
    """

    _plain = AllWindowFunction
    _processing = ProcessAllWindowFunction

    def __init__(self, data_stream: DataStream, window_assigner: WindowAssigner[Any, Any]) -> None:
        super().__init__(data_stream.key_by(_one_key, Types.BYTE()), window_assigner)

    def _finish(self, operator: Transformation) -> None:
        operator.parallelism = operator.max_parallelism = 1
        operator.non_parallel = True


def _one_key(_: Any) -> int:
    return 0


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
