"""The base of keyed and non-keyed streams, and the settings of operators and sinks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Any, Self, overload

from firesteel.common.columns import DECLARE_PRIMITIVES, reason_for_rows
from firesteel.common.expression_evaluation import evaluation_of, name_of
from firesteel.common.expressions import Expression
from firesteel.common.typeinfo import TupleTypeInfo, TypeInformation, Types
from firesteel.common.watermark_strategy import WatermarkStrategy
from firesteel.connectors.base import Sink
from firesteel.datastream.data_stream.arguments import (
    ProgramTypeError,
    as_type,
    check_not_aligned,
    check_timestamp_assigner,
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
    ComputeSpec,
    ConditionSpec,
    DataFrameSinkSpec,
    FilterBatchesSpec,
    FilterSpec,
    FlatMapBatchesSpec,
    FlatMapSpec,
    MapBatchesSpec,
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
from firesteel.stability import public_evolving

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
    """Settings of the operator that produced a stream. Each setter returns the stream."""

    def _operator(self, setting: str) -> Transformation:
        """Return the one operator that ``setting`` applies to, or raise an error if there is none."""
        raise NotImplementedError

    def name(self, name: str) -> Self:
        """Set the name that plans, logs and metrics show.

        Args:
            name: The name.

        >>> env.from_collection([1]).map(abs).name("absolute").get_name()
        'absolute'
        """
        self._operator("name").name = _text("name", name)
        return self

    def uid(self, uid: str) -> Self:
        """Set the id by which an operator finds its state in a checkpoint or savepoint.

        Set it for each operator with state before the program goes into production. Without it the id
        follows from the position in the graph, and changes with the graph.

        Args:
            uid: The id, unique within the job.

        >>> counts = env.from_collection(["a"]).key_by(lambda word: word).sum(0).uid("counts")
        """
        self._operator("uid").uid = _text("uid", uid)
        return self

    def set_uid_hash(self, uid_hash: str) -> Self:
        """Set the id of an operator in its final form, for example from the logs of an earlier job.

        Args:
            uid_hash: 32 hexadecimal characters.

        >>> mapped = env.from_collection([1]).map(abs)
        >>> mapped = mapped.set_uid_hash("0123456789abcdef0123456789abcdef")
        """
        self._operator("set_uid_hash").uid_hash = check_uid_hash(uid_hash)
        return self

    def set_parallelism(self, parallelism: int) -> Self:
        """Set the number of subtasks of the operator.

        Args:
            parallelism: A number from 1 on.

        Raises:
            InvalidProgramError: The operator is not parallel and the number is not 1.

        >>> mapped = env.from_collection([1, 2]).map(abs).set_parallelism(2)
        >>> sorted(mapped.execute_and_collect())
        [1, 2]
        """
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
        """Set the longer text that the plan shows instead of the name.

        Args:
            description: The text.

        >>> mapped = env.from_collection([1]).map(abs).set_description("distance to zero")
        >>> "distance to zero" in env.get_execution_plan()
        True
        """
        self._operator("set_description").description = _text("description", description)
        return self

    def disable_chaining(self) -> Self:
        """Never run this operator in a chain with others.

        >>> mapped = env.from_collection([1]).map(abs).disable_chaining()
        """
        self._operator("disable_chaining").chaining = ChainingStrategy.NEVER
        return self

    def slot_sharing_group(self, slot_sharing_group: Any) -> Self:
        """Set the slot sharing group of the operator. Operators of different groups never share a slot.

        Args:
            slot_sharing_group: The name of the group, or a SlotSharingGroup.

        >>> mapped = env.from_collection([1]).map(abs).slot_sharing_group("heavy")
        """
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
        raise InvalidProgramError(f"The {what} must be a non-empty str, not {value!r}.")
    return value


class DataStreamSink(OperatorSettings):
    """A sink of the program. Its settings can be changed; no operator can follow it.

    >>> env.from_collection(["a", "b"]).print().name("letters").set_parallelism(1)
    <firesteel.datastream.data_stream.stream_base.DataStreamSink object at ...>
    >>> result = env.execute()
    a
    b
    """

    def __init__(self, transformation: Transformation) -> None:
        self._transformation = transformation

    def _operator(self, setting: str) -> Transformation:
        return self._transformation


class RecordedStream:
    """The operators that produce a stream, as the program recorded them."""

    def __init__(self, origins: tuple[Origin, ...]) -> None:
        self._origins = origins

    @property
    def origins(self) -> tuple[Origin, ...]:
        """The outputs of operators that the stream unites. Only a union has several."""
        return self._origins

    @property
    def parallelism(self) -> int | None:
        """The parallelism of all origins if it is the same; None stands for the environment's."""
        parallelisms = {origin.transformation.parallelism for origin in self.origins}
        return parallelisms.pop() if len(parallelisms) == 1 else None


class StreamBase(ABC):
    """Methods shared by keyed and non-keyed streams."""

    def __init__(
        self,
        environment: StreamExecutionEnvironment,
        origins: tuple[Origin, ...],
        value_type: TypeInformation,
    ) -> None:
        self._environment = environment
        # For Firesteel's own modules.
        self.recorded = RecordedStream(origins)
        self._type = value_type

    def get_type(self) -> TypeInformation:
        """Return the type of the records.

        >>> env.from_collection(["a"], Types.STRING()).get_type()
        String
        """
        return self._type

    def get_execution_environment(self) -> StreamExecutionEnvironment:
        """Return the environment that the stream belongs to.

        >>> env.from_collection([1]).get_execution_environment() is env
        True
        """
        return self._environment

    def get_execution_config(self) -> ExecutionConfig:
        """Return the ExecutionConfig of the environment.

        >>> env.from_collection([1]).get_execution_config().get_parallelism()
        1
        """
        return self._environment.get_config()

    # -- operators -----------------------------------------------------------------------------

    def map(
        self,
        func: Callable[[Any], Any] | MapFunction | Expression,
        output_type: TypeInformation | None = None,
    ) -> DataStream:
        """Turn each record into one result.

        Args:
            func: A callable or MapFunction that takes a record; or an expression, whose result is
                of its own type.
            output_type: The type of the results. Without it, results are arbitrary Python objects.

        Returns:
            The stream of results.

        >>> squares = env.from_collection([1, 2, 3]).map(lambda number: number * number)
        >>> list(squares.execute_and_collect())
        [1, 4, 9]
        """
        if isinstance(func, Expression):
            return self._computed(func, output_type)
        require_function_or_callable("map", func, MapFunction)
        return self._apply("Map", MapSpec(func), as_type("map", output_type))

    def flat_map(
        self,
        func: Callable[[Any], Any] | FlatMapFunction,
        output_type: TypeInformation | None = None,
    ) -> DataStream:
        """Turn each record into any number of results.

        Args:
            func: A callable or FlatMapFunction that returns or yields the results of a record.
            output_type: The type of the results.

        Returns:
            The stream of results.

        >>> words = env.from_collection(["to be", "or not"]).flat_map(str.split)
        >>> list(words.execute_and_collect())
        ['to', 'be', 'or', 'not']
        """
        require_function_or_callable("flat_map", func, FlatMapFunction)
        return self._apply("FlatMap", FlatMapSpec(func), as_type("flat_map", output_type))

    def filter(self, func: Callable[[Any], Any] | FilterFunction | Expression) -> DataStream:
        """Keep the records for which a function returns true.

        Args:
            func: A callable or FilterFunction that takes a record, or an expression.

        Returns:
            A stream of the same type.

        >>> evens = env.from_collection([1, 2, 3, 4]).filter(lambda number: number % 2 == 0)
        >>> list(evens.execute_and_collect())
        [2, 4]
        """
        if isinstance(func, Expression):
            evaluation = evaluation_of(func, self._type)
            if evaluation.type_info != Types.BOOLEAN():
                raise InvalidProgramError(
                    f"filter needs a condition, but {func!r} is of the type {evaluation.type_info}."
                )
            return self._apply("Filter", ConditionSpec(func, self._type), self._type)
        require_function_or_callable("filter", func, FilterFunction)
        return self._apply("Filter", FilterSpec(func), self._type)

    @public_evolving
    def select(self, *expressions: Expression) -> DataStream:
        """Turn each record into a row of expressions. Not in PyFlink.

        Args:
            expressions: The fields of the row. A field of the record keeps its name, and other
                expressions get one with ``alias``.

        Returns:
            A stream of rows.

        Raises:
            InvalidProgramError: The stream has no type of primitives, a field does not exist or has
                no name, or two have the same name.

        >>> bid = Types.TUPLE([Types.STRING(), Types.LONG()])
        >>> bids = env.from_collection([("ann", 100), ("bob", 250)], bid)
        >>> euros = bids.select(col("f0").alias("name"), (col("f1") * 0.5).alias("euros"))
        >>> list(euros.execute_and_collect())
        [Row(name='ann', euros=50.0), Row(name='bob', euros=125.0)]
        """
        for expression in expressions:
            require_instance("select", expression, Expression, hint='Write col("name").')
        if not expressions:
            raise InvalidProgramError("select needs at least one expression.")
        types = [evaluation_of(one, self._type).type_info for one in expressions]
        names = [name_of(one, self._type) for one in expressions]
        twice = [name for name in names if names.count(name) > 1]
        if twice:
            raise InvalidProgramError(f"select: two fields have the name {twice[0]!r}.")
        result_type = Types.ROW_NAMED(names, types)
        return self._apply("Select", ComputeSpec(expressions, self._type, result_type), result_type)

    def _computed(self, expression: Expression, output_type: object) -> DataStream:
        result_type = evaluation_of(expression, self._type).type_info
        if output_type is not None and output_type != result_type:
            raise InvalidProgramError(
                f"map: {expression!r} is of the type {result_type}, not {output_type}."
            )
        return self._apply("Map", ComputeSpec((expression,), self._type, result_type), result_type)

    @public_evolving
    def map_batches(
        self,
        func: Callable[[Any], Any] | MapFunction,
        output_type: TypeInformation | None = None,
    ) -> DataStream:
        """Turn many records at once into one result each, as Arrow columns. Not in PyFlink.

        The stream needs a type of primitives: a row or tuple of them, which has a column per field,
        or a single one, which is the column ``value``. The number of records in a batch varies, and
        results must not depend on it. Results keep the timestamps of their records.

        Args:
            func: A callable or MapFunction that takes a ``pyarrow.RecordBatch``. It returns one of
                as many records, or a table of any library that speaks the Arrow C interface.
                Columns of a row with field names are found by name, others by position.
            output_type: The type of the results, of primitives. Without it, the type stays the same.

        Raises:
            InvalidProgramError: A type is not of primitives.

        >>> import pyarrow.compute as pc
        >>> price = Types.ROW_NAMED(["item", "euros"], [Types.STRING(), Types.DOUBLE()])
        >>> prices = env.from_collection([Row("pen", 2.0), Row("ink", 8.0)], price)
        >>> def halved(batch):
        ...     return batch.set_column(1, "euros", pc.divide(batch.column("euros"), 2))
        >>> list(prices.map_batches(halved).execute_and_collect())
        [Row(item='pen', euros=1.0), Row(item='ink', euros=4.0)]
        """
        require_function_or_callable("map_batches", func, MapFunction)
        result_type = self._columnar_result("map_batches", output_type)
        spec = MapBatchesSpec(func, self._type, result_type)
        return self._apply("MapBatches", spec, result_type)

    @public_evolving
    def filter_batches(self, func: Callable[[Any], Any] | FilterFunction) -> DataStream:
        """Keep the records for which a mask of many records is true. Not in PyFlink.

        Args:
            func: A callable or FilterFunction that takes a ``pyarrow.RecordBatch``, as in
                ``map_batches``. It returns a boolean per record: an array, or a list. A null counts
                as false.

        Returns:
            A stream of the same type.

        Raises:
            InvalidProgramError: The type of the stream is not of primitives.

        >>> import pyarrow.compute as pc
        >>> numbers = env.from_collection([1, 5, 9], Types.LONG())
        >>> large = numbers.filter_batches(lambda batch: pc.greater(batch.column("value"), 4))
        >>> list(large.execute_and_collect())
        [5, 9]
        """
        require_function_or_callable("filter_batches", func, FilterFunction)
        self._check_columnar("filter_batches", self._type)
        return self._apply("FilterBatches", FilterBatchesSpec(func, self._type), self._type)

    @public_evolving
    def flat_map_batches(
        self,
        func: Callable[[Any], Any] | FlatMapFunction,
        output_type: TypeInformation | None = None,
    ) -> DataStream:
        """Turn many records at once into any number of results, as Arrow columns. Not in PyFlink.

        Args:
            func: A callable or FlatMapFunction that takes a ``pyarrow.RecordBatch``, as in
                ``map_batches``. It returns the results, or a pair: the results, and for each of
                them the position of its record in the batch. If the records have timestamps, it
                must return the pair, because a result takes the timestamp of its record.
            output_type: The type of the results, of primitives. Without it, the type stays the same.

        Raises:
            InvalidProgramError: A type is not of primitives.

        >>> import pyarrow as pa, pyarrow.compute as pc
        >>> lines = env.from_collection(["to be", "or not"], Types.STRING())
        >>> def words(batch):
        ...     lists = pc.utf8_split_whitespace(batch.column("value"))
        ...     return pc.list_flatten(lists), pc.list_parent_indices(lists)
        >>> list(lines.flat_map_batches(words).execute_and_collect())
        ['to', 'be', 'or', 'not']
        """
        require_function_or_callable("flat_map_batches", func, FlatMapFunction)
        result_type = self._columnar_result("flat_map_batches", output_type)
        spec = FlatMapBatchesSpec(func, self._type, result_type)
        return self._apply("FlatMapBatches", spec, result_type)

    def _columnar_result(self, operation: str, given: object) -> TypeInformation:
        """Return the type of the results, after a check of it and of the type of the stream."""
        self._check_columnar(operation, self._type)
        if given is None:
            return self._type
        result_type = as_type(operation, given)
        self._check_columnar(operation, result_type, "output type")
        return result_type

    def _check_columnar(
        self, operation: str, type_info: TypeInformation, what: str = "stream"
    ) -> None:
        reason = reason_for_rows(type_info)
        if reason is not None:
            raise InvalidProgramError(
                f"{operation} needs columns, but the {what} has {reason}. {DECLARE_PRIMITIVES}"
            )

    def project(self, *field_indexes: int) -> DataStream:
        """Keep some fields of a stream of tuples.

        Args:
            field_indexes: The positions of the fields, in the order of the result.

        Raises:
            InvalidProgramError: The stream has no tuple type, or a field does not exist.

        >>> pairs = env.from_collection([("a", 1)], Types.TUPLE([Types.STRING(), Types.INT()]))
        >>> list(pairs.project(1, 0).execute_and_collect())
        [(1, 'a')]
        """
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
        """Give the records timestamps and the stream watermarks, in place of those it has.

        Args:
            watermark_strategy: The strategy. It cannot have watermark alignment, which needs a source.

        >>> clicks = env.from_collection([("ann", 1000), ("bob", 2000)])
        >>> strategy = WatermarkStrategy.for_bounded_out_of_orderness(
        ...     Duration.of_seconds(5)
        ... ).with_timestamp_assigner(lambda click, _: click[1])
        >>> class Show(ProcessFunction):
        ...     def process_element(self, value, ctx):
        ...         yield value[0], ctx.timestamp()
        >>> timed = clicks.assign_timestamps_and_watermarks(strategy)
        >>> list(timed.process(Show()).execute_and_collect())
        [('ann', 1000), ('bob', 2000)]
        """
        operation = "assign_timestamps_and_watermarks"
        require_instance(operation, watermark_strategy, WatermarkStrategy)
        check_not_aligned(operation, watermark_strategy)
        check_timestamp_assigner(operation, watermark_strategy, self._type)
        spec = TimestampsAndWatermarksSpec(replace(watermark_strategy))
        return self._apply("Timestamps/Watermarks", spec, self._type)

    @abstractmethod
    def key_by(
        self,
        key_selector: Callable[[Any], Any] | KeySelector,
        key_type: TypeInformation | None = None,
    ) -> KeyedStream:
        """Partition the stream by key."""

    def union(self, *streams: StreamBase) -> DataStream:
        """Put the records of several streams of the same type into one stream.

        Args:
            streams: The other streams. A stream may occur twice.

        Raises:
            InvalidProgramError: The types differ.

        >>> low, high = env.from_collection([1, 2]), env.from_collection([8, 9])
        >>> sorted(low.union(high).map(lambda number: number).execute_and_collect())
        [1, 2, 8, 9]
        """
        for stream in streams:
            check_same_environment("union", self, stream)
            if stream.get_type() != self._type:
                raise InvalidProgramError(
                    f"Cannot union streams of different types: {self._type} and "
                    f"{stream.get_type()}."
                )
        origins = [origin for stream in (self, *streams) for origin in stream.recorded.origins]
        return self._stream(tuple(origins), self._type)

    @overload
    def connect(self, ds: StreamBase) -> ConnectedStreams: ...

    @overload
    def connect(self, ds: BroadcastStream) -> BroadcastConnectedStream: ...

    def connect(
        self, ds: StreamBase | BroadcastStream
    ) -> ConnectedStreams | BroadcastConnectedStream:
        """Connect two streams of any types, so that one function reads both.

        Args:
            ds: A stream, or a BroadcastStream.

        Returns:
            ConnectedStreams, or a BroadcastConnectedStream for a BroadcastStream.

        >>> class Label(CoMapFunction):
        ...     def map1(self, value):
        ...         return f"number {value}"
        ...     def map2(self, value):
        ...         return f"word {value}"
        >>> numbers, words = env.from_collection([1]), env.from_collection(["a"])
        >>> sorted(numbers.connect(words).map(Label()).execute_and_collect())
        ['number 1', 'word a']
        """
        from firesteel.datastream.data_stream.connected_streams import (
            BroadcastConnectedStream,
            BroadcastStream,
            ConnectedStreams,
        )

        if isinstance(ds, BroadcastStream):
            check_same_environment("connect", self, ds.input_stream)
            return BroadcastConnectedStream(self, ds, ds.broadcast_state_descriptors)
        check_same_environment("connect", self, ds)
        return ConnectedStreams(self, ds)

    # -- joins; not in PyFlink -----------------------------------------------------------------

    @public_evolving
    def join(self, other_stream: StreamBase) -> JoinedStreams:
        """Join records with equal keys within windows. Not in PyFlink.

        Args:
            other_stream: The second stream.

        Returns:
            A JoinedStreams; ``where``, ``equal_to``, ``window`` and ``apply`` follow.

        >>> numbers, squares = env.from_collection([1, 2, 3]), env.from_collection([4, 9])
        >>> joined = (
        ...     numbers.join(squares)
        ...     .where(lambda number: number * number)
        ...     .equal_to(lambda square: square)
        ...     .window(GlobalWindows.create_with_end_of_stream_trigger())
        ...     .apply(lambda number, square: (number, square))
        ... )
        >>> list(joined.execute_and_collect())
        [(2, 4), (3, 9)]
        """
        from firesteel.datastream.data_stream.joins import JoinedStreams

        check_same_environment("join", self, other_stream)
        return JoinedStreams(self, other_stream)

    @public_evolving
    def co_group(self, other_stream: StreamBase) -> CoGroupedStreams:
        """Group the records of two streams by equal keys within windows. Not in PyFlink.

        Args:
            other_stream: The second stream.

        Returns:
            A CoGroupedStreams; ``where``, ``equal_to``, ``window`` and ``apply`` follow.

        >>> left, right = env.from_collection(["a", "b"]), env.from_collection(["a", "a"])
        >>> counts = (
        ...     left.co_group(right)
        ...     .where(lambda letter: letter)
        ...     .equal_to(lambda letter: letter)
        ...     .window(GlobalWindows.create_with_end_of_stream_trigger())
        ...     .apply(lambda first, second: [(first[0], len(second))])
        ... )
        >>> list(counts.execute_and_collect())
        [('a', 2), ('b', 0)]
        """
        from firesteel.datastream.data_stream.joins import CoGroupedStreams

        check_same_environment("co_group", self, other_stream)
        return CoGroupedStreams(self, other_stream)

    @public_evolving
    def join_on(self, other_stream: StreamBase, how: str = "inner") -> UnboundedJoin:
        """Join all records with equal keys, without a window. Not in PyFlink.

        Args:
            other_stream: The second stream.
            how: One of ``inner``, ``left``, ``right`` and ``full``.

        Returns:
            An UnboundedJoin; ``where``, ``equal_to`` and ``apply`` follow.

        >>> users = env.from_collection([(1, "ann"), (2, "bob")])
        >>> clicks = env.from_collection([(1, "home"), (1, "cart")])
        >>> joined = users.join_on(clicks).where(lambda user: user[0]).equal_to(lambda click: click[0])
        >>> list(joined.apply(lambda user, click: (user[1], click[1])).execute_and_collect())
        [<Row('ann', 'home')>, <Row('ann', 'cart')>]
        """
        from firesteel.datastream.data_stream.joins import UnboundedJoin

        check_same_environment("join_on", self, other_stream)
        return UnboundedJoin(self, other_stream, how)

    # -- sinks ---------------------------------------------------------------------------------

    def print(self, sink_identifier: str | None = None) -> DataStreamSink:
        """Write each record as a line to the standard output of the program.

        With a parallelism above 1, each line begins with the number of the subtask, from 1.

        Args:
            sink_identifier: A prefix for the lines.

        >>> sink = env.from_collection(["a", "b"]).print()
        >>> sink = env.from_collection([1]).print("number")
        >>> result = env.execute()
        a
        b
        number> 1
        """
        return self._sink("Print to Std. Out", PrintSpec(sink_identifier, self._type))

    def add_sink(self, sink_func: SinkFunction | Sink) -> DataStreamSink:
        """Write each record with a SinkFunction.

        Args:
            sink_func: Its ``invoke`` is called for each record. A TwoPhaseCommitSinkFunction writes in
                transactions. A JdbcSink is accepted, as in PyFlink.

        >>> class Shout(SinkFunction):
        ...     def invoke(self, value, context):
        ...         print(value.upper())
        >>> sink = env.from_collection(["a", "b"]).add_sink(Shout())
        >>> result = env.execute()
        A
        B
        """
        if isinstance(sink_func, Sink) and sink_func.is_sink_function:
            return self.sink_to(sink_func)
        require_instance("add_sink", sink_func, SinkFunction, hint="For a Sink, use sink_to().")
        if isinstance(sink_func, TwoPhaseCommitSinkFunction):
            return self._sink("Unnamed", TwoPhaseCommitSinkSpec(sink_func))
        return self._sink("Unnamed", SinkFunctionSpec(sink_func))

    def sink_to(self, sink: Sink) -> DataStreamSink:
        """Write each record with a Sink, which has a writer and may have a committer.

        Args:
            sink: The sink, for example a FileSink.

        >>> from firesteel.testing import ListSink
        >>> kept = ListSink()
        >>> sink = env.from_collection(["a", "b"]).sink_to(kept)
        >>> result = env.execute()
        >>> kept.values()
        ['a', 'b']
        """
        require_instance("sink_to", sink, Sink, hint="For a SinkFunction, use add_sink().")
        return self._sink("Sink", SinkSpec(sink.with_input_type(self._type)))

    @public_evolving
    def to_dataframe(self, write: Callable[[Any, int], None]) -> DataStreamSink:
        """Hand the records to Spark as DataFrames. Not in PyFlink.

        The columns are the fields of a ROW type, the fields ``f0``, ``f1`` and so on of a TUPLE, or one
        column ``value``.

        Args:
            write: Called in the driver as ``write(data_frame, epoch)`` once per epoch, or once in all in
                batch mode.

        Raises:
            InvalidProgramError: The stream has no type, so the columns are unknown.

        >>> spark = env.get_spark_session()
        >>> _ = env.set_runtime_mode(RuntimeExecutionMode.BATCH)
        >>> numbers = env.from_collection([1, 2, 3], Types.LONG())
        >>> sink = numbers.to_dataframe(lambda data_frame, epoch: data_frame.show())
        >>> result = env.execute()
        +-----+
        |value|
        +-----+
        |    1|
        |    2|
        |    3|
        +-----+
        <BLANKLINE>
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

    @overload
    def execute_and_collect(
        self, job_execution_name: str | None = None, limit: None = None
    ) -> CloseableIterator: ...

    @overload
    def execute_and_collect(
        self, job_execution_name: str | None = None, *, limit: int
    ) -> list[Any]: ...

    @overload
    def execute_and_collect(self, job_execution_name: str | None, limit: int) -> list[Any]: ...

    def execute_and_collect(
        self, job_execution_name: str | None = None, limit: int | None = None
    ) -> CloseableIterator | list[Any]:
        """Run the job and return the records of this stream.

        Everything that was added to the environment since its last job runs, too.

        Args:
            job_execution_name: The name of the job.
            limit: Return a list of at most this many records, and cancel the job.

        Returns:
            A CloseableIterator, or a list if ``limit`` is set.

        >>> numbers = env.from_sequence(1, 1_000)
        >>> numbers.execute_and_collect(limit=3)
        [1, 2, 3]
        >>> with env.from_collection([1, 2]).execute_and_collect() as results:
        ...     for result in results:
        ...         print(result)
        1
        2
        """
        if limit is not None and limit < 1:
            raise InvalidProgramError(f"The limit must be at least 1, not {limit!r}.")
        collect, buffer = self._collect()
        program, parallelism = self._environment.program, self._environment.get_parallelism()
        job = program.compile(parallelism, job_execution_name, collect)
        results = program.launch_and_collect(job, buffer)
        if limit is None:
            return results
        with results:
            return list(islice(results, limit))

    @public_evolving
    def collect_async(self) -> CloseableIterator:
        """Return an iterator over this stream's records, to read once the job has started. Not in PyFlink.

        One job can have several of them, next to other sinks. Start it with ``execute_async``. Closing the
        iterator drops the remaining records; the job continues.

        >>> numbers = env.from_collection([1, 2])
        >>> evens = numbers.filter(lambda number: number % 2 == 0).collect_async()
        >>> odds = numbers.filter(lambda number: number % 2 == 1).collect_async()
        >>> client = env.execute_async()
        >>> list(evens), list(odds)
        ([2], [1])
        """
        collect, buffer = self._collect()
        self._environment.program.add_operator(collect)
        return CloseableIterator(iter(buffer), buffer.close)

    def _collect(self) -> tuple[Transformation, CollectBuffer]:
        buffer = CollectBuffer()
        return collect_sink(self, buffer), buffer

    # -- iteration -----------------------------------------------------------------------------

    @public_evolving
    def iterate(self, max_wait: int = 0) -> IterativeStream:
        """Begin a loop, which ``close_with`` of the result closes. Not in PyFlink.

        Args:
            max_wait: When the input has ended, the loop ends after this many milliseconds without a
                record that came back. With 0 it never ends.

        >>> numbers = env.from_collection([1, 3])
        >>> loop = numbers.iterate(max_wait=100)
        >>> smaller = loop.map(lambda number: number - 1)
        >>> again = loop.close_with(smaller.filter(lambda number: number > 0))
        >>> sorted(smaller.execute_and_collect())
        [0, 0, 1, 2]
        """
        from firesteel.datastream.data_stream.iterations import IterativeStream

        return IterativeStream(self, max_wait)

    # -- helpers -------------------------------------------------------------------------------

    def _apply(self, name: str, spec: OperatorSpec, output_type: TypeInformation) -> DataStream:
        return add_operator(name, spec, output_type, self)

    def _sink(self, name: str, spec: OperatorSpec, driver_object: Any = None) -> DataStreamSink:
        transformation = Transformation(
            name=name, spec=spec, inputs=(self.recorded.origins,), driver_object=driver_object
        )
        self._environment.program.add_operator(transformation)
        return DataStreamSink(transformation)

    def _stream(self, origins: tuple[Origin, ...], value_type: TypeInformation) -> DataStream:
        from firesteel.datastream.data_stream.data_stream import DataStream

        return DataStream(self._environment, origins, value_type)


def add_operator(
    name: str, spec: OperatorSpec, output_type: TypeInformation, *inputs: StreamBase
) -> DataStream:
    """Add an operator that reads ``inputs`` to their program, and return its stream."""
    from firesteel.datastream.data_stream.data_stream import DataStream

    transformation = Transformation(
        name=name,
        spec=spec,
        inputs=tuple(stream.recorded.origins for stream in inputs),
        output_type=output_type,
    )
    environment = inputs[0].get_execution_environment()
    environment.program.add_operator(transformation)
    return DataStream(environment, (Origin(transformation),), output_type)


def check_same_environment(operation: str, stream: StreamBase, other: object) -> None:
    """Check that ``other`` is a stream, and that one job can have it together with ``stream``."""
    if not isinstance(other, StreamBase):
        raise ProgramTypeError(
            f"{operation} expects a DataStream or a KeyedStream, but got {shorten(other)} of "
            f"type {type(other).__qualname__}."
        )
    if other.get_execution_environment() is not stream.get_execution_environment():
        raise InvalidProgramError(
            f"{operation}: both streams must come from the same StreamExecutionEnvironment."
        )


def collect_sink(stream: StreamBase, collected: Any) -> Transformation:
    """A sink that sends the records of a stream to ``collected``, which stays in the driver."""
    return Transformation(
        name="Data stream collect sink",
        spec=CollectSpec(),
        inputs=(stream.recorded.origins,),
        # With the parallelism of its input, records keep their order.
        parallelism=stream.recorded.parallelism,
        driver_object=collected,
    )
