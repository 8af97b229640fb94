"""Connected streams: two streams that one function reads."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from firesteel.common.typeinfo import TypeInformation
from firesteel.datastream.data_stream.arguments import ProgramTypeError, as_type, require_instance
from firesteel.datastream.data_stream.keyed_stream import KeyedStream
from firesteel.datastream.data_stream.stream_base import StreamBase, add_operator
from firesteel.datastream.functions import (
    BroadcastProcessFunction,
    CoFlatMapFunction,
    CoMapFunction,
    CoProcessFunction,
    KeyedBroadcastProcessFunction,
    KeyedCoProcessFunction,
    KeySelector,
)
from firesteel.datastream.state import MapStateDescriptor
from firesteel.errors import InvalidProgramError, shorten
from firesteel.graph.operator_specs import (
    BroadcastProcessSpec,
    CoFlatMapSpec,
    CoMapSpec,
    CoProcessSpec,
    OperatorSpec,
)

if TYPE_CHECKING:
    from firesteel.datastream.data_stream.data_stream import DataStream


class ConnectedStreams:
    """Two streams that one function reads: the result of ``connect``.

    If both streams are keyed, the function has state per key.

    >>> class Flag(CoProcessFunction):
    ...     def process_element1(self, value, ctx):
    ...         yield "left", value
    ...     def process_element2(self, value, ctx):
    ...         yield "right", value
    >>> left, right = env.from_collection([1]), env.from_collection(["a"])
    >>> sorted(left.connect(right).process(Flag()).execute_and_collect())
    [('left', 1), ('right', 'a')]
    """

    def __init__(self, stream1: StreamBase, stream2: StreamBase) -> None:
        self.stream1 = stream1
        self.stream2 = stream2

    def key_by(
        self,
        key_selector1: Callable[[Any], Any] | KeySelector,
        key_selector2: Callable[[Any], Any] | KeySelector,
        key_type: TypeInformation | None = None,
    ) -> ConnectedStreams:
        """Partition both streams by keys of one common type.

        Args:
            key_selector1: Returns the key of the first stream's records.
            key_selector2: Returns the key of the second stream's records.
            key_type: The type of the keys.

        >>> class Match(KeyedCoProcessFunction):
        ...     def open(self, runtime_context):
        ...         self.name = runtime_context.get_state(ValueStateDescriptor("name", Types.STRING()))
        ...     def process_element1(self, value, ctx):
        ...         self.name.update(value[1])
        ...     def process_element2(self, value, ctx):
        ...         yield self.name.value(), value[1]
        >>> users = env.from_collection([(1, "ann"), (2, "bob")])
        >>> clicks = env.from_collection([(2, "home")])
        >>> keyed = users.connect(clicks).key_by(lambda user: user[0], lambda click: click[0])
        >>> list(keyed.process(Match()).execute_and_collect())
        [('bob', 'home')]
        """
        return ConnectedStreams(
            self.stream1.key_by(key_selector1, key_type),
            self.stream2.key_by(key_selector2, key_type),
        )

    def map(self, func: CoMapFunction, output_type: TypeInformation | None = None) -> DataStream:
        """Turn each record of either stream into one result.

        Args:
            func: A CoMapFunction. ``map1`` takes records of the first stream, ``map2`` of the second.
            output_type: The type of the results.

        >>> class Text(CoMapFunction):
        ...     def map1(self, value):
        ...         return str(value)
        ...     def map2(self, value):
        ...         return value
        >>> numbers, words = env.from_collection([1]), env.from_collection(["a"])
        >>> sorted(numbers.connect(words).map(Text()).execute_and_collect())
        ['1', 'a']
        """
        require_instance("map on ConnectedStreams", func, CoMapFunction)
        return self._apply("Co-Map", CoMapSpec(func), as_type("map", output_type))

    def flat_map(
        self, func: CoFlatMapFunction, output_type: TypeInformation | None = None
    ) -> DataStream:
        """Turn each record of either stream into any number of results.

        Args:
            func: A CoFlatMapFunction.
            output_type: The type of the results.

        >>> class Words(CoFlatMapFunction):
        ...     def flat_map1(self, value):
        ...         yield from value.split()
        ...     def flat_map2(self, value):
        ...         return []
        >>> lines, other = env.from_collection(["to be"]), env.from_collection(["ignored"])
        >>> list(lines.connect(other).flat_map(Words()).execute_and_collect())
        ['to', 'be']
        """
        require_instance("flat_map on ConnectedStreams", func, CoFlatMapFunction)
        return self._apply("Co-Flat Map", CoFlatMapSpec(func), as_type("flat_map", output_type))

    def process(
        self,
        func: CoProcessFunction | KeyedCoProcessFunction,
        output_type: TypeInformation | None = None,
    ) -> DataStream:
        """Call a function with each record of either stream and a context.

        Args:
            func: A CoProcessFunction; on two keyed streams it may be a KeyedCoProcessFunction.
            output_type: The type of the results.

        Raises:
            InvalidProgramError: A KeyedCoProcessFunction gets streams that are not both keyed.
        """
        require_instance(
            "process on ConnectedStreams", func, CoProcessFunction, KeyedCoProcessFunction
        )
        if isinstance(func, KeyedCoProcessFunction) and not self._is_keyed_stream():
            raise InvalidProgramError(
                "A KeyedCoProcessFunction needs two keyed streams: call key_by() on the connected "
                "streams, or on both before connect()."
            )
        name = "Keyed Co-Process" if self._is_keyed_stream() else "Co-Process"
        return self._apply(name, CoProcessSpec(func), as_type("process", output_type))

    def _is_keyed_stream(self) -> bool:
        return isinstance(self.stream1, KeyedStream) and isinstance(self.stream2, KeyedStream)

    def _apply(self, name: str, spec: OperatorSpec, output_type: TypeInformation) -> DataStream:
        return add_operator(name, spec, output_type, self.stream1, self.stream2)


class BroadcastStream:
    """A stream that goes to every subtask, with broadcast state, for ``connect``.

    >>> rules = MapStateDescriptor("rules", Types.STRING(), Types.INT())
    >>> broadcast = env.from_collection([("limit", 2)]).broadcast(rules)
    """

    def __init__(
        self, input_stream: StreamBase, broadcast_state_descriptors: list[MapStateDescriptor]
    ) -> None:
        for descriptor in broadcast_state_descriptors:
            _check(descriptor)
        names = [descriptor.get_name() for descriptor in broadcast_state_descriptors]
        if len(set(names)) != len(names):
            raise InvalidProgramError(
                f"The names of broadcast states must be unique, got {', '.join(names)}."
            )
        self.input_stream = input_stream
        self.broadcast_state_descriptors = broadcast_state_descriptors


def _check(descriptor: Any) -> None:
    if not isinstance(descriptor, MapStateDescriptor):
        raise ProgramTypeError(
            f"broadcast expects MapStateDescriptors, but got {shorten(descriptor)} of type "
            f"{type(descriptor).__qualname__}."
        )


class BroadcastConnectedStream:
    """A stream that is connected with a BroadcastStream. One function reads both.

    >>> rules = MapStateDescriptor("rules", Types.STRING(), Types.INT())
    >>> class Limit(BroadcastProcessFunction):
    ...     def process_broadcast_element(self, value, ctx):
    ...         ctx.get_broadcast_state(rules).put(*value)
    ...     def process_element(self, value, ctx):
    ...         limit = ctx.get_broadcast_state(rules).get("limit")
    ...         if limit is None or value <= limit:
    ...             yield value
    >>> from firesteel.testing import Pause, ScriptedSource
    >>> numbers = env.from_source(ScriptedSource([Pause(), 1, 2, 3]), None, "numbers")
    >>> limits = env.from_collection([("limit", 2)]).broadcast(rules)
    >>> list(numbers.connect(limits).process(Limit()).execute_and_collect())
    [1, 2]
    """

    def __init__(
        self,
        non_broadcast_stream: StreamBase,
        broadcast_stream: BroadcastStream,
        broadcast_state_descriptors: list[MapStateDescriptor],
    ) -> None:
        self.non_broadcast_stream = non_broadcast_stream
        self.broadcast_stream = broadcast_stream
        self.broadcast_state_descriptors = broadcast_state_descriptors

    def process(
        self,
        func: BroadcastProcessFunction | KeyedBroadcastProcessFunction,
        output_type: TypeInformation | None = None,
    ) -> DataStream:
        """Call a function with each record of either stream, with broadcast state in the context.

        Args:
            func: A BroadcastProcessFunction, or a KeyedBroadcastProcessFunction on a keyed stream.
            output_type: The type of the results.
        """
        require_instance(
            "process on a BroadcastConnectedStream",
            func,
            BroadcastProcessFunction,
            KeyedBroadcastProcessFunction,
        )
        keyed = isinstance(self.non_broadcast_stream, KeyedStream)
        if keyed is not isinstance(func, KeyedBroadcastProcessFunction):
            raise InvalidProgramError(
                "A KeyedBroadcastProcessFunction can only be used on a keyed stream: call key_by() "
                "before connect()."
                if not keyed
                else "A BroadcastProcessFunction can only be used on a stream without a key: use a "
                "KeyedBroadcastProcessFunction here."
            )
        return add_operator(
            "Co-Process-Broadcast-Keyed" if keyed else "Co-Process-Broadcast",
            BroadcastProcessSpec(func, tuple(self.broadcast_state_descriptors)),
            as_type("process", output_type),
            self.non_broadcast_stream,
            self.broadcast_stream.input_stream,
        )
