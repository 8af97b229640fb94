"""The kinds of metrics: counters, gauges, meters and distributions."""

from __future__ import annotations

import logging
import math
import time
from collections import deque
from collections.abc import Callable
from typing import Any

from firesteel.stability import public_evolving


class Counter:
    """Counts events. The job reports the sum over all subtasks.

    >>> class CountWords(MapFunction):
    ...     def open(self, runtime_context):
    ...         self.words = runtime_context.get_metrics_group().counter("words")
    ...     def map(self, line):
    ...         self.words.inc(len(line.split()))
    ...         return line
    >>> lines = env.from_collection(["to be", "or not to be"])
    >>> sink = lines.map(CountWords()).name("lines").print()
    >>> result = env.execute()
    to be
    or not to be
    >>> result.get_accumulator_result("lines.words")
    6
    """

    __slots__ = ("_count",)

    def __init__(self) -> None:
        self._count = 0

    def inc(self, n: int = 1) -> None:
        """Increase the count.

        Args:
            n: The number of events.

        >>> counter = Counter()
        >>> counter.inc()
        >>> counter.inc(3)
        >>> counter.get_count()
        4
        """
        self._count += n

    def dec(self, n: int = 1) -> None:
        """Decrease the count.

        Args:
            n: The number of events.

        >>> counter = Counter()
        >>> counter.dec(2)
        >>> counter.get_count()
        -2
        """
        self._count -= n

    def get_count(self) -> int:
        """Return the count of this subtask.

        >>> Counter().get_count()
        0
        """
        return self._count

    @public_evolving
    def snapshot(self) -> dict[str, Any]:
        """Return the current value as JSON. Not in PyFlink.

        >>> Counter().snapshot()
        {'kind': 'counter', 'count': 0}
        """
        return {"kind": "counter", "count": self._count}


_log = logging.getLogger(__name__)


class Gauge:
    """Reports the current result of a function. The job reports one value per subtask.

    >>> class Latest(MapFunction):
    ...     def open(self, runtime_context):
    ...         self.latest = None
    ...         runtime_context.get_metrics_group().gauge("latest", lambda: self.latest)
    ...     def map(self, value):
    ...         self.latest = value
    ...         return value
    >>> sink = env.from_collection([1, 2]).map(Latest()).name("numbers").print()
    >>> client = env.execute_async()
    1
    2
    >>> client.get_metrics()["numbers.latest"]
    {'kind': 'gauge', 'values': [2]}
    """

    __slots__ = ("_has_failed", "_obj")

    def __init__(self, obj: Callable[[], Any]) -> None:
        if not callable(obj):
            raise TypeError(f"A gauge needs a callable without arguments, got {obj!r}")
        self._obj = obj
        self._has_failed = False

    @public_evolving
    def get_value(self) -> Any:
        """Call the function and return its result. Not in PyFlink.

        >>> Gauge(lambda: 5).get_value()
        5
        """
        return self._obj()

    @public_evolving
    def snapshot(self) -> dict[str, Any]:
        """Return the current value as JSON. Not in PyFlink.

        A value that JSON cannot represent becomes text. If the function fails, the value is null,
        and the first failure is logged.

        >>> Gauge(lambda: 5).snapshot()
        {'kind': 'gauge', 'values': [5]}
        """
        return {"kind": "gauge", "values": [self._json_value()]}

    def _json_value(self) -> Any:
        try:
            value = self._obj()
        except Exception:  # noqa: BLE001 - a gauge is user code, and must not fail the job
            if not self._has_failed:
                _log.warning("A gauge failed; its value is reported as null", exc_info=True)
            self._has_failed = True
            return None
        if isinstance(value, float) and not math.isfinite(value):
            return str(value)  # JSON has no NaN and no infinity
        if value is None or isinstance(value, bool | int | float | str):
            return value
        return str(value)


_SAMPLES_PER_SPAN = 12


class Meter:
    """Counts events and reports their rate over a span of time.

    ``mark_event`` only counts, so it is fast. The clock is read when the rate is needed. The job
    reports the sum of the rates of all subtasks.

    Args:
        time_span_in_seconds: The span of time over which the rate is measured.
        clock: Returns seconds.

    >>> seconds = iter([0.0, 10.0])
    >>> meter = Meter(clock=lambda: next(seconds))
    >>> meter.mark_event(20)
    >>> meter.get_count(), meter.get_rate()
    (20, 2.0)
    """

    __slots__ = ("_clock", "_count", "_samples", "_span")

    def __init__(
        self, time_span_in_seconds: int = 60, clock: Callable[[], float] = time.monotonic
    ) -> None:
        if time_span_in_seconds <= 0:
            raise ValueError(
                f"The time span of a meter must be greater than 0, got {time_span_in_seconds}"
            )
        self._span = time_span_in_seconds
        self._clock = clock
        self._count = 0
        self._samples: deque[tuple[float, int]] = deque([(clock(), 0)])

    def mark_event(self, value: int = 1) -> None:
        """Count events.

        Args:
            value: The number of events.
        """
        self._count += value

    def get_count(self) -> int:
        """Return the number of events of this subtask."""
        return self._count

    def get_rate(self) -> float:
        """Return events per second over the span.

        A meter that is younger than the span returns the rate since its creation.
        """
        now = self._clock()
        samples = self._samples
        # The newest sample outside the span is the best approximation of the start of the span.
        while len(samples) > 1 and now - samples[1][0] >= self._span:
            samples.popleft()
        began, count_then = samples[0]
        if now - samples[-1][0] >= self._span / _SAMPLES_PER_SPAN:
            samples.append((now, self._count))
        return (self._count - count_then) / (now - began) if now > began else 0.0

    @public_evolving
    def snapshot(self) -> dict[str, Any]:
        """Return the current values as JSON. Not in PyFlink.

        >>> meter = Meter(clock=lambda: 0.0)
        >>> meter.mark_event()
        >>> meter.snapshot()
        {'kind': 'meter', 'count': 1, 'rate': 0.0}
        """
        return {"kind": "meter", "count": self._count, "rate": self.get_rate()}


class Distribution:
    """Summarizes numbers. The job reports the summary over all subtasks.

    >>> sizes = Distribution()
    >>> sizes.update(2)
    >>> sizes.update(4)
    >>> sizes.get_mean()
    3.0
    >>> sizes.get_count(), sizes.get_sum(), sizes.get_min(), sizes.get_max()
    (2, 6, 2, 4)
    """

    __slots__ = ("_count", "_max", "_min", "_sum")

    def __init__(self) -> None:
        self._count = 0
        self._sum: float = 0
        self._min: float | None = None
        self._max: float | None = None

    def update(self, value: float) -> None:
        """Add a number.

        Args:
            value: The number.
        """
        self._count += 1
        self._sum += value
        if self._min is None or value < self._min:
            self._min = value
        if self._max is None or value > self._max:
            self._max = value

    @public_evolving
    def get_count(self) -> int:
        """Return the count of added numbers. Not in PyFlink."""
        return self._count

    @public_evolving
    def get_sum(self) -> float:
        """Return the sum of the numbers. Not in PyFlink."""
        return self._sum

    @public_evolving
    def get_min(self) -> float | None:
        """Return the smallest number, or None before the first one. Not in PyFlink."""
        return self._min

    @public_evolving
    def get_max(self) -> float | None:
        """Return the largest number, or None before the first one. Not in PyFlink."""
        return self._max

    @public_evolving
    def get_mean(self) -> float | None:
        """Return the mean of the numbers, or None before the first one. Not in PyFlink."""
        return self._sum / self._count if self._count else None

    @public_evolving
    def snapshot(self) -> dict[str, Any]:
        """Return the current values as JSON. Not in PyFlink.

        >>> sizes = Distribution()
        >>> sizes.update(2)
        >>> sizes.snapshot()
        {'kind': 'distribution', 'count': 1, 'sum': 2, 'min': 2, 'max': 2, 'mean': 2.0}
        """
        return {
            "kind": "distribution",
            "count": self._count,
            "sum": self._sum,
            "min": self._min,
            "max": self._max,
            "mean": self.get_mean(),
        }
