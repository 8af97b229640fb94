"""Events per second over the last while."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from typing import Any

_SAMPLES_PER_SPAN = 12


class Meter:
    """Counts events, and tells their rate over the last ``time_span_in_seconds``.

    Marking only counts, so it is cheap; the clock is read when the rate is asked for. Rates of all
    subtasks are added up.
    """

    __slots__ = ("_clock", "_count", "_samples", "_span")

    def __init__(
        self, time_span_in_seconds: int = 60, clock: Callable[[], float] = time.monotonic
    ) -> None:
        if time_span_in_seconds <= 0:
            raise ValueError(f"A meter's time span is above 0, not {time_span_in_seconds}")
        self._span = time_span_in_seconds
        self._clock = clock
        self._count = 0
        self._samples: deque[tuple[float, int]] = deque([(clock(), 0)])

    def mark_event(self, value: int = 1) -> None:
        self._count += value

    def get_count(self) -> int:
        return self._count

    def get_rate(self) -> float:
        """Events per second, since the meter was made if that is less than the span ago."""
        now = self._clock()
        samples = self._samples
        # The sample that lies just outside the span is the best start of the span that we have.
        while len(samples) > 1 and now - samples[1][0] >= self._span:
            samples.popleft()
        began, count_then = samples[0]
        if now - samples[-1][0] >= self._span / _SAMPLES_PER_SPAN:
            samples.append((now, self._count))
        return (self._count - count_then) / (now - began) if now > began else 0.0

    def snapshot(self) -> dict[str, Any]:
        return {"kind": "meter", "count": self._count, "rate": self.get_rate()}
