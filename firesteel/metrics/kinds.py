"""Count, sum, smallest and largest of the values seen."""

from __future__ import annotations

import logging
import math
import time
from collections import deque
from collections.abc import Callable
from typing import Any


class Counter:
    """Counts events. The values of all subtasks are added up.

    >>> counter = Counter()
    >>> counter.inc(3)
    >>> counter.dec()
    >>> counter.get_count()
    2
    """

    __slots__ = ("_count",)

    def __init__(self) -> None:
        self._count = 0

    def inc(self, n: int = 1) -> None:
        self._count += n

    def dec(self, n: int = 1) -> None:
        self._count -= n

    def get_count(self) -> int:
        return self._count

    def snapshot(self) -> dict[str, Any]:
        return {"kind": "counter", "count": self._count}


_log = logging.getLogger(__name__)


class Gauge:
    """Calls a function of the user at every snapshot. Each subtask's value is kept by itself."""

    __slots__ = ("_has_failed", "_obj")

    def __init__(self, obj: Callable[[], Any]) -> None:
        if not callable(obj):
            raise TypeError(f"A gauge needs a callable without arguments, not {obj!r}")
        self._obj = obj
        self._has_failed = False

    def get_value(self) -> Any:
        return self._obj()

    def snapshot(self) -> dict[str, Any]:
        return {"kind": "gauge", "values": [self._json_value()]}

    def _json_value(self) -> Any:
        try:
            value = self._obj()
        except Exception:  # noqa: BLE001 - a gauge is the user's code, and must not end the job
            if not self._has_failed:
                _log.warning("A gauge failed; its value is reported as null", exc_info=True)
            self._has_failed = True
            return None
        if isinstance(value, float) and not math.isfinite(value):
            return str(value)  # JSON has no number for it
        if value is None or isinstance(value, bool | int | float | str):
            return value
        return str(value)


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


class Distribution:
    """Summarizes values. The summaries of all subtasks are merged.

    >>> sizes = Distribution()
    >>> sizes.update(2)
    >>> sizes.update(4)
    >>> sizes.get_mean()
    3.0
    """

    __slots__ = ("_count", "_max", "_min", "_sum")

    def __init__(self) -> None:
        self._count = 0
        self._sum: float = 0
        self._min: float | None = None
        self._max: float | None = None

    def update(self, value: float) -> None:
        self._count += 1
        self._sum += value
        if self._min is None or value < self._min:
            self._min = value
        if self._max is None or value > self._max:
            self._max = value

    def get_count(self) -> int:
        return self._count

    def get_sum(self) -> float:
        return self._sum

    def get_min(self) -> float | None:
        """None before the first value."""
        return self._min

    def get_max(self) -> float | None:
        """None before the first value."""
        return self._max

    def get_mean(self) -> float | None:
        """None before the first value."""
        return self._sum / self._count if self._count else None

    def snapshot(self) -> dict[str, Any]:
        return {
            "kind": "distribution",
            "count": self._count,
            "sum": self._sum,
            "min": self._min,
            "max": self._max,
            "mean": self.get_mean(),
        }
