"""The overlay of a map table: which entries the running epoch changed."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from firesteel.state.changes import ChangeKind, Changes
from firesteel.state.tables import (
    MISSING,
    ListTable,
    MapTable,
    TableDescription,
    ValueTable,
    has_missing,
)


class OverlayValueTable(ValueTable):
    """``overlay`` has the new values, MISSING for a key that was removed."""

    def __init__(self, name: str, description: TableDescription) -> None:
        self.name = name
        self.description = description
        self.overlay: dict[Any, Any] = {}

    @abstractmethod
    def base_items(self) -> Iterator[tuple[Any, Any]]:
        """All entries of the base."""

    def base_keys(self) -> Iterator[Any]:
        return (key for key, _ in self.base_items())

    def get(self, key: Any) -> Any:
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
        """``overlay`` stays the same dictionary, because loops hold on to it."""
        self.overlay.clear()


class OverlayListTable(ListTable):
    """A list in ``_replaced`` begins anew (an empty one: it was removed), then what is appended."""

    def __init__(self, name: str, description: TableDescription) -> None:
        self.name = name
        self.description = description
        self._replaced: dict[Any, list[Any]] = {}
        self._appended: dict[Any, list[Any]] = {}

    @abstractmethod
    def base_list(self, key: Any) -> list[Any] | None:
        """The base's list; it is not changed by who asks for it."""

    @abstractmethod
    def base_keys(self) -> Iterator[Any]:
        """All keys of the base."""

    def get(self, key: Any) -> list[Any] | None:
        known = self._replaced.get(key)
        if known is None:
            known = self.base_list(key)
        appended = self._appended.get(key)
        if appended is None:
            return known[:] if known else None
        return known + appended if known else appended[:]

    def append(self, key: Any, element: Any) -> None:
        appended = self._appended.get(key)
        if appended is None:
            self._appended[key] = [element]
        else:
            appended.append(element)

    def append_all(self, keys: Iterable[Any], elements: Iterable[Any]) -> None:
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


def list_changes(name: str, kind: ChangeKind, keys: list[Any], lists: list[list[Any]]) -> Changes:
    elements = [element for values in lists for element in values]
    return Changes(name, kind, keys, elements, lengths=list(map(len, lists)))


_NOTHING: dict[Any, Any] = {}


class OverlayMapTable(MapTable):
    """``_overlay`` has changed entries by key (MISSING: removed), ``_cleared`` what began anew."""

    def __init__(self, name: str, description: TableDescription) -> None:
        self.name = name
        self.description = description
        self._overlay: dict[Any, dict[Any, Any]] = {}
        self._cleared: dict[Any, None] = {}
        # Keys whose overlay has removed entries.
        self._removed: set[Any] = set()

    @abstractmethod
    def base_value(self, key: Any, entry: Any) -> Any:
        """The base's value of one entry, or MISSING."""

    @abstractmethod
    def base_entries(self, key: Any) -> Iterator[tuple[Any, Any]]:
        """The base's entries of a key."""

    @abstractmethod
    def base_map(self, key: Any) -> Mapping[Any, Any] | None:
        """The base's entries of a key, all at once."""

    @abstractmethod
    def base_keys(self) -> Iterator[Any]:
        """All keys of the base."""

    def get(self, key: Any, entry: Any) -> Any:
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
        changed = self._overlay.get(key, _NOTHING)
        if any(value is not MISSING for value in changed.values()):
            return True
        if key in self._cleared:
            return False
        return any(entry not in changed for entry, _ in self.base_entries(key))

    def view(self, key: Any) -> Mapping[Any, Any]:
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


def map_changes(name: str, keys: list[Any], maps: list[dict[Any, Any]]) -> Changes:
    return Changes(
        name,
        ChangeKind.PUT,
        keys,
        elements=[value for entries in maps for value in entries.values()],
        lengths=list(map(len, maps)),
        entries=[entry for entries in maps for entry in entries],
    )


def _merged(known: Iterator[tuple[Any, Any]], changed: dict[Any, Any]) -> Iterator[tuple[Any, Any]]:
    for entry, value in known:
        value = changed.pop(entry, value)
        if value is not MISSING:
            yield entry, value
    for entry, value in changed.items():
        if value is not MISSING:
            yield entry, value
