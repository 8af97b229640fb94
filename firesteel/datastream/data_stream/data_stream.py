"""Non-keyed streams, and streams that ``split`` divides."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, NoReturn, Self, overload

from firesteel.common.expressions import Expression
from firesteel.common.key_expressions import KeyExpressions
from firesteel.common.typeinfo import TypeInformation
from firesteel.datastream.data_stream.arguments import (
    ProgramTypeError,
    as_type,
    expressions_of,
    key_selector_of,
    partitioner_of,
    require_function_or_callable,
    require_instance,
)
from firesteel.datastream.data_stream.connected_streams import BroadcastStream
from firesteel.datastream.data_stream.keyed_stream import KeyedStream
from firesteel.datastream.data_stream.stream_base import OperatorSettings, StreamBase, add_operator
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
from firesteel.stability import public_evolving

if TYPE_CHECKING:
    from firesteel.datastream.data_stream.cache import CachedDataStream


class DataStream(StreamBase, OperatorSettings):
    """A stream of records of one type.

    Operators return new streams. Setters such as ``name`` change the operator that produced this
    stream. They are errors after a union, a repartitioning or a side output, which have no operator.

    >>> words = env.from_collection(["to be", "or not to be"]).flat_map(str.split)
    >>> counts = words.map(lambda word: (word, 1)).key_by(lambda pair: pair[0]).sum(1)
    >>> sink = counts.print()
    >>> result = env.execute("word count")
    ('to', 1)
    ('be', 1)
    ('or', 1)
    ('not', 1)
    ('to', 2)
    ('be', 2)
    """

    # -- operators -----------------------------------------------------------------------------

    def process(
        self, func: ProcessFunction, output_type: TypeInformation | None = None
    ) -> DataStream:
        """Call a function with each record and a context: timestamps, side outputs, any number of results.

        Args:
            func: A ProcessFunction.
            output_type: The type of the results.

        >>> class Twice(ProcessFunction):
        ...     def process_element(self, value, ctx):
        ...         yield value
        ...         yield value
        >>> list(env.from_collection(["a"]).process(Twice()).execute_and_collect())
        ['a', 'a']
        """
        require_instance(
            "process",
            func,
            ProcessFunction,
            hint="A KeyedProcessFunction needs key_by() before process().",
        )
        return self._apply("PROCESS", ProcessSpec(func), as_type("process", output_type))

    def key_by(
        self,
        key_selector: Callable[[Any], Any] | KeySelector | Expression | tuple[Expression, ...],
        key_type: TypeInformation | None = None,
    ) -> KeyedStream:
        """Partition the stream by key. All records of a key go to the same subtask, which has state per key.

        Args:
            key_selector: A callable or KeySelector that returns the key of a record. Keys are numbers,
                text, bytes, dates and times, None, and tuples or rows of these. On a stream of a
                declared type, the key may be an expression, or a tuple of expressions.
            key_type: The type of the key. That of expressions is known.

        >>> words = env.from_collection(["a", "b", "a"]).map(lambda word: (word, 1))
        >>> list(words.key_by(lambda pair: pair[0]).sum(1).execute_and_collect())
        [('a', 1), ('b', 1), ('a', 2)]
        >>> pairs = words.map(lambda pair: pair, Types.TUPLE([Types.STRING(), Types.INT()]))
        >>> list(pairs.key_by(col(0)).sum(1).execute_and_collect())
        [('a', 1), ('b', 1), ('a', 2)]
        """
        expressions = expressions_of("key_by", key_selector)
        if expressions:
            keys = KeyExpressions(expressions, self._type)
            if key_type is not None and key_type != keys.key_type:
                raise InvalidProgramError(
                    f"key_by: {keys!r} is of the type {keys.key_type}, not {key_type}."
                )
            return KeyedStream(self, Partitioning(ShipStrategy.HASH, keys, keys.key_type))
        select, functions = key_selector_of("key_by", key_selector)
        by_key = Partitioning(
            ShipStrategy.HASH,
            key_selector=select,
            key_type=as_type("key_by", key_type, "key type"),
            functions=functions,
        )
        return KeyedStream(self, by_key)

    @public_evolving
    def split(
        self, output_selector: Callable[[Any], Iterable[str] | str] | OutputSelector
    ) -> SplitStream:
        """Name the outputs that each record goes to; ``select`` takes some of them. Not in PyFlink.

        Args:
            output_selector: A callable or OutputSelector that returns names, or one name.

        >>> numbers = env.from_collection([1, 2, 3])
        >>> split = numbers.split(lambda number: "even" if number % 2 == 0 else "odd")
        >>> list(split.select("odd").execute_and_collect())
        [1, 3]
        """
        return SplitStream(self, output_selector)

    def get_side_output(self, output_tag: OutputTag) -> DataStream:
        """Return the records that the operator of this stream sent to a side output.

        Args:
            output_tag: The tag that the function emitted with.

        Raises:
            InvalidProgramError: The side output was read with a different type before.

        >>> rejected = OutputTag("rejected")
        >>> class Parse(ProcessFunction):
        ...     def process_element(self, value, ctx):
        ...         if value.isdigit():
        ...             yield int(value)
        ...         else:
        ...             yield rejected, value
        >>> parsed = env.from_collection(["1", "x", "2"]).process(Parse())
        >>> list(parsed.get_side_output(rejected).execute_and_collect())
        ['x']
        """
        if not isinstance(output_tag, OutputTag):
            raise ProgramTypeError(
                f"get_side_output expects an OutputTag, but got {shorten(output_tag)}."
            )
        operator = self._operator("get_side_output")
        known_type = operator.side_output_types.setdefault(output_tag.tag_id, output_tag.type_info)
        if known_type != output_tag.type_info:
            raise InvalidProgramError(
                f"The side output '{output_tag.tag_id}' of '{operator.name}' is read with two "
                f"types: {known_type} and {output_tag.type_info}. Use one type."
            )
        origin = Origin(operator, side_output=output_tag.tag_id)
        return self._stream((origin,), output_tag.type_info)

    # -- partitioning --------------------------------------------------------------------------

    def forward(self) -> DataStream:
        """Send the records of subtask i to subtask i of the next operator, which must be as parallel.

        >>> forwarded = env.from_collection([1, 2]).map(abs).forward().map(str)
        >>> list(forwarded.execute_and_collect())
        ['1', '2']
        """
        return self._shipped(partitioning.FORWARD)

    def rebalance(self) -> DataStream:
        """Send records to all subtasks of the next operator in turn.

        >>> spread = env.from_collection([1, 2]).rebalance().map(str)
        >>> list(spread.execute_and_collect())
        ['1', '2']
        """
        return self._shipped(partitioning.REBALANCE)

    def rescale(self) -> DataStream:
        """Send records in turn to the subtasks of the next operator that belong to this one.

        With two subtasks before and four after, each subtask sends to two.

        >>> spread = env.from_collection([1, 2]).rescale().map(str)
        >>> list(spread.execute_and_collect())
        ['1', '2']
        """
        return self._shipped(partitioning.RESCALE)

    def shuffle(self) -> DataStream:
        """Send each record to a random subtask of the next operator.

        >>> spread = env.from_collection([1, 2]).shuffle().map(str)
        >>> sorted(spread.execute_and_collect())
        ['1', '2']
        """
        return self._shipped(partitioning.SHUFFLE)

    @public_evolving
    def global_(self) -> DataStream:
        """Send all records to the first subtask of the next operator. Not in PyFlink.

        >>> gathered = env.from_collection([1, 2]).global_().map(str)
        >>> list(gathered.execute_and_collect())
        ['1', '2']
        """
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
        """Send each record to every subtask of the next operator.

        Args:
            broadcast_state_descriptor: With descriptors of broadcast state, the result is a
                BroadcastStream to ``connect`` another stream with.
            other_broadcast_state_descriptors: Descriptors of more broadcast states.

        >>> copies = env.from_collection(["a"]).broadcast().map(str.upper).set_parallelism(2)
        >>> list(copies.execute_and_collect())
        ['A', 'A']
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
        """Let a function choose the subtask of the next operator for each record.

        Args:
            partitioner: A callable or Partitioner of a key and the number of subtasks.
            key_selector: Returns the key of a record.

        >>> numbers = env.from_collection([1, 2, 3])
        >>> parted = numbers.partition_custom(lambda key, subtasks: key % subtasks, lambda number: number)
        >>> list(parted.map(str).execute_and_collect())
        ['1', '2', '3']
        """
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
        origins = tuple(origin.shipped(how) for origin in self.recorded.origins)
        return self._stream(origins, self._type)

    # -- settings of the operator --------------------------------------------------------------

    def get_name(self) -> str:
        """Return the name of the operator that produced this stream.

        >>> env.from_collection([1]).map(abs).get_name()
        'Map'
        """
        return self._operator("get_name").name

    def set_max_parallelism(self, max_parallelism: int) -> Self:
        """Set the number of key groups, which is the highest parallelism that state can be rescaled to.

        Args:
            max_parallelism: A number from 1 to 32768.

        >>> mapped = env.from_collection([1]).map(abs).set_max_parallelism(720)
        """
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
        """Set the parallelism to 1 for good; a higher one is an error.

        >>> env.from_collection([1]).map(abs).force_non_parallel().set_parallelism(2)
        Traceback (most recent call last):
        ...
        firesteel.errors.InvalidProgramError: The parallelism of the non parallel operator 'Map' must be 1, not 2.
        """
        operator = self._operator("force_non_parallel")
        operator.parallelism = operator.max_parallelism = 1
        operator.non_parallel = True
        return self

    def set_buffer_timeout(self, timeout_millis: int) -> Self:
        """Set how long the records of the operator may wait in a buffer.

        Args:
            timeout_millis: Milliseconds; 0 sends them at once, -1 takes the value of the environment.

        >>> mapped = env.from_collection([1]).map(abs).set_buffer_timeout(10)
        """
        operator = self._operator("set_buffer_timeout")
        operator.buffer_timeout = check_buffer_timeout(timeout_millis)
        return self

    def start_new_chain(self) -> Self:
        """Begin a chain with this operator: it is not chained to the operators before it.

        >>> mapped = env.from_collection([1]).map(abs).start_new_chain()
        """
        self._operator("start_new_chain").chaining = ChainingStrategy.HEAD
        return self

    def _operator(self, setting: str) -> Transformation:
        origins = self.recorded.origins
        if len(origins) != 1:
            self._no_operator(setting, "a union")
        (origin,) = origins
        if origin.side_output is not None:
            self._no_operator(setting, "a side output")
        if origin.partitioning is not None:
            self._no_operator(setting, "a repartitioned stream")
        return origin.transformation

    def _no_operator(self, setting: str, what: str) -> NoReturn:
        raise InvalidProgramError(
            f"{setting}() applies to an operator, but {what} has none of its own. Call {setting}() "
            f"directly after the operator that it is for."
        )

    # -- windows -------------------------------------------------------------------------------

    def window_all(self, window_assigner: WindowAssigner[Any, Any]) -> AllWindowedStream:
        """Put the whole stream into windows, which one subtask handles.

        Args:
            window_assigner: The assigner.

        >>> pairs = env.from_collection([1, 2, 3, 4]).window_all(CountTumblingWindowAssigner.of(2))
        >>> list(pairs.reduce(lambda a, b: a + b).execute_and_collect())
        [3, 7]
        """
        return AllWindowedStream(self, window_assigner)

    @public_evolving
    def full_window_partition(self) -> NonKeyedPartitionWindowedStream:
        """Take all records of a subtask as one window, which ends with the input. Not in PyFlink.

        >>> numbers = env.from_collection([3, 1, 2]).full_window_partition()
        >>> list(numbers.sort_partition(0).execute_and_collect())
        [1, 2, 3]
        """
        return NonKeyedPartitionWindowedStream(self)

    @public_evolving
    def count_window_all(self, size: int, slide: int = 0) -> AllWindowedStream:
        """Put the whole stream into windows of a number of records. Not in PyFlink.

        Args:
            size: The number of records in a window.
            slide: The number of records from the start of a window to the start of the next. With 0
                windows do not overlap.

        >>> windows = env.from_collection([1, 2, 3, 4]).count_window_all(2, 1)
        >>> list(windows.reduce(lambda a, b: a + b).execute_and_collect())
        [3, 5, 7]
        """
        if slide == 0:
            return AllWindowedStream(self, CountTumblingWindowAssigner(size))
        return AllWindowedStream(self, CountSlidingWindowAssigner(size, slide))

    # -- caching -------------------------------------------------------------------------------

    def cache(self) -> CachedDataStream:
        """Keep this stream's records for the next jobs of the environment. For batch jobs only, as in Flink.

        The first job that computes the stream writes its records to files, and later jobs read them.

        >>> _ = env.set_runtime_mode(RuntimeExecutionMode.BATCH)
        >>> slow = env.from_collection([1, 2]).map(lambda number: number * 10).cache()
        >>> list(slow.execute_and_collect())
        [10, 20]
        >>> list(slow.map(str).execute_and_collect())  # reads the files
        ['10', '20']
        """
        from firesteel.datastream.data_stream.cache import CachedDataStream

        cache = self._environment.program.add_cache(
            self.recorded.origins, self._type, self.recorded.parallelism
        )
        return CachedDataStream(self._environment, cache, self._type)


@public_evolving
class SplitStream:
    """A stream whose records have named outputs: the result of ``split``. Not in PyFlink.

    A record may go to several outputs, or to none.

    >>> numbers = env.from_collection([1, 2, 3])
    >>> split = numbers.split(lambda number: ["even"] if number % 2 == 0 else ["odd", "uneven"])
    >>> list(split.select("odd", "uneven").execute_and_collect())
    [1, 3]
    """

    def __init__(
        self,
        stream: DataStream,
        output_selector: Callable[[Any], Iterable[str] | str] | OutputSelector,
    ) -> None:
        require_function_or_callable("split", output_selector, OutputSelector)
        self._stream = stream
        self._selector = output_selector

    def select(self, *output_names: str) -> DataStream:
        """Return the records that go to at least one of some outputs, each once.

        Args:
            output_names: The names of the outputs.
        """
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
        return add_operator("Select", spec, self._stream.get_type(), self._stream)
