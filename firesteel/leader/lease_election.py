"""Rules of an election with leases. They are pure: observations and times in, decisions out.

A standby compares what it sees with what it saw before, on its own clock. So masters need no common
time, only clocks that run at about the same speed. A faster clock can replace a leader too early,
which ends the leader's term but harms nothing: the store refuses the writes of an ended term.
"""

from __future__ import annotations

from dataclasses import dataclass

# A leader stops this part of the lease before others may replace it, on clocks of the same speed.
_MARGIN = 0.2
# A standby looks more often than a leader writes, so it sees early that a lease no longer changes.
_LOOKS_PER_RENEWAL = 4


@dataclass(frozen=True, slots=True)
class Lease:
    """The entry that a leader renews.

    Attributes:
        term: The number of the leadership.
        member: The id of the leader's process.
        sequence: A number that grows with each renewal.
        duration: Seconds after which a lease that does not change has run out.
        version: The version of Firesteel.
        url: The address of the leader, once it has taken over all jobs.
        released: The leader has stepped down.
    """

    term: int
    member: str
    sequence: int
    duration: float
    version: str
    url: str | None = None
    released: bool = False


@dataclass(frozen=True, slots=True)
class Look:
    """Read the current term and its lease, then call ``seen``."""


@dataclass(frozen=True, slots=True)
class TakeOver:
    """Replace the leader of a term, then call ``took_over`` or ``seen``."""

    term: int


@dataclass(frozen=True, slots=True)
class Renew:
    """Write the lease of the own term, then call ``renewed`` or ``renewal_failed``."""

    term: int
    sequence: int


@dataclass(frozen=True, slots=True)
class Granted:
    """This member leads from now on."""

    term: int


@dataclass(frozen=True, slots=True)
class Revoked:
    """This member no longer leads."""

    term: int
    reason: str


Decision = Look | TakeOver | Renew | Granted | Revoked


class LeaseElection:
    """The part of one member in the election.

    Args:
        duration: The duration of its leases in seconds.
        interval: The seconds between two renewals. A standby looks four times as often.
    """

    def __init__(self, duration: float, interval: float) -> None:
        self._duration = duration
        self._interval = interval
        self.term: int | None = None
        self._sequence = 0
        self._valid_until = 0.0
        self._next_at = float("-inf")
        # The last observation of a standby, and the time at which it was made first.
        self._seen: tuple[int, Lease | None] | None = None
        self._seen_at = 0.0

    def leads(self, now: float) -> bool:
        """Return True if the own lease is certainly valid."""
        return self.term is not None and now < self._valid_until

    def delay(self, now: float) -> float:
        """Return the seconds until ``tick`` has something to do."""
        at = self._next_at if self.term is None else min(self._next_at, self._valid_until)
        return max(0.0, at - now)

    def tick(self, now: float) -> list[Decision]:
        """Return the decisions that are due."""
        if self.term is not None and now >= self._valid_until:
            return self._lose("its lease ran out before it was renewed", now)
        if now < self._next_at:
            return []
        if self.term is None:
            self._next_at = now + self._interval / _LOOKS_PER_RENEWAL
            return [Look()]
        self._next_at = now + self._interval
        return [Renew(self.term, self._sequence + 1)]

    def seen(self, term: int, lease: Lease | None, now: float) -> list[Decision]:
        """A standby has read the current term and its lease, or None if it is unreadable."""
        if self.term is not None:
            return []
        if (term, lease) != self._seen:
            self._seen, self._seen_at = (term, lease), now
        patience = self._duration if lease is None else lease.duration
        # Term 0 is that of a new group, which has no leader.
        is_free = term == 0 or (lease is not None and lease.released)
        if is_free or now - self._seen_at >= patience:
            return [TakeOver(term)]
        self._next_at = min(self._next_at, self._seen_at + patience)
        return []

    def took_over(self, term: int, started: float) -> list[Decision]:
        """The member has begun a term. ``started`` is the time before it did so."""
        self.term = term
        self._sequence = 0
        self._seen = None
        # The lease is to be written at once, so that others see who leads.
        self._next_at = started
        self._valid_until = started + self._usable
        return [Granted(term)]

    def renewed(self, sequence: int, started: float) -> None:
        """The lease is written. ``started`` is the time before the write."""
        self._sequence = sequence
        self._valid_until = started + self._usable

    def renewal_failed(self, now: float, *, ended: bool, reason: str) -> list[Decision]:
        """The lease could not be written. ``ended``: because a different term has begun."""
        if ended:
            return self._lose(reason, now)
        self._next_at = now + self._interval / 2
        return []

    def hasten(self, now: float) -> None:
        """Let the next renewal be due at once: the lease has news."""
        self._next_at = now

    def step_down(self) -> Renew | None:
        """Give the term up. Return the last write of the lease, if there is a term."""
        term, self.term = self.term, None
        return None if term is None else Renew(term, self._sequence + 1)

    @property
    def _usable(self) -> float:
        return self._duration * (1 - _MARGIN)

    def _lose(self, reason: str, now: float) -> list[Decision]:
        term, self.term = self.term, None
        self._seen = None
        self._next_at = now
        return [] if term is None else [Revoked(term, reason)]
