"""A value for each key, in dictionaries."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

from firesteel.state.changes import ChangeKind, Changes
from firesteel.state.hashmap.key_round import KeyRound
from firesteel.state.missing import MISSING, has_missing
from firesteel.state.overlay.value_table import OverlayValueTable
from firesteel.state.tables import TableDescription


class HashMapValueTable(OverlayValueTable):
    def __init__(self, name: str, description: TableDescription) -> None:
        super().__init__(name, description)
        self.base: dict[Any, Any] = {}
        self._round = KeyRound()

    def base_items(self) -> Iterator[tuple[Any, Any]]:
        return iter(self.base.items())

    def next_keys(self, limit: int) -> list[Any]:
        return self._round.next_keys(self.base, limit)

    # For the backend

    def confirm(self) -> None:
        """The epoch's changes become the base."""
        base, overlay = self.base, self.overlay
        if has_missing(overlay):
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
        self.forget_changes()

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
