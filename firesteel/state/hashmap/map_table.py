"""A map for each key, in dictionaries."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from firesteel.state.changes import ChangeKind, Changes
from firesteel.state.hashmap.key_round import KeyRound
from firesteel.state.missing import MISSING
from firesteel.state.overlay.map_table import OverlayMapTable, map_changes
from firesteel.state.tables import TableDescription


class HashMapMapTable(OverlayMapTable):
    def __init__(self, name: str, description: TableDescription) -> None:
        super().__init__(name, description)
        self._base: dict[Any, dict[Any, Any]] = {}
        self._round = KeyRound()
        # While a snapshot holds the maps: the keys whose map it does not hold.
        self._unshared: set[Any] | None = None

    def base_value(self, key: Any, entry: Any) -> Any:
        known = self._base.get(key)
        return MISSING if known is None else known.get(entry, MISSING)

    def base_entries(self, key: Any) -> Iterator[tuple[Any, Any]]:
        known = self._base.get(key)
        return iter(()) if known is None else iter(known.items())

    def base_map(self, key: Any) -> Mapping[Any, Any] | None:
        return self._base.get(key)

    def base_keys(self) -> Iterator[Any]:
        return iter(self._base)

    def next_keys(self, limit: int) -> list[Any]:
        return self._round.next_keys(self._base, limit)

    # For the backend

    def confirm(self) -> None:
        """The epoch's changes become the base."""
        for key in self._cleared:
            self._base.pop(key, None)
        for key, changed in self._overlay.items():
            known = self._own(key)
            if key not in self._removed:
                known.update(changed)
                continue
            for entry, value in changed.items():
                if value is MISSING:
                    known.pop(entry, None)
                else:
                    known[entry] = value
            if not known:
                del self._base[key]
        self.forget_changes()

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
        self.forget_changes()
        self._unshared = None

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
                yield map_changes(self._name, keys, maps)
                keys, maps, room = [], [], entries
            if len(known) <= entries:
                keys.append(key)
                maps.append(known)
                room -= len(known)
                continue
            names = list(known)
            for start in range(0, len(names), entries):
                part = {name: known[name] for name in names[start : start + entries]}
                yield map_changes(self._name, [key], [part])
        if keys:
            yield map_changes(self._name, keys, maps)
