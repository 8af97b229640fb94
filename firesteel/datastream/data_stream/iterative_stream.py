"""IterativeStream: a stream that records come back to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from firesteel.common.typeinfo import TypeInformation
from firesteel.datastream.data_stream.data_stream import DataStream
from firesteel.datastream.data_stream.function_arguments import ProgramTypeError, as_type
from firesteel.datastream.data_stream.loop import close_loop, iteration_head
from firesteel.datastream.data_stream.stream_base import StreamBase
from firesteel.errors import shorten
from firesteel.graph.transformations import Origin

if TYPE_CHECKING:
    from firesteel.datastream.data_stream.connected_iterative_streams import (
        ConnectedIterativeStreams,
    )

__all__ = ["IterativeStream"]


class IterativeStream(DataStream):
    """What ``iterate`` gives: the records of the stream, and those of its feedback streams.

    Setters such as ``name`` and ``uid`` are for the loop.
    """

    def __init__(self, input_stream: StreamBase, max_wait: int = 0) -> None:
        self._input = input_stream
        self._max_wait = max_wait
        self._head = iteration_head(input_stream._origins, max_wait)
        super().__init__(
            input_stream.get_execution_environment(),
            (Origin(self._head),),
            input_stream.get_type(),
        )

    def close_with(self, feedback_stream: StreamBase) -> StreamBase:
        """Send the records of a stream that comes out of this one back to it; that stream.

        It may be a union, and there may be several of them, each with a call of its own.
        """
        self._check_joinable("close_with", feedback_stream)
        return close_loop(self._head, feedback_stream)

    def with_feedback_type(self, feedback_type: TypeInformation) -> ConnectedIterativeStreams:
        """The same loop, with records of another type coming back as the second of two streams."""
        from firesteel.datastream.data_stream.connected_iterative_streams import (
            ConnectedIterativeStreams,
        )

        if not isinstance(feedback_type, TypeInformation):
            raise ProgramTypeError(
                "with_feedback_type expects a TypeInformation, for example Types.STRING(), but got "
                f"{shorten(feedback_type)}."
            )
        return ConnectedIterativeStreams(
            self._input,
            as_type("with_feedback_type", feedback_type, "feedback type"),
            self._max_wait,
        )
