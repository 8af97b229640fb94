"""Count, sum, smallest and largest of the values seen."""

from __future__ import annotations

from typing import Any


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
