"""BroadcastStream: a stream that every subtask gets all of, with the state it fills."""

from __future__ import annotations

from typing import Any

from firesteel.datastream.data_stream.function_arguments import ProgramTypeError
from firesteel.datastream.data_stream.stream_base import StreamBase
from firesteel.datastream.state import MapStateDescriptor
from firesteel.errors import InvalidProgramError, shorten

__all__ = ["BroadcastStream"]


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
