"""A map for each key, in dictionaries; the changes of an epoch are entries."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from firesteel.state.changes import ChangeKind, Changes
from firesteel.state.hashmap.key_round import KeyRound
from firesteel.state.missing import MISSING, has_missing
from firesteel.state.tables import MapTable, TableDescription

_NOTHING: dict[Any, Any] = {}


class HashMapMapTable(MapTable):
    """The overlay has changed entries by key (MISSING: removed), and which keys were cleared first."""

    __slots__ = ("_base", "_cleared", "_overlay", "_round", "_unshared", "description", "name")

    def __init__(self, name: str, description: TableDescription) -> None:
        self.name = name
        self.description = description
        self._round = KeyRound()
        self._base: dict[Any, dict[Any, Any]] = {}
        self._overlay: dict[Any, dict[Any, Any]] = {}
        self._cleared: dict[Any, None] = {}
        # While a snapshot holds the maps: the keys whose map it does not hold.
        self._unshared: set[Any] | None = None

    def get(self, key: Any, entry: Any) -> Any:
        changed = self._overlay.get(key)
        if changed is not None:
            value = changed.get(entry, MISSING)
            if value is not MISSING or entry in changed:
                return value
        if key in self._cleared:
            return MISSING
        known = self._base.get(key)
        return MISSING if known is None else known.get(entry, MISSING)

    def put(self, key: Any, entry: Any, value: Any) -> None:
        changed = self._overlay.get(key)
        if changed is None:
            changed = self._overlay[key] = {}
        changed[entry] = value

    def remove_entry(self, key: Any, entry: Any) -> None:
        self.put(key, entry, MISSING)

    def remove(self, key: Any) -> None:
        self._overlay.pop(key, None)
        self._cleared[key] = None

    def contains(self, key: Any) -> bool:
        return next(self.entries(key), None) is not None

    def entries(self, key: Any) -> Iterator[tuple[Any, Any]]:
        known = _NOTHING if key in self._cleared else self._base.get(key, _NOTHING)
        # The base does not change during an epoch; the overlay does.
        changed = dict(self._overlay.get(key, _NOTHING))
        return _merged(known, changed)

    def keys(self) -> Iterator[Any]:
        changed = {**self._overlay, **self._cleared}
        yield from (key for key in self._base if key not in changed)
        yield from (key for key in changed if self.contains(key))

    def items(self) -> Iterator[tuple[Any, Any]]:
        return ((key, dict(self.entries(key))) for key in self.keys())

    def next_keys(self, limit: int) -> list[Any]:
        return self._round.next_keys(self._base, limit)

    # For the backend

    def has_changes(self) -> bool:
        return bool(self._overlay or self._cleared)

    def changes(self) -> Iterator[Changes]:
        if self._cleared:
            yield Changes(self.name, ChangeKind.REMOVE, list(self._cleared))
        put: dict[Any, dict[Any, Any]] = {}
        removed: dict[Any, dict[Any, Any]] = {}
        for key, changed in self._overlay.items():
            gone = [entry for entry, value in changed.items() if value is MISSING]
            if not gone:
                put[key] = changed
                continue
            removed[key] = dict.fromkeys(gone)
            present = {k: v for k, v in changed.items() if v is not MISSING}
            if present:
                put[key] = present
        if put:
            yield _changes(self.name, ChangeKind.PUT, list(put), list(put.values()))
        if removed:
            yield Changes(
                self.name,
                ChangeKind.REMOVE_ENTRIES,
                list(removed),
                lengths=list(map(len, removed.values())),
                entries=[entry for gone in removed.values() for entry in gone],
            )

    def confirm(self, converted: list[Changes] | None = None) -> None:
        if converted is None:
            self._merge()
        else:
            for changes in converted:
                self.apply(changes)
        self._overlay.clear()
        self._cleared.clear()

    def _merge(self) -> None:
        for key in self._cleared:
            self._base.pop(key, None)
        for key, changed in self._overlay.items():
            known = self._own(key)
            if not has_missing(changed):
                known.update(changed)
                continue
            for entry, value in changed.items():
                if value is MISSING:
                    known.pop(entry, None)
                else:
                    known[entry] = value
            if not known:
                del self._base[key]

    def _own(self, key: Any) -> dict[Any, Any]:
        """The base's map of a key, to be changed: a copy of its own if a snapshot holds it."""
        known = self._base.get(key)
        if known is None:
            known = self._base[key] = {}
        elif self._unshared is None or key in self._unshared:
            return known
        else:
            known = self._base[key] = known.copy()
        if self._unshared is not None:
            self._unshared.add(key)
        return known

    def apply(self, changes: Changes) -> None:
        base = self._base
        if changes.kind is ChangeKind.REMOVE:
            for key in changes.keys:
                base.pop(key, None)
            return
        groups = changes.groups(changes.entries)
        if changes.kind is ChangeKind.PUT:
            elements = changes.groups(changes.elements)
            for key, entries, values in zip(changes.keys, groups, elements, strict=True):
                self._own(key).update(zip(entries, values, strict=True))
            return
        for key, entries in zip(changes.keys, groups, strict=True):
            known = self._own(key)
            for entry in entries:
                known.pop(entry, None)
            if not known:
                del base[key]

    def clear(self) -> None:
        self._base.clear()
        self._overlay.clear()
        self._cleared.clear()
        self._unshared = None

    def size(self) -> int:
        return len(self._base)

    def freeze(self) -> FrozenMaps:
        self._unshared = set()
        return FrozenMaps(self.name, self._base)

    def thaw(self) -> None:
        """The snapshot is written: maps may be changed in place again."""
        self._unshared = None


class FrozenMaps:
    """The base at one moment: references to maps, which the table copies before it changes them."""

    __slots__ = ("_keys", "_maps", "_name")

    def __init__(self, name: str, base: dict[Any, dict[Any, Any]]) -> None:
        self._name = name
        self._keys = list(base)
        self._maps = list(base.values())

    def chunks(self, entries: int) -> Iterator[Changes]:
        """Chunks of about so many entries; a map that is larger is written in parts."""
        keys: list[Any] = []
        maps: list[dict[Any, Any]] = []
        room = entries
        for key, known in zip(self._keys, self._maps, strict=True):
            if keys and len(known) > room:
                yield _changes(self._name, ChangeKind.PUT, keys, maps)
                keys, maps, room = [], [], entries
            if len(known) <= entries:
                keys.append(key)
                maps.append(known)
                room -= len(known)
                continue
            names = list(known)
            for start in range(0, len(names), entries):
                part = {name: known[name] for name in names[start : start + entries]}
                yield _changes(self._name, ChangeKind.PUT, [key], [part])
        if keys:
            yield _changes(self._name, ChangeKind.PUT, keys, maps)


def _changes(name: str, kind: ChangeKind, keys: list[Any], maps: list[dict[Any, Any]]) -> Changes:
    return Changes(
        name,
        kind,
        keys,
        elements=[value for entries in maps for value in entries.values()],
        lengths=list(map(len, maps)),
        entries=[entry for entries in maps for entry in entries],
    )


def _merged(known: dict[Any, Any], changed: dict[Any, Any]) -> Iterator[tuple[Any, Any]]:
    for entry, value in known.items():
        value = changed.pop(entry, value)
        if value is not MISSING:
            yield entry, value
    for entry, value in changed.items():
        if value is not MISSING:
            yield entry, value
