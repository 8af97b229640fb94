"""A list for each key, in dictionaries."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from firesteel.state.changes import ChangeKind, Changes
from firesteel.state.hashmap.key_round import KeyRound
from firesteel.state.overlay.list_table import OverlayListTable, list_changes
from firesteel.state.tables import TableDescription


class HashMapListTable(OverlayListTable):
    def __init__(self, name: str, description: TableDescription) -> None:
        super().__init__(name, description)
        self._base: dict[Any, list[Any]] = {}
        self._round = KeyRound()

    def base_list(self, key: Any) -> list[Any] | None:
        return self._base.get(key)

    def remove(self, key: Any) -> None:
        self._appended.pop(key, None)
        if key in self._base:
            self._replaced[key] = []
        else:
            # What came and went within the epoch leaves no trace.
            self._replaced.pop(key, None)

    def base_keys(self) -> Iterator[Any]:
        return iter(self._base)

    def next_keys(self, limit: int) -> list[Any]:
        return self._round.next_keys(self._base, limit)

    # For the backend

    def confirm(self) -> None:
        """The epoch's changes become the base."""
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
        self.forget_changes()

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
        self.forget_changes()

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
                    yield list_changes(self._name, ChangeKind.APPEND, [key], [part])
                    room = entries
                else:
                    keys.append(key)
                    lists.append(part)
                    room -= len(part)
                start += len(part)
                if room <= 0:
                    if keys:
                        yield list_changes(self._name, ChangeKind.PUT, keys, lists)
                    keys, lists, room = [], [], entries
        if keys:
            yield list_changes(self._name, ChangeKind.PUT, keys, lists)
