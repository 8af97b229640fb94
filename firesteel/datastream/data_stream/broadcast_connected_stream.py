"""BroadcastConnectedStream: a stream, keyed or not, together with a broadcast one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from firesteel.common.typeinfo import TypeInformation
from firesteel.datastream.data_stream.broadcast_stream import BroadcastStream
from firesteel.datastream.data_stream.function_arguments import as_type, require_instance
from firesteel.datastream.data_stream.keyed_stream import KeyedStream
from firesteel.datastream.data_stream.stream_base import StreamBase
from firesteel.datastream.functions import (
    BroadcastProcessFunction,
    KeyedBroadcastProcessFunction,
)
from firesteel.datastream.state import MapStateDescriptor
from firesteel.errors import InvalidProgramError
from firesteel.graph.operator_specs import BroadcastProcessSpec
from firesteel.graph.transformations import Origin, Transformation

if TYPE_CHECKING:
    from firesteel.datastream.data_stream.data_stream import DataStream

__all__ = ["BroadcastConnectedStream"]


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
