"""The overlay of a list table: what the running epoch appended and replaced."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator
from typing import Any

from firesteel.state.changes import ChangeKind, Changes
from firesteel.state.tables import ListTable, TableDescription


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
