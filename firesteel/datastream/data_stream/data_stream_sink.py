"""The end of a stream."""

from __future__ import annotations

from firesteel.datastream.data_stream.operator_settings import OperatorSettings
from firesteel.graph.transformations import Transformation

__all__ = ["DataStreamSink"]


class DataStreamSink(OperatorSettings):
    """A sink in the program; its settings can be changed, nothing can come after it."""

    def __init__(self, transformation: Transformation) -> None:
        self._transformation = transformation

    def _operator(self, setting: str) -> Transformation:
        return self._transformation
