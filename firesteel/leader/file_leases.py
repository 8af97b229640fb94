"""Leases and entries in a directory that all masters share: a local or mounted file system.

The directory of a group has one directory ``term-<number>`` with the lease and all entries. A
master takes over by renaming it to the next number. The rename is atomic, so one master wins, and
every later write of the old leader fails, because its path is gone.
"""

from __future__ import annotations

import errno
import os
import re
import shutil
import uuid
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from firesteel.checkpoint.storage.storage import Storage, open_storage
from firesteel.errors import LeadershipLostError
from firesteel.filesystems.file_systems import sync_path
from firesteel.leader.fence import Fence
from firesteel.leader.lease_election import Lease
from firesteel.leader.leases import decode_lease, encode_lease
from firesteel.leader.services import KINDS, HighAvailabilityError, entry_file

_TERM = re.compile(r"term-(\d{10})")
_LEASE = "lease.json"
_FENCE = "fence"
_SUFFIX = ".json"
# A listing may miss a directory that is being renamed.
_LOOKS = 20


def _term_name(term: int) -> str:
    return f"term-{term:010d}"


class LeaseDirectory:
    """The files of a group: what is atomic, and nothing about time."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def location(self) -> str:
        return str(self.path)

    @property
    def storage(self) -> Storage:
        return open_storage(str(self.path))

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
        """Return the lease of a term, or None if it has none, or a damaged one.

        The lease of the last leader is there until the new one has written its own.
        """
        path = self.at(term) / _LEASE
        try:
            return decode_lease(path.read_bytes(), term, str(path))
        except FileNotFoundError:
            return None

    def renew(self, lease: Lease) -> None:
        """Write the lease of a term. Raises LeadershipLostError if the term has ended."""
        self.write(lease.term, _LEASE, encode_lease(lease), durable=False)

    def store(self, term: int) -> FileStore:
        return FileStore(self, term)

    def fence(self, term: int) -> Fence:
        return Fence(str(self.at(term)), _FENCE, term)

    def take_over(self, term: int, keep: Callable[[], None] = lambda: None) -> bool:
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
            return (self._directory.at(self._term) / entry_file(kind, name)).read_bytes()
        except FileNotFoundError:
            return None

    def put(self, kind: str, name: str, payload: bytes) -> None:
        self._directory.write(self._term, entry_file(kind, name), payload)

    def delete(self, kind: str, name: str) -> None:
        try:
            (self._directory.at(self._term) / entry_file(kind, name)).unlink()
        except FileNotFoundError:
            self.check()

    def check(self) -> None:
        if not self._directory.at(self._term).exists():
            raise self._directory.ended(self._term)
