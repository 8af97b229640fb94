"""JoinedStreams: two streams whose records are joined within windows."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from firesteel.common.typeinfo import TypeInformation
from firesteel.datastream.data_stream.function_arguments import require_function_or_callable
from firesteel.datastream.data_stream.stream_pair import StreamPair
from firesteel.datastream.data_stream.window_pair import WindowPair
from firesteel.datastream.functions import FlatJoinFunction, JoinFunction
from firesteel.datastream.window import WindowAssigner

if TYPE_CHECKING:
    from firesteel.datastream.data_stream.data_stream import DataStream
    from firesteel.datastream.data_stream.keyed_stream import KeyedStream

__all__ = ["JoinedStreams"]


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
