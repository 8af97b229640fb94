"""Tables of keyed state. Each consists of a confirmed base and the changes of the running epoch.

The key of an entry is the user's key, or (key, namespace) in a namespaced table. Windows are
namespaces. The changes of the running epoch are the overlay, which lives in memory. Reads include
the overlay. Confirming the epoch adds it to the base. Each backend stores the base in subclasses of
its own.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import repeat
from operator import is_
from typing import Any, Final, Protocol, Self

from firesteel.state.changes import ChangeKind, Changes, list_changes, map_changes
from firesteel.state.table_descriptions import TableDescription


class Missing:
    """Marks a key without a value; in an overlay, a deleted key. There is one object per process."""

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
_NOTHING: dict[Any, Any] = {}


def has_missing(entries: dict[Any, Any]) -> bool:
    """True if any value is MISSING. It compares identities, because ``==`` may run user code."""
    return any(map(is_, entries.values(), repeat(MISSING)))


class BaseReader(Protocol):
    """The confirmed part of a value table. Hot loops read it directly."""

    def get(self, key: Any, default: Any, /) -> Any: ...


class Table(ABC):
    """A table of any kind. Operators read and change it; the backend seals and confirms it."""

    def __init__(self, name: str, description: TableDescription) -> None:
        self.name = name
        self.description = description

    @abstractmethod
    def remove(self, key: Any) -> None:
        """Remove everything that is stored for ``key``."""

    @abstractmethod
    def items(self) -> Iterator[tuple[Any, Any]]:
        """All present entries with their values, as in ``get``. Not for hot paths.

        During the iteration only the entry that was given last may be changed.
        """

    @abstractmethod
    def keys(self) -> Iterator[Any]:
        """The keys of all present entries, under the same rule as ``items``."""

    @abstractmethod
    def next_keys(self, limit: int) -> list[Any]:
        """The next few keys of an endless round through the base, for cleaning up."""

    def __len__(self) -> int:
        return sum(1 for _ in self.keys())

    # For the backend

    @abstractmethod
    def base_keys(self) -> Iterator[Any]:
        """All keys of the base."""

    @abstractmethod
    def has_changes(self) -> bool:
        """True if the overlay is not empty."""

    @abstractmethod
    def changes(self) -> Iterator[Changes]:
        """The overlay as data."""

    @abstractmethod
    def forget_changes(self) -> None:
        """Empty the overlay."""

    @abstractmethod
    def apply(self, changes: Changes) -> None:
        """Change the base."""


class ValueTable(Table):
    """One value per key.

    ``overlay`` has the values of the running epoch, and MISSING for a removed key. Hot loops read
    ``overlay`` and then ``base`` directly: both have ``get(key, default)``. A value that comes from
    ``base`` must not be changed in place, because a snapshot may be writing it.
    """

    base: BaseReader

    def __init__(self, name: str, description: TableDescription) -> None:
        super().__init__(name, description)
        self.overlay: dict[Any, Any] = {}

    def reader(self, keys: list[Any]) -> Callable[[Any, Any], Any]:
        """Return a ``base.get`` for a loop over these keys, which reads the overlay first."""
        return self.base.get

    @abstractmethod
    def base_items(self) -> Iterator[tuple[Any, Any]]:
        """All entries of the base."""

    def base_keys(self) -> Iterator[Any]:
        return (key for key, _ in self.base_items())

    def get(self, key: Any) -> Any:
        """The value, or MISSING."""
        value = self.overlay.get(key, MISSING)
        if value is MISSING and key not in self.overlay:
            value = self.base.get(key, MISSING)
        return value

    def put(self, key: Any, value: Any) -> None:
        self.overlay[key] = value

    def remove(self, key: Any) -> None:
        self.overlay[key] = MISSING

    def items(self) -> Iterator[tuple[Any, Any]]:
        changed = dict(self.overlay)
        for key, value in self.base_items():
            if key not in changed:
                yield key, value
        for key, value in changed.items():
            if value is not MISSING:
                yield key, value

    def keys(self) -> Iterator[Any]:
        return (key for key, _ in self.items())

    # For the backend

    def has_changes(self) -> bool:
        return bool(self.overlay)

    def changes(self) -> Iterator[Changes]:
        present = self.overlay
        if has_missing(present):
            removed = [key for key, value in present.items() if value is MISSING]
            yield Changes(self.name, ChangeKind.REMOVE, removed)
            present = {key: value for key, value in present.items() if value is not MISSING}
        if present:
            yield Changes(self.name, ChangeKind.PUT, list(present), list(present.values()))

    def forget_changes(self) -> None:
        """Empty ``overlay``. It stays the same dictionary, because loops keep a reference to it."""
        self.overlay.clear()


class ListTable(Table):
    """One list per key. The cost of appending does not depend on the length of the list.

    The overlay has two parts. ``_replaced`` has lists that replace those of the base; an empty one
    marks a removed key. ``_appended`` has the elements that follow.
    """

    def __init__(self, name: str, description: TableDescription) -> None:
        super().__init__(name, description)
        self._replaced: dict[Any, list[Any]] = {}
        self._appended: dict[Any, list[Any]] = {}

    @abstractmethod
    def base_list(self, key: Any) -> list[Any] | None:
        """The list of the base. The caller must not change it."""

    def get(self, key: Any) -> list[Any] | None:
        """A new list of all elements; None if the key has no list."""
        known = self._replaced.get(key)
        if known is None:
            known = self.base_list(key)
        appended = self._appended.get(key)
        if appended is None:
            return known[:] if known else None
        return known + appended if known else appended[:]

    def view(self, key: Any) -> Sequence[Any]:
        """All elements, for hot loops. The caller must not change them, nor keep them."""
        known = self._replaced.get(key)
        if known is None:
            known = self.base_list(key)
        appended = self._appended.get(key)
        if appended is None:
            return known or ()
        return known + appended if known else appended

    def append(self, key: Any, element: Any) -> None:
        appended = self._appended.get(key)
        if appended is None:
            self._appended[key] = [element]
        else:
            appended.append(element)

    def append_all(self, keys: Iterable[Any], elements: Iterable[Any]) -> None:
        """Append each element of a batch to the list of its key."""
        appended = self._appended
        known = appended.get
        for key, element in zip(keys, elements, strict=True):
            values = known(key)
            if values is None:
                appended[key] = [element]
            else:
                values.append(element)

    def extend(self, key: Any, elements: Iterable[Any]) -> None:
        added = list(elements)
        if added:
            self._appended.setdefault(key, []).extend(added)

    def replace(self, key: Any, elements: Iterable[Any]) -> None:
        """Store exactly these elements. Without elements the key is removed."""
        self._replaced[key] = list(elements)
        self._appended.pop(key, None)

    def remove(self, key: Any) -> None:
        self._replaced[key] = []
        self._appended.pop(key, None)

    def keys(self) -> Iterator[Any]:
        replaced, appended = dict(self._replaced), dict.fromkeys(self._appended)
        for key in self.base_keys():
            if key not in replaced and key not in appended:
                yield key
        yield from (key for key, values in replaced.items() if values and key not in appended)
        yield from appended

    def items(self) -> Iterator[tuple[Any, Any]]:
        return ((key, self.get(key)) for key in self.keys())

    # For the backend

    def has_changes(self) -> bool:
        return bool(self._replaced or self._appended)

    def changes(self) -> Iterator[Changes]:
        removed = [key for key, values in self._replaced.items() if not values]
        if removed:
            yield Changes(self.name, ChangeKind.REMOVE, removed)
        replaced = {key: values for key, values in self._replaced.items() if values}
        if replaced:
            yield list_changes(self.name, ChangeKind.PUT, list(replaced), list(replaced.values()))
        if self._appended:
            keys, values = list(self._appended), list(self._appended.values())
            yield list_changes(self.name, ChangeKind.APPEND, keys, values)

    def forget_changes(self) -> None:
        self._replaced.clear()
        self._appended.clear()


class MapTable(Table):
    """One map per key, changed entry by entry. A key whose map is empty is absent.

    The overlay has three parts. ``_overlay`` has the changed entries by key, with MISSING for a
    removed entry. ``_cleared`` has the keys whose entries in the base are ignored. ``_removed`` has
    the keys with removed entries in ``_overlay``.
    """

    def __init__(self, name: str, description: TableDescription) -> None:
        super().__init__(name, description)
        self._overlay: dict[Any, dict[Any, Any]] = {}
        self._cleared: dict[Any, None] = {}
        self._removed: set[Any] = set()

    @abstractmethod
    def base_value(self, key: Any, entry: Any) -> Any:
        """The value of one entry in the base, or MISSING."""

    @abstractmethod
    def base_entries(self, key: Any) -> Iterator[tuple[Any, Any]]:
        """The entries of a key in the base."""

    @abstractmethod
    def base_map(self, key: Any) -> Mapping[Any, Any] | None:
        """The entries of a key in the base as a mapping."""

    def get(self, key: Any, entry: Any) -> Any:
        """The value of one entry, or MISSING."""
        changed = self._overlay.get(key)
        if changed is not None:
            value = changed.get(entry, MISSING)
            if value is not MISSING or entry in changed:
                return value
        return MISSING if key in self._cleared else self.base_value(key, entry)

    def put(self, key: Any, entry: Any, value: Any) -> None:
        changed = self._overlay.get(key)
        if changed is None:
            changed = self._overlay[key] = {}
        changed[entry] = value

    def count_up(self, key: Any, entry: Any) -> None:
        """Add one to the number of an entry. An absent entry becomes 1."""
        changed = self._overlay.get(key)
        if changed is None:
            changed = self._overlay[key] = {}
        number: Any = changed.get(entry)
        if number is None:
            number = MISSING if key in self._cleared else self.base_value(key, entry)
        changed[entry] = 1 if number is MISSING else number + 1

    def remove_entry(self, key: Any, entry: Any) -> None:
        self.put(key, entry, MISSING)
        self._removed.add(key)

    def remove(self, key: Any) -> None:
        self._overlay.pop(key, None)
        self._removed.discard(key)
        self._cleared[key] = None

    def contains(self, key: Any) -> bool:
        """True if the key has any entry."""
        changed = self._overlay.get(key, _NOTHING)
        if changed and key not in self._removed:
            return True
        if any(value is not MISSING for value in changed.values()):
            return True
        if key in self._cleared:
            return False
        return any(entry not in changed for entry, _ in self.base_entries(key))

    def view(self, key: Any) -> Mapping[Any, Any]:
        """All entries at once, for hot loops. The caller must not change the mapping.

        The next change of the key makes the mapping invalid, unless the change only sets a new
        value for an entry in the mapping.
        """
        changed = self._overlay.get(key)
        known = None if key in self._cleared else self.base_map(key)
        if not changed:
            return known or _NOTHING
        if known:
            changed = {**known, **changed}
        if key in self._removed:
            return {entry: value for entry, value in changed.items() if value is not MISSING}
        return changed

    def entries(self, key: Any) -> Iterator[tuple[Any, Any]]:
        """The entries at the time of the call. The iterator does not see later changes."""
        # The base does not change during an epoch; the overlay does.
        changed = dict(self._overlay.get(key, _NOTHING))
        known = iter(()) if key in self._cleared else self.base_entries(key)
        return _merged(known, changed)

    def keys(self) -> Iterator[Any]:
        changed = {**self._overlay, **self._cleared}
        for key in self.base_keys():
            if key not in changed:
                yield key
        yield from (key for key in changed if self.contains(key))

    def items(self) -> Iterator[tuple[Any, Any]]:
        return ((key, dict(self.entries(key))) for key in self.keys())

    # For the backend

    def has_changes(self) -> bool:
        return bool(self._overlay or self._cleared)

    def changes(self) -> Iterator[Changes]:
        if self._cleared:
            yield Changes(self.name, ChangeKind.REMOVE, list(self._cleared))
        put: dict[Any, dict[Any, Any]] = {}
        removed: dict[Any, list[Any]] = {}
        for key, changed in self._overlay.items():
            if key not in self._removed:
                put[key] = changed
                continue
            removed[key] = [entry for entry, value in changed.items() if value is MISSING]
            present = {k: v for k, v in changed.items() if v is not MISSING}
            if present:
                put[key] = present
        if put:
            yield map_changes(self.name, list(put), list(put.values()))
        if removed:
            yield Changes(
                self.name,
                ChangeKind.REMOVE_ENTRIES,
                list(removed),
                lengths=list(map(len, removed.values())),
                entries=[entry for gone in removed.values() for entry in gone],
            )

    def forget_changes(self) -> None:
        self._overlay.clear()
        self._cleared.clear()
        self._removed.clear()


def _merged(known: Iterator[tuple[Any, Any]], changed: dict[Any, Any]) -> Iterator[tuple[Any, Any]]:
    for entry, value in known:
        value = changed.pop(entry, value)
        if value is not MISSING:
            yield entry, value
    for entry, value in changed.items():
        if value is not MISSING:
            yield entry, value
