"""The overlay of a value table: what the running epoch changed."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from typing import Any

from firesteel.state.changes import ChangeKind, Changes
from firesteel.state.missing import MISSING, has_missing
from firesteel.state.tables import TableDescription, ValueTable


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
