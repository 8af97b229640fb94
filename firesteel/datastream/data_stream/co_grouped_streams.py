"""CoGroupedStreams: two streams whose records are grouped together within windows."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from firesteel.common.typeinfo import TypeInformation
from firesteel.datastream.data_stream.function_arguments import require_function_or_callable
from firesteel.datastream.data_stream.stream_pair import StreamPair
from firesteel.datastream.data_stream.window_pair import WindowPair
from firesteel.datastream.functions import CoGroupFunction
from firesteel.datastream.window import WindowAssigner

if TYPE_CHECKING:
    from firesteel.datastream.data_stream.data_stream import DataStream
    from firesteel.datastream.data_stream.keyed_stream import KeyedStream

__all__ = ["CoGroupedStreams"]


class _WithWindow(WindowPair):
    """Two streams grouped within windows. ``apply`` makes a stream of it."""

    def apply(
        self,
        function: Callable[[list[Any], list[Any]], Iterable[Any]] | CoGroupFunction,
        output_type: TypeInformation | None = None,
    ) -> DataStream:
        """Call a function with all records of one key and window, of both streams."""
        require_function_or_callable("apply of a co_group", function, CoGroupFunction)
        return self._applied("Window Co-Group", function, output_type, groups=True)


class _EqualTo:
    """Both streams have their keys."""

    def __init__(self, left: KeyedStream, right: KeyedStream) -> None:
        self._left = left
        self._right = right

    def window(self, window_assigner: WindowAssigner[Any, Any]) -> _WithWindow:
        """Cut both streams into the same windows."""
        return _WithWindow(self._left, self._right, window_assigner)


class CoGroupedStreams(StreamPair[_EqualTo]):
    """What ``co_group`` gives, as in Flink's Java API.

    ``orders.co_group(payments).where(key1).equal_to(key2).window(assigner).apply(function)``
    """

    EqualTo = _EqualTo
    WithWindow = _WithWindow

    _operation = "co_group"

    def _keyed(self, left: KeyedStream, right: KeyedStream) -> _EqualTo:
        return _EqualTo(left, right)
