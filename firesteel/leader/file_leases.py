"""Election and entries in a directory that all masters share: a local or mounted file system.

The directory of a group has one directory ``term-<number>`` with the lease and all entries. A
master takes over by renaming it to the next number. The rename is atomic, so one master wins, and
every later write of the old leader fails, because its path is gone.
"""

from __future__ import annotations

import errno
import json
import logging
import os
import re
import shutil
import threading
import time
import uuid
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

from firesteel.checkpoint.storage.storage import Storage, open_storage
from firesteel.errors import LeadershipLostError
from firesteel.filesystems.file_systems import sync_path
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
    KINDS,
    HighAvailabilityError,
    Leader,
    Listener,
    Member,
    Notifications,
    check_version,
    now,
)

_log = logging.getLogger("firesteel")

_TERM = re.compile(r"term-(\d{10})")
_LEASE = "lease.json"
_FENCE = "fence"
_NAME = re.compile(r"[A-Za-z0-9@-]+")
_SUFFIX = ".json"
# A listing may miss a directory that is being renamed.
_LOOKS = 20
_LOOK_SECONDS = 0.1


def _term_name(term: int) -> str:
    return f"term-{term:010d}"


class LeaseDirectory:
    """The files of a group: what is atomic, and nothing about time."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def create(self) -> None:
        """Create the directory with term 0, unless it exists. It appears as a whole."""
        if self.path.exists():
            return
        self.path.parent.mkdir(parents=True, exist_ok=True)
        draft = self.path.with_name(f".{self.path.name}.{uuid.uuid4().hex}")
        for kind in KINDS:
            (draft / _term_name(0) / kind).mkdir(parents=True)
        # It moves with the directory, so it is at the path of a term as long as the term lasts.
        (draft / _term_name(0) / _FENCE).touch()
        try:
            # It fails if a different master was faster: a directory is not replaced by another one
            # unless it is empty.
            draft.rename(self.path)
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise
        finally:
            shutil.rmtree(draft, ignore_errors=True)
        sync_path(str(self.path.parent))

    def at(self, term: int) -> Path:
        return self.path / _term_name(term)

    def term(self) -> int:
        """Return the number of the current term."""
        for _ in range(_LOOKS):
            found = [int(match[1]) for name in os.listdir(self.path) if (match := _match(name))]
            if found:
                return max(found)
        raise HighAvailabilityError(f"{self.path} has no directory {_term_name(0)} or later.")

    def lease(self, term: int) -> Lease | None:
        """Return the lease of a term, or None if it has none, or a damaged one."""
        try:
            lease = Lease(**json.loads((self.at(term) / _LEASE).read_bytes()))
        except FileNotFoundError:
            return None
        except (ValueError, TypeError) as error:
            _log.warning("%s is damaged and is ignored: %s", self.at(term) / _LEASE, error)
            return None
        # The lease of the last leader is there until the new one has written its own.
        return lease if lease.term == term else None

    def take_over(self, term: int) -> bool:
        """Begin the next term. Return False if a different master was faster."""
        try:
            self.at(term).rename(self.at(term + 1))
        except FileNotFoundError:
            return False
        # The last leader of this directory may have crashed before its rename was on the disk.
        sync_path(str(self.path))
        return True

    def write(self, term: int, name: str, payload: bytes, *, durable: bool = True) -> None:
        """Write a file of a term atomically. Raises LeadershipLostError if the term has ended."""
        path = self.at(term) / name
        unfinished = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
        try:
            with unfinished.open("wb") as file:
                file.write(payload)
                if durable:
                    file.flush()
                    os.fsync(file.fileno())
            unfinished.rename(path)
            if durable:
                sync_path(str(path.parent))
        except FileNotFoundError:
            raise self.ended(term) from None
        except BaseException:
            with suppress(OSError):
                unfinished.unlink()
            raise

    def ended(self, term: int) -> LeadershipLostError:
        return LeadershipLostError(term, f"{self.at(term)} is gone, so a later term has begun")


def _match(name: str) -> re.Match[str] | None:
    return _TERM.fullmatch(name)


class FileStore:
    """The entries of a term, a file each."""

    def __init__(self, directory: LeaseDirectory, term: int) -> None:
        self._directory = directory
        self._term = term

    @property
    def term(self) -> int:
        return self._term

    def names(self, kind: str) -> list[str]:
        try:
            found = os.listdir(self._directory.at(self._term) / kind)
        except FileNotFoundError:
            raise self._directory.ended(self._term) from None
        return sorted(
            name.removesuffix(_SUFFIX)
            for name in found
            if name.endswith(_SUFFIX) and not name.startswith(".")
        )

    def get(self, kind: str, name: str) -> bytes | None:
        try:
            return (self._directory.at(self._term) / _file(kind, name)).read_bytes()
        except FileNotFoundError:
            return None

    def put(self, kind: str, name: str, payload: bytes) -> None:
        self._directory.write(self._term, _file(kind, name), payload)

    def delete(self, kind: str, name: str) -> None:
        try:
            (self._directory.at(self._term) / _file(kind, name)).unlink()
        except FileNotFoundError:
            self.check()

    def check(self) -> None:
        if not self._directory.at(self._term).exists():
            raise self._directory.ended(self._term)


def _file(kind: str, name: str) -> str:
    if kind not in KINDS or not _NAME.fullmatch(name):
        raise ValueError(f"{kind}/{name} is no valid entry")
    return f"{kind}/{name}{_SUFFIX}"


class FileElection:
    """Carries out the rules of the election in a thread."""

    def __init__(
        self,
        directory: LeaseDirectory,
        member: Member,
        listener: Listener,
        duration: float,
        interval: float,
        clock: Callable[[], float] = now,
    ) -> None:
        self._directory = directory
        self._member = member
        self._listener = listener
        self._duration = duration
        self._rules = LeaseElection(duration, interval)
        self._clock = clock
        self._url: str | None = None
        self._lock = threading.Lock()
        self._changed = threading.Event()
        self._closing = False
        self._notifications = Notifications()
        self._thread = threading.Thread(target=self._run, name="firesteel-lease", daemon=True)
        self._thread.start()

    def announce(self, url: str) -> None:
        with self._lock:
            self._url = url
            self._rules.hasten(self._clock())
        self._changed.set()

    def close(self) -> None:
        self._closing = True
        self._changed.set()
        self._thread.join()
        last = self._rules.step_down()
        if last is not None:
            with suppress(LeadershipLostError, OSError):
                self._write(last.term, last.sequence, released=True)
        self._notifications.close()

    def _run(self) -> None:
        while not self._closing:
            with self._lock:
                todo = self._rules.tick(self._clock())
                while todo:
                    todo = [*todo[1:], *self._carry_out(todo[0])]
                delay = self._rules.delay(self._clock())
            self._changed.wait(delay)
            self._changed.clear()

    def _carry_out(self, decision: Decision) -> list[Decision]:
        try:
            match decision:
                case Look():
                    term = self._directory.term()
                    return self._rules.seen(term, self._directory.lease(term), self._clock())
                case TakeOver(term):
                    started = self._clock()
                    if self._directory.take_over(term):
                        return self._rules.took_over(term + 1, started)
                case Renew(term, sequence):
                    return self._renew(term, sequence)
                case Granted(term):
                    self._url = None
                    _log.info("this master leads (term %d)", term)
                    self._notifications.post(lambda: self._listener.granted(term))
                case Revoked(term, reason):
                    _log.warning("this master no longer leads (term %d): %s", term, reason)
                    self._notifications.post(lambda: self._listener.revoked(term, reason))
        except (OSError, HighAvailabilityError) as error:
            _log.warning("the lease in %s cannot be used: %s", self._directory.path, error)
        return []

    def _renew(self, term: int, sequence: int) -> list[Decision]:
        started = self._clock()
        try:
            self._write(term, sequence)
        except LeadershipLostError as error:
            return self._rules.renewal_failed(self._clock(), ended=True, reason=error.reason)
        except OSError as error:
            _log.warning("the lease in %s was not renewed: %s", self._directory.path, error)
            return self._rules.renewal_failed(self._clock(), ended=False, reason=str(error))
        self._rules.renewed(sequence, started)
        return []

    def _write(self, term: int, sequence: int, *, released: bool = False) -> None:
        lease = Lease(
            term,
            self._member.id,
            sequence,
            self._duration,
            self._member.version,
            self._url,
            released,
        )
        self._directory.write(term, _LEASE, json.dumps(asdict(lease)).encode(), durable=False)


class FileLeases:
    """A group of masters in a directory.

    Args:
        path: The directory of the group.
        duration: The seconds of a lease.
        interval: The seconds between two renewals.
    """

    def __init__(self, path: str, duration: float, interval: float) -> None:
        self._directory = LeaseDirectory(Path(path))
        self._duration = duration
        self._interval = interval

    @property
    def storage(self) -> Storage:
        return open_storage(str(self._directory.path))

    def leader(self) -> Leader | None:
        try:
            term = self._directory.term()
        except FileNotFoundError:
            return None
        lease = self._directory.lease(term)
        if lease is None or lease.released:
            return None
        return Leader(term, lease.member, lease.version, lease.url)

    def contend(self, member: Member, listener: Listener) -> FileElection:
        try:
            self._directory.create()
        except OSError as error:
            raise HighAvailabilityError(
                f"{self._directory.path} cannot be created: {error}. Check "
                "high-availability.storageDir."
            ) from error
        self._check_version(member)
        return FileElection(self._directory, member, listener, self._duration, self._interval)

    def _check_version(self, member: Member) -> None:
        """Refuse a leader of a different version, unless it is dead: its lease does not change."""
        try:
            check_version(self.leader(), member)
        except HighAvailabilityError:
            term = self._directory.term()
            seen = self._directory.lease(term)
            deadline = now() + (self._duration if seen is None else seen.duration)
            while now() < deadline:
                if (self._directory.term(), self._directory.lease(term)) != (term, seen):
                    raise
                time.sleep(_LOOK_SECONDS)

    def store(self, term: int) -> FileStore:
        return FileStore(self._directory, term)

    def fence(self, term: int) -> Fence:
        return Fence(str(self._directory.at(term)), _FENCE, term)

    def close(self) -> None:
        """Nothing is open."""
