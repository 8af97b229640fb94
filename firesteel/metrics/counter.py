"""A number that goes up and down."""

from __future__ import annotations

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
