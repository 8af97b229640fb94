"""KeyedStream: a stream whose operators keep state per key."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NoReturn

from firesteel.common.typeinfo import TypeInformation
from firesteel.datastream.data_stream.function_arguments import as_type, require_instance
from firesteel.datastream.data_stream.interval_join import IntervalJoin
from firesteel.datastream.data_stream.keyed_aggregations import KeyedAggregations
from firesteel.datastream.data_stream.keyed_output import KeyedOutput
from firesteel.datastream.data_stream.partition_windowed_stream import (
    KeyedPartitionWindowedStream,
)
from firesteel.datastream.data_stream.stream_base import StreamBase
from firesteel.datastream.data_stream.windowed_stream import WindowedStream
from firesteel.datastream.functions import KeyedProcessFunction, KeySelector
from firesteel.datastream.window import (
    CountSlidingWindowAssigner,
    CountTumblingWindowAssigner,
    WindowAssigner,
)
from firesteel.errors import InvalidProgramError
from firesteel.graph.operator_specs import KeyedAggregationSpec, ProcessSpec
from firesteel.graph.partitioning import Partitioning

if TYPE_CHECKING:
    from firesteel.datastream.data_stream.all_windowed_stream import AllWindowedStream
    from firesteel.datastream.data_stream.data_stream import DataStream

__all__ = ["KeyedStream", "KeyedStreamError"]

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
