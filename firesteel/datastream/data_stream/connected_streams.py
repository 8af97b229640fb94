"""ConnectedStreams: two streams that one function reads."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from firesteel.common.typeinfo import TypeInformation
from firesteel.datastream.data_stream.function_arguments import as_type, require_instance
from firesteel.datastream.data_stream.keyed_stream import KeyedStream
from firesteel.datastream.data_stream.stream_base import StreamBase
from firesteel.datastream.data_stream.stream_pair import two_input_stream
from firesteel.datastream.functions import (
    CoFlatMapFunction,
    CoMapFunction,
    CoProcessFunction,
    KeyedCoProcessFunction,
    KeySelector,
)
from firesteel.errors import InvalidProgramError
from firesteel.graph.operator_specs import (
    CoFlatMapSpec,
    CoMapSpec,
    CoProcessSpec,
    OperatorSpec,
)

if TYPE_CHECKING:
    from firesteel.datastream.data_stream.data_stream import DataStream

__all__ = ["ConnectedStreams"]


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
