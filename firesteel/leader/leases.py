"""A group of masters with leases: its services, and the thread in which a member stands."""

from __future__ import annotations

import json
import logging
import math
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from types import UnionType
from typing import Protocol

from firesteel.checkpoint.storage.storage import Storage
from firesteel.errors import LeadershipLostError
from firesteel.leader.fence import Fence
from firesteel.leader.lease_election import (
    Decision,
    Granted,
    Lease,
    LeaseElection,
    Look,
    Renew,
    Revoked,
    TakeOver,
)
from firesteel.leader.services import (
    DifferentVersionError,
    HighAvailabilityError,
    Leader,
    Listener,
    Member,
    Notifications,
    TermStore,
    now,
)

_log = logging.getLogger("firesteel")

_LOOK_SECONDS = 0.1
_LEASE_TYPES: dict[str, type | UnionType] = {
    "term": int,
    "member": str,
    "sequence": int,
    "duration": int | float,
    "version": str,
    "url": str | None,
    "released": bool,
}


class Leases(Protocol):
    """The place of the lease and the entries of a group: what is atomic, and nothing about time.

    All methods may raise OSError or HighAvailabilityError if the place cannot be used.
    """

    @property
    def location(self) -> str:
        """The place, for messages."""

    @property
    def storage(self) -> Storage: ...

    def create(self) -> None:
        """Create the place with term 0, unless it exists."""

    def term(self) -> int:
        """Return the number of the current term. Raises FileNotFoundError if there is no group."""

    def lease(self, term: int) -> Lease | None:
        """Return the lease of a term, or None if it has none, or a damaged one."""

    def take_over(self, term: int, keep: Callable[[], None] = ...) -> bool:
        """Begin the next term with the entries of this one.

        Args:
            term: The current term.
            keep: Is called again and again once the next term has begun, if the rest takes long. It
                may raise LeadershipLostError.

        Returns:
            False if a different master was faster.
        """

    def renew(self, lease: Lease) -> None:
        """Write the lease of a term. Raises LeadershipLostError if the term has ended."""

    def store(self, term: int) -> TermStore: ...

    def fence(self, term: int) -> Fence: ...


def encode_lease(lease: Lease) -> bytes:
    return json.dumps(asdict(lease)).encode()


def decode_lease(payload: bytes, term: int, location: str) -> Lease | None:
    """Return a lease of this term. One that is damaged, or of a different term, counts as none."""
    try:
        lease = Lease(**json.loads(payload))
        _check_values(lease)
    except (ValueError, TypeError, RecursionError) as error:
        _log.warning("%s is damaged and is ignored: %s", location, error)
        return None
    return lease if lease.term == term else None


def _check_values(lease: Lease) -> None:
    for name, kinds in _LEASE_TYPES.items():
        value = getattr(lease, name)
        if not isinstance(value, kinds):
            raise TypeError(f"{name} is {value!r}")
    if not 0 < lease.duration < math.inf:
        raise ValueError(f"duration is {lease.duration!r}")


@dataclass(slots=True)
class _Renewal:
    """A write of the lease in a thread of its own.

    Attributes:
        lease: The lease.
        started: The time before the write.
        error: The reason for which it failed.
        done: It has ended.
    """

    lease: Lease
    started: float
    error: Exception | None = None
    done: threading.Event = field(default_factory=threading.Event)


class LeaseThread:
    """Carries out the rules of the election in a thread.

    Renewals have threads of their own. So a leader whose renewal hangs steps down in time.
    """

    def __init__(
        self,
        leases: Leases,
        member: Member,
        listener: Listener,
        duration: float,
        interval: float,
        clock: Callable[[], float] = now,
    ) -> None:
        self._leases = leases
        self._member = member
        self._listener = listener
        self._duration = duration
        self._interval = interval
        self._rules = LeaseElection(duration, interval)
        self._clock = clock
        self._url: str | None = None
        self._renewal: _Renewal | None = None
        self._lock = threading.Lock()
        self._changed = threading.Event()
        self._closing = False
        self._notifications = Notifications()
        self._thread = threading.Thread(target=self._run, name="firesteel-lease", daemon=True)
        self._thread.start()

    def announce(self, term: int, url: str) -> None:
        with self._lock:
            if self._rules.term != term:
                raise LeadershipLostError(term, "its lease ran out")
            self._url = url
            self._rules.hasten(self._clock())
        self._changed.set()

    def close(self) -> None:
        self._closing = True
        self._changed.set()
        self._thread.join()
        last = self._rules.step_down()
        if last is not None:
            if self._renewal is not None:
                # It must not come after the last one.
                self._renewal.done.wait(self._duration)
            with suppress(LeadershipLostError, OSError, HighAvailabilityError):
                self._leases.renew(self._lease(last.term, last.sequence, released=True))
        self._notifications.close()

    def _run(self) -> None:
        while not self._closing:
            with self._lock:
                todo = self._finish_renewal() + self._rules.tick(self._clock())
                while todo:
                    todo = [*todo[1:], *self._carry_out(todo[0])]
                delay = self._rules.delay(self._clock())
            self._changed.wait(delay)
            self._changed.clear()

    def _carry_out(self, decision: Decision) -> list[Decision]:
        try:
            match decision:
                case Look():
                    term = self._leases.term()
                    return self._rules.seen(term, self._leases.lease(term), self._clock())
                case TakeOver(term):
                    return self._take_over(term)
                case Renew(term, sequence):
                    self._begin_renewal(term, sequence)
                case Granted(term):
                    self._url = None
                    _log.info("this master leads (term %d)", term)
                    self._notifications.post(lambda: self._listener.granted(term))
                case Revoked(term, reason):
                    _log.warning("this master no longer leads (term %d): %s", term, reason)
                    self._notifications.post(lambda: self._listener.revoked(term, reason))
        except (OSError, HighAvailabilityError, LeadershipLostError) as error:
            _log.warning("the lease in %s cannot be used: %s", self._leases.location, error)
        return []

    def _take_over(self, term: int) -> list[Decision]:
        """Begin the next term. A lease keeps others from the same while this takes long."""
        started, kept = self._clock(), 0
        self._url = None

        def keep() -> None:
            nonlocal started, kept
            now = self._clock()
            if now - started >= self._interval:
                kept += 1
                # The sequence differs from that of all renewals.
                self._leases.renew(self._lease(term + 1, -kept))
                started = now

        if not self._leases.take_over(term, keep):
            return []
        return self._rules.took_over(term + 1, started)

    def _begin_renewal(self, term: int, sequence: int) -> None:
        if self._renewal is not None and self._renewal.lease.term == term:
            # The last one hangs.
            return
        renewal = self._renewal = _Renewal(self._lease(term, sequence), self._clock())
        threading.Thread(
            target=self._renew, args=(renewal,), name="firesteel-renewal", daemon=True
        ).start()

    def _renew(self, renewal: _Renewal) -> None:
        try:
            self._leases.renew(renewal.lease)
        except (LeadershipLostError, OSError, HighAvailabilityError) as error:
            renewal.error = error
        finally:
            renewal.done.set()
            self._changed.set()

    def _finish_renewal(self) -> list[Decision]:
        """Return the decisions that follow from the end of a renewal."""
        renewal = self._renewal
        if renewal is None or not renewal.done.is_set():
            return []
        self._renewal = None
        if renewal.lease.term != self._rules.term:
            return []
        error = renewal.error
        if isinstance(error, LeadershipLostError):
            return self._rules.renewal_failed(self._clock(), ended=True, reason=error.reason)
        if error is not None:
            _log.warning("the lease in %s was not renewed: %s", self._leases.location, error)
            return self._rules.renewal_failed(self._clock(), ended=False, reason=str(error))
        self._rules.renewed(renewal.lease.sequence, renewal.started)
        if renewal.lease.url != self._url:
            # The address became known meanwhile.
            self._rules.hasten(self._clock())
        return []

    def _lease(self, term: int, sequence: int, *, released: bool = False) -> Lease:
        return Lease(
            term,
            self._member.id,
            sequence,
            self._duration,
            self._member.version,
            self._url,
            released,
        )


class LeaseServices:
    """A group of masters that elect their leader with leases.

    Args:
        leases: The place of the group.
        duration: The seconds of a lease.
        interval: The seconds between two renewals.
    """

    def __init__(self, leases: Leases, duration: float, interval: float) -> None:
        self._leases = leases
        self._duration = duration
        self._interval = interval

    @property
    def storage(self) -> Storage:
        return self._leases.storage

    def leader(self) -> Leader | None:
        try:
            term = self._leases.term()
        except FileNotFoundError:
            return None
        lease = self._leases.lease(term)
        if lease is None or lease.released:
            return None
        return Leader(term, lease.member, lease.version, lease.url)

    def contend(self, member: Member, listener: Listener) -> LeaseThread:
        try:
            self._leases.create()
        except OSError as error:
            raise HighAvailabilityError(
                f"{self._leases.location} cannot be created: {error}. Check "
                "high-availability.storageDir."
            ) from error
        self.check_member(member)
        return LeaseThread(self._leases, member, listener, self._duration, self._interval)

    def check_member(self, member: Member) -> None:
        # A leader is dead if its lease does not change.
        seen: Lease | None = None
        deadline = 0.0
        while True:
            try:
                term = self._leases.term()
            except FileNotFoundError:
                return
            lease = self._leases.lease(term)
            if lease is None or lease.released or lease.version == member.version:
                return
            if seen is None or seen.term != term:
                seen, deadline = lease, now() + lease.duration
            elif lease != seen:
                raise DifferentVersionError(lease.version, member.version)
            elif now() >= deadline:
                return
            time.sleep(_LOOK_SECONDS)

    def store(self, term: int) -> TermStore:
        return self._leases.store(term)

    def fence(self, term: int) -> Fence:
        return self._leases.fence(term)

    def close(self) -> None:
        """Nothing is open."""
