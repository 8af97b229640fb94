"""KeyedStream: a stream whose operators keep state per key."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NoReturn

from firesteel.common.typeinfo import TypeInformation, Types
from firesteel.datastream.data_stream.arguments import (
    APPEND,
    ProgramTypeError,
    as_type,
    check_output_mode,
    require_function_or_callable,
    require_instance,
)
from firesteel.datastream.data_stream.joins import IntervalJoin
from firesteel.datastream.data_stream.stream_base import StreamBase
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
from firesteel.errors import InvalidProgramError, shorten
from firesteel.graph.operator_specs import (
    AggregationSpec,
    FoldSpec,
    KeyedAggregationSpec,
    ProcessSpec,
    ReduceSpec,
)
from firesteel.graph.partitioning import Partitioning

if TYPE_CHECKING:
    from firesteel.datastream.data_stream.data_stream import DataStream
    from firesteel.datastream.data_stream.windowed_stream import AllWindowedStream


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


_PARTITIONING = "Cannot override partitioning for KeyedStream: key_by() decides where records go."
_SETTING = "is not supported for KeyedStream: call it on the stream that an operator returns."

# What a DataStream has and a KeyedStream must not have, with what the user is told.
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
    "get_side_output": "get_side_output() belongs after the operator that emits to the tag.",
    "split": "split() belongs before key_by().",
}


class KeyedStreamError(InvalidProgramError, AttributeError):
    """Something that only a DataStream has was asked of a KeyedStream."""


class KeyedStream(StreamBase, KeyedAggregations):
    """The stream after ``key_by``: records of one key meet in one subtask."""

    def __init__(self, unkeyed: DataStream, by_key: Partitioning) -> None:
        super().__init__(
            unkeyed.get_execution_environment(),
            tuple(origin.shipped(by_key) for origin in unkeyed._origins),
            unkeyed.get_type(),
        )
        self._unkeyed = unkeyed
        self._key_type: TypeInformation = by_key.key_type

    if not TYPE_CHECKING:  # a type checker shall see that these names are not there

        def __getattr__(self, name: str) -> NoReturn:
            if name in _NOT_ON_A_KEYED_STREAM:
                raise KeyedStreamError(_NOT_ON_A_KEYED_STREAM[name])
            raise AttributeError(
                f"{type(self).__name__!r} object has no attribute {name!r}", name=name, obj=self
            )

    def key_by(
        self,
        key_selector: Callable[[Any], Any] | KeySelector,
        key_type: TypeInformation | None = None,
    ) -> KeyedStream:
        """Another key for the same records."""
        return self._unkeyed.key_by(key_selector, key_type)

    def process(
        self, func: KeyedProcessFunction, output_type: TypeInformation | None = None
    ) -> DataStream:
        """Any number of results per record, with the key, its state and timers at hand."""
        require_instance("process on a KeyedStream", func, KeyedProcessFunction)
        return self._apply("KEYED PROCESS", ProcessSpec(func), as_type("process", output_type))

    def output_mode(self, mode: str) -> KeyedOutput:
        """Choose which results an aggregation emits, in Spark's words. Not in PyFlink.

        Without a mode it emits the new result of the key with every record.

        - ``append``: one result of each key, when it is final: at the end of the input;
        - ``update``: at the end of each epoch the results that it changed, as ``(key, result)``, for
          sinks that replace by key;
        - ``complete``: at the end of each epoch that changed one, all results, as ``(key, result)``.
        """
        return KeyedOutput(self, mode)

    def _aggregated(
        self, name: str, spec: KeyedAggregationSpec, result_type: TypeInformation
    ) -> DataStream:
        return self._apply(name, spec, result_type)

    # -- windows -------------------------------------------------------------------------------

    def window(self, window_assigner: WindowAssigner[Any, Any]) -> WindowedStream:
        """Cut the records of each key into windows."""
        return WindowedStream(self, window_assigner)

    def count_window(self, size: int, slide: int = 0) -> WindowedStream:
        """Windows of ``size`` records of a key; with ``slide``, a new one after so many records."""
        if slide == 0:
            return WindowedStream(self, CountTumblingWindowAssigner(size))
        return WindowedStream(self, CountSlidingWindowAssigner(size, slide))

    def window_all(self, window_assigner: WindowAssigner[Any, Any]) -> AllWindowedStream:
        """Cut the whole stream into windows, whatever the key."""
        return self._unkeyed.window_all(window_assigner)

    def count_window_all(self, size: int, slide: int = 0) -> AllWindowedStream:
        """Windows of ``size`` records of the whole stream. Not in PyFlink."""
        return self._unkeyed.count_window_all(size, slide)

    def full_window_partition(self) -> KeyedPartitionWindowedStream:
        """All records of a key as one window, which ends with the input. Not in PyFlink."""
        return KeyedPartitionWindowedStream(self)

    # -- joins ---------------------------------------------------------------------------------

    def interval_join(self, other_stream: KeyedStream) -> IntervalJoin:
        """Join with records of another keyed stream that are close in time. Not in PyFlink."""
        self._check_joinable("interval_join", other_stream)
        if not isinstance(other_stream, KeyedStream):
            raise InvalidProgramError(
                "interval_join needs two keyed streams: call key_by() on the other one, too."
            )
        return IntervalJoin(self, other_stream)


class KeyedOutput(KeyedAggregations):
    """What ``key_by(...).output_mode(...)`` gives. Not in PyFlink."""

    def __init__(self, keyed_stream: KeyedStream, mode: str) -> None:
        self._keyed_stream = keyed_stream
        self._mode = check_output_mode(mode)

    def get_type(self) -> TypeInformation:
        return self._keyed_stream.get_type()

    def _aggregated(
        self, name: str, spec: KeyedAggregationSpec, result_type: TypeInformation
    ) -> DataStream:
        if self._mode != APPEND:
            result_type = Types.TUPLE([self._keyed_stream._key_type, result_type])
        return self._keyed_stream._apply(name, replace(spec, output_mode=self._mode), result_type)
