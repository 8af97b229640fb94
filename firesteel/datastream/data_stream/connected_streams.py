"""ConnectedStreams: two streams that one function reads."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from firesteel.common.typeinfo import TypeInformation
from firesteel.datastream.data_stream.arguments import ProgramTypeError, as_type, require_instance
from firesteel.datastream.data_stream.joins import two_input_stream
from firesteel.datastream.data_stream.keyed_stream import KeyedStream
from firesteel.datastream.data_stream.stream_base import StreamBase
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
from firesteel.graph.transformations import Origin, Transformation

if TYPE_CHECKING:
    from firesteel.datastream.data_stream.data_stream import DataStream


class ConnectedStreams:
    """What ``connect`` gives. If both streams are keyed, the function has state per key."""

    def __init__(self, stream1: StreamBase, stream2: StreamBase) -> None:
        self.stream1 = stream1
        self.stream2 = stream2

    def key_by(
        self,
        key_selector1: Callable[[Any], Any] | KeySelector,
        key_selector2: Callable[[Any], Any] | KeySelector,
        key_type: TypeInformation | None = None,
    ) -> ConnectedStreams:
        """Give both streams a key of one common type."""
        return ConnectedStreams(
            self.stream1.key_by(key_selector1, key_type),
            self.stream2.key_by(key_selector2, key_type),
        )

    def map(self, func: CoMapFunction, output_type: TypeInformation | None = None) -> DataStream:
        """``map1`` for each record of the first stream, ``map2`` for those of the second."""
        require_instance("map on ConnectedStreams", func, CoMapFunction)
        return self._apply("Co-Map", CoMapSpec(func), as_type("map", output_type))

    def flat_map(
        self, func: CoFlatMapFunction, output_type: TypeInformation | None = None
    ) -> DataStream:
        """As map, with any number of results."""
        require_instance("flat_map on ConnectedStreams", func, CoFlatMapFunction)
        return self._apply("Co-Flat Map", CoFlatMapSpec(func), as_type("flat_map", output_type))

    def process(
        self,
        func: CoProcessFunction | KeyedCoProcessFunction,
        output_type: TypeInformation | None = None,
    ) -> DataStream:
        """Any number of results per record, side outputs, and a context."""
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
        return two_input_stream(name, spec, self.stream1, self.stream2, output_type)


class BroadcastStream:
    """What ``broadcast`` with state descriptors gives; ``connect`` another stream with it."""

    def __init__(
        self, input_stream: StreamBase, broadcast_state_descriptors: list[MapStateDescriptor]
    ) -> None:
        for descriptor in broadcast_state_descriptors:
            _check(descriptor)
        names = [descriptor.get_name() for descriptor in broadcast_state_descriptors]
        if len(set(names)) != len(names):
            raise InvalidProgramError(f"The names of broadcast states repeat: {', '.join(names)}.")
        self.input_stream = input_stream
        self.broadcast_state_descriptors = broadcast_state_descriptors


def _check(descriptor: Any) -> None:
    if not isinstance(descriptor, MapStateDescriptor):
        raise ProgramTypeError(
            f"broadcast expects MapStateDescriptors, but got {shorten(descriptor)} of type "
            f"{type(descriptor).__qualname__}."
        )


class BroadcastConnectedStream:
    """What ``connect`` with a BroadcastStream gives."""

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
        """Any number of results per record of either stream."""
        from firesteel.datastream.data_stream.data_stream import DataStream

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
        result_type = as_type("process", output_type)
        transformation = Transformation(
            name="Co-Process-Broadcast-Keyed" if keyed else "Co-Process-Broadcast",
            spec=BroadcastProcessSpec(func, tuple(self.broadcast_state_descriptors)),
            inputs=(
                self.non_broadcast_stream._origins,
                self.broadcast_stream.input_stream._origins,
            ),
            output_type=result_type,
        )
        environment = self.non_broadcast_stream.get_execution_environment()
        environment._add_operator(transformation)
        return DataStream(environment, (Origin(transformation),), result_type)
