"""The two times of a subtask."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from firesteel.task.watermarks import MIN_WATERMARK


@dataclass(slots=True)
class SubtaskClock:
    """Event time is the watermark; processing time can be replaced by tests."""

    watermark: int = MIN_WATERMARK
    now_millis: Callable[[], int] = field(default=lambda: int(time.time() * 1000))
