"""The clocks of a subtask, and the pace at which it looks at them."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from firesteel.common.constants import MIN_WATERMARK


@dataclass(slots=True)
class SubtaskClock:
    """Event time, which is the watermark, and processing time, which tests can replace.

    Every operator has its own clock, because event time differs before and after an operator that
    generates watermarks.
    """

    watermark: int = MIN_WATERMARK
    now_millis: Callable[[], int] = field(default=lambda: int(time.time() * 1000))

    def of_operator(self) -> SubtaskClock:
        """Return a clock with its own watermark and the processing time of this one."""

        def now_millis() -> int:
            # Looked up on each call, because a test may replace it later.
            return self.now_millis()

        return SubtaskClock(self.watermark, now_millis)


# The cost of a record is not known yet.
_FIRST_RECORDS = 1
_MOST_RECORDS = 4096
# Long enough to cost nothing, short enough to delay nothing.
_SECONDS = 0.02


class ChunkPacer:
    """Adapts the size of chunks so that each takes about a given time.

    most: the most records of a chunk, or None for no such limit.
    """

    __slots__ = ("_seconds", "most", "records")

    def __init__(self, seconds: float = _SECONDS) -> None:
        self._seconds = seconds
        self.records = _FIRST_RECORDS
        self.most: int | None = None

    @property
    def chunk(self) -> int:
        """The number of records of the next chunk."""
        return self.records if self.most is None else min(self.records, self.most)

    def took(self, seconds: float, records: int) -> None:
        if seconds < self._seconds / 2 and records == self.records:
            self.records = min(self.records * 2, _MOST_RECORDS)
        elif seconds > 2 * self._seconds:
            self.records = max(1, int(self.records * self._seconds / seconds))
