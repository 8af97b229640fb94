"""A clock that only the test moves."""

from __future__ import annotations


class ManualClock:
    """Milliseconds since 1970, as processing time; it is callable like the clocks it replaces.

    >>> clock = ManualClock(1_000)
    >>> clock.advance(500)
    >>> clock()
    1500
    """

    __slots__ = ("_now",)

    def __init__(self, now_millis: int = 0) -> None:
        self._now = now_millis

    def __call__(self) -> int:
        return self._now

    def advance(self, millis: int) -> None:
        self.set(self._now + millis)

    def set(self, now_millis: int) -> None:
        """Move to a time, which must not lie in the past."""
        if now_millis < self._now:
            raise ValueError(f"the clock shows {self._now} and cannot go back to {now_millis}")
        self._now = now_millis
