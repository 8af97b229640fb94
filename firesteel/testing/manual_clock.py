"""ManualClock, a clock that only a test moves."""

from __future__ import annotations

from firesteel.stability import public_evolving


@public_evolving
class ManualClock:
    """A processing-time clock that a test controls. Not in PyFlink.

    Calling the clock returns milliseconds since 1970, like the clocks it replaces.

    Args:
        now_millis: The initial time.

    >>> from firesteel.testing import ManualClock
    >>> clock = ManualClock(1_000)
    >>> clock.advance(500)
    >>> clock()
    1500
    >>> clock.set(60_000)
    >>> clock()
    60000
    """

    __slots__ = ("_now",)

    def __init__(self, now_millis: int = 0) -> None:
        self._now = now_millis

    def __call__(self) -> int:
        return self._now

    def advance(self, millis: int) -> None:
        """Move the clock forward.

        Args:
            millis: The time to add, in milliseconds.
        """
        self.set(self._now + millis)

    def set(self, now_millis: int) -> None:
        """Move the clock to a time.

        Args:
            now_millis: The time in milliseconds.

        Raises:
            ValueError: The time is before the current time of the clock.
        """
        if now_millis < self._now:
            raise ValueError(f"the clock is at {self._now} and cannot go back to {now_millis}")
        self._now = now_millis
