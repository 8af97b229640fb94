"""How long a part of a stream has been silent: idleness must not be taken for a job that is busy."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class Silence:
    """Two times count, the longer one of them, and no other time does.

    The first is how long a source's reader was being asked since the last record came. ``heard_at``
    is how long it had been asked in all until then. While functions work, rows wait to be sent on,
    or a split is paused, nobody asks.

    The second is proven: the input had nothing at ``since``, and still nothing at ``until``.
    """

    heard_at: int
    since: int | None = None
    until: int = 0

    def end(self, asked_millis: int) -> None:
        self.heard_at = asked_millis
        self.since = None

    def prove(self, now: int) -> None:
        """The input has just been asked and had nothing."""
        if self.since is None:
            self.since = now
        self.until = now

    def millis(self, asked_millis: int) -> int:
        proven = 0 if self.since is None else self.until - self.since
        return max(asked_millis - self.heard_at, proven)
