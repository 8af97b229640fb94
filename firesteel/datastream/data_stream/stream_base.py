"""What a keyed and an unkeyed stream have in common, and nothing else."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Any, Self, overload

from firesteel.common.typeinfo import TupleTypeInfo, TypeInformation, Types
from firesteel.common.watermark_strategy import WatermarkStrategy
from firesteel.connectors.base import Sink
from firesteel.datastream.data_stream.arguments import (
    ProgramTypeError,
    as_type,
    check_not_aligned,
    require_function_or_callable,
    require_instance,
)
from firesteel.datastream.data_stream.collected import CloseableIterator, CollectBuffer
from firesteel.datastream.functions import (
    FilterFunction,
    FlatMapFunction,
    KeySelector,
    MapFunction,
    SinkFunction,
    TwoPhaseCommitSinkFunction,
)
from firesteel.datastream.slot_sharing_group import SlotSharingGroup
from firesteel.errors import InvalidProgramError, shorten
from firesteel.graph.operator_ids import check_uid_hash
from firesteel.graph.operator_specs import (
    CollectSpec,
    DataFrameSinkSpec,
    FilterSpec,
    FlatMapSpec,
    MapSpec,
    OperatorSpec,
    PrintSpec,
    ProjectSpec,
    SinkFunctionSpec,
    SinkSpec,
    TimestampsAndWatermarksSpec,
    TwoPhaseCommitSinkSpec,
)
from firesteel.graph.parallelism import check_parallelism
from firesteel.graph.transformations import ChainingStrategy, Origin, Transformation

if TYPE_CHECKING:
    from firesteel.common.execution_config import ExecutionConfig
    from firesteel.datastream.data_stream.connected_streams import (
        BroadcastConnectedStream,
        BroadcastStream,
        ConnectedStreams,
    )
    from firesteel.datastream.data_stream.data_stream import DataStream
    from firesteel.datastream.data_stream.iterations import IterativeStream
    from firesteel.datastream.data_stream.joins import (
        CoGroupedStreams,
        JoinedStreams,
        UnboundedJoin,
    )
    from firesteel.datastream.data_stream.keyed_stream import KeyedStream
    from firesteel.datastream.stream_execution_environment import StreamExecutionEnvironment


class OperatorSettings:
    """Each setter changes the operator that produced this stream, and returns the stream."""

    def _operator(self, setting: str) -> Transformation:
        """The one operator that ``setting`` applies to; an error if there is no such."""
        raise NotImplementedError

    def name(self, name: str) -> Self:
        """Set the name that plans, logs and metrics show."""
        self._operator("name").name = _text("name", name)
        return self

    def uid(self, uid: str) -> Self:
        """Set the id by which state finds its operator again; unique within a job."""
        self._operator("uid").uid = _text("uid", uid)
        return self

    def set_uid_hash(self, uid_hash: str) -> Self:
        """Set the operator id itself: 32 hexadecimal characters."""
        self._operator("set_uid_hash").uid_hash = check_uid_hash(uid_hash)
        return self

    def set_parallelism(self, parallelism: int) -> Self:
        """Set the number of subtasks."""
        operator = self._operator("set_parallelism")
        check_parallelism(parallelism)
        if operator.non_parallel and parallelism != 1:
            raise InvalidProgramError(
                f"The parallelism of the non parallel operator '{operator.name}' must be 1, "
                f"not {parallelism}."
            )
        operator.parallelism = parallelism
        return self

    def set_description(self, description: str) -> Self:
        """Set the longer text that the plan shows instead of the name."""
        self._operator("set_description").description = _text("description", description)
        return self

    def disable_chaining(self) -> Self:
        """Never run this operator in one chain with another."""
        self._operator("disable_chaining").chaining = ChainingStrategy.NEVER
        return self

    def slot_sharing_group(self, slot_sharing_group: Any) -> Self:
        """Set the group, by its name or as a SlotSharingGroup; groups never share slots."""
        operator = self._operator("slot_sharing_group")
        operator.slot_sharing_group = self._register_slot_sharing_group(slot_sharing_group)
        return self

    def _register_slot_sharing_group(self, slot_sharing_group: Any) -> str:
        if isinstance(slot_sharing_group, str):
            return _text("slot sharing group", slot_sharing_group)
        if isinstance(slot_sharing_group, SlotSharingGroup):
            return slot_sharing_group.get_name()
        raise InvalidProgramError(
            "slot_sharing_group expects the name of a group or a SlotSharingGroup, but got "
            f"{shorten(slot_sharing_group)}."
        )


def _text(what: str, value: object) -> str:
    if not isinstance(value, str) or not value:
        raise InvalidProgramError(f"The {what} must be a text that is not empty, not {value!r}.")
    return value


class DataStreamSink(OperatorSettings):
    """A sink in the program; its settings can be changed, nothing can come after it."""

    def __init__(self, transformation: Transformation) -> None:
        self._transformation = transformation

    def _operator(self, setting: str) -> Transformation:
        return self._transformation


class StreamBase(ABC):
    """A stream: whose outputs it carries (several after a union), and of which type."""

    def __init__(
        self,
        environment: StreamExecutionEnvironment,
        origins: tuple[Origin, ...],
        value_type: TypeInformation,
    ) -> None:
        self._environment = environment
        self._origins = origins
        self._type = value_type

    def get_type(self) -> TypeInformation:
        """The type of the records."""
        return self._type

    def get_execution_environment(self) -> StreamExecutionEnvironment:
        return self._environment

    def get_execution_config(self) -> ExecutionConfig:
        return self._environment.get_config()

    # -- operators -----------------------------------------------------------------------------

    def map(
        self,
        func: Callable[[Any], Any] | MapFunction,
        output_type: TypeInformation | None = None,
    ) -> DataStream:
        """One result for each record."""
        require_function_or_callable("map", func, MapFunction)
        return self._apply("Map", MapSpec(func), as_type("map", output_type))

    def flat_map(
        self,
        func: Callable[[Any], Any] | FlatMapFunction,
        output_type: TypeInformation | None = None,
    ) -> DataStream:
        """Any number of results for each record."""
        require_function_or_callable("flat_map", func, FlatMapFunction)
        return self._apply("FlatMap", FlatMapSpec(func), as_type("flat_map", output_type))

    def filter(self, func: Callable[[Any], Any] | FilterFunction) -> DataStream:
        """Keep the records for which the function is true."""
        require_function_or_callable("filter", func, FilterFunction)
        return self._apply("Filter", FilterSpec(func), self._type)

    def project(self, *field_indexes: int) -> DataStream:
        """Keep some fields of a stream of tuples, in the given order."""
        if not isinstance(self._type, TupleTypeInfo):
            raise InvalidProgramError(
                f"Only Tuple DataStreams can be projected; this one has the type {self._type}. "
                f"Give the operator before it an output type, for example "
                f"Types.TUPLE([Types.STRING(), Types.INT()])."
            )
        field_types = self._type.get_field_types()
        if not field_indexes:
            raise InvalidProgramError("project needs at least one field index.")
        for index in field_indexes:
            if not 0 <= index < len(field_types):
                raise InvalidProgramError(
                    f"project: there is no field {index} in {self._type}, which has "
                    f"{len(field_types)} fields."
                )
        projected = Types.TUPLE([field_types[index] for index in field_indexes])
        return self._apply("Projection", ProjectSpec(field_indexes), projected)

    def assign_timestamps_and_watermarks(self, watermark_strategy: WatermarkStrategy) -> DataStream:
        """Give the records timestamps and the stream watermarks, instead of those it has."""
        operation = "assign_timestamps_and_watermarks"
        require_instance(operation, watermark_strategy, WatermarkStrategy)
        check_not_aligned(operation, watermark_strategy)
        spec = TimestampsAndWatermarksSpec(replace(watermark_strategy))
        return self._apply("Timestamps/Watermarks", spec, self._type)

    @abstractmethod
    def key_by(
        self,
        key_selector: Callable[[Any], Any] | KeySelector,
        key_type: TypeInformation | None = None,
    ) -> KeyedStream:
        """Send all records with the same key to the same subtask, which keeps state per key."""

    def union(self, *streams: StreamBase) -> DataStream:
        """This stream's records and those of the others. A stream may come twice."""
        for stream in streams:
            self._check_joinable("union", stream)
            if stream._type != self._type:
                raise InvalidProgramError(
                    f"Cannot union streams of different types: {self._type} and {stream._type}."
                )
        origins = [origin for stream in (self, *streams) for origin in stream._origins]
        return self._stream(tuple(origins), self._type)

    @overload
    def connect(self, ds: StreamBase) -> ConnectedStreams: ...

    @overload
    def connect(self, ds: BroadcastStream) -> BroadcastConnectedStream: ...

    def connect(
        self, ds: StreamBase | BroadcastStream
    ) -> ConnectedStreams | BroadcastConnectedStream:
        """Two streams, of whatever types, that one function will read."""
        from firesteel.datastream.data_stream.connected_streams import (
            BroadcastConnectedStream,
            BroadcastStream,
            ConnectedStreams,
        )

        if isinstance(ds, BroadcastStream):
            self._check_joinable("connect", ds.input_stream)
            return BroadcastConnectedStream(self, ds, ds.broadcast_state_descriptors)
        self._check_joinable("connect", ds)
        return ConnectedStreams(self, ds)

    # -- joins; not in PyFlink -----------------------------------------------------------------

    def join(self, other_stream: StreamBase) -> JoinedStreams:
        """Join records of equal keys within windows."""
        from firesteel.datastream.data_stream.joins import JoinedStreams

        self._check_joinable("join", other_stream)
        return JoinedStreams(self, other_stream)

    def co_group(self, other_stream: StreamBase) -> CoGroupedStreams:
        """Group the records of two streams by equal keys within windows."""
        from firesteel.datastream.data_stream.joins import CoGroupedStreams

        self._check_joinable("co_group", other_stream)
        return CoGroupedStreams(self, other_stream)

    def join_on(self, other_stream: StreamBase, how: str = "inner") -> UnboundedJoin:
        """Join all records of equal keys, without a window: inner, left, right or full."""
        from firesteel.datastream.data_stream.joins import UnboundedJoin

        self._check_joinable("join_on", other_stream)
        return UnboundedJoin(self, other_stream, how)

    # -- sinks ---------------------------------------------------------------------------------

    def print(self, sink_identifier: str | None = None) -> DataStreamSink:
        """Write each record as a line to standard output."""
        return self._sink("Print to Std. Out", PrintSpec(sink_identifier, self._type))

    def add_sink(self, sink_func: SinkFunction) -> DataStreamSink:
        """Call ``sink_func.invoke`` for each record; a TwoPhaseCommitSinkFunction in transactions."""
        require_instance("add_sink", sink_func, SinkFunction, hint="For a Sink, use sink_to().")
        if isinstance(sink_func, TwoPhaseCommitSinkFunction):
            return self._sink("Unnamed", TwoPhaseCommitSinkSpec(sink_func))
        return self._sink("Unnamed", SinkFunctionSpec(sink_func))

    def sink_to(self, sink: Sink) -> DataStreamSink:
        """Write each record through a sink with writer and committer."""
        require_instance("sink_to", sink, Sink, hint="For a SinkFunction, use add_sink().")
        return self._sink("Sink", SinkSpec(sink.with_input_type(self._type)))

    def to_dataframe(self, write: Callable[[Any, int], None]) -> DataStreamSink:
        """Hand the records to Spark: ``write(data_frame, epoch)`` is called in the driver.

        It is called once per epoch, and once in all in batch mode; not in PyFlink. The columns are
        the fields of a ROW type, those of a TUPLE (``f0``, ``f1``, ...), else one column ``value``.
        """
        if not callable(write):
            raise ProgramTypeError(
                f"to_dataframe expects a callable write(data_frame, epoch), but got "
                f"{shorten(write)}."
            )
        if self._type == Types.PICKLED_BYTE_ARRAY():
            raise InvalidProgramError(
                "to_dataframe needs to know the columns, but this stream has no type. Give the "
                "operator before it an output type, for example "
                "Types.ROW_NAMED(['word', 'count'], [Types.STRING(), Types.LONG()])."
            )
        return self._sink("DataFrame", DataFrameSinkSpec(self._type), driver_object=write)

    def execute_and_collect(
        self, job_execution_name: str | None = None, limit: int | None = None
    ) -> CloseableIterator | list[Any]:
        """Run the job and get this stream's records: an iterator, or with ``limit`` a list.

        Everything that was added to the environment since its last job runs too.
        """
        if limit is not None and limit < 1:
            raise InvalidProgramError(f"The limit must be at least 1, not {limit!r}.")
        collect, buffer = self._collect()
        results = self._environment._execute_and_collect(collect, buffer, job_execution_name)
        if limit is None:
            return results
        with results:
            return list(islice(results, limit))

    def collect_async(self) -> CloseableIterator:
        """An iterator over this stream's records, to read once the job has been started.

        Unlike with ``execute_and_collect`` several streams of one job can be collected, next to
        its other sinks; start it with ``execute_async``. Closing the iterator drops the records
        that are left, and the job goes on. Not in PyFlink.
        """
        collect, buffer = self._collect()
        self._environment._add_operator(collect)
        return CloseableIterator(iter(buffer), buffer.close)

    def _collect(self) -> tuple[Transformation, CollectBuffer]:
        buffer = CollectBuffer()
        collect = Transformation(
            name="Data stream collect sink",
            spec=CollectSpec(),
            inputs=(self._origins,),
            # As parallel as its input: records come in their order.
            parallelism=self._common_parallelism(),
            driver_object=buffer,
        )
        return collect, buffer

    # -- iteration -----------------------------------------------------------------------------

    def iterate(self, max_wait: int = 0) -> IterativeStream:
        """Begin a loop, which ``close_with`` of the result closes. Not in PyFlink.

        Once this stream has ended, the loop ends when nothing came back for ``max_wait``
        milliseconds; with 0 it never does.

        >>> from firesteel.datastream import StreamExecutionEnvironment
        >>> numbers = StreamExecutionEnvironment.get_execution_environment().from_collection([1])
        >>> loop = numbers.iterate(max_wait=100)
        >>> smaller = loop.map(lambda number: number - 1)
        >>> again = loop.close_with(smaller.filter(lambda number: number > 0))
        """
        from firesteel.datastream.data_stream.iterations import IterativeStream

        return IterativeStream(self, max_wait)

    # -- helpers -------------------------------------------------------------------------------

    def _common_parallelism(self) -> int | None:
        """The parallelism of all origins if it is the same (None: the environment's)."""
        parallelisms = {origin.transformation.parallelism for origin in self._origins}
        return parallelisms.pop() if len(parallelisms) == 1 else None

    def _apply(self, name: str, spec: OperatorSpec, output_type: TypeInformation) -> DataStream:
        transformation = Transformation(
            name=name, spec=spec, inputs=(self._origins,), output_type=output_type
        )
        self._environment._add_operator(transformation)
        return self._stream((Origin(transformation),), output_type)

    def _sink(self, name: str, spec: OperatorSpec, driver_object: Any = None) -> DataStreamSink:
        transformation = Transformation(
            name=name, spec=spec, inputs=(self._origins,), driver_object=driver_object
        )
        self._environment._add_operator(transformation)
        return DataStreamSink(transformation)

    def _stream(self, origins: tuple[Origin, ...], value_type: TypeInformation) -> DataStream:
        from firesteel.datastream.data_stream.data_stream import DataStream

        return DataStream(self._environment, origins, value_type)

    def _check_joinable(self, operation: str, other: object) -> None:
        if not isinstance(other, StreamBase):
            raise ProgramTypeError(
                f"{operation} expects a DataStream or a KeyedStream, but got {shorten(other)} of "
                f"type {type(other).__qualname__}."
            )
        if other._environment is not self._environment:
            raise InvalidProgramError(
                f"{operation}: both streams must come from the same StreamExecutionEnvironment."
            )
