"""Leases and entries in an object store that has conditional writes.

One object has the number of the current term. A master takes over by replacing it on condition that
it has not changed, so one master wins. Each term has its entries below a name of its own, and its
leader begins with copies of the last ones.

A leader writes an entry, and then reads the number of the term. If that is still its own, a later
leader copies the entry. If not, the write has failed: the entry is at a name that nothing reads any
more, or a later leader has copied it before its own first write.
"""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass

from firesteel.checkpoint.storage.storage import Storage, open_storage
from firesteel.errors import LeadershipLostError
from firesteel.filesystems.file_systems import FileSystemOptions
from firesteel.leader.conditional_bucket import CONNECTIONS, ConditionalBucket, Version
from firesteel.leader.fence import Fence
from firesteel.leader.lease_election import Lease
from firesteel.leader.leases import decode_lease, encode_lease
from firesteel.leader.services import KINDS, HighAvailabilityError, entry_file

_TERM_FILE = "term.json"
_TERMS = "term-"
_TERM = re.compile(r"term-(\d{10})/.*")
_LEASE = "lease.json"
_FENCE = "fence"
_SUFFIX = ".json"


@dataclass(frozen=True, slots=True)
class TermFile:
    """The object that decides who leads.

    Attributes:
        term: The number of the current term.
        entries: The last term whose leader has copied all entries.
    """

    term: int
    entries: int

    def encode(self) -> bytes:
        # No two versions may be equal.
        facts = {"term": self.term, "entries": self.entries, "version": uuid.uuid4().hex}
        return json.dumps(facts).encode()


def _decode(payload: bytes, location: str) -> TermFile:
    try:
        facts = json.loads(payload)
        return TermFile(int(facts["term"]), int(facts["entries"]))
    except (ValueError, TypeError, KeyError) as error:
        raise HighAvailabilityError(f"{location}/{_TERM_FILE} is damaged: {error!r}.") from error


def _directory(term: int) -> str:
    return f"{_TERMS}{term:010d}"


class ObjectLeases:
    """The objects of a group: what is atomic, and nothing about time.

    Args:
        location: The S3 URI of the group.
        options: The access to the object store.
    """

    def __init__(self, location: str, options: FileSystemOptions) -> None:
        self.bucket = ConditionalBucket(location, options)
        self._directory = location
        self._options = options

    @property
    def location(self) -> str:
        return self.bucket.location

    @property
    def storage(self) -> Storage:
        return open_storage(self._directory, self._options)

    def create(self) -> None:
        """Create the object of term 0, unless there is one. Refuse a store without conditions."""
        self.bucket.check_conditions()
        if self.bucket.read(_TERM_FILE) is None:
            self.bucket.create(_TERM_FILE, TermFile(0, 0).encode())

    def term(self) -> int:
        """Return the number of the current term. Raises FileNotFoundError if there is no group."""
        return self._read()[0].term

    def _read(self) -> tuple[TermFile, Version]:
        found = self.bucket.read(_TERM_FILE)
        if found is None:
            raise FileNotFoundError(f"{self.location}/{_TERM_FILE} does not exist")
        return _decode(found.payload, self.location), found

    def check(self, term: int) -> None:
        """Raise LeadershipLostError if a term has ended."""
        current = self.term()
        if current != term:
            raise LeadershipLostError(term, f"term {current} has begun in {self.location}")

    def lease(self, term: int) -> Lease | None:
        """Return the lease of a term, or None if it has none, or a damaged one."""
        name = f"{_directory(term)}/{_LEASE}"
        found = self.bucket.read(name)
        if found is None:
            return None
        return decode_lease(found.payload, term, f"{self.location}/{name}")

    def renew(self, lease: Lease) -> None:
        """Write the lease of a term. Raises LeadershipLostError if the term has ended.

        A late write of an old leader does no harm: each term has a lease of its own.
        """
        self.bucket.write(f"{_directory(lease.term)}/{_LEASE}", encode_lease(lease))
        self.check(lease.term)

    def take_over(self, term: int, keep: Callable[[], None] = lambda: None) -> bool:
        """Begin the next term. Return False if a different master was faster.

        The master leads once it has removed the fences of earlier terms and copied all entries. If
        it dies before that, the next one copies those of the last term that was led.
        """
        before, version = self._read()
        if before.term != term:
            return False
        began = TermFile(term + 1, before.entries)
        if not self.bucket.replace(_TERM_FILE, began.encode(), version.tag):
            return False
        earlier = self._names_up_to(term)
        self._all(self.bucket.delete, [name for name in earlier if _kind(name) == _FENCE], keep)
        source, target = _directory(before.entries), _directory(term + 1)
        self._all(
            lambda name: self.bucket.copy(name, target + name.removeprefix(source)),
            [name for name in earlier if name.startswith(f"{source}/") and _kind(name) in KINDS],
            keep,
        )
        self.bucket.write(f"{target}/{_FENCE}", str(term + 1).encode())
        after, version = self._read()
        led = TermFile(term + 1, term + 1)
        if after != began or not self.bucket.replace(_TERM_FILE, led.encode(), version.tag):
            return False
        # The next leader removes them otherwise.
        with suppress(HighAvailabilityError):
            self._all(self.bucket.delete, earlier, keep)
        return True

    def _names_up_to(self, term: int) -> list[str]:
        return [
            name
            for name in self.bucket.names(_TERMS)
            if (match := _TERM.fullmatch(name)) and int(match[1]) <= term
        ]

    @staticmethod
    def _all(call: Callable[[str], None], names: Iterable[str], keep: Callable[[], None]) -> None:
        """Call a function for all names, some at a time, and ``keep`` in between."""
        with ThreadPoolExecutor(CONNECTIONS) as threads:
            for _ in threads.map(call, names):
                keep()

    def store(self, term: int) -> ObjectStore:
        return ObjectStore(self, term)

    def fence(self, term: int) -> Fence:
        return Fence(f"{self._directory}/{_directory(term)}", _FENCE, term, self._options)


def _kind(name: str) -> str:
    """Return the part of a name after the term."""
    return name.split("/")[1]


class ObjectStore:
    """The entries of a term, an object each."""

    def __init__(self, leases: ObjectLeases, term: int) -> None:
        self._leases = leases
        self._term = term

    @property
    def term(self) -> int:
        return self._term

    def names(self, kind: str) -> list[str]:
        directory = f"{_directory(self._term)}/{kind}/"
        found = [
            name.removeprefix(directory).removesuffix(_SUFFIX)
            for name in self._leases.bucket.names(directory)
        ]
        # The next leader removes the entries of this term. Then a list without them is wrong.
        self.check()
        return found

    def get(self, kind: str, name: str) -> bytes | None:
        found = self._leases.bucket.read(self._name(kind, name))
        return None if found is None else found.payload

    def put(self, kind: str, name: str, payload: bytes) -> None:
        self._leases.bucket.write(self._name(kind, name), payload)
        self.check()

    def delete(self, kind: str, name: str) -> None:
        self._leases.bucket.delete(self._name(kind, name))
        self.check()

    def check(self) -> None:
        self._leases.check(self._term)

    def _name(self, kind: str, name: str) -> str:
        return f"{_directory(self._term)}/{entry_file(kind, name)}"
