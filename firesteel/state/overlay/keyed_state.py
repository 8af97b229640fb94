"""What backends with tables of base and overlay have in common: declaring, sealing, the log."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Generic, TypeVar

from firesteel.common.typeinfo import TypeInformation
from firesteel.state.backend import KeyedStateBackend, KeyGroupFilter
from firesteel.state.changelog import (
    CHUNK_ENTRIES,
    FullSnapshot,
    Segment,
    SegmentAccount,
    SegmentStore,
)
from firesteel.state.changes import ChangeKind, Changes, StateEntry, changes_of, entries_of
from firesteel.state.overlay.tables import OverlayListTable, OverlayMapTable, OverlayValueTable
from firesteel.state.segment_format import converted, decode_changes, encode_changes
from firesteel.state.tables import TableDescription, TableKind
from firesteel.state.type_descriptions import TableDeclarations

OverlayTable = OverlayValueTable | OverlayListTable | OverlayMapTable
T = TypeVar("T", bound=OverlayTable)


class OverlayKeyedState(KeyedStateBackend, Generic[T]):
    """Subclasses keep the bases, and write full segments in their own way."""

    def __init__(self, key_type: TypeInformation | None, *, compress: bool = False) -> None:
        self._key_type = key_type
        # Full segments; what changed in an epoch is small, and written while processing waits.
        self._compress = compress
        self._declarations = TableDeclarations()
        self._tables: dict[str, T] = {}
        # Tables that the running epoch has dropped, and that segments have.
        self._dropped: dict[str, TableDescription] = {}
        self._sealed: tuple[int, SegmentStore] | None = None
        # The sealed epoch's changes, and the tables in which declared types made a difference.
        self._sealed_changes: list[Changes] = []
        self._converted: set[str] = set()
        self._account = SegmentAccount()
        # There is something in the base that no segment of this subtask has.
        self._uncovered = False
        self._snapshot: FullSnapshot | None = None
        self._background_seconds = 0.0

    @abstractmethod
    def _create_table(self, name: str, description: TableDescription) -> T: ...

    @abstractmethod
    def _apply(self, changes: Iterable[Changes]) -> None:
        """Change the bases."""

    @abstractmethod
    def _confirm(self) -> None:
        """Make the sealed changes the base, and forget the overlays."""

    @abstractmethod
    def _clear(self) -> None:
        """Empty all tables."""

    @abstractmethod
    def _discard(self, table: T) -> None:
        """Delete the base of a table that is gone."""

    @abstractmethod
    def _cover(self, epoch: int, store: SegmentStore) -> Segment:
        """A full segment at once: of this epoch, or of the one before it (the bases)."""

    @abstractmethod
    def _start_snapshot(self, epoch: int, store: SegmentStore) -> FullSnapshot:
        """A full segment of the bases, which are those of ``epoch``, in the background."""

    def _prefers_everything(self, store: SegmentStore, log_bytes: int) -> bool:
        """Whether to write everything at once, instead of so many bytes of changes."""
        return False

    # Tables

    def value_table(
        self,
        name: str,
        *,
        namespaced: bool = False,
        element_type: TypeInformation | None = None,
        ttl: bool = False,
    ) -> OverlayValueTable:
        description = TableDescription(TableKind.VALUE, namespaced, element_type, ttl=ttl)
        table = self._declare(name, description)
        assert isinstance(table, OverlayValueTable)
        return table

    def list_table(
        self,
        name: str,
        *,
        namespaced: bool = False,
        element_type: TypeInformation | None = None,
        ttl: bool = False,
    ) -> OverlayListTable:
        description = TableDescription(TableKind.LIST, namespaced, element_type, ttl=ttl)
        table = self._declare(name, description)
        assert isinstance(table, OverlayListTable)
        return table

    def map_table(
        self,
        name: str,
        *,
        namespaced: bool = False,
        entry_type: TypeInformation | None = None,
        element_type: TypeInformation | None = None,
        ttl: bool = False,
    ) -> OverlayMapTable:
        description = TableDescription(TableKind.MAP, namespaced, element_type, entry_type, ttl)
        table = self._declare(name, description)
        assert isinstance(table, OverlayMapTable)
        return table

    def drop_table(self, name: str) -> None:
        table = self._tables.pop(name)
        description = self._declarations.forget(name)
        if next(table.base_keys(), None) is not None:
            self._dropped[name] = description
            self._discard(table)

    def _declare(self, name: str, description: TableDescription) -> T:
        self._declarations.declare(name, description)
        return self._table(name, description)

    def _restored(self, name: str, description: TableDescription) -> T:
        self._declarations.restore(name, description)
        return self._table(name, description)

    def _table(self, name: str, description: TableDescription) -> T:
        table = self._tables.get(name)
        if table is None:
            table = self._tables[name] = self._create_table(name, description)
        return table

    def descriptions(self) -> Mapping[str, TableDescription]:
        return self._declarations.tables

    def declared(self) -> frozenset[str]:
        return frozenset(self._declarations.declared)

    def keys(self, table: str) -> Iterator[Any]:
        return self._tables[table].keys()

    def entries(self, only: Collection[str] | None = None) -> Iterator[StateEntry]:
        tables = self._tables
        if only is not None:
            tables = {name: tables[name] for name in only if name in tables}
        return entries_of(tables)

    # Epochs

    def seal(self, epoch: int, store: SegmentStore) -> tuple[Segment, ...]:
        self._sealed = epoch, store
        segments = [*self._written_snapshot(), *self._seal(epoch, store)]
        for segment in segments:
            self._account.add(segment)
        return tuple(segments)

    def _seal(self, epoch: int, store: SegmentStore) -> Iterator[Segment]:
        drops = [Changes(name, ChangeKind.DROP, []) for name in self._dropped]
        self._sealed_changes = list(self._changes())
        if self._uncovered:
            self._uncovered = False
            self._abandon_snapshot()
            full = self._cover(epoch, store)
            yield full
            if full.epoch == epoch:
                return
        if not drops and not self._sealed_changes:
            return
        payload = self._encode([*drops, *self._sealed_changes])
        size = sum(map(len, payload))
        if self._snapshot is None and self._prefers_everything(store, size):
            yield self.write_everything(epoch, store)
            return
        inline_bytes = self._account.inline_bytes
        yield store.write(payload, epoch=epoch, full=False, inline_bytes=inline_bytes)

    def _encode(self, changes: Iterable[Changes]) -> list[bytes]:
        descriptions = {**self._dropped, **self.descriptions()}
        return list(encode_changes(changes, descriptions, self._key_type))

    def _changes(self) -> Iterator[Changes]:
        self._converted.clear()
        for name, table in self._tables.items():
            if not table.has_changes():
                continue
            for changes in table.changes():
                typed = converted(changes, table.description)
                if typed is not changes:
                    self._converted.add(name)
                yield typed

    def write_everything(self, epoch: int, store: SegmentStore) -> Segment:
        everything = changes_of(self.entries(), self.descriptions(), CHUNK_ENTRIES)
        typed = (converted(c, self._tables[c.table].description) for c in everything)
        payload = encode_changes(
            self._alive(typed), self.descriptions(), self._key_type, compress=self._compress
        )
        return store.write(payload, epoch=epoch, full=True)

    def _alive(self, changes: Iterable[Changes]) -> Iterable[Changes]:
        """What of the changes a full segment should have."""
        return changes

    def confirm(self) -> None:
        self._confirm()
        self._dropped.clear()
        self._sealed_changes = []
        if self._sealed is not None and self._snapshot is None:
            epoch, store = self._sealed
            if self._account.is_log_long(store):
                self._plan_snapshot(epoch, store)

    # Full snapshots in the background

    def _plan_snapshot(self, epoch: int, store: SegmentStore) -> None:
        """The bases are those of ``epoch``, until the next confirmation."""
        self._snapshot = self._start_snapshot(epoch, store)

    def _written_snapshot(self) -> tuple[Segment, ...]:
        if self._snapshot is None or not self._snapshot.is_done():
            return ()
        segment = self._snapshot.segment()
        if segment is not None:
            self._background_seconds += self._snapshot.seconds
        self._snapshot_ended()
        return () if segment is None else (segment,)

    def take_background_seconds(self) -> float:
        seconds, self._background_seconds = self._background_seconds, 0.0
        return seconds

    def _abandon_snapshot(self) -> None:
        if self._snapshot is not None:
            self._snapshot.abandon()
            self._snapshot_ended()

    def _snapshot_ended(self) -> None:
        self._snapshot = None

    # Coming back

    def restore(
        self,
        segments: Sequence[Segment],
        store: SegmentStore,
        only: KeyGroupFilter | None = None,
    ) -> None:
        self._abandon_snapshot()
        self._clear()
        self._sealed = None
        self._dropped.clear()
        self._sealed_changes = []
        self._account = SegmentAccount(segments)
        self._uncovered = only is not None
        self._read(segments, store, only)

    def add(
        self,
        segments: Sequence[Segment],
        store: SegmentStore,
        only: KeyGroupFilter | None = None,
    ) -> None:
        self._uncovered = True
        self._read(segments, store, only)

    def _read(
        self, segments: Sequence[Segment], store: SegmentStore, only: KeyGroupFilter | None
    ) -> None:
        for segment in segments:
            self._apply(self._decoded(store.read(segment), only))

    def _decoded(self, payload: bytes, only: KeyGroupFilter | None) -> Iterator[Changes]:
        for changes, description in decode_changes(payload):
            if changes.kind is ChangeKind.DROP:
                self._forget(changes.table)
                continue
            self._restored(changes.table, description)
            yield changes if only is None else changes.only(only.picks(description))

    def _forget(self, name: str) -> None:
        table = self._tables.pop(name, None)
        if table is not None:
            self._declarations.forget(name)
            self._discard(table)

    def load(
        self, descriptions: Mapping[str, TableDescription], entries: Iterable[StateEntry]
    ) -> None:
        self._uncovered = True
        for name, description in descriptions.items():
            self._restored(name, description)
        self._apply(changes_of(entries, descriptions, CHUNK_ENTRIES))

    def close(self) -> None:
        self._abandon_snapshot()
