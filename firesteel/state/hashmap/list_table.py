"""A list for each key, in dictionaries; the changes of an epoch are what it appended."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from firesteel.state.changes import ChangeKind, Changes
from firesteel.state.hashmap.key_round import KeyRound
from firesteel.state.tables import ListTable, TableDescription


class HashMapListTable(ListTable):
    """``_replaced`` and ``_appended`` are the overlay: a list there begins anew, then grows.

    An empty list in ``_replaced`` stands for a key that was removed.
    """

    __slots__ = ("_appended", "_base", "_replaced", "_round", "description", "name")

    def __init__(self, name: str, description: TableDescription) -> None:
        self.name = name
        self.description = description
        self._round = KeyRound()
        self._base: dict[Any, list[Any]] = {}
        self._replaced: dict[Any, list[Any]] = {}
        self._appended: dict[Any, list[Any]] = {}

    def get(self, key: Any) -> list[Any] | None:
        known = self._replaced.get(key)
        if known is None:
            known = self._base.get(key)
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
        replaced, appended = dict(self._replaced), list(self._appended)
        changed = replaced.keys() | set(appended)
        yield from (key for key in self._base if key not in changed)
        yield from (key for key, values in replaced.items() if values and key not in appended)
        yield from appended

    def items(self) -> Iterator[tuple[Any, Any]]:
        return ((key, self.get(key)) for key in self.keys())

    def next_keys(self, limit: int) -> list[Any]:
        return self._round.next_keys(self._base, limit)

    # For the backend

    def has_changes(self) -> bool:
        return bool(self._replaced or self._appended)

    def changes(self) -> Iterator[Changes]:
        removed = [key for key, values in self._replaced.items() if not values]
        if removed:
            yield Changes(self.name, ChangeKind.REMOVE, removed)
        replaced = {key: values for key, values in self._replaced.items() if values}
        if replaced:
            yield _changes(self.name, ChangeKind.PUT, list(replaced), list(replaced.values()))
        if self._appended:
            keys, values = list(self._appended), list(self._appended.values())
            yield _changes(self.name, ChangeKind.APPEND, keys, values)

    def confirm(self, converted: list[Changes] | None = None) -> None:
        if converted is None:
            self._merge()
        else:
            for changes in converted:
                self.apply(changes)
        self._replaced.clear()
        self._appended.clear()

    def _merge(self) -> None:
        base = self._base
        for key, values in self._replaced.items():
            if values:
                base[key] = values
            else:
                base.pop(key, None)
        for key, appended in self._appended.items():
            known = base.get(key)
            if known is None:
                base[key] = appended
            else:
                # In place: a frozen list is known by its length, so growing does not disturb it.
                known.extend(appended)

    def apply(self, changes: Changes) -> None:
        base = self._base
        if changes.kind is ChangeKind.REMOVE:
            for key in changes.keys:
                base.pop(key, None)
            return
        lists = changes.groups(changes.elements)
        if changes.kind is ChangeKind.PUT:
            base.update(zip(changes.keys, lists, strict=True))
            return
        for key, appended in zip(changes.keys, lists, strict=True):
            base.setdefault(key, []).extend(appended)

    def clear(self) -> None:
        self._base.clear()
        self._replaced.clear()
        self._appended.clear()

    def size(self) -> int:
        return len(self._base)

    def freeze(self) -> FrozenLists:
        return FrozenLists(self.name, self._base)

    def thaw(self) -> None:
        """Lists only grow or are replaced, so nothing was held back."""


class FrozenLists:
    """The base at one moment: references to the lists, and how long they are now."""

    __slots__ = ("_keys", "_lengths", "_lists", "_name")

    def __init__(self, name: str, base: dict[Any, list[Any]]) -> None:
        self._name = name
        self._keys = list(base)
        self._lists = list(base.values())
        self._lengths = list(map(len, self._lists))

    def chunks(self, entries: int) -> Iterator[Changes]:
        """Chunks of about so many elements; a list that is longer is written in parts."""
        keys: list[Any] = []
        lists: list[list[Any]] = []
        room = entries
        for key, values, length in zip(self._keys, self._lists, self._lengths, strict=True):
            start = 0
            while start < length:
                part = values[start : min(length, start + room)]
                if start:
                    # The first part has put the list, the others append to it.
                    yield _changes(self._name, ChangeKind.APPEND, [key], [part])
                    room = entries
                else:
                    keys.append(key)
                    lists.append(part)
                    room -= len(part)
                start += len(part)
                if room <= 0:
                    if keys:
                        yield _changes(self._name, ChangeKind.PUT, keys, lists)
                    keys, lists, room = [], [], entries
        if keys:
            yield _changes(self._name, ChangeKind.PUT, keys, lists)


def _changes(name: str, kind: ChangeKind, keys: list[Any], lists: list[list[Any]]) -> Changes:
    elements = [element for values in lists for element in values]
    return Changes(name, kind, keys, elements, lengths=list(map(len, lists)))
