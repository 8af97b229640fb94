"""The two times of a subtask."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from firesteel.task.watermarks import MIN_WATERMARK


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
