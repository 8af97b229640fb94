"""Keyed state in dictionaries of the process: fast, bounded by memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, cast

from firesteel.common.typeinfo import TypeInformation
from firesteel.state.backend import KeyedStateBackend, KeyGroupFilter
from firesteel.state.changelog import Segment, SegmentStore, UnknownFormatError
from firesteel.state.changes import ChangeKind, Changes
from firesteel.state.declarations import TableDeclarations
from firesteel.state.entries import StateEntry, changes_of, entries_of
from firesteel.state.hashmap.full_snapshot import CHUNK_ENTRIES, FullSnapshot
from firesteel.state.hashmap.list_table import HashMapListTable
from firesteel.state.hashmap.map_table import HashMapMapTable
from firesteel.state.hashmap.value_table import HashMapValueTable
from firesteel.state.segment_account import SegmentAccount
from firesteel.state.segment_format import converted, decode_changes, encode_changes
from firesteel.state.tables import Table, TableDescription, TableKind

# A state of about so many bytes is written at once, without a thread.
_SMALL_BYTES = 1 << 20

HashMapTable = HashMapValueTable | HashMapListTable | HashMapMapTable


class HashMapKeyedState(KeyedStateBackend):
    in_memory = True

    def __init__(self, key_type: TypeInformation | None = None) -> None:
        self._key_type = key_type
        self._declarations = TableDeclarations()
        self._tables: dict[str, HashMapTable] = {}
        # Tables that the running epoch has dropped, and that segments have.
        self._dropped: dict[str, TableDescription] = {}
        # What the declared types made of the sealed epoch's changes, where they made any difference.
        self._converted: dict[str, list[Changes]] = {}
        self._sealed: tuple[int, SegmentStore] | None = None
        self._account = SegmentAccount()
        # There is something in the base that no segment of this subtask has.
        self._uncovered = False
        self._snapshot: FullSnapshot | None = None
        self._expired: dict[str, Callable[[Any], bool]] = {}

    # Tables

    def value_table(
        self,
        name: str,
        *,
        namespaced: bool = False,
        element_type: TypeInformation | None = None,
        ttl: bool = False,
    ) -> HashMapValueTable:
        description = TableDescription(TableKind.VALUE, namespaced, element_type, ttl=ttl)
        table = self._declare(name, description)
        assert isinstance(table, HashMapValueTable)
        return table

    def list_table(
        self,
        name: str,
        *,
        namespaced: bool = False,
        element_type: TypeInformation | None = None,
        ttl: bool = False,
    ) -> HashMapListTable:
        description = TableDescription(TableKind.LIST, namespaced, element_type, ttl=ttl)
        table = self._declare(name, description)
        assert isinstance(table, HashMapListTable)
        return table

    def map_table(
        self,
        name: str,
        *,
        namespaced: bool = False,
        entry_type: TypeInformation | None = None,
        element_type: TypeInformation | None = None,
        ttl: bool = False,
    ) -> HashMapMapTable:
        description = TableDescription(TableKind.MAP, namespaced, element_type, entry_type, ttl)
        table = self._declare(name, description)
        assert isinstance(table, HashMapMapTable)
        return table

    def drop_table(self, name: str) -> None:
        table = self._tables.pop(name)
        description = self._declarations.forget(name)
        self._expired.pop(name, None)
        if isinstance(table, HashMapValueTable) and table.base:
            self._dropped[name] = description

    def keys(self, table: str) -> Iterator[Any]:
        return self._tables[table].keys()

    def declared(self) -> frozenset[str]:
        return frozenset(self._declarations.declared)

    def leave_out_of_full_segments(self, table: Table, expired: Callable[[Any], bool]) -> None:
        self._expired[cast("HashMapTable", table).name] = expired

    def descriptions(self) -> Mapping[str, TableDescription]:
        return self._declarations.tables

    def _declare(self, name: str, description: TableDescription) -> HashMapTable:
        self._declarations.declare(name, description)
        return self._table(name, description)

    def _restored(self, name: str, description: TableDescription) -> HashMapTable:
        self._declarations.restore(name, description)
        return self._table(name, description)

    def _table(self, name: str, description: TableDescription) -> HashMapTable:
        if name not in self._tables:
            self._tables[name] = _TABLES[description.kind](name, description)
        return self._tables[name]

    # Epochs

    def seal(self, epoch: int, store: SegmentStore) -> tuple[Segment, ...]:
        self._sealed = epoch, store
        segments = [*self._written_snapshot(), *self._seal(epoch, store)]
        for segment in segments:
            self._account.add(segment)
        return tuple(segments)

    def _seal(self, epoch: int, store: SegmentStore) -> Iterator[Segment]:
        changes = list(self._changes())
        if self._uncovered:
            self._uncovered = False
            self._abandon_snapshot()
            yield self.write_everything(epoch, store)
            return
        if not changes:
            return
        descriptions = {**self._dropped, **self.descriptions()}
        payload = list(encode_changes(changes, descriptions, self._key_type))
        size = sum(map(len, payload))
        account = self._account
        small = account.full_bytes + account.log_bytes + size <= _SMALL_BYTES
        if small and account.is_log_long(store, size) and self._snapshot is None:
            yield self.write_everything(epoch, store)
            return
        yield store.write(payload, epoch=epoch, full=False, inline_bytes=account.inline_bytes)

    def _changes(self) -> Iterator[Changes]:
        for name in self._dropped:
            yield Changes(name, ChangeKind.DROP, [])
        for name, table in self._tables.items():
            if not table.has_changes():
                continue
            raw = list(table.changes())
            typed = [converted(changes, table.description) for changes in raw]
            if any(new is not old for new, old in zip(typed, raw, strict=True)):
                self._converted[name] = typed
            yield from typed

    def write_everything(self, epoch: int, store: SegmentStore) -> Segment:
        everything = changes_of(self.entries(), self.descriptions(), CHUNK_ENTRIES)
        typed = (converted(c, self._tables[c.table].description) for c in everything)
        payload = encode_changes(self._alive(typed), self.descriptions(), self._key_type)
        return store.write(payload, epoch=epoch, full=True)

    def _alive(self, changes: Iterable[Changes]) -> Iterator[Changes]:
        for part in changes:
            expired = self._expired.get(part.table)
            yield part if expired is None else part.without(expired)

    def confirm(self) -> None:
        self._dropped.clear()
        for name, table in self._tables.items():
            typed = self._converted.pop(name, None)
            if typed is None:
                table.confirm()
                continue
            table.forget_changes()
            for changes in typed:
                table.apply(changes)
        if self._sealed is not None and self._snapshot is None:
            epoch, store = self._sealed
            if self._account.is_log_long(store):
                self._start_snapshot(epoch, store)

    # Full snapshots in the background

    def _start_snapshot(self, epoch: int, store: SegmentStore) -> None:
        descriptions = dict(self.descriptions())

        def write(changes: Iterator[Changes]) -> Segment:
            payload = encode_changes(self._alive(changes), descriptions, self._key_type)
            return store.write(payload, epoch=epoch, full=True)

        self._snapshot = FullSnapshot([table.freeze() for table in self._tables.values()], write)

    def _written_snapshot(self) -> tuple[Segment, ...]:
        if self._snapshot is None or not self._snapshot.is_done():
            return ()
        segment = self._snapshot.segment()
        self._thaw()
        return () if segment is None else (segment,)

    def _abandon_snapshot(self) -> None:
        if self._snapshot is not None:
            self._snapshot.abandon()
            self._thaw()

    def _thaw(self) -> None:
        self._snapshot = None
        for table in self._tables.values():
            table.thaw()

    # Coming back

    def restore(
        self,
        segments: Sequence[Segment],
        store: SegmentStore,
        only: KeyGroupFilter | None = None,
    ) -> None:
        self._abandon_snapshot()
        for table in self._tables.values():
            table.clear()
        self._converted.clear()
        self._dropped.clear()
        self._sealed = None
        self._account = SegmentAccount(segments)
        self._uncovered = only is not None
        for changes, description in self._read(segments, store, only):
            if changes.kind is not ChangeKind.DROP:
                self._restored(changes.table, description).apply(changes)
            elif self._tables.pop(changes.table, None) is not None:
                self._declarations.forget(changes.table)

    def add(
        self,
        segments: Sequence[Segment],
        store: SegmentStore,
        only: KeyGroupFilter | None = None,
    ) -> None:
        self._uncovered = True
        # What the other subtask dropped is not what others have under that name.
        added: dict[str, list[tuple[Changes, TableDescription]]] = {}
        for changes, description in self._read(segments, store, only):
            if changes.kind is ChangeKind.DROP:
                added.pop(changes.table, None)
            else:
                added.setdefault(changes.table, []).append((changes, description))
        for parts in added.values():
            for changes, description in parts:
                self._restored(changes.table, description).apply(changes)

    def _read(
        self, segments: Sequence[Segment], store: SegmentStore, only: KeyGroupFilter | None
    ) -> Iterator[tuple[Changes, TableDescription]]:
        for segment in segments:
            if segment.files:
                raise UnknownFormatError(
                    f"the segment of epoch {segment.epoch} was written by the rocksdb backend; "
                    "only a savepoint can be restored with another one"
                )
            for changes, description in decode_changes(store.read(segment)):
                if only is not None:
                    changes = changes.only(only.picks(description))
                yield changes, description

    def entries(self) -> Iterator[StateEntry]:
        return entries_of(self._tables)

    def load(
        self, descriptions: Mapping[str, TableDescription], entries: Iterable[StateEntry]
    ) -> None:
        self._uncovered = True
        for name, description in descriptions.items():
            self._restored(name, description)
        for changes in changes_of(entries, descriptions, CHUNK_ENTRIES):
            self._tables[changes.table].apply(changes)

    def close(self) -> None:
        self._abandon_snapshot()


_TABLES: dict[TableKind, type[HashMapTable]] = {
    TableKind.VALUE: HashMapValueTable,
    TableKind.LIST: HashMapListTable,
    TableKind.MAP: HashMapMapTable,
}
