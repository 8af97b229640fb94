"""NumberSequenceSource, a bounded source of whole numbers."""

from __future__ import annotations

from typing import Any

from firesteel.common.typeinfo import Types
from firesteel.connectors.base import (
    Boundedness,
    ReaderContext,
    Source,
    SourceReader,
    SplitEnumerator,
)
from firesteel.connectors.index_ranges import IndexRangeEnumerator, IndexRangeReader

__all__ = ["NumberSequenceSource"]


class NumberSequenceSource(Source):
    """A bounded source of whole numbers. Each subtask reads a contiguous part in order.

    Args:
        start: The first number.
        end: The last number.

    Raises:
        ValueError: The start is greater than the end.

    >>> from firesteel.datastream.connectors.number_seq import NumberSequenceSource
    >>> numbers = NumberSequenceSource(1, 5)
    >>> stream = env.from_source(numbers, WatermarkStrategy.no_watermarks(), "numbers")
    >>> list(stream.execute_and_collect())
    [1, 2, 3, 4, 5]
    """

    side_by_side = False

    def __init__(self, start: int, end: int) -> None:
        if start > end:
            raise ValueError(
                f"NumberSequenceSource({start}, {end}): the start must not be greater than the end"
            )
        self._start = start
        self._end = end

    def get_boundedness(self) -> Boundedness:
        return Boundedness.BOUNDED

    def create_enumerator(self, parallelism: int, state: Any = None) -> SplitEnumerator:
        return IndexRangeEnumerator(self._start, self._end + 1, parallelism, state)

    def create_reader(self, context: ReaderContext) -> SourceReader:
        return _NumberReader()

    def get_produced_type(self) -> Any:
        return Types.LONG()

    def __repr__(self) -> str:
        return f"NumberSequenceSource({self._start}, {self._end})"


class _NumberReader(IndexRangeReader):
    def fetch(self, start: int, stop: int) -> range:
        return range(start, stop)
