"""The interface between masters and the system that elects their leader and keeps their entries."""

from __future__ import annotations

import logging
import queue
import re
import threading
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from firesteel.checkpoint.storage.storage import Storage, StorageError
from firesteel.errors import FiresteelError
from firesteel.leader.fence import Fence
from firesteel.version import __version__

_log = logging.getLogger("firesteel")

KINDS = ("jobs", "checkpoints", "counters", "ended")
_NAME = re.compile(r"[A-Za-z0-9@-]+")


def entry_file(kind: str, name: str) -> str:
    """Return the path of an entry below the directory of its term. It cannot leave its kind."""
    if kind not in KINDS or not _NAME.fullmatch(name):
        raise ValueError(f"{kind}/{name} is no valid entry")
    return f"{kind}/{name}.json"


class HighAvailabilityError(FiresteelError, RuntimeError):
    """The system that elects the leader, or keeps its entries, does not answer or refuses."""


class DifferentVersionError(HighAvailabilityError):
    """The leader has a different version than a master that wants to stand by."""

    def __init__(self, leader: str, own: str) -> None:
        super().__init__(
            f"The leader runs Firesteel {leader}, but this master has {own}, which cannot take over "
            "its jobs. Install the same version on all masters. To change the version, stop the "
            "jobs with savepoints, stop all masters, and start new ones."
        )


def is_passing(error: BaseException) -> bool:
    """Return True if entries or files cannot be read now, which says nothing about them."""
    if isinstance(error, StorageError):
        return not error.missing
    return isinstance(error, HighAvailabilityError)


def now() -> float:
    """Return seconds of a clock that also runs while the machine sleeps."""
    clock = getattr(time, "CLOCK_BOOTTIME", None)
    return time.monotonic() if clock is None else time.clock_gettime(clock)


@dataclass(frozen=True, slots=True)
class Member:
    """A master that wants to lead."""

    id: str = field(default_factory=lambda: uuid.uuid4().hex)
    version: str = __version__


@dataclass(frozen=True, slots=True)
class Leader:
    """The leader. ``url`` is None until it has taken over all jobs."""

    term: int
    member: str
    version: str
    url: str | None


class TermStore(Protocol):
    """Entries of a group of masters, as the leader of one term reads and writes them.

    Writes and ``check`` raise LeadershipLostError after the term has ended, and ``names`` may do so.
    An entry has one of the ``KINDS``, and a name of letters, digits, ``-`` and ``@``.
    """

    @property
    def term(self) -> int: ...

    def names(self, kind: str) -> list[str]: ...

    def get(self, kind: str, name: str) -> bytes | None: ...

    def put(self, kind: str, name: str, payload: bytes) -> None: ...

    def delete(self, kind: str, name: str) -> None: ...

    def check(self) -> None:
        """Raise LeadershipLostError if the term has ended."""


class Election(Protocol):
    """The candidacy of a member."""

    def announce(self, term: int, url: str) -> None:
        """Tell clients the address, once the leader of a term has taken over all jobs.

        Raises LeadershipLostError if the term has ended.
        """

    def close(self) -> None:
        """Step down, so that a standby takes over at once."""


class HighAvailability(Protocol):
    """One group of masters in ZooKeeper, in a directory, or in an object store."""

    @property
    def storage(self) -> Storage:
        """The directory of the group, below high-availability.storageDir."""

    def leader(self) -> Leader | None:
        """Return the current leader, which may have died a moment ago."""

    def check_member(self, member: Member) -> None:
        """Raise DifferentVersionError if a leader of a different version leads.

        It may take as long as a lease to see that a leader is dead.
        """

    def contend(self, member: Member, listener: Listener) -> Election:
        """Become a candidate. The listener is called in a thread of its own.

        Raises DifferentVersionError if a leader of a different version leads.
        """

    def store(self, term: int) -> TermStore: ...

    def fence(self, term: int) -> Fence: ...

    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Listener:
    """Functions that are told about the own leadership, one at a time.

    Attributes:
        granted: Takes the number of the term. It may take long.
        revoked: Takes the number of the term and the reason.
    """

    granted: Callable[[int], None]
    revoked: Callable[[int, str], None]


class Notifications:
    """Calls a listener in a thread, so that a slow one does not delay renewals."""

    def __init__(self) -> None:
        self._calls: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="firesteel-leader", daemon=True)
        self._thread.start()

    def post(self, call: Callable[[], None]) -> None:
        self._calls.put(call)

    def close(self) -> None:
        self._calls.put(None)

    def _run(self) -> None:
        while (call := self._calls.get()) is not None:
            try:
                call()
            except Exception:  # noqa: BLE001 - the election continues
                _log.exception("a change of the leader could not be handled")
