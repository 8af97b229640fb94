"""AllWindowedStream: a whole stream cut into windows, in one subtask."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from firesteel.common.typeinfo import Types
from firesteel.datastream.data_stream.window_operations import WindowOperations
from firesteel.datastream.functions import AllWindowFunction, ProcessAllWindowFunction
from firesteel.datastream.window import WindowAssigner
from firesteel.graph.transformations import Transformation

if TYPE_CHECKING:
    from firesteel.datastream.data_stream.data_stream import DataStream

__all__ = ["AllWindowedStream"]


class AllWindowedStream(WindowOperations):
    """What ``window_all`` gives: windows over all records, whatever their key.

    Its window functions are an AllWindowFunction or a ProcessAllWindowFunction.
    """

    _plain = AllWindowFunction
    _processing = ProcessAllWindowFunction

    def __init__(self, data_stream: DataStream, window_assigner: WindowAssigner[Any, Any]) -> None:
        super().__init__(data_stream.key_by(_one_key, Types.BYTE()), window_assigner)

    def _finish(self, operator: Transformation) -> None:
        operator.parallelism = operator.max_parallelism = 1
        operator.non_parallel = True


def _one_key(_: Any) -> int:
    return 0
