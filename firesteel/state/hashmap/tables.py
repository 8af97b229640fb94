"""Tables whose bases are dictionaries, and the frozen bases that background snapshots write."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

from firesteel.state.changes import ChangeKind, Changes, list_changes, map_changes
from firesteel.state.frozen_state import Columns
from firesteel.state.table_descriptions import TableDescription
from firesteel.state.tables import MISSING, ListTable, MapTable, ValueTable, has_missing


class KeyRound:
    """Visits the keys of a table round by round, with the keys present at the start of a round."""

    __slots__ = ("_keys",)

    def __init__(self) -> None:
        self._keys: Iterator[Any] = iter(())

    def next_keys(self, keys: Iterable[Any], limit: int) -> list[Any]:
        """Return up to ``limit`` keys, and fewer at the end of a round."""
        found = list(islice(self._keys, limit))
        if not found:
            self._keys = iter(list(keys))
            found = list(islice(self._keys, limit))
        return found


class HashMapValueTable(ValueTable):
    def __init__(self, name: str, description: TableDescription) -> None:
        super().__init__(name, description)
        self.base: dict[Any, Any] = {}
        self._round = KeyRound()

    def remove(self, key: Any) -> None:
        if key in self.base:
            self.overlay[key] = MISSING
        else:
            # A value that was created and removed within the epoch leaves no change.
            self.overlay.pop(key, None)

    def base_items(self) -> Iterator[tuple[Any, Any]]:
        return iter(self.base.items())

    def next_keys(self, limit: int) -> list[Any]:
        return self._round.next_keys(self.base, limit)

    # For the backend

    def confirm(self) -> None:
        """Move the overlay into the base."""
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
        """Do nothing: values are replaced, not changed, so a snapshot needs no protection."""


class FrozenValues:
    """The base at one moment. Copying the references is fast."""

    __slots__ = ("_keys", "_name", "_values")

    def __init__(self, name: str, base: dict[Any, Any]) -> None:
        self._name = name
        self._keys = list(base)
        self._values = list(base.values())

    def chunks(self, entries: int) -> Iterator[Changes]:
        keys, values = iter(self._keys), iter(self._values)
        while chunk := list(islice(keys, entries)):
            yield Changes(self._name, ChangeKind.PUT, chunk, list(islice(values, entries)))

    def columns(self) -> Columns:
        return self._keys, self._values


class HashMapListTable(ListTable):
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
            # A list that was created and removed within the epoch leaves no change.
            self._replaced.pop(key, None)

    def base_keys(self) -> Iterator[Any]:
        return iter(self._base)

    def next_keys(self, limit: int) -> list[Any]:
        return self._round.next_keys(self._base, limit)

    # For the backend

    def confirm(self) -> None:
        """Move the overlay into the base."""
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
                # Extending in place is safe: a snapshot reads a list only up to its frozen length.
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
        """Do nothing: lists grow or are replaced, so a snapshot needs no protection."""


class FrozenLists:
    """The base at one moment: references to the lists, and their lengths."""

    __slots__ = ("_keys", "_lengths", "_lists", "_name")

    def __init__(self, name: str, base: dict[Any, list[Any]]) -> None:
        self._name = name
        self._keys = list(base)
        self._lists = list(base.values())
        self._lengths = list(map(len, self._lists))

    def columns(self) -> Columns:
        lengths = zip(self._lists, self._lengths, strict=True)
        return self._keys, [values[:length] for values, length in lengths]

    def chunks(self, entries: int) -> Iterator[Changes]:
        """Chunks of about ``entries`` elements. A longer list is written in parts."""
        keys: list[Any] = []
        lists: list[list[Any]] = []
        room = entries
        for key, values, length in zip(self._keys, self._lists, self._lengths, strict=True):
            start = 0
            while start < length:
                part = values[start : min(length, start + room)]
                if start:
                    # The first part puts the list. The other parts append to it.
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


class HashMapMapTable(MapTable):
    def __init__(self, name: str, description: TableDescription) -> None:
        super().__init__(name, description)
        self._base: dict[Any, dict[Any, Any]] = {}
        self._round = KeyRound()
        # The number of running snapshots: a full segment and savepoints.
        self._snapshots = 0
        # The keys whose map was created or copied since the last snapshot froze the maps. None if
        # no snapshot is running.
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
        """Move the overlay into the base."""
        for key in self._cleared:
            self._base.pop(key, None)
        for key, changed in self._overlay.items():
            if key not in self._base and key not in self._removed:
                # The map of a new key becomes that of the base.
                self._base[key] = changed
                if self._unshared is not None:
                    self._unshared.add(key)
                continue
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
        """The base map of a key, ready for changes. A map in a running snapshot is copied first."""
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

    def freeze(self) -> FrozenMaps:
        self._snapshots += 1
        self._unshared = set()
        return FrozenMaps(self.name, self._base)

    def thaw(self) -> None:
        """Allow in-place changes of maps again after the last snapshot."""
        self._snapshots -= 1
        if not self._snapshots:
            self._unshared = None


class FrozenMaps:
    """The base at one moment: references to maps. The table copies a map before changing it."""

    __slots__ = ("_keys", "_maps", "_name")

    def __init__(self, name: str, base: dict[Any, dict[Any, Any]]) -> None:
        self._name = name
        self._keys = list(base)
        self._maps = list(base.values())

    def columns(self) -> Columns:
        return self._keys, self._maps

    def chunks(self, entries: int) -> Iterator[Changes]:
        """Chunks of about ``entries`` entries. A larger map is written in parts."""
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
