"""Joins of two streams: within windows, by intervals of time, and unbounded. Not in PyFlink."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, ClassVar, Generic, NoReturn, Self, TypeVar

from firesteel.common.time import Duration, Time
from firesteel.common.typeinfo import TypeInformation
from firesteel.datastream.data_stream.arguments import (
    ProgramTypeError,
    as_type,
    key_selector_of,
    require_function_or_callable,
    require_instance,
)
from firesteel.datastream.data_stream.stream_base import add_operator
from firesteel.datastream.data_stream.windowed_stream import WindowSettings
from firesteel.datastream.functions import (
    CoGroupFunction,
    FlatJoinFunction,
    Function,
    JoinFunction,
    KeySelector,
    ProcessJoinFunction,
)
from firesteel.datastream.output_tag import OutputTag
from firesteel.datastream.state import StateTtlConfig
from firesteel.datastream.window import WindowAssigner
from firesteel.datastream.window.windows import to_millis
from firesteel.errors import InvalidProgramError, shorten
from firesteel.graph.operator_specs import (
    IntervalJoinSpec,
    JoinSpec,
    PairedRecords,
    WindowJoinSpec,
)
from firesteel.stability import public_evolving

if TYPE_CHECKING:
    from firesteel.datastream.data_stream.data_stream import DataStream
    from firesteel.datastream.data_stream.keyed_stream import KeyedStream
    from firesteel.datastream.data_stream.stream_base import StreamBase

T = TypeVar("T")

# Methods that need keys. Before the keys are set, they would make a cross join.
_NEED_KEYS = frozenset(
    {"allowed_lateness", "apply", "evictor", "filter", "trigger", "window", "with_ttl"}
)


class CrossJoinError(InvalidProgramError, AttributeError):
    """Raised for a join without a condition that says which records belong together."""

    def __init__(self, operation: str, name: str, missing: str) -> None:
        self.operation = operation
        super().__init__(
            f"{operation}: {name}() needs a key condition, and {missing} is missing. A join "
            "without keys (a cross join) cannot be distributed, and would have to keep and "
            f"compare all records of both streams. Specify the fields that must be equal: "
            f"{operation}(other).where(left_key).equal_to(right_key). To send every record of a "
            f"small stream to all subtasks, use broadcast() and connect()."
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return InvalidProgramError, self.args


class _NeedsKeys:
    if not TYPE_CHECKING:  # type checkers must report these names as missing

        def __getattr__(self, name: str) -> NoReturn:
            if name in _NEED_KEYS:
                raise CrossJoinError(self._operation, name, self._missing)
            raise AttributeError(
                f"{type(self).__name__!r} object has no attribute {name!r}", name=name, obj=self
            )


class StreamPair(_NeedsKeys, ABC, Generic[T]):
    """Two streams that ``where(...).equal_to(...)`` gives keys. Subclasses say what follows."""

    _operation: ClassVar[str]
    _missing = "where(...).equal_to(...)"

    def __init__(self, input1: StreamBase, input2: StreamBase) -> None:
        self._input1 = input1
        self._input2 = input2

    def where(
        self,
        key_selector: Callable[[Any], Any] | KeySelector,
        key_type: TypeInformation | None = None,
    ) -> Where[T]:
        """Set the key of the first stream's records.

        Args:
            key_selector: A callable or KeySelector.
            key_type: The type of the key. It must be that of ``equal_to``, if both are given.

        Returns:
            An object with a method ``equal_to`` for the key of the second stream.

        >>> orders = env.from_collection([("o1", 10), ("o2", 20)])
        >>> payments = env.from_collection([("o1", "card")])
        >>> pair = orders.join_on(payments).where(lambda order: order[0])
        >>> joined = pair.equal_to(lambda payment: payment[0]).apply(lambda o, p: (o[1], p[1]))
        >>> list(joined.execute_and_collect())
        [<Row(10, 'card')>]
        """
        key_selector_of(f"{self._operation}.where", key_selector)

        def keyed(other_selector: Any, common_type: TypeInformation | None) -> T:
            return self._keyed(
                self._input1.key_by(key_selector, common_type),
                self._input2.key_by(other_selector, common_type),
            )

        return Where(self._operation, keyed, key_type)

    @abstractmethod
    def _keyed(self, left: KeyedStream, right: KeyedStream) -> T: ...


class Where(_NeedsKeys, Generic[T]):
    """A pair of streams of which the first has its key."""

    _missing = "equal_to(...)"

    def __init__(
        self,
        operation: str,
        keyed: Callable[[Any, TypeInformation | None], T],
        key_type: TypeInformation | None,
    ) -> None:
        """Wait for the second key.

        Args:
            operation: The method that made the pair, for errors.
            keyed: Returns the next step, given the second key selector and the type of both keys.
            key_type: The type of the first stream's keys, if it is known.
        """
        self._operation = operation
        self._keyed = keyed
        self._key_type = key_type

    def equal_to(
        self,
        key_selector: Callable[[Any], Any] | KeySelector,
        key_type: TypeInformation | None = None,
    ) -> T:
        """Set the key of the second stream's records.

        Args:
            key_selector: A callable or KeySelector.
            key_type: The type of the key.

        Raises:
            InvalidProgramError: The key types of both streams differ.
        """
        key_selector_of(f"{self._operation}.equal_to", key_selector)
        types = [given for given in (self._key_type, key_type) if given is not None]
        if len(types) == 2 and as_type("where", types[0], "key type") != as_type(
            "equal_to", types[1], "key type"
        ):
            raise InvalidProgramError(
                f"{self._operation}: keys of different types are never equal: where() has "
                f"{types[0]}, equal_to() has {types[1]}."
            )
        return self._keyed(key_selector, types[0] if types else None)


class LateSideOutputs:
    """Side outputs for the late records of two streams."""

    _left_late_tag: OutputTag | None = None
    _right_late_tag: OutputTag | None = None

    def side_output_left_late_data(self, output_tag: OutputTag) -> Self:
        """Send late records of the first stream to a side output, instead of dropping them.

        Args:
            output_tag: The tag to pass to ``get_side_output`` of the result.

        >>> late = OutputTag("late orders")
        >>> def seconds(stream):
        ...     return stream.assign_timestamps_and_watermarks(
        ...         WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(
        ...             lambda record, _: record[1] * 1000))
        >>> orders = seconds(env.from_collection([("o1", 1)]))
        >>> payments = seconds(env.from_collection([("o1", 2)]))
        >>> pairs = orders.join(payments).where(lambda o: o[0]).equal_to(lambda p: p[0])
        >>> windows = pairs.window(TumblingEventTimeWindows.of(Time.seconds(5)))
        >>> joined = windows.side_output_left_late_data(late).apply(lambda o, p: (o[0], o[1], p[1]))
        >>> list(joined.execute_and_collect())
        [('o1', 1, 2)]
        """
        require_instance("side_output_left_late_data", output_tag, OutputTag)
        self._left_late_tag = output_tag
        return self

    def side_output_right_late_data(self, output_tag: OutputTag) -> Self:
        """Send late records of the second stream to a side output, instead of dropping them.

        Args:
            output_tag: The tag to pass to ``get_side_output`` of the result.

        >>> late = OutputTag("late payments")
        >>> left = env.from_collection([1]).key_by(lambda value: value)
        >>> right = env.from_collection([1]).key_by(lambda value: value)
        >>> interval = left.interval_join(right).between(Time.seconds(0), Time.seconds(5))
        >>> interval.side_output_right_late_data(late) is interval
        True
        """
        require_instance("side_output_right_late_data", output_tag, OutputTag)
        self._right_late_tag = output_tag
        return self

    def _late_tag_ids(self) -> tuple[str | None, str | None]:
        left, right = self._left_late_tag, self._right_late_tag
        return None if left is None else left.tag_id, None if right is None else right.tag_id


class WindowPair(WindowSettings, LateSideOutputs):
    """Two keyed streams in the same windows. Assigners, triggers and evictors get a TaggedUnion."""

    def __init__(
        self, left: KeyedStream, right: KeyedStream, window_assigner: WindowAssigner[Any, Any]
    ) -> None:
        super().__init__(left.get_execution_environment(), window_assigner)
        self._left = left
        self._right = right

    def _applied(
        self, name: str, function: Any, output_type: TypeInformation | None, *, groups: bool
    ) -> DataStream:
        trigger = self._chosen_trigger()
        left_tag, right_tag = self._late_tag_ids()
        spec = WindowJoinSpec(
            assigner=self._window_assigner,
            trigger=trigger,
            contents=PairedRecords(self._left.get_type(), self._right.get_type()),
            window_function=function,
            evictor=self._evictor,
            allowed_lateness=self._allowed_lateness,
            late_tag=left_tag,
            second_late_tag=right_tag,
            groups=groups,
        )
        stream = add_operator(name, spec, as_type("apply", output_type), self._left, self._right)
        described = f"{self._window_assigner}, {type(trigger).__name__}"
        return stream.set_description(f"{name}({described})")


class WindowJoin(WindowPair):
    """Two keyed streams that are joined within windows.

    >>> numbers = env.from_collection([1, 2, 3])
    >>> squares = env.from_collection([1, 4, 9])
    >>> pairs = numbers.join(squares).where(lambda n: n * n).equal_to(lambda s: s)
    >>> windows = pairs.window(GlobalWindows.create_with_end_of_stream_trigger())
    >>> list(windows.apply(lambda number, square: (number, square)).execute_and_collect())
    [(1, 1), (2, 4), (3, 9)]
    """

    def apply(
        self,
        function: Callable[[Any, Any], Any] | JoinFunction | FlatJoinFunction,
        output_type: TypeInformation | None = None,
    ) -> DataStream:
        """Call a function with each pair of records of one key and window.

        Args:
            function: A callable or JoinFunction that returns one result per pair, or a
                FlatJoinFunction that returns any number.
            output_type: The type of the results.
        """
        if not isinstance(function, FlatJoinFunction):
            require_function_or_callable("apply of a join", function, JoinFunction)
        return self._applied("Window Join", function, output_type, groups=False)


class WindowCoGroup(WindowPair):
    """Two keyed streams whose records are grouped within windows.

    >>> orders = env.from_collection([("o1", 10), ("o2", 20)])
    >>> payments = env.from_collection([("o1", "card")])
    >>> pairs = orders.co_group(payments).where(lambda o: o[0]).equal_to(lambda p: p[0])
    >>> windows = pairs.window(GlobalWindows.create_with_end_of_stream_trigger())
    >>> counts = windows.apply(lambda orders, payments: [(len(orders), len(payments))])
    >>> list(counts.execute_and_collect())
    [(1, 1), (1, 0)]
    """

    def apply(
        self,
        function: Callable[[list[Any], list[Any]], Iterable[Any]] | CoGroupFunction,
        output_type: TypeInformation | None = None,
    ) -> DataStream:
        """Call a function with all records of one key and window, of both streams.

        Args:
            function: A callable or CoGroupFunction of two lists, which returns or yields results. One
                of the lists may be empty.
            output_type: The type of the results.
        """
        require_function_or_callable("apply of a co_group", function, CoGroupFunction)
        return self._applied("Window Co-Group", function, output_type, groups=True)


P = TypeVar("P", bound=WindowPair)


class KeyedPair(Generic[P]):
    """Two streams with keys, which ``window`` puts into windows.

    >>> left, right = env.from_collection([1]), env.from_collection([1])
    >>> pair = left.join(right).where(lambda value: value).equal_to(lambda value: value)
    >>> windows = pair.window(TumblingProcessingTimeWindows.of(Time.seconds(5)))
    """

    def __init__(self, left: KeyedStream, right: KeyedStream, with_window: type[P]) -> None:
        self._left = left
        self._right = right
        self._with_window = with_window

    def window(self, window_assigner: WindowAssigner[Any, Any]) -> P:
        """Put both streams into the same windows.

        Args:
            window_assigner: The assigner. It gets records as TaggedUnion.
        """
        return self._with_window(self._left, self._right, window_assigner)


@public_evolving
class JoinedStreams(StreamPair[KeyedPair[WindowJoin]]):
    """An inner join of two streams within windows: the result of ``join``. Not in PyFlink.

    It is Flink's Java class: ``where``, ``equal_to``, ``window`` and ``apply`` follow each other.

    >>> def seconds(stream):
    ...     return stream.assign_timestamps_and_watermarks(
    ...         WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(
    ...             lambda record, _: record[1] * 1000))
    >>> orders = seconds(env.from_collection([("o1", 1), ("o2", 2), ("o3", 6)]))
    >>> payments = seconds(env.from_collection([("o1", 3), ("o2", 7)]))
    >>> joined = (
    ...     orders.join(payments)
    ...     .where(lambda order: order[0])
    ...     .equal_to(lambda payment: payment[0])
    ...     .window(TumblingEventTimeWindows.of(Time.seconds(5)))
    ...     .apply(lambda order, payment: (order[0], order[1], payment[1]))
    ... )
    >>> list(joined.execute_and_collect())
    [('o1', 1, 3)]
    """

    EqualTo = KeyedPair
    WithWindow = WindowJoin

    _operation = "join"

    def _keyed(self, left: KeyedStream, right: KeyedStream) -> KeyedPair[WindowJoin]:
        return KeyedPair(left, right, WindowJoin)


@public_evolving
class CoGroupedStreams(StreamPair[KeyedPair[WindowCoGroup]]):
    """Two streams whose records are grouped within windows: the result of ``co_group``. Not in PyFlink.

    It is Flink's Java class. A function gets both lists of a key and window, so outer joins are
    possible, too.

    >>> orders = env.from_collection([("o1", 10), ("o2", 20)])
    >>> payments = env.from_collection([("o1", "card")])
    >>> unpaid = (
    ...     orders.co_group(payments)
    ...     .where(lambda order: order[0])
    ...     .equal_to(lambda payment: payment[0])
    ...     .window(GlobalWindows.create_with_end_of_stream_trigger())
    ...     .apply(lambda orders, payments: [] if payments else orders)
    ... )
    >>> list(unpaid.execute_and_collect())
    [('o2', 20)]
    """

    EqualTo = KeyedPair
    WithWindow = WindowCoGroup

    _operation = "co_group"

    def _keyed(self, left: KeyedStream, right: KeyedStream) -> KeyedPair[WindowCoGroup]:
        return KeyedPair(left, right, WindowCoGroup)


@public_evolving
class IntervalJoined(LateSideOutputs):
    """An interval join with its bounds. ``process`` makes a stream of it. Not in PyFlink.

    >>> class Pair(ProcessJoinFunction):
    ...     def process_element(self, left, right, ctx):
    ...         yield left[0], right[1] - left[1]
    >>> def seconds(stream):
    ...     return stream.assign_timestamps_and_watermarks(
    ...         WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(
    ...             lambda record, _: record[1] * 1000)).key_by(lambda record: record[0])
    >>> orders = seconds(env.from_collection([("o1", 1), ("o2", 2)]))
    >>> payments = seconds(env.from_collection([("o1", 3), ("o1", 6), ("o2", 12)]))
    >>> interval = orders.interval_join(payments).between(Time.seconds(0), Time.seconds(5))
    >>> list(interval.upper_bound_exclusive().process(Pair()).execute_and_collect())
    [('o1', 2)]
    """

    def __init__(self, left: KeyedStream, right: KeyedStream, lower: int, upper: int) -> None:
        self._left = left
        self._right = right
        self._lower = lower
        self._upper = upper
        self._lower_exclusive = False
        self._upper_exclusive = False

    def lower_bound_exclusive(self) -> Self:
        """Leave out records exactly at the lower bound.

        >>> left = env.from_collection([1]).key_by(lambda value: value)
        >>> interval = left.interval_join(left).between(Time.seconds(0), Time.seconds(5))
        >>> interval.lower_bound_exclusive() is interval
        True
        """
        self._lower_exclusive = True
        return self

    def upper_bound_exclusive(self) -> Self:
        """Leave out records exactly at the upper bound."""
        self._upper_exclusive = True
        return self

    def process(
        self, process_join_function: ProcessJoinFunction, output_type: TypeInformation | None = None
    ) -> DataStream:
        """Call a function with each pair, as soon as both records are there.

        Args:
            process_join_function: A ProcessJoinFunction.
            output_type: The type of the results.
        """
        require_instance("process of an interval join", process_join_function, ProcessJoinFunction)
        left_tag, right_tag = self._late_tag_ids()
        spec = IntervalJoinSpec(
            function=process_join_function,
            lower=self._lower + self._lower_exclusive,
            upper=self._upper - self._upper_exclusive,
            left_type=self._left.get_type(),
            right_type=self._right.get_type(),
            left_late_tag=left_tag,
            right_late_tag=right_tag,
        )
        stream = add_operator(
            "Interval Join", spec, as_type("process", output_type), self._left, self._right
        )
        return stream.set_description(f"Interval Join({spec.lower} ms to {spec.upper} ms)")


@public_evolving
class IntervalJoin:
    """A join with records of another stream that are close in event time. Not in PyFlink.

    ``interval_join`` returns it; it is Flink's Java class.

    >>> class Pair(ProcessJoinFunction):
    ...     def process_element(self, left, right, ctx):
    ...         yield left, right
    >>> strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(
    ...     lambda second, _: second * 1000
    ... )
    >>> left = env.from_collection([1, 20]).assign_timestamps_and_watermarks(strategy)
    >>> right = env.from_collection([2, 30]).assign_timestamps_and_watermarks(strategy)
    >>> join = left.key_by(lambda _: 0).interval_join(right.key_by(lambda _: 0)).in_event_time()
    >>> near = join.between(Time.seconds(-5), Time.seconds(5)).process(Pair())
    >>> list(near.execute_and_collect())
    [(1, 2)]
    """

    def __init__(self, stream_one: KeyedStream, stream_two: KeyedStream) -> None:
        self._left = stream_one
        self._right = stream_two

    def in_event_time(self) -> Self:
        """Join by event time. This is the only choice."""
        return self

    def in_processing_time(self) -> NoReturn:
        """Not supported: an interval join works by event time only, as in Flink.

        Raises:
            InvalidProgramError: Always.

        >>> left = env.from_collection([1]).key_by(lambda value: value)
        >>> left.interval_join(left).in_processing_time()
        Traceback (most recent call last):
        ...
        firesteel.errors.InvalidProgramError: interval_join supports only event time...
        """
        raise InvalidProgramError(
            "interval_join supports only event time, as in Flink. In processing time, a record has "
            "no time before it arrives. Assign timestamps, or use a window join."
        )

    def between(self, lower_bound: Time | Duration, upper_bound: Time | Duration) -> IntervalJoined:
        """Set the bounds of the interval around the time of a record of the first stream.

        A record of the second stream joins if its time is from ``lower_bound`` to ``upper_bound`` after
        that of the first. Both bounds are included, and both may be negative.

        Args:
            lower_bound: The lower bound.
            upper_bound: The upper bound.

        Raises:
            InvalidProgramError: The lower bound is above the upper one.
        """
        lower = to_millis(lower_bound, "The lower bound")
        upper = to_millis(upper_bound, "The upper bound")
        if lower > upper:
            raise InvalidProgramError(
                "The lower bound of an interval join must not be greater than the upper bound, "
                f"but {lower} ms > {upper} ms."
            )
        return IntervalJoined(self._left, self._right, lower, upper)


_KINDS = ("inner", "left", "right", "full")


@public_evolving
class KeyedJoin:
    """An unbounded join of two keyed streams. ``apply`` makes a stream of it. Not in PyFlink.

    >>> orders = env.from_collection([("o1", 10), ("o2", 20)])
    >>> payments = env.from_collection([("o1", "card"), ("o2", "cash")])
    >>> keyed = orders.join_on(payments).where(lambda o: o[0]).equal_to(lambda p: p[0])
    >>> joined = (
    ...     keyed.filter(lambda order, payment: payment[1] == "card")
    ...     .with_ttl(Time.hours(1))
    ...     .apply(lambda order, payment: (order[1], payment[1]))
    ... )
    >>> list(joined.execute_and_collect())
    [<Row(10, 'card')>]
    """

    def __init__(self, left: KeyedStream, right: KeyedStream, how: str) -> None:
        self._left = left
        self._right = right
        self._how = how
        self._predicate: Callable[[Any, Any], bool] | None = None
        self._ttl: StateTtlConfig | None = None

    def filter(self, predicate: Callable[[Any, Any], bool]) -> Self:
        """Join only pairs for which a predicate is true.

        Args:
            predicate: A callable or JoinFunction of both records.
        """
        if isinstance(predicate, Function):
            raise ProgramTypeError(
                f"filter of a join expects a callable predicate(left, right), but got "
                f"{shorten(predicate)}."
            )
        require_function_or_callable("filter of a join", predicate, JoinFunction)
        self._predicate = predicate
        return self

    def with_ttl(self, ttl: Time | Duration | StateTtlConfig) -> Self:
        """Forget records some time after they came. Their results stay.

        Args:
            ttl: A Time, a Duration or a StateTtlConfig.
        """
        if isinstance(ttl, Duration):
            ttl = Time.milliseconds(ttl.to_millis())
        if isinstance(ttl, Time):
            ttl = StateTtlConfig.new_builder(ttl).build()
        if not isinstance(ttl, StateTtlConfig):
            raise ProgramTypeError(
                f"with_ttl expects a Time, a Duration or a StateTtlConfig, but got {shorten(ttl)}."
            )
        self._ttl = ttl if ttl.is_enabled() else None
        return self

    def apply(
        self,
        function: Callable[[Any, Any], Any] | JoinFunction | None = None,
        output_type: TypeInformation | None = None,
    ) -> DataStream:
        """Make a stream of rows with a RowKind from the pairs.

        An outer join emits a record without a match with None for the other side. When a match
        comes, it takes that row back and emits the pair.

        Args:
            function: Returns the fields of the row for both records; one of them may be None in an
                outer join. It must return the same for the same pair, because a row is taken back by
                making it again. Without a function the row has both records.
            output_type: The type of the rows.
        """
        if function is not None:
            require_function_or_callable("apply of a join", function, JoinFunction)
        spec = JoinSpec(
            function=function,
            predicate=self._predicate,
            left_outer=self._how in ("left", "full"),
            right_outer=self._how in ("right", "full"),
            ttl=self._ttl,
        )
        name = f"{self._how.capitalize()} Join"
        return add_operator(name, spec, as_type("apply", output_type), self._left, self._right)


@public_evolving
class UnboundedJoin(StreamPair[KeyedJoin]):
    """A join of all records with equal keys, without a window: the result of ``join_on``. Not in PyFlink.

    >>> orders = env.from_collection([("o1", 10), ("o2", 20)])
    >>> payments = env.from_collection([("o1", "card")])
    >>> joined = (
    ...     orders.join_on(payments, how="left")
    ...     .where(lambda order: order[0])
    ...     .equal_to(lambda payment: payment[0])
    ...     .apply(lambda order, payment: (order[0], payment and payment[1]))
    ... )
    >>> for row in joined.execute_and_collect():
    ...     print(row.get_row_kind().name, row)
    INSERT <Row('o1', None)>
    INSERT <Row('o2', None)>
    UPDATE_BEFORE <Row('o1', None)>
    UPDATE_AFTER <Row('o1', 'card')>
    """

    _operation = "join_on"

    def __init__(self, input1: StreamBase, input2: StreamBase, how: str) -> None:
        super().__init__(input1, input2)
        if how == "cross":
            raise InvalidProgramError(
                "join_on: a cross join cannot be distributed, and would have to keep and compare "
                f"all records of both streams. Use one of {', '.join(_KINDS)} with a key "
                "condition, or broadcast() and connect()."
            )
        if how not in _KINDS:
            raise InvalidProgramError(
                f"join_on expects one of {', '.join(_KINDS)}, but got {shorten(how)}."
            )
        self._how = how

    def _keyed(self, left: KeyedStream, right: KeyedStream) -> KeyedJoin:
        return KeyedJoin(left, right, self._how)
