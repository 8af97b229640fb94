"""Windowed streams, keyed and non-keyed, and the partitions of a bounded stream."""

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
    field_position,
    key_selector_of,
    require_function_or_callable,
    require_instance,
)
from firesteel.datastream.data_stream.stream_base import add_operator
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
    EventTimeTrigger,
    Evictor,
    GlobalWindows,
    MergingWindowAssigner,
    SlidingEventTimeWindows,
    Trigger,
    TumblingEventTimeWindows,
    WindowAssigner,
)
from firesteel.datastream.window.assigners import (
    CountSlidingWindowAssigner,
    CountTumblingWindowAssigner,
)
from firesteel.datastream.window.windows import to_millis
from firesteel.errors import InvalidProgramError, shorten
from firesteel.graph.column_aggregation import column_aggregation
from firesteel.graph.operator_specs import (
    AggregatedField,
    AggregatedRecords,
    AllRecords,
    FullPartitionSpec,
    ReducedRecords,
    WindowContents,
    WindowSpec,
)
from firesteel.stability import public_evolving

if TYPE_CHECKING:
    from firesteel.datastream.data_stream.data_stream import DataStream
    from firesteel.datastream.data_stream.keyed_stream import KeyedStream
    from firesteel.datastream.data_stream.stream_base import StreamBase
    from firesteel.datastream.stream_execution_environment import StreamExecutionEnvironment


class WindowSettings:
    """Settings shared by windowed streams and window joins. Each setter returns the same object."""

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
        """Set the trigger that decides when windows fire. Without it, the assigner's default trigger does.

        Args:
            trigger: The trigger.

        Raises:
            InvalidProgramError: The operator that follows raises it if the assigner merges windows and
                the trigger cannot merge.

        >>> numbers = env.from_collection([1, 2, 3, 4])
        >>> windows = numbers.window_all(GlobalWindows.create()).trigger(CountTrigger.of(2))
        >>> list(windows.reduce(lambda a, b: a + b).execute_and_collect())
        [3, 10]
        """
        require_instance("trigger", trigger, Trigger)
        self._window_trigger = trigger
        return self

    @public_evolving
    def evictor(self, evictor: Evictor) -> Self:
        """Set an evictor, which removes records from windows that fire. Not in PyFlink.

        The window then keeps all its records, also for ``reduce`` and ``aggregate``.

        Args:
            evictor: The evictor.

        >>> numbers = env.from_collection([1, 2, 3])
        >>> windows = numbers.window_all(CountTumblingWindowAssigner.of(3)).evictor(CountEvictor.of(2))
        >>> list(windows.reduce(lambda a, b: a + b).execute_and_collect())
        [5]
        """
        require_instance("evictor", evictor, Evictor)
        self._evictor = evictor
        return self

    def allowed_lateness(self, time_ms: int | Time | Duration) -> Self:
        """Keep windows for some time after their end, and fire them again for late records.

        Args:
            time_ms: Event time in milliseconds, or a Time or Duration. The default is 0.

        >>> from firesteel.testing import OperatorHarness
        >>> def sums(stream):
        ...     windows = stream.key_by(lambda _: 0).window(TumblingEventTimeWindows.of(Time.seconds(5)))
        ...     return windows.allowed_lateness(10_000).reduce(lambda a, b: a + b)
        >>> harness = OperatorHarness(sums)
        >>> harness.process_element(1, timestamp=1_000)
        >>> harness.process_watermark(5_000)
        >>> harness.process_element(2, timestamp=2_000)
        >>> harness.output
        [1, 3]
        """
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


class WindowOperations(WindowSettings):
    """Settings and operators of windowed streams."""

    # The classes that window functions may have.
    _plain: ClassVar[type[Function]]
    _processing: ClassVar[type[Function]]
    _is_parallel: ClassVar[bool] = True

    def __init__(
        self, keyed_stream: KeyedStream, window_assigner: WindowAssigner[Any, Any]
    ) -> None:
        super().__init__(keyed_stream.get_execution_environment(), window_assigner)
        self._keyed_stream = keyed_stream
        self._late_data_output_tag: OutputTag | None = None
        self._output_mode: str | None = None

    def get_execution_environment(self) -> StreamExecutionEnvironment:
        """Return the environment that the stream belongs to.

        >>> windows = env.from_collection([1]).window_all(GlobalWindows.create())
        >>> windows.get_execution_environment() is env
        True
        """
        return self._environment

    def get_input_type(self) -> TypeInformation:
        """Return the type of the records in the windows.

        >>> windows = env.from_collection([1], Types.INT()).window_all(GlobalWindows.create())
        >>> windows.get_input_type()
        Integer
        """
        return self._keyed_stream.get_type()

    def side_output_late_data(self, output_tag: OutputTag) -> Self:
        """Send records that come after the end of their window to a side output, instead of dropping them.

        Args:
            output_tag: The tag to pass to ``get_side_output`` of the result.

        >>> late = OutputTag("late")
        >>> from firesteel.testing import OperatorHarness
        >>> def sums(stream):
        ...     windows = stream.key_by(lambda _: 0).window(TumblingEventTimeWindows.of(Time.seconds(5)))
        ...     return windows.side_output_late_data(late).reduce(lambda a, b: a + b)
        >>> harness = OperatorHarness(sums)
        >>> harness.process_watermark(5_000)
        >>> harness.process_element(2, timestamp=2_000)
        >>> harness.side_output(late)
        [2]
        """
        require_instance("side_output_late_data", output_tag, OutputTag)
        self._late_data_output_tag = output_tag
        return self

    @public_evolving
    def output_mode(self, mode: str) -> Self:
        """Choose which results an aggregation emits, in Spark's words. Not in PyFlink.

        Args:
            mode: One of these:

                - ``append``: one result per key and window, once it is final;
                - ``update``: at each firing the results that changed, as ``((key, window), result)``, for
                  sinks that replace by key;
                - ``complete``: at each firing all results, as ``((key, window), result)``.

        >>> words = env.from_collection(["a", "b", "a", "b"])
        >>> windows = words.map(lambda word: (word, 1)).key_by(lambda pair: pair[0]).count_window(2)
        >>> for (key, window), result in windows.output_mode("update").sum(1).execute_and_collect():
        ...     print(key, window, result)
        a CountWindow(id=0) ('a', 2)
        b CountWindow(id=0) ('b', 2)
        """
        self._output_mode = check_output_mode(mode)
        return self

    # -- operators -----------------------------------------------------------------------------

    def reduce(
        self,
        reduce_function: Callable[[Any, Any], Any] | ReduceFunction,
        window_function: Function | None = None,
        output_type: TypeInformation | None = None,
    ) -> DataStream:
        """Combine the records of a window into one as they arrive.

        The window keeps only the result so far.

        Args:
            reduce_function: A callable or ReduceFunction of the result so far and a new record.
            window_function: Called with the one result when the window fires. A WindowFunction or
                ProcessWindowFunction; after ``window_all`` an AllWindowFunction or
                ProcessAllWindowFunction.
            output_type: The type of the results of ``window_function``.

        >>> numbers = env.from_collection([1, 2, 3, 4]).window_all(CountTumblingWindowAssigner.of(2))
        >>> list(numbers.reduce(lambda a, b: a + b).execute_and_collect())
        [3, 7]
        """
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
        """Add the records of a window to an accumulator as they arrive.

        The window keeps only the accumulator.

        Args:
            aggregate_function: An AggregateFunction.
            window_function: Called with the one result when the window fires, as for ``reduce``.
            accumulator_type: The type of the accumulator.
            output_type: The type of the results.

        >>> class Mean(AggregateFunction):
        ...     def create_accumulator(self):
        ...         return 0, 0
        ...     def add(self, value, accumulator):
        ...         return accumulator[0] + value, accumulator[1] + 1
        ...     def get_result(self, accumulator):
        ...         return accumulator[0] / accumulator[1]
        ...     def merge(self, acc_a, acc_b):
        ...         return acc_a[0] + acc_b[0], acc_a[1] + acc_b[1]
        >>> numbers = env.from_collection([1, 2, 3, 4]).window_all(CountTumblingWindowAssigner.of(2))
        >>> list(numbers.aggregate(Mean()).execute_and_collect())
        [1.5, 3.5]
        """
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
        """Call a function with all records of a window when it fires. The window keeps them until then.

        Args:
            window_function: A WindowFunction; after ``window_all`` an AllWindowFunction.
            output_type: The type of the results.

        >>> class Sort(AllWindowFunction):
        ...     def apply(self, window, inputs):
        ...         yield sorted(inputs)
        >>> numbers = env.from_collection([2, 1, 4, 3]).window_all(CountTumblingWindowAssigner.of(2))
        >>> list(numbers.apply(Sort()).execute_and_collect())
        [[1, 2], [3, 4]]
        """
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
        """Call a function with all records of a window when it fires, and with a context.

        The context has the window, times, state and side outputs.

        Args:
            process_window_function: A ProcessWindowFunction; after ``window_all`` a
                ProcessAllWindowFunction.
            output_type: The type of the results.

        >>> class Count(ProcessAllWindowFunction):
        ...     def process(self, context, elements):
        ...         yield context.window().id, len(list(elements))
        >>> numbers = env.from_collection([2, 1, 4, 3]).window_all(CountTumblingWindowAssigner.of(2))
        >>> list(numbers.process(Count()).execute_and_collect())
        [(0, 2), (1, 2)]
        """
        require_instance("process on windows", process_window_function, self._processing)
        contents = AllRecords(self.get_input_type())
        return self._windowed(
            contents,
            process_window_function,
            as_type("process", output_type),
            process_window_function,
        )

    @public_evolving
    def sum(self, position_to_sum: int | str = 0) -> DataStream:
        """Sum a field; the other fields are those of the first record of the window. Not in PyFlink.

        Args:
            position_to_sum: The position or the name of the field.

        >>> pairs = env.from_collection([("a", 1), ("b", 2)]).window_all(CountTumblingWindowAssigner.of(2))
        >>> list(pairs.sum(1).execute_and_collect())
        [('a', 3)]
        """
        return self._aggregate_field("sum", position_to_sum)

    @public_evolving
    def min(self, position_to_min: int | str = 0) -> DataStream:
        """Find the smallest value of a field; the other fields are the first record's. Not in PyFlink.

        Args:
            position_to_min: The position or the name of the field.

        >>> pairs = env.from_collection([("a", 2), ("b", 1)]).window_all(CountTumblingWindowAssigner.of(2))
        >>> list(pairs.min(1).execute_and_collect())
        [('a', 1)]
        """
        return self._aggregate_field("min", position_to_min)

    @public_evolving
    def max(self, position_to_max: int | str = 0) -> DataStream:
        """Find the largest value of a field; the other fields are the first record's. Not in PyFlink.

        Args:
            position_to_max: The position or the name of the field.

        >>> pairs = env.from_collection([("a", 1), ("b", 2)]).window_all(CountTumblingWindowAssigner.of(2))
        >>> list(pairs.max(1).execute_and_collect())
        [('a', 2)]
        """
        return self._aggregate_field("max", position_to_max)

    @public_evolving
    def min_by(self, position_to_min_by: int | str = 0) -> DataStream:
        """Find the record with the smallest value of a field; the first of equal ones. Not in PyFlink.

        Args:
            position_to_min_by: The position or the name of the field.

        >>> pairs = env.from_collection([("a", 2), ("b", 1)]).window_all(CountTumblingWindowAssigner.of(2))
        >>> list(pairs.min_by(1).execute_and_collect())
        [('b', 1)]
        """
        return self._aggregate_field("min_by", position_to_min_by)

    @public_evolving
    def max_by(self, position_to_max_by: int | str = 0) -> DataStream:
        """Find the record with the largest value of a field; the first of equal ones. Not in PyFlink.

        Args:
            position_to_max_by: The position or the name of the field.

        >>> pairs = env.from_collection([("a", 1), ("b", 2)]).window_all(CountTumblingWindowAssigner.of(2))
        >>> list(pairs.max_by(1).execute_and_collect())
        [('b', 2)]
        """
        return self._aggregate_field("max_by", position_to_max_by)

    def _require_window_function(self, operation: str, window_function: object) -> None:
        if window_function is not None:
            require_instance(operation, window_function, self._plain, self._processing)

    # -- helpers -------------------------------------------------------------------------------

    def _aggregate_field(self, kind: str, position: object) -> DataStream:
        contents = AggregatedField(kind, field_position(kind, position), self.get_input_type())
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
            columns=self._columns_of(contents, trigger),
        )
        if self._output_mode in (UPDATE, COMPLETE):
            # ((key, window), result)
            output_type = Types.PICKLED_BYTE_ARRAY()
        stream = _add_window_operator(self._keyed_stream, spec, output_type, *described)
        return stream if self._is_parallel else stream.force_non_parallel()

    def _columns_of(self, contents: WindowContents, trigger: Trigger[Any, Any]) -> Any:
        """Return the aggregation of columns, or the reason for which it works on rows."""
        assigner = self._window_assigner
        if type(assigner) not in (TumblingEventTimeWindows, SlidingEventTimeWindows):
            return "only tumbling and sliding windows of event time work on columns"
        assert isinstance(assigner, TumblingEventTimeWindows | SlidingEventTimeWindows)
        if type(trigger) is not EventTimeTrigger or assigner.is_staggered:
            return "its windows do not fire together"
        if self._evictor is not None or not isinstance(contents, AggregatedField):
            return "only sum, min and max work on columns"
        if self._output_mode not in (None, APPEND):
            return f"output mode {self._output_mode} works on rows"
        selector = self._keyed_stream.key_selector
        found = column_aggregation(
            contents.kind, contents.position, self.get_input_type(), selector
        )
        if isinstance(found, str) or assigner.slide == assigner.size:
            return found
        if assigner.slide > assigner.size or self._allowed_lateness or self._output_mode:
            return "its windows have gaps, allowed lateness or an output mode"
        return found.reason_for_rows_in_panes or found

    def _check(self, contents: WindowContents, window_function: Any) -> None:
        assigner, mode = self._window_assigner, self._output_mode
        if mode == APPEND and isinstance(assigner, _ENDLESS):
            raise InvalidProgramError(
                f"output_mode('append') waits until a window is final, but windows of {assigner} "
                f"are never final. Use time windows, or a different mode."
            )
        if mode in (UPDATE, COMPLETE) and (
            window_function is not None or not contents.is_aggregate
        ):
            raise InvalidProgramError(
                f"output_mode('{mode}') needs one result for each key and window: use reduce, "
                f"aggregate, sum, min, max, min_by or max_by without a window function."
            )


def _add_window_operator(
    stream: KeyedStream, spec: WindowSpec, output_type: TypeInformation, *described: object
) -> DataStream:
    """Add a window operator. Its description names the functions ``described``, without None."""
    names = [
        function if isinstance(function, str) else type(function).__name__
        for function in described
        if function is not None
    ]
    trigger = type(spec.trigger).__name__
    return add_operator(type(spec.assigner).__name__, spec, output_type, stream).set_description(
        f"Window({spec.assigner}, {trigger}, {', '.join(names)})"
    )


class WindowedStream(WindowOperations):
    """A keyed stream in windows: the result of ``key_by(...).window(...)``.

    Each key has windows of its own. Window functions are a WindowFunction or a ProcessWindowFunction.

    >>> clicks = env.from_collection([("ann", 1000), ("bob", 2000), ("ann", 3000), ("ann", 7000)])
    >>> strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(
    ...     lambda click, _: click[1]
    ... )
    >>> class Count(WindowFunction):
    ...     def apply(self, key, window, inputs):
    ...         yield key, window.start, len(list(inputs))
    >>> windows = (
    ...     clicks.assign_timestamps_and_watermarks(strategy)
    ...     .key_by(lambda click: click[0])
    ...     .window(TumblingEventTimeWindows.of(Time.seconds(5)))
    ... )
    >>> list(windows.apply(Count()).execute_and_collect())
    [('ann', 0, 2), ('bob', 0, 1), ('ann', 5000, 1)]
    """

    _plain = WindowFunction
    _processing = ProcessWindowFunction


class AllWindowedStream(WindowOperations):
    """A non-keyed stream in windows: the result of ``window_all(...)``.

    One subtask handles all windows. Window functions are an AllWindowFunction or a
    ProcessAllWindowFunction.

    >>> numbers = env.from_collection([1, 2, 3, 4])
    >>> windows = numbers.window_all(CountTumblingWindowAssigner.of(2))
    >>> list(windows.reduce(max).execute_and_collect())
    [2, 4]
    """

    _plain = AllWindowFunction
    _processing = ProcessAllWindowFunction
    _is_parallel = False

    def __init__(self, data_stream: DataStream, window_assigner: WindowAssigner[Any, Any]) -> None:
        super().__init__(data_stream.key_by(_one_key, Types.BYTE()), window_assigner)


def _one_key(_: Any) -> int:
    return 0


@public_evolving
class PartitionWindowedStream(ABC):
    """All records of a partition as one window, which ends with the input. Not in PyFlink.

    ``full_window_partition()`` returns it. A partition is a key of a keyed stream, or a subtask of a
    non-keyed one. It is Flink's Java class.

    >>> partition = env.from_collection([3, 1, 2]).full_window_partition()
    >>> list(partition.sort_partition(0).execute_and_collect())
    [1, 2, 3]
    """

    def __init__(self, stream: StreamBase) -> None:
        self._type = stream.get_type()

    def map_partition(
        self,
        map_partition_function: Callable[[Iterable[Any]], Iterable[Any]] | MapPartitionFunction,
        output_type: TypeInformation | None = None,
    ) -> DataStream:
        """Call a function once with all records of the partition, when the input has ended.

        Args:
            map_partition_function: A callable or MapPartitionFunction of the records, which returns or
                yields the results.
            output_type: The type of the results.

        >>> partition = env.from_collection([3, 1, 2]).full_window_partition()
        >>> list(partition.map_partition(lambda values: [sum(values)]).execute_and_collect())
        [6]
        """
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
        """Sort all records of the partition.

        Args:
            field: The position or name of a field, or a key selector.
            order: The direction.

        >>> words = env.from_collection(["ccc", "a", "bb"]).full_window_partition()
        >>> list(words.sort_partition(len, Order.DESCENDING).execute_and_collect())
        ['ccc', 'bb', 'a']
        """
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
        """Add the records to an accumulator as they arrive, and emit one result at the end of the input.

        Args:
            aggregate_function: An AggregateFunction.
            accumulator_type: The type of the accumulator.
            output_type: The type of the result.

        >>> class Count(AggregateFunction):
        ...     def create_accumulator(self):
        ...         return 0
        ...     def add(self, value, accumulator):
        ...         return accumulator + 1
        ...     def get_result(self, accumulator):
        ...         return accumulator
        ...     def merge(self, acc_a, acc_b):
        ...         return acc_a + acc_b
        >>> partition = env.from_collection([3, 1, 2]).full_window_partition()
        >>> list(partition.aggregate(Count()).execute_and_collect())
        [3]
        """
        require_instance("aggregate", aggregate_function, AggregateFunction)
        contents = AggregatedRecords(
            aggregate_function, as_type("aggregate", accumulator_type, "accumulator type")
        )
        result_type = as_type("aggregate", output_type)
        return self._applied("PartitionAggregate", contents, None, result_type)

    def reduce(self, reduce_function: Callable[[Any, Any], Any] | ReduceFunction) -> DataStream:
        """Combine the records as they arrive, and emit one result at the end of the input.

        Args:
            reduce_function: A callable or ReduceFunction of the result so far and a new record.

        >>> partition = env.from_collection([3, 1, 2]).full_window_partition()
        >>> list(partition.reduce(lambda a, b: a + b).execute_and_collect())
        [6]
        """
        require_function_or_callable("reduce", reduce_function, ReduceFunction)
        contents = ReducedRecords(reduce_function, self._type)
        return self._applied("PartitionReduce", contents, None, self._type)

    @abstractmethod
    def _applied(
        self, name: str, contents: WindowContents, function: Any, result_type: TypeInformation
    ) -> DataStream: ...


class NonKeyedPartitionWindowedStream(PartitionWindowedStream):
    """A partition is the part of the stream that a subtask has."""

    def __init__(self, stream: DataStream) -> None:
        super().__init__(stream)
        self._stream = stream

    def _applied(
        self, name: str, contents: WindowContents, function: Any, result_type: TypeInformation
    ) -> DataStream:
        spec = FullPartitionSpec(contents, function)
        results = add_operator(name, spec, result_type, self._stream)
        parallelism = self._stream.recorded.parallelism
        if len(self._stream.recorded.origins) == 1 and parallelism is not None:
            # Subtask i has what subtask i before it gives.
            results.set_parallelism(parallelism)
        return results


class KeyedPartitionWindowedStream(PartitionWindowedStream):
    """A partition is the part of the stream that a key has."""

    def __init__(self, stream: KeyedStream) -> None:
        super().__init__(stream)
        self._stream = stream

    def _applied(
        self, name: str, contents: WindowContents, function: Any, result_type: TypeInformation
    ) -> DataStream:
        assigner = GlobalWindows.create_with_end_of_stream_trigger()
        trigger = assigner.get_default_trigger(self._stream.get_execution_environment())
        spec = WindowSpec(assigner, trigger, contents, function)
        return _add_window_operator(self._stream, spec, result_type, name)
