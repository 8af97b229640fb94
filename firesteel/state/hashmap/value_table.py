"""A value for each key, in dictionaries."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

from firesteel.state.changes import ChangeKind, Changes
from firesteel.state.hashmap.key_round import KeyRound
from firesteel.state.missing import MISSING, has_missing
from firesteel.state.tables import TableDescription, ValueTable


class HashMapValueTable(ValueTable):
    """``base`` is version e-1 and does not change during epoch e; ``overlay`` is what e changed."""

    __slots__ = ("_round", "base", "description", "name", "overlay")

    def __init__(self, name: str, description: TableDescription) -> None:
        self.name = name
        self.description = description
        self._round = KeyRound()
        self.base: dict[Any, Any] = {}
        self.overlay: dict[Any, Any] = {}

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
        for key, value in self.base.items():
            if key not in changed:
                yield key, value
        for key, value in changed.items():
            if value is not MISSING:
                yield key, value

    def keys(self) -> Iterator[Any]:
        return (key for key, _ in self.items())

    def __len__(self) -> int:
        return sum(1 for _ in self.items())

    def next_keys(self, limit: int) -> list[Any]:
        return self._round.next_keys(self.base, limit)

    # For the backend

    def has_changes(self) -> bool:
        return bool(self.overlay)

    def changes(self) -> Iterator[Changes]:
        removed = [key for key, value in self.overlay.items() if value is MISSING]
        if removed:
            yield Changes(self.name, ChangeKind.REMOVE, removed)
        if not removed:
            keys, values = list(self.overlay), list(self.overlay.values())
        else:
            present = {k: v for k, v in self.overlay.items() if v is not MISSING}
            keys, values = list(present), list(present.values())
        if keys:
            yield Changes(self.name, ChangeKind.PUT, keys, values)

    def confirm(self, converted: list[Changes] | None = None) -> None:
        """The epoch's changes become the base; ``converted`` ones, if types changed them.

        ``overlay`` stays the same dictionary, because loops hold on to it.
        """
        base, overlay = self.base, self.overlay
        if converted is not None:
            for changes in converted:
                self.apply(changes)
        elif has_missing(overlay):
            for key, value in overlay.items():
                if value is MISSING:
                    base.pop(key, None)
                else:
                    base[key] = value
        else:
            base.update(overlay)
        overlay.clear()

    def apply(self, changes: Changes) -> None:
        """Change the base: the way back from a segment."""
        if changes.kind is ChangeKind.REMOVE:
            for key in changes.keys:
                self.base.pop(key, None)
        else:
            assert changes.elements is not None
            self.base.update(zip(changes.keys, changes.elements, strict=True))

    def clear(self) -> None:
        self.base.clear()
        self.overlay.clear()

    def size(self) -> int:
        return len(self.base)

    def freeze(self) -> FrozenValues:
        return FrozenValues(self.name, self.base)

    def thaw(self) -> None:
        """Values are replaced, never changed, so nothing was held back."""


class FrozenValues:
    """The base at one moment: only references are copied, which is fast."""

    __slots__ = ("_keys", "_name", "_values")

    def __init__(self, name: str, base: dict[Any, Any]) -> None:
        self._name = name
        self._keys = list(base)
        self._values = list(base.values())

    def chunks(self, entries: int) -> Iterator[Changes]:
        keys, values = iter(self._keys), iter(self._values)
        while chunk := list(islice(keys, entries)):
            yield Changes(self._name, ChangeKind.PUT, chunk, list(islice(values, entries)))
