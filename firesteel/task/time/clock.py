"""How many records to work on before somebody looks at the clock."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from firesteel.common.constants import MIN_WATERMARK


@dataclass(slots=True)
class SubtaskClock:
    """Event time is the watermark; processing time can be replaced by tests.

    Every operator has a clock of its own: behind an operator that generates watermarks, event time
    is another than in front of it.
    """

    watermark: int = MIN_WATERMARK
    now_millis: Callable[[], int] = field(default=lambda: int(time.time() * 1000))

    def of_operator(self) -> SubtaskClock:
        """A clock with a watermark of its own and this one's processing time."""

        def now_millis() -> int:
            # Looked up each time: a test may set another one later.
            return self.now_millis()

        return SubtaskClock(self.watermark, now_millis)


# Nobody knows yet what a record costs.
_FIRST_RECORDS = 1
_MOST_RECORDS = 4096
# Long enough to cost nothing, short enough that nobody waits for it.
_SECONDS = 0.02


class ChunkPacer:
    """A chunk grows while it takes less than about so many seconds, and shrinks when it takes more."""

    __slots__ = ("_seconds", "records")

    def __init__(self, seconds: float = _SECONDS) -> None:
        self._seconds = seconds
        self.records = _FIRST_RECORDS

    def took(self, seconds: float, records: int) -> None:
        if seconds < self._seconds / 2 and records == self.records:
            self.records = min(self.records * 2, _MOST_RECORDS)
        elif seconds > 2 * self._seconds:
            self.records = max(1, int(self.records * self._seconds / seconds))
