"""How long a part of a stream has been silent, so that idleness can be told from being busy.

Two times count, and no other. One is the time in which somebody listened: the source's reader was
being asked, or an operator waited for input within an epoch. Functions that work, rows that wait to
be sent on and splits that are paused stop that clock. The other is proven silence: the input was
asked and had nothing, and later on again, without a record in between.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


class ListeningClock:
    """Milliseconds in which a record could have come."""

    __slots__ = ("_millis", "_now_millis", "_since")

    def __init__(self, now_millis: Callable[[], int]) -> None:
        self._now_millis = now_millis
        self._millis = 0
        self._since: int | None = None

    def __call__(self) -> int:
        """What the clock shows."""
        if self._since is None:
            return self._millis
        return self._millis + max(0, self._now_millis() - self._since)

    def resume(self) -> None:
        if self._since is None:
            self._since = self._now_millis()

    def pause(self) -> bool:
        """Whether it ran until now."""
        if self._since is None:
            return False
        self._millis = self()
        self._since = None
        return True


@dataclass(slots=True)
class Silence:
    """``heard_at``: what the listening clock showed at the last record.

    ``since`` and ``until``: when the input had nothing for the first time since then, and the last.
    """

    heard_at: int
    since: int | None = None
    until: int = 0

    def end(self, listened: int) -> None:
        self.heard_at = listened
        self.since = None

    def prove(self, now: int) -> None:
        """The input has just been asked and had nothing."""
        if self.since is None:
            self.since = now
        self.until = now

    def millis(self, listened: int) -> int:
        proven = 0 if self.since is None else self.until - self.since
        return max(listened - self.heard_at, proven)
