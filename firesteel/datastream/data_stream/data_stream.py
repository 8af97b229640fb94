"""DataStream: a stream of records without a key."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, NoReturn, Self, overload

from firesteel.common.typeinfo import TypeInformation
from firesteel.datastream.data_stream.arguments import (
    ProgramTypeError,
    as_type,
    key_selector_of,
    partitioner_of,
    require_function_or_callable,
    require_instance,
)
from firesteel.datastream.data_stream.connected_streams import BroadcastStream
from firesteel.datastream.data_stream.keyed_stream import KeyedStream
from firesteel.datastream.data_stream.stream_base import OperatorSettings, StreamBase
from firesteel.datastream.data_stream.windowed_stream import (
    AllWindowedStream,
    NonKeyedPartitionWindowedStream,
)
from firesteel.datastream.functions import KeySelector, OutputSelector, Partitioner, ProcessFunction
from firesteel.datastream.output_tag import OutputTag
from firesteel.datastream.state import MapStateDescriptor
from firesteel.datastream.window import (
    CountSlidingWindowAssigner,
    CountTumblingWindowAssigner,
    WindowAssigner,
)
from firesteel.errors import InvalidProgramError, shorten
from firesteel.graph import partitioning
from firesteel.graph.operator_specs import ProcessSpec, SelectSpec
from firesteel.graph.parallelism import check_max_parallelism
from firesteel.graph.partitioning import Partitioning, ShipStrategy
from firesteel.graph.settings import check_buffer_timeout
from firesteel.graph.transformations import ChainingStrategy, Origin, Transformation

if TYPE_CHECKING:
    from firesteel.datastream.data_stream.cache import CachedDataStream


class DataStream(StreamBase, OperatorSettings):
    """A stream of records of one type.

    Operators give new streams. Setters such as ``name`` change the operator behind this stream, so
    they are errors where there is none: after a union, a repartitioning or a side output.
    """

    # -- operators -----------------------------------------------------------------------------

    def process(
        self, func: ProcessFunction, output_type: TypeInformation | None = None
    ) -> DataStream:
        """Any number of results per record, side outputs, and a context."""
        require_instance(
            "process",
            func,
            ProcessFunction,
            hint="A KeyedProcessFunction needs key_by() before process().",
        )
        return self._apply("PROCESS", ProcessSpec(func), as_type("process", output_type))

    def key_by(
        self,
        key_selector: Callable[[Any], Any] | KeySelector,
        key_type: TypeInformation | None = None,
    ) -> KeyedStream:
        """Send all records with the same key to the same subtask, which keeps state per key."""
        select, functions = key_selector_of("key_by", key_selector)
        by_key = Partitioning(
            ShipStrategy.HASH,
            key_selector=select,
            key_type=as_type("key_by", key_type, "key type"),
            functions=functions,
        )
        return KeyedStream(self, by_key)

    def split(
        self, output_selector: Callable[[Any], Iterable[str] | str] | OutputSelector
    ) -> SplitStream:
        """Name the outputs each record goes to; ``select`` then takes some of them."""
        return SplitStream(self, output_selector)

    def get_side_output(self, output_tag: OutputTag) -> DataStream:
        """The records that the operator behind this stream sent to ``output_tag``."""
        if not isinstance(output_tag, OutputTag):
            raise ProgramTypeError(
                f"get_side_output expects an OutputTag, but got {shorten(output_tag)}."
            )
        operator = self._operator("get_side_output")
        known_type = operator.side_output_types.setdefault(output_tag.tag_id, output_tag.type_info)
        if known_type != output_tag.type_info:
            raise InvalidProgramError(
                f"The side output '{output_tag.tag_id}' of '{operator.name}' was read with the "
                f"type {known_type} before, and now with {output_tag.type_info}."
            )
        origin = Origin(operator, side_output=output_tag.tag_id)
        return self._stream((origin,), output_tag.type_info)

    # -- partitioning --------------------------------------------------------------------------

    def forward(self) -> DataStream:
        """Subtask i sends to subtask i of the next operator, which must be as parallel."""
        return self._shipped(partitioning.FORWARD)

    def rebalance(self) -> DataStream:
        """Round robin over all subtasks of the next operator."""
        return self._shipped(partitioning.REBALANCE)

    def rescale(self) -> DataStream:
        """Round robin over the few subtasks of the next operator that belong to this one."""
        return self._shipped(partitioning.RESCALE)

    def shuffle(self) -> DataStream:
        """A random subtask of the next operator for each record."""
        return self._shipped(partitioning.SHUFFLE)

    def global_(self) -> DataStream:
        """Everything to the first subtask of the next operator. Not in PyFlink."""
        return self._shipped(partitioning.GLOBAL)

    @overload
    def broadcast(self) -> DataStream: ...

    @overload
    def broadcast(
        self,
        broadcast_state_descriptor: MapStateDescriptor,
        *other_broadcast_state_descriptors: MapStateDescriptor,
    ) -> BroadcastStream: ...

    def broadcast(
        self,
        broadcast_state_descriptor: MapStateDescriptor | None = None,
        *other_broadcast_state_descriptors: MapStateDescriptor,
    ) -> DataStream | BroadcastStream:
        """Each record to every subtask of the next operator.

        With descriptors of broadcast state, it is for ``connect`` of another stream.
        """
        shipped = self._shipped(partitioning.BROADCAST)
        if broadcast_state_descriptor is None:
            return shipped
        descriptors = [broadcast_state_descriptor, *other_broadcast_state_descriptors]
        return BroadcastStream(shipped, descriptors)

    def partition_custom(
        self,
        partitioner: Callable[[Any, int], int] | Partitioner,
        key_selector: Callable[[Any], Any] | KeySelector,
    ) -> DataStream:
        """Let ``partitioner(key, number of subtasks)`` choose the subtask."""
        partition, opened = partitioner_of("partition_custom", partitioner)
        select, also_opened = key_selector_of("partition_custom", key_selector)
        return self._shipped(
            Partitioning(
                ShipStrategy.CUSTOM,
                key_selector=select,
                partitioner=partition,
                functions=(*opened, *also_opened),
            )
        )

    def _shipped(self, how: Partitioning) -> DataStream:
        return self._stream(tuple(origin.shipped(how) for origin in self._origins), self._type)

    # -- settings of the operator --------------------------------------------------------------

    def get_name(self) -> str:
        return self._operator("get_name").name

    def set_max_parallelism(self, max_parallelism: int) -> Self:
        """Set the number of key groups, and so the highest parallelism to rescale to."""
        operator = self._operator("set_max_parallelism")
        check_max_parallelism(max_parallelism)
        if operator.non_parallel and max_parallelism != 1:
            raise InvalidProgramError(
                f"The maximum parallelism of the non parallel operator '{operator.name}' must be "
                f"1, not {max_parallelism}."
            )
        operator.max_parallelism = max_parallelism
        return self

    def force_non_parallel(self) -> Self:
        """Set the parallelism to 1, for good."""
        operator = self._operator("force_non_parallel")
        operator.parallelism = operator.max_parallelism = 1
        operator.non_parallel = True
        return self

    def set_buffer_timeout(self, timeout_millis: int) -> Self:
        """How long records may wait in a buffer; 0: not at all, -1: as the environment says."""
        operator = self._operator("set_buffer_timeout")
        operator.buffer_timeout = check_buffer_timeout(timeout_millis)
        return self

    def start_new_chain(self) -> Self:
        """Begin a chain with this operator: it is not chained to what comes before it."""
        self._operator("start_new_chain").chaining = ChainingStrategy.HEAD
        return self

    def _operator(self, setting: str) -> Transformation:
        if len(self._origins) != 1:
            self._no_operator(setting, "a union")
        (origin,) = self._origins
        if origin.side_output is not None:
            self._no_operator(setting, "a side output")
        if origin.partitioning is not None:
            self._no_operator(setting, "a repartitioned stream")
        return origin.transformation

    def _no_operator(self, setting: str, what: str) -> NoReturn:
        raise InvalidProgramError(
            f"{setting}() applies to an operator, but {what} has none of its own. Call it right "
            f"after the operator that it is meant for."
        )

    # -- windows -------------------------------------------------------------------------------

    def window_all(self, window_assigner: WindowAssigner[Any, Any]) -> AllWindowedStream:
        """Cut the whole stream into windows, in one subtask."""
        return AllWindowedStream(self, window_assigner)

    def full_window_partition(self) -> NonKeyedPartitionWindowedStream:
        """All records of a subtask as one window, which ends with the input. Not in PyFlink."""
        return NonKeyedPartitionWindowedStream(self)

    def count_window_all(self, size: int, slide: int = 0) -> AllWindowedStream:
        """Windows of ``size`` records; with ``slide``, a new one after so many. Not in PyFlink."""
        if slide == 0:
            return AllWindowedStream(self, CountTumblingWindowAssigner(size))
        return AllWindowedStream(self, CountSlidingWindowAssigner(size, slide))

    # -- caching -------------------------------------------------------------------------------

    def cache(self) -> CachedDataStream:
        """Keep this stream's records for the next jobs of the environment. For batch jobs only.

        The first job that computes the stream writes it down.
        """
        from firesteel.datastream.data_stream.cache import CachedDataStream

        cache = self._environment._cache(self._origins, self._type, self._common_parallelism())
        return CachedDataStream(self._environment, cache, self._type)


class SplitStream:
    """A stream whose records have named outputs. A record may go to several, or to none."""

    def __init__(
        self,
        stream: DataStream,
        output_selector: Callable[[Any], Iterable[str] | str] | OutputSelector,
    ) -> None:
        require_function_or_callable("split", output_selector, OutputSelector)
        self._stream = stream
        self._selector = output_selector

    def select(self, *output_names: str) -> DataStream:
        """The records that go to at least one of the named outputs, each once."""
        if not output_names:
            raise InvalidProgramError("select needs the name of at least one output.")
        for name in output_names:
            if not isinstance(name, str):
                raise InvalidProgramError(f"select expects names, but got {shorten(name)}.")
        names = frozenset(output_names)
        if isinstance(self._selector, OutputSelector):
            spec = SelectSpec(self._selector.select, names, (self._selector,))
        else:
            spec = SelectSpec(self._selector, names)
        return self._stream._apply("Select", spec, self._stream.get_type())
