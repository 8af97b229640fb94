"""Joins without a window: what ``join_on`` gives. Not in PyFlink, nor in Flink's DataStream API."""

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
    OperatorSpec,
    PairedRecords,
    WindowJoinSpec,
)
from firesteel.graph.transformations import Origin, Transformation

if TYPE_CHECKING:
    from firesteel.datastream.data_stream.data_stream import DataStream
    from firesteel.datastream.data_stream.keyed_stream import KeyedStream
    from firesteel.datastream.data_stream.stream_base import StreamBase

T = TypeVar("T")

# What comes after the keys; asked for too early, it would be a cross join.
_NEED_KEYS = frozenset(
    {"allowed_lateness", "apply", "evictor", "filter", "trigger", "window", "with_ttl"}
)


class CrossJoinError(InvalidProgramError, AttributeError):
    """A join has no condition that says which records belong together."""

    def __init__(self, operation: str, name: str, missing: str) -> None:
        self.operation = operation
        super().__init__(
            f"{operation}: {name}() needs a key condition, and {missing} is missing. A join of every "
            f"record with every other (a cross join) has no key to distribute the streams by, and "
            f"would have to keep and compare all records of both. Say which fields must be equal: "
            f"{operation}(other).where(left_key).equal_to(right_key). To give every record of a small "
            f"stream to all subtasks, use broadcast() and connect()."
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return InvalidProgramError, self.args


class _NeedsKeys:
    if not TYPE_CHECKING:  # a type checker shall see that these names are not there

        def __getattr__(self, name: str) -> NoReturn:
            if name in _NEED_KEYS:
                raise CrossJoinError(self._operation, name, self._missing)
            raise AttributeError(
                f"{type(self).__name__!r} object has no attribute {name!r}", name=name, obj=self
            )


class StreamPair(_NeedsKeys, ABC, Generic[T]):
    """``where(...).equal_to(...)`` give both streams their keys; subclasses say what follows."""

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
        """The key of the first stream's records."""
        key_selector_of(f"{self._operation}.where", key_selector)
        return Where(self, key_selector, key_type)

    @abstractmethod
    def _keyed(self, left: KeyedStream, right: KeyedStream) -> T: ...


class Where(_NeedsKeys, Generic[T]):
    """The first stream has its key, the second one waits for its own."""

    _missing = "equal_to(...)"

    def __init__(
        self, pair: StreamPair[T], key_selector: Any, key_type: TypeInformation | None
    ) -> None:
        self._pair = pair
        self._operation = pair._operation
        self._key_selector = key_selector
        self._key_type = key_type

    def equal_to(
        self,
        key_selector: Callable[[Any], Any] | KeySelector,
        key_type: TypeInformation | None = None,
    ) -> T:
        """The key of the second stream's records."""
        key_selector_of(f"{self._operation}.equal_to", key_selector)
        types = [given for given in (self._key_type, key_type) if given is not None]
        if len(types) == 2 and as_type("where", types[0], "key type") != as_type(
            "equal_to", types[1], "key type"
        ):
            raise InvalidProgramError(
                f"{self._operation}: keys of different types are never equal: where() has {types[0]}, "
                f"equal_to() has {types[1]}."
            )
        common = types[0] if types else None
        pair = self._pair
        return pair._keyed(
            pair._input1.key_by(self._key_selector, common),
            pair._input2.key_by(key_selector, common),
        )


def two_input_stream(
    name: str,
    spec: OperatorSpec,
    left: StreamBase,
    right: StreamBase,
    output_type: TypeInformation,
) -> DataStream:
    """The stream of an operator with two inputs."""
    from firesteel.datastream.data_stream.data_stream import DataStream

    transformation = Transformation(
        name=name, spec=spec, inputs=(left._origins, right._origins), output_type=output_type
    )
    environment = left.get_execution_environment()
    environment._add_operator(transformation)
    return DataStream(environment, (Origin(transformation),), output_type)


class WindowPair(WindowSettings):
    """Assigners, triggers and evictors that look at records get a TaggedUnion, as in Flink."""

    def __init__(
        self, left: KeyedStream, right: KeyedStream, window_assigner: WindowAssigner[Any, Any]
    ) -> None:
        super().__init__(left.get_execution_environment(), window_assigner)
        self._left = left
        self._right = right
        self._left_late_tag: OutputTag | None = None
        self._right_late_tag: OutputTag | None = None

    def side_output_left_late_data(self, output_tag: OutputTag) -> Self:
        """Send records of the first stream that are too late to a side output."""
        require_instance("side_output_left_late_data", output_tag, OutputTag)
        self._left_late_tag = output_tag
        return self

    def side_output_right_late_data(self, output_tag: OutputTag) -> Self:
        """Send records of the second stream that are too late to a side output."""
        require_instance("side_output_right_late_data", output_tag, OutputTag)
        self._right_late_tag = output_tag
        return self

    def _applied(
        self, name: str, function: Any, output_type: TypeInformation | None, *, groups: bool
    ) -> DataStream:
        trigger = self._chosen_trigger()
        left_tag, right_tag = self._left_late_tag, self._right_late_tag
        spec = WindowJoinSpec(
            assigner=self._window_assigner,
            trigger=trigger,
            contents=PairedRecords(self._left.get_type(), self._right.get_type()),
            window_function=function,
            evictor=self._evictor,
            allowed_lateness=self._allowed_lateness,
            late_tag=None if left_tag is None else left_tag.tag_id,
            second_late_tag=None if right_tag is None else right_tag.tag_id,
            groups=groups,
        )
        stream = two_input_stream(
            name, spec, self._left, self._right, as_type("apply", output_type)
        )
        described = f"{self._window_assigner}, {type(trigger).__name__}"
        return stream.set_description(f"{name}({described})")


class _WithWindow(WindowPair):
    """The join of two streams within windows. ``apply`` makes a stream of it."""

    def apply(
        self,
        function: Callable[[Any, Any], Any] | JoinFunction | FlatJoinFunction,
        output_type: TypeInformation | None = None,
    ) -> DataStream:
        """Call a function with each pair of records of one key and window."""
        if not isinstance(function, FlatJoinFunction):
            require_function_or_callable("apply of a join", function, JoinFunction)
        return self._applied("Window Join", function, output_type, groups=False)


class _EqualTo:
    """Both streams have their keys."""

    def __init__(self, left: KeyedStream, right: KeyedStream) -> None:
        self._left = left
        self._right = right

    def window(self, window_assigner: WindowAssigner[Any, Any]) -> _WithWindow:
        """Cut both streams into the same windows."""
        return _WithWindow(self._left, self._right, window_assigner)


class JoinedStreams(StreamPair[_EqualTo]):
    """What ``join`` gives, as in Flink's Java API: an inner join within windows.

    ``orders.join(payments).where(key1).equal_to(key2).window(assigner).apply(function)``
    """

    EqualTo = _EqualTo
    WithWindow = _WithWindow

    _operation = "join"

    def _keyed(self, left: KeyedStream, right: KeyedStream) -> _EqualTo:
        return _EqualTo(left, right)


class _CoGroupedStreamsWithWindow(WindowPair):
    """Two streams grouped within windows. ``apply`` makes a stream of it."""

    def apply(
        self,
        function: Callable[[list[Any], list[Any]], Iterable[Any]] | CoGroupFunction,
        output_type: TypeInformation | None = None,
    ) -> DataStream:
        """Call a function with all records of one key and window, of both streams."""
        require_function_or_callable("apply of a co_group", function, CoGroupFunction)
        return self._applied("Window Co-Group", function, output_type, groups=True)


class _CoGroupedStreamsEqualTo:
    """Both streams have their keys."""

    def __init__(self, left: KeyedStream, right: KeyedStream) -> None:
        self._left = left
        self._right = right

    def window(self, window_assigner: WindowAssigner[Any, Any]) -> _CoGroupedStreamsWithWindow:
        """Cut both streams into the same windows."""
        return _CoGroupedStreamsWithWindow(self._left, self._right, window_assigner)


class CoGroupedStreams(StreamPair[_CoGroupedStreamsEqualTo]):
    """What ``co_group`` gives, as in Flink's Java API.

    ``orders.co_group(payments).where(key1).equal_to(key2).window(assigner).apply(function)``
    """

    EqualTo = _CoGroupedStreamsEqualTo
    WithWindow = _CoGroupedStreamsWithWindow

    _operation = "co_group"

    def _keyed(self, left: KeyedStream, right: KeyedStream) -> _CoGroupedStreamsEqualTo:
        return _CoGroupedStreamsEqualTo(left, right)


class IntervalJoined:
    """The join of a record with those of the other stream within an interval around it."""

    def __init__(self, left: KeyedStream, right: KeyedStream, lower: int, upper: int) -> None:
        self._left = left
        self._right = right
        self._lower = lower
        self._upper = upper
        self._lower_exclusive = False
        self._upper_exclusive = False
        self._left_late_tag: OutputTag | None = None
        self._right_late_tag: OutputTag | None = None

    def lower_bound_exclusive(self) -> Self:
        """Records exactly at the lower bound are not joined."""
        self._lower_exclusive = True
        return self

    def upper_bound_exclusive(self) -> Self:
        """Records exactly at the upper bound are not joined."""
        self._upper_exclusive = True
        return self

    def side_output_left_late_data(self, output_tag: OutputTag) -> Self:
        """Send late records of the first stream to a side output, instead of dropping them."""
        require_instance("side_output_left_late_data", output_tag, OutputTag)
        self._left_late_tag = output_tag
        return self

    def side_output_right_late_data(self, output_tag: OutputTag) -> Self:
        """Send late records of the second stream to a side output, instead of dropping them."""
        require_instance("side_output_right_late_data", output_tag, OutputTag)
        self._right_late_tag = output_tag
        return self

    def process(
        self, process_join_function: ProcessJoinFunction, output_type: TypeInformation | None = None
    ) -> DataStream:
        """Call a function with each pair, as soon as both are there."""
        require_instance("process of an interval join", process_join_function, ProcessJoinFunction)
        left_tag, right_tag = self._left_late_tag, self._right_late_tag
        spec = IntervalJoinSpec(
            function=process_join_function,
            lower=self._lower + self._lower_exclusive,
            upper=self._upper - self._upper_exclusive,
            left_type=self._left.get_type(),
            right_type=self._right.get_type(),
            left_late_tag=None if left_tag is None else left_tag.tag_id,
            right_late_tag=None if right_tag is None else right_tag.tag_id,
        )
        stream = two_input_stream(
            "Interval Join", spec, self._left, self._right, as_type("process", output_type)
        )
        return stream.set_description(f"Interval Join({spec.lower} ms to {spec.upper} ms)")


class IntervalJoin:
    """What ``interval_join`` gives, as in Flink's Java API. It needs event time."""

    def __init__(self, stream_one: KeyedStream, stream_two: KeyedStream) -> None:
        self._left = stream_one
        self._right = stream_two

    def in_event_time(self) -> Self:
        """Join by event time, as it always does."""
        return self

    def in_processing_time(self) -> NoReturn:
        raise InvalidProgramError(
            "interval_join joins by event time only, as in Flink: by the clock, the time of a record "
            "is not known before it arrives. Assign timestamps, or use a window join."
        )

    def between(self, lower_bound: Time | Duration, upper_bound: Time | Duration) -> IntervalJoined:
        """Join with records whose time is from ``lower_bound`` to ``upper_bound`` after this one's.

        Both may be negative, and both are included.
        """
        lower = to_millis(lower_bound, "The lower bound")
        upper = to_millis(upper_bound, "The upper bound")
        if lower > upper:
            raise InvalidProgramError(
                f"The lower bound of an interval join must not be above the upper one, but "
                f"{lower} ms > {upper} ms."
            )
        return IntervalJoined(self._left, self._right, lower, upper)


_KINDS = ("inner", "left", "right", "full")


class KeyedJoin:
    """Both streams have their keys. ``apply`` makes a stream of changes of it."""

    def __init__(self, left: KeyedStream, right: KeyedStream, how: str) -> None:
        self._left = left
        self._right = right
        self._how = how
        self._predicate: Callable[[Any, Any], bool] | None = None
        self._ttl: StateTtlConfig | None = None

    def filter(self, predicate: Callable[[Any, Any], bool]) -> Self:
        """A further condition: ``predicate(left, right)`` must be true for a pair."""
        if isinstance(predicate, Function):
            raise ProgramTypeError(
                f"filter of a join expects a callable predicate(left, right), but got "
                f"{shorten(predicate)}."
            )
        require_function_or_callable("filter of a join", predicate, JoinFunction)
        self._predicate = predicate
        return self

    def with_ttl(self, ttl: Time | Duration | StateTtlConfig) -> Self:
        """Forget records so long after they came; what they gave until then stays."""
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
        """Rows with a RowKind: the pair, or the fields that ``function(left, right)`` returns.

        Where an outer join has no match, the other one is None. The function must always return the same
        for the same pair, because a result is taken back by making it again.
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
        return two_input_stream(name, spec, self._left, self._right, as_type("apply", output_type))


class UnboundedJoin(StreamPair[KeyedJoin]):
    """``left.join_on(right, "left").where(key1).equal_to(key2).apply()``."""

    _operation = "join_on"

    def __init__(self, input1: StreamBase, input2: StreamBase, how: str) -> None:
        super().__init__(input1, input2)
        if how == "cross":
            raise InvalidProgramError(
                "join_on: a cross join has no key to distribute the streams by, and would have to keep "
                f"and compare all records of both. Use one of {', '.join(_KINDS)} with a key condition, "
                "or broadcast() and connect()."
            )
        if how not in _KINDS:
            raise InvalidProgramError(
                f"join_on expects one of {', '.join(_KINDS)}, but got {shorten(how)}."
            )
        self._how = how

    def _keyed(self, left: KeyedStream, right: KeyedStream) -> KeyedJoin:
        return KeyedJoin(left, right, self._how)
