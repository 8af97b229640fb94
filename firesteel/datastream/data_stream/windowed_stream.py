"""WindowedStream: a keyed stream cut into windows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from firesteel.datastream.data_stream.window_operations import WindowOperations
from firesteel.datastream.functions import ProcessWindowFunction, WindowFunction
from firesteel.datastream.window import WindowAssigner

if TYPE_CHECKING:
    from firesteel.datastream.data_stream.keyed_stream import KeyedStream

__all__ = ["WindowedStream"]


class WindowedStream(WindowOperations):
    """What ``key_by(...).window(...)`` gives. Windows of different keys know nothing of each other.

    Its window functions are a WindowFunction or a ProcessWindowFunction.
    """

    _plain = WindowFunction
    _processing = ProcessWindowFunction

    def __init__(
        self, keyed_stream: KeyedStream, window_assigner: WindowAssigner[Any, Any]
    ) -> None:
        super().__init__(keyed_stream, window_assigner)
