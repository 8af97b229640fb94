"""Keyed streams: their operators keep state per key."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NoReturn

from firesteel.common.expressions import Expression
from firesteel.common.typeinfo import TypeInformation, Types
from firesteel.datastream.data_stream.arguments import (
    APPEND,
    as_type,
    check_output_mode,
    field_position,
    require_function_or_callable,
    require_instance,
)
from firesteel.datastream.data_stream.joins import IntervalJoin
from firesteel.datastream.data_stream.stream_base import (
    StreamBase,
    add_operator,
    check_same_environment,
)
from firesteel.datastream.data_stream.windowed_stream import (
    KeyedPartitionWindowedStream,
    WindowedStream,
)
from firesteel.datastream.functions import (
    FoldFunction,
    KeyedProcessFunction,
    KeySelector,
    ReduceFunction,
)
from firesteel.datastream.window import (
    CountSlidingWindowAssigner,
    CountTumblingWindowAssigner,
    WindowAssigner,
)
from firesteel.errors import InvalidProgramError
from firesteel.graph.column_aggregation import column_aggregation
from firesteel.graph.operator_specs import (
    AggregationSpec,
    FoldSpec,
    KeyedAggregationSpec,
    ProcessSpec,
    ReduceSpec,
)
from firesteel.graph.partitioning import Partitioning
from firesteel.stability import public_evolving

if TYPE_CHECKING:
    from firesteel.datastream.data_stream.data_stream import DataStream
    from firesteel.datastream.data_stream.windowed_stream import AllWindowedStream


class KeyedAggregations(ABC):
    """Aggregations of the records of a key."""

    @abstractmethod
    def get_type(self) -> TypeInformation:
        """Return the type of the records."""

    @abstractmethod
    def _aggregated(
        self, name: str, spec: KeyedAggregationSpec, result_type: TypeInformation
    ) -> DataStream:
        """Return the stream of results."""

    def reduce(self, func: Callable[[Any, Any], Any] | ReduceFunction) -> DataStream:
        """Combine each record with the last result of its key, and emit the new result.

        Args:
            func: A callable or ReduceFunction of the last result and the record. The first record of a
                key is its first result.

        >>> numbers = env.from_collection([1, 2, 3, 4]).key_by(lambda number: number % 2)
        >>> list(numbers.reduce(lambda total, number: total + number).execute_and_collect())
        [1, 2, 4, 6]
        """
        require_function_or_callable("reduce", func, ReduceFunction)
        return self._aggregated("Reduce", ReduceSpec(func), self.get_type())

    @public_evolving
    def fold(
        self,
        initial_value: Any,
        func: Callable[[Any, Any], Any] | FoldFunction,
        output_type: TypeInformation | None = None,
    ) -> DataStream:
        """Combine each record with the last result of its key, from an initial value. Not in PyFlink.

        Args:
            initial_value: The first result of each key. It may be of a different type.
            func: A callable or FoldFunction of the last result and the record.
            output_type: The type of the results.

        >>> words = env.from_collection(["a", "b", "a"]).key_by(lambda word: word)
        >>> list(words.fold(0, lambda count, _: count + 1).execute_and_collect())
        [1, 1, 2]
        """
        require_function_or_callable("fold", func, FoldFunction)
        return self._aggregated("Fold", FoldSpec(initial_value, func), as_type("fold", output_type))

    def sum(self, position_to_sum: int | str = 0) -> DataStream:
        """Emit the running sum of a field; the other fields are those of the key's first record.

        Args:
            position_to_sum: The position or the name of the field.

        >>> pairs = env.from_collection([("a", 1), ("b", 5), ("a", 2)]).key_by(lambda pair: pair[0])
        >>> list(pairs.sum(1).execute_and_collect())
        [('a', 1), ('b', 5), ('a', 3)]
        """
        return self._aggregate("sum", position_to_sum)

    def min(self, position_to_min: int | str = 0) -> DataStream:
        """Emit the smallest value of a field so far; the other fields are those of the key's first record.

        Args:
            position_to_min: The position or the name of the field.

        >>> pairs = env.from_collection([("a", 2, "x"), ("a", 1, "y")]).key_by(lambda pair: pair[0])
        >>> list(pairs.min(1).execute_and_collect())
        [('a', 2, 'x'), ('a', 1, 'x')]
        """
        return self._aggregate("min", position_to_min)

    def max(self, position_to_max: int | str = 0) -> DataStream:
        """Emit the largest value of a field so far; the other fields are those of the key's first record.

        Args:
            position_to_max: The position or the name of the field.

        >>> pairs = env.from_collection([("a", 1, "x"), ("a", 2, "y")]).key_by(lambda pair: pair[0])
        >>> list(pairs.max(1).execute_and_collect())
        [('a', 1, 'x'), ('a', 2, 'x')]
        """
        return self._aggregate("max", position_to_max)

    def min_by(self, position_to_min_by: int | str = 0) -> DataStream:
        """Emit the record with the smallest value of a field so far; the first of equal ones.

        Args:
            position_to_min_by: The position or the name of the field.

        >>> pairs = env.from_collection([("a", 2, "x"), ("a", 1, "y")]).key_by(lambda pair: pair[0])
        >>> list(pairs.min_by(1).execute_and_collect())
        [('a', 2, 'x'), ('a', 1, 'y')]
        """
        return self._aggregate("min_by", position_to_min_by)

    def max_by(self, position_to_max_by: int | str = 0) -> DataStream:
        """Emit the record with the largest value of a field so far; the first of equal ones.

        Args:
            position_to_max_by: The position or the name of the field.

        >>> pairs = env.from_collection([("a", 1, "x"), ("a", 2, "y")]).key_by(lambda pair: pair[0])
        >>> list(pairs.max_by(1).execute_and_collect())
        [('a', 1, 'x'), ('a', 2, 'y')]
        """
        return self._aggregate("max_by", position_to_max_by)

    def _aggregate(self, kind: str, position: object) -> DataStream:
        field = field_position(kind, position)
        columns = self._column_aggregation(kind, field)
        spec = AggregationSpec(kind, field, columns=columns)
        return self._aggregated("Reduce", spec, self.get_type())

    def _column_aggregation(self, kind: str, field: int | str) -> Any:
        """Return the aggregation of columns, or the reason for which it works on rows."""
        return "it works on rows"


_PARTITIONING = "Cannot override partitioning for KeyedStream: key_by() decides where records go."
_SETTING = "is not supported for KeyedStream: call it on the stream that an operator returns."

# Methods of a DataStream that a KeyedStream must not have, with the error for each.
_NOT_ON_A_KEYED_STREAM = {
    **dict.fromkeys(
        (
            "broadcast",
            "forward",
            "global_",
            "partition_custom",
            "rebalance",
            "rescale",
            "shuffle",
        ),
        _PARTITIONING,
    ),
    **{
        name: f"{name}() {_SETTING}"
        for name in (
            "disable_chaining",
            "force_non_parallel",
            "get_name",
            "name",
            "set_buffer_timeout",
            "set_description",
            "set_max_parallelism",
            "set_parallelism",
            "set_uid_hash",
            "slot_sharing_group",
            "start_new_chain",
            "uid",
        )
    },
    "cache": "Cache for KeyedStream is not supported.",
    "get_side_output": "Call get_side_output() on the operator that emits to the tag, not on a KeyedStream.",
    "split": "Call split() before key_by(), not on a KeyedStream.",
}


class KeyedStreamError(InvalidProgramError, AttributeError):
    """Raised for a method that a DataStream has and a KeyedStream lacks."""


class KeyedStream(StreamBase, KeyedAggregations):
    """A stream that is partitioned by key: the result of ``key_by``.

    All records of a key are in one subtask, and functions have state and timers per key. Settings such
    as ``name`` and ``uid`` belong to the operator that follows.

    >>> words = env.from_collection(["a", "b", "a"]).map(lambda word: (word, 1))
    >>> list(words.key_by(lambda pair: pair[0]).sum(1).execute_and_collect())
    [('a', 1), ('b', 1), ('a', 2)]
    """

    def __init__(self, unkeyed: DataStream, by_key: Partitioning) -> None:
        super().__init__(
            unkeyed.get_execution_environment(),
            tuple(origin.shipped(by_key) for origin in unkeyed.recorded.origins),
            unkeyed.get_type(),
        )
        self._unkeyed = unkeyed
        self._key_type: TypeInformation = by_key.key_type
        self.key_selector = by_key.key_selector

    if not TYPE_CHECKING:  # type checkers must report these names as missing

        def __getattr__(self, name: str) -> NoReturn:
            if name in _NOT_ON_A_KEYED_STREAM:
                raise KeyedStreamError(_NOT_ON_A_KEYED_STREAM[name])
            raise AttributeError(
                f"{type(self).__name__!r} object has no attribute {name!r}", name=name, obj=self
            )

    def key_by(
        self,
        key_selector: Callable[[Any], Any] | KeySelector | Expression | tuple[Expression, ...],
        key_type: TypeInformation | None = None,
    ) -> KeyedStream:
        """Partition the same records by a different key.

        Args:
            key_selector: A callable or KeySelector that returns the key of a record, an expression,
                or a tuple of expressions.
            key_type: The type of the key.

        >>> words = env.from_collection(["a", "bb", "c"]).key_by(lambda word: word).key_by(len)
        >>> list(words.fold(0, lambda count, _: count + 1).execute_and_collect())
        [1, 1, 2]
        """
        return self._unkeyed.key_by(key_selector, key_type)

    def process(
        self, func: KeyedProcessFunction, output_type: TypeInformation | None = None
    ) -> DataStream:
        """Call a function with each record and a context that has the key, its state and its timers.

        Args:
            func: A KeyedProcessFunction.
            output_type: The type of the results.

        >>> class Number(KeyedProcessFunction):
        ...     def open(self, runtime_context):
        ...         self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.INT()))
        ...     def process_element(self, value, ctx):
        ...         self.count.update((self.count.value() or 0) + 1)
        ...         yield ctx.get_current_key(), self.count.value()
        >>> words = env.from_collection(["a", "b", "a"]).key_by(lambda word: word)
        >>> list(words.process(Number()).execute_and_collect())
        [('a', 1), ('b', 1), ('a', 2)]
        """
        require_instance("process on a KeyedStream", func, KeyedProcessFunction)
        return self._apply("KEYED PROCESS", ProcessSpec(func), as_type("process", output_type))

    @public_evolving
    def output_mode(self, mode: str) -> KeyedOutput:
        """Choose which results an aggregation emits, in Spark's words. Not in PyFlink.

        Without a mode, an aggregation emits the new result of the key for each record.

        Args:
            mode: One of these:

                - ``append``: one result per key, at the end of the input;
                - ``update``: at the end of each epoch the results that changed, as ``(key, result)``, for
                  sinks that replace by key;
                - ``complete``: at the end of each epoch with a change all results, as ``(key, result)``.

        >>> words = env.from_collection(["a", "b", "a"]).map(lambda word: (word, 1))
        >>> counts = words.key_by(lambda pair: pair[0]).output_mode("append").sum(1)
        >>> list(counts.execute_and_collect())
        [('a', 2), ('b', 1)]
        """
        return KeyedOutput(self, self._key_type, mode)

    def _aggregated(
        self, name: str, spec: KeyedAggregationSpec, result_type: TypeInformation
    ) -> DataStream:
        return self._apply(name, spec, result_type)

    def _column_aggregation(self, kind: str, field: int | str) -> Any:
        return column_aggregation(kind, field, self.get_type(), self.key_selector)

    # -- windows -------------------------------------------------------------------------------

    def window(self, window_assigner: WindowAssigner[Any, Any]) -> WindowedStream:
        """Put the records of each key into windows.

        Args:
            window_assigner: The assigner.

        >>> clicks = env.from_collection([("ann", 1), ("bob", 2), ("ann", 3), ("ann", 7)])
        >>> strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(
        ...     lambda click, _: click[1] * 1000
        ... )
        >>> windows = (
        ...     clicks.assign_timestamps_and_watermarks(strategy)
        ...     .key_by(lambda click: click[0])
        ...     .window(TumblingEventTimeWindows.of(Time.seconds(5)))
        ... )
        >>> list(windows.max_by(1).execute_and_collect())
        [('ann', 3), ('bob', 2), ('ann', 7)]
        """
        return WindowedStream(self, window_assigner)

    def count_window(self, size: int, slide: int = 0) -> WindowedStream:
        """Put the records of each key into windows of a number of records.

        Args:
            size: The number of records in a window.
            slide: The number of records from the start of a window to the start of the next. With 0
                windows do not overlap.

        >>> numbers = env.from_collection([1, 2, 3, 4]).key_by(lambda number: number % 2)
        >>> list(numbers.count_window(2).reduce(lambda a, b: a + b).execute_and_collect())
        [4, 6]
        """
        if slide == 0:
            return WindowedStream(self, CountTumblingWindowAssigner(size))
        return WindowedStream(self, CountSlidingWindowAssigner(size, slide))

    def window_all(self, window_assigner: WindowAssigner[Any, Any]) -> AllWindowedStream:
        """Put the whole stream into windows, whatever the key.

        Args:
            window_assigner: The assigner.

        >>> numbers = env.from_collection([1, 2, 3, 4]).key_by(lambda number: number % 2)
        >>> pairs = numbers.window_all(CountTumblingWindowAssigner.of(2))
        >>> list(pairs.reduce(lambda a, b: a + b).execute_and_collect())
        [3, 7]
        """
        return self._unkeyed.window_all(window_assigner)

    @public_evolving
    def count_window_all(self, size: int, slide: int = 0) -> AllWindowedStream:
        """Put the whole stream into windows of a number of records. Not in PyFlink.

        Args:
            size: The number of records in a window.
            slide: The number of records from the start of a window to the start of the next. With 0
                windows do not overlap.

        >>> numbers = env.from_collection([1, 2, 3, 4]).key_by(lambda number: number % 2)
        >>> list(numbers.count_window_all(2).reduce(lambda a, b: a + b).execute_and_collect())
        [3, 7]
        """
        return self._unkeyed.count_window_all(size, slide)

    @public_evolving
    def full_window_partition(self) -> KeyedPartitionWindowedStream:
        """Take all records of a key as one window, which ends with the input. Not in PyFlink.

        >>> numbers = env.from_collection([1, 2, 3, 4]).key_by(lambda number: number % 2)
        >>> sums = numbers.full_window_partition().reduce(lambda a, b: a + b)
        >>> sorted(sums.execute_and_collect())
        [4, 6]
        """
        return KeyedPartitionWindowedStream(self)

    # -- joins ---------------------------------------------------------------------------------

    @public_evolving
    def interval_join(self, other_stream: KeyedStream) -> IntervalJoin:
        """Join with records of another keyed stream that are close in event time. Not in PyFlink.

        Args:
            other_stream: The second stream.

        Returns:
            An IntervalJoin; ``between`` and ``process`` follow.

        >>> class Pair(ProcessJoinFunction):
        ...     def process_element(self, left, right, ctx):
        ...         yield left, right
        >>> strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(
        ...     lambda second, _: second * 1000
        ... )
        >>> left = env.from_collection([1, 20]).assign_timestamps_and_watermarks(strategy)
        >>> right = env.from_collection([2, 30]).assign_timestamps_and_watermarks(strategy)
        >>> join = left.key_by(lambda _: 0).interval_join(right.key_by(lambda _: 0))
        >>> near = join.between(Time.seconds(-5), Time.seconds(5)).process(Pair())
        >>> list(near.execute_and_collect())
        [(1, 2)]
        """
        check_same_environment("interval_join", self, other_stream)
        if not isinstance(other_stream, KeyedStream):
            raise InvalidProgramError(
                "interval_join needs two keyed streams: call key_by() on the other stream too."
            )
        return IntervalJoin(self, other_stream)


@public_evolving
class KeyedOutput(KeyedAggregations):
    """A keyed stream with an output mode: the result of ``output_mode``. Not in PyFlink.

    >>> words = env.from_collection(["a", "b", "a"]).map(lambda word: (word, 1))
    >>> output = words.key_by(lambda pair: pair[0]).output_mode("complete")
    >>> list(output.sum(1).execute_and_collect())
    [('a', ('a', 2)), ('b', ('b', 1))]
    >>> output.get_type() == words.get_type()
    True
    """

    def __init__(self, keyed_stream: KeyedStream, key_type: TypeInformation, mode: str) -> None:
        self._keyed_stream = keyed_stream
        self._key_type = key_type
        self._mode = check_output_mode(mode)

    def get_type(self) -> TypeInformation:
        return self._keyed_stream.get_type()

    def _aggregated(
        self, name: str, spec: KeyedAggregationSpec, result_type: TypeInformation
    ) -> DataStream:
        if self._mode != APPEND:
            result_type = Types.TUPLE([self._key_type, result_type])
        spec = replace(spec, output_mode=self._mode)
        return add_operator(name, spec, result_type, self._keyed_stream)
