"""What keyed state is made of: tables by key, each a confirmed base and the changes of an epoch.

The key of an entry is the user's key, or (key, namespace) in a namespaced table; windows are
namespaces. Reads see the running epoch's changes; the base changes when the epoch is confirmed.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from itertools import repeat
from operator import is_
from typing import Any, Final, Protocol, Self

from firesteel.common.typeinfo import TypeInformation


class Missing:
    """Marks a key without a value; in an overlay, a key that was deleted. One object per process."""

    _instance: Self | None = None

    def __new__(cls) -> Self:
        if cls._instance is None:
            cls._instance = super().__new__(cls)
        return cls._instance

    def __reduce__(self) -> tuple[type[Missing], tuple[()]]:
        return (Missing, ())

    def __repr__(self) -> str:
        return "<missing>"


MISSING: Final = Missing()


def has_missing(entries: dict[Any, Any]) -> bool:
    """Whether any value is MISSING; values are not asked whether they equal it."""
    return any(map(is_, entries.values(), repeat(MISSING)))


class TableKind(Enum):
    VALUE = "value"
    LIST = "list"
    MAP = "map"


@dataclass(frozen=True, slots=True)
class TableDescription:
    """What a table holds. ``element_type`` is that of a value, a list's element, a map's value.

    A type of None stands for any Python object. With ``ttl`` every element is stored as the pair
    (element, time of its last access).
    """

    kind: TableKind
    namespaced: bool = False
    element_type: TypeInformation | None = None
    # Of a map's keys.
    entry_type: TypeInformation | None = None
    ttl: bool = False


class BaseReader(Protocol):
    """The confirmed part of a value table, as hot loops read it."""

    def get(self, key: Any, default: Any, /) -> Any: ...


class Table(ABC):
    """What all tables have in common."""

    description: TableDescription

    @abstractmethod
    def remove(self, key: Any) -> None:
        """Forget everything that is stored for ``key``."""

    @abstractmethod
    def items(self) -> Iterator[tuple[Any, Any]]:
        """All present entries with their values, as in ``get``. Not for hot paths.

        Only the entry that was given last may be changed on the way.
        """

    @abstractmethod
    def keys(self) -> Iterator[Any]:
        """The keys of all present entries, under the same rule as ``items``."""

    @abstractmethod
    def next_keys(self, limit: int) -> list[Any]:
        """The next few keys of an endless round through what is confirmed; for cleaning up."""

    def __len__(self) -> int:
        return sum(1 for _ in self.keys())


class ValueTable(Table):
    """One value for a key.

    Hot loops read ``overlay`` and then ``base`` directly: both have ``get(key, default)``. A value
    that comes from ``base`` must not be changed in place: a snapshot may be writing it.
    """

    overlay: dict[Any, Any]
    base: BaseReader

    @abstractmethod
    def get(self, key: Any) -> Any:
        """The value, or MISSING."""

    @abstractmethod
    def put(self, key: Any, value: Any) -> None: ...


class ListTable(Table):
    """A list for a key. Appending costs what is appended, however long the list is."""

    @abstractmethod
    def get(self, key: Any) -> list[Any] | None:
        """A new list of all elements; None if the key has no list."""

    @abstractmethod
    def append(self, key: Any, element: Any) -> None: ...

    @abstractmethod
    def append_all(self, keys: Iterable[Any], elements: Iterable[Any]) -> None:
        """Append each element to the list of its key: a batch."""

    @abstractmethod
    def extend(self, key: Any, elements: Iterable[Any]) -> None: ...

    @abstractmethod
    def replace(self, key: Any, elements: Iterable[Any]) -> None:
        """Store exactly these elements; none at all remove the key."""


class MapTable(Table):
    """A map for a key, changed entry by entry. A map without entries is no map."""

    @abstractmethod
    def get(self, key: Any, entry: Any) -> Any:
        """The value of one entry, or MISSING."""

    @abstractmethod
    def put(self, key: Any, entry: Any, value: Any) -> None: ...

    @abstractmethod
    def count_up(self, key: Any, entry: Any) -> None:
        """Add one to the number that is an entry's value; without an entry it is 1 then."""

    @abstractmethod
    def remove_entry(self, key: Any, entry: Any) -> None: ...

    @abstractmethod
    def contains(self, key: Any) -> bool:
        """Whether the key has any entry."""

    @abstractmethod
    def view(self, key: Any) -> Mapping[Any, Any]:
        """All entries at once, for hot loops: not to be changed, and only good until the next change.

        Values of entries that are in it may be replaced on the way.
        """

    @abstractmethod
    def entries(self, key: Any) -> Iterator[tuple[Any, Any]]:
        """The entries as they are now; what changes later is not seen by this iterator."""
