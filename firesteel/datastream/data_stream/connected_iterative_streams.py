"""ConnectedIterativeStreams: a stream, and what comes back to it, as two streams."""

from __future__ import annotations

from dataclasses import replace

from firesteel.common.typeinfo import TypeInformation
from firesteel.datastream.data_stream.connected_streams import ConnectedStreams
from firesteel.datastream.data_stream.data_stream import DataStream
from firesteel.datastream.data_stream.loop import close_loop, iteration_head
from firesteel.datastream.data_stream.stream_base import StreamBase
from firesteel.graph.transformations import Origin

__all__ = ["ConnectedIterativeStreams"]


class ConnectedIterativeStreams(ConnectedStreams):
    """What ``with_feedback_type`` gives: the input is the first stream, the feedback the second."""

    def __init__(
        self, input_stream: StreamBase, feedback_type: TypeInformation, max_wait: int
    ) -> None:
        # The head only has to know when the input ends: that takes no repartitioning.
        origins = tuple(replace(one, partitioning=None) for one in input_stream._origins)
        self._head = iteration_head(origins, max_wait, feedback_only=True)
        environment = input_stream.get_execution_environment()
        super().__init__(
            input_stream, DataStream(environment, (Origin(self._head),), feedback_type)
        )

    def close_with(self, feedback_stream: StreamBase) -> StreamBase:
        """Send the records of a stream that comes out of these two back; that stream."""
        self.stream1._check_joinable("close_with", feedback_stream)
        return close_loop(self._head, feedback_stream)
