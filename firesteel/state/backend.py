"""The keyed state of one operator subtask: tables, and the segments that record their changes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any, ClassVar, NamedTuple

from firesteel.common.typeinfo import TypeInformation
from firesteel.state.changelog import (
    CHUNK_ENTRIES,
    BackgroundSegment,
    Segment,
    SegmentAccount,
    SegmentStore,
)
from firesteel.state.changes import ChangeKind, Changes, StateEntry, changes_of
from firesteel.state.frozen_state import FrozenFiles, FrozenState
from firesteel.state.key_groups import KeyGroupRange, key_groups_of
from firesteel.state.segment_format import converted, decode_changes, encode_changes, joined
from firesteel.state.table_descriptions import TableDeclarations, TableDescription, TableKind
from firesteel.state.tables import ListTable, MapTable, Table, ValueTable

SNAPSHOT_TITLE = "a full snapshot of keyed state"


class KeyGroupFilter(NamedTuple):
    """The key groups that a subtask takes over from the state of other subtasks."""

    key_groups: KeyGroupRange
    max_parallelism: int

    def of(self, changes: Changes, table: TableDescription) -> Changes:
        """Return the changes of the keys in these key groups.

        The keys of a namespaced table are pairs of key and namespace.
        """
        keys = [key for key, _ in changes.keys] if table.namespaced else changes.keys
        groups = self.key_groups
        return changes.only([one in groups for one in key_groups_of(keys, self.max_parallelism)])


class KeyedStateBackend(ABC):
    """Holds tables by name. ``seal`` writes an epoch's changes; ``confirm`` adds them to the bases.

    A program declares a table by asking for it. Asking with a description that differs from an
    earlier or restored one is an error. Only a time to live may be added or dropped after a
    restore: elements that had none get the time ``now`` as their last use. Subclasses keep the
    bases, and write full segments in a format of their own.
    """

    in_memory: ClassVar[bool]
    """True if the bases are Python objects in this process."""

    def __init__(self, key_type: TypeInformation | None, *, compress: bool = False) -> None:
        self._key_type = key_type
        # Only full segments are compressed. The changes of an epoch are small, and processing waits
        # until they are written.
        self._compress = compress
        self._declarations = TableDeclarations()
        self._tables: dict[str, Table] = {}
        # Tables that the running epoch has dropped. Earlier segments contain them.
        self._dropped: dict[str, TableDescription] = {}
        self._sealed: tuple[int, SegmentStore] | None = None
        # The changes of the sealed epoch, and the tables whose elements were converted.
        self._sealed_changes: list[Changes] = []
        self._converted: set[str] = set()
        self._account = SegmentAccount()
        # The base has entries that no segment of this subtask contains.
        self._uncovered = False
        self._snapshot: BackgroundSegment | None = None
        # The epoch of the running snapshot. It replaces the segments up to this epoch.
        self._snapshot_epoch = 0
        # Neighbors in the log that are being merged, up to this epoch.
        self._merge: BackgroundSegment | None = None
        self._merged_epoch = 0
        self._background_seconds = 0.0

    @abstractmethod
    def _create_table(self, name: str, description: TableDescription) -> Table: ...

    @abstractmethod
    def _confirm(self) -> None:
        """Add the sealed changes to the bases, and empty the overlays."""

    @abstractmethod
    def _clear(self) -> None:
        """Empty all tables."""

    @abstractmethod
    def _discard(self, table: Table) -> None:
        """Delete the base of a dropped table."""

    @abstractmethod
    def _cover(self, epoch: int, store: SegmentStore) -> Segment:
        """Write a full segment now, either of this epoch or of the bases, one epoch older."""

    @abstractmethod
    def _start_snapshot(self, epoch: int, store: SegmentStore) -> BackgroundSegment:
        """Write a full segment of the bases, which are at ``epoch``, in the background."""

    @abstractmethod
    def freeze(self, max_parallelism: int) -> FrozenState:
        """The bases at this moment, for a savepoint that a different thread writes."""

    def freeze_files(self) -> FrozenFiles | None:
        """The files of the bases at this moment, for a native savepoint.

        None if the backend has no files of its own. Such a savepoint is in the canonical format.
        """
        return None

    def _prefers_everything(self, store: SegmentStore, log_bytes: int) -> bool:
        """True if a full segment costs less than adding ``log_bytes`` to the log."""
        return False

    # Tables

    def value_table(
        self,
        name: str,
        *,
        namespaced: bool = False,
        element_type: TypeInformation | None = None,
        ttl: bool = False,
        now: int = 0,
    ) -> ValueTable:
        description = TableDescription(TableKind.VALUE, namespaced, element_type, ttl=ttl)
        table = self._declare(name, description, now)
        assert isinstance(table, ValueTable)
        return table

    def list_table(
        self,
        name: str,
        *,
        namespaced: bool = False,
        element_type: TypeInformation | None = None,
        ttl: bool = False,
        now: int = 0,
    ) -> ListTable:
        description = TableDescription(TableKind.LIST, namespaced, element_type, ttl=ttl)
        table = self._declare(name, description, now)
        assert isinstance(table, ListTable)
        return table

    def map_table(
        self,
        name: str,
        *,
        namespaced: bool = False,
        entry_type: TypeInformation | None = None,
        element_type: TypeInformation | None = None,
        ttl: bool = False,
        now: int = 0,
    ) -> MapTable:
        description = TableDescription(TableKind.MAP, namespaced, element_type, entry_type, ttl)
        table = self._declare(name, description, now)
        assert isinstance(table, MapTable)
        return table

    def drop_table(self, name: str) -> None:
        """Remove a table with its name and content, as a change of the running epoch.

        Use it for short-lived tables, such as those of windows. The cost does not depend on the
        size of the table. All subtasks of an operator drop such a table in the same epoch.
        """
        table = self._tables.pop(name)
        description = self._declarations.forget(name)
        if next(table.base_keys(), None) is not None:
            self._dropped[name] = description
            self._discard(table)

    def _declare(self, name: str, description: TableDescription, now: int) -> Table:
        if self._declarations.changes_ttl(name, description):
            self._change_ttl(name, description, now)
        self._declarations.declare(name, description)
        return self._table(name, description)

    def _change_ttl(self, name: str, description: TableDescription, now: int) -> None:
        """Write the elements of a restored table again, with or without the time of last use."""
        # A snapshot in the background must not see half of it.
        self._abandon_snapshot()
        entries = self.entries(only=(name,))
        before = self._declarations.forget(name)
        self._declarations.restore(name, description)
        new = self._create_table(name, description)
        for part in changes_of(entries, {name: before}, CHUNK_ENTRIES):
            assert part.elements is not None
            if description.ttl:
                elements: list[Any] = [(element, now) for element in part.elements]
            else:
                elements = [element for element, _ in part.elements]
            new.apply(replace(part, elements=elements))
        self._tables[name] = new
        self._uncovered = True

    def _restored(self, name: str, description: TableDescription) -> Table:
        self._declarations.restore(name, description)
        return self._table(name, description)

    def _table(self, name: str, description: TableDescription) -> Table:
        table = self._tables.get(name)
        if table is None:
            table = self._tables[name] = self._create_table(name, description)
        return table

    def descriptions(self) -> Mapping[str, TableDescription]:
        """The descriptions of all tables by name."""
        return self._declarations.tables

    def declared(self) -> frozenset[str]:
        """The tables that the program asked for. The others were restored and are not in use."""
        return frozenset(self._declarations.declared)

    def keys(self, table: str) -> Iterator[Any]:
        """The keys of a table."""
        return self._tables[table].keys()

    def entries(self, only: Collection[str] | None = None) -> Iterator[StateEntry]:
        """The entries of all tables, or of the tables in ``only``. Not for hot paths."""
        for name, table in self._tables.items():
            if only is not None and name not in only:
                continue
            if table.description.namespaced:
                for (key, namespace), value in table.items():
                    yield StateEntry(name, key, namespace, value)
            else:
                for key, value in table.items():
                    yield StateEntry(name, key, None, value)

    def pickles(self, only: Collection[str]) -> Iterator[tuple[str, bytes]]:
        """The pickles that ``entries`` would load, with the names of their tables."""
        return iter(())

    def snapshot(self) -> dict[str, dict[Any, Any]]:
        """A copy of everything for tests: table name -> key or (key, namespace) -> value."""
        return {name: dict(table.items()) for name, table in self._tables.items()}

    @abstractmethod
    def leave_out_of_full_segments(self, table: Table, expired: Callable[[Any], bool]) -> None:
        """Allow full segments to omit the elements of ``table`` for which ``expired`` is true."""

    # Epochs

    def seal(self, epoch: int, store: SegmentStore) -> tuple[Segment, ...]:
        """Write the changes of the epoch, and return them with a finished background segment.

        A full segment of epoch e replaces all segments of epochs up to e, and no later ones.
        """
        self._sealed = epoch, store
        segments: list[Segment] = []
        written = chain(self._written_snapshot(), self._seal(epoch, store), self._written_merge())
        for segment in written:
            self._add(segment)
            segments.append(segment)
        return tuple(segments)

    def _add(self, segment: Segment) -> None:
        self._account.add(segment)
        if segment.full and segment.epoch >= self._merged_epoch:
            # The segment replaces those that are being merged.
            self._abandon_merge()

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
        """Write a full segment now, in the format that all backends read."""
        everything = changes_of(self.entries(), self.descriptions(), CHUNK_ENTRIES)
        typed = (converted(c, self._tables[c.table].description) for c in everything)
        payload = encode_changes(
            self._alive(typed), self.descriptions(), self._key_type, compress=self._compress
        )
        return store.write(payload, epoch=epoch, full=True)

    def _alive(self, changes: Iterable[Changes]) -> Iterable[Changes]:
        """The changes without the elements that full segments omit."""
        return changes

    def confirm(self) -> None:
        """Move the changes of the epoch that was sealed last into the bases."""
        self._confirm()
        self._dropped.clear()
        self._sealed_changes = []
        if self._sealed is None:
            return
        epoch, store = self._sealed
        if self._snapshot is None and self._account.is_log_long(store):
            self._snapshot_epoch = epoch
            self._plan_snapshot(epoch, store)
        if self._merge is None:
            self._merge_neighbors(store)

    # Merges in the background

    def _merge_neighbors(self, store: SegmentStore) -> None:
        """Write the newest segments of the log as one, if there are many."""
        neighbors = self._account.take_neighbors(after=self._snapshot_epoch)
        if not neighbors:
            return
        # Half of the room for inline segments remains for the next epochs.
        inline_bytes = self._account.inline_bytes_without(neighbors) + store.inline_threshold // 2
        self._merged_epoch = neighbors[-1].epoch

        def write(check: Callable[[], None]) -> Segment:
            def payloads() -> Iterator[bytes]:
                for segment in neighbors:
                    check()
                    yield store.read(segment)

            merged = store.write(
                joined(payloads()),
                epoch=neighbors[-1].epoch,
                full=False,
                inline_bytes=inline_bytes,
            )
            return replace(merged, since=neighbors[0].epoch)

        self._merge = BackgroundSegment("merged segments of keyed state", write)

    def _written_merge(self) -> Iterator[Segment]:
        if self._merge is not None and self._merge.is_done():
            segment, self._merge = self._merge.segment(), None
            if segment is not None:
                yield segment

    def _abandon_merge(self) -> None:
        if self._merge is not None:
            self._merge.abandon()
            self._merge = None

    # Full snapshots in the background

    def _plan_snapshot(self, epoch: int, store: SegmentStore) -> None:
        """Snapshot the bases, which stay at ``epoch`` until the next confirmation."""
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
        """Time spent on background segments that ``seal`` has returned since the last call."""
        seconds, self._background_seconds = self._background_seconds, 0.0
        return seconds

    def _abandon_snapshot(self) -> None:
        if self._snapshot is not None:
            self._snapshot.abandon()
            self._snapshot_ended()

    def _snapshot_ended(self) -> None:
        self._snapshot = None
        self._snapshot_epoch = 0

    def forget_changes(self) -> None:
        """Return all tables to their bases, for batch jobs, which keep the state of one key."""
        for table in self._tables.values():
            table.forget_changes()

    # Restoring

    def restore(
        self,
        segments: Sequence[Segment],
        store: SegmentStore,
        only: KeyGroupFilter | None = None,
    ) -> None:
        """Replace the state with the content of segments: an optional full one, then changes.

        The tables stay the same objects, because operators keep references to them. With ``only``,
        keys of other key groups are skipped.
        """
        self._abandon_snapshot()
        self._abandon_merge()
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
        """Add the state of a different subtask to the bases, for rescaling.

        The bases must not have any of its keys. The next ``seal`` writes everything, because the
        segments belong to the other subtask.
        """
        self._uncovered = True
        self._read(segments, store, only)

    def _read(
        self, segments: Sequence[Segment], store: SegmentStore, only: KeyGroupFilter | None
    ) -> None:
        for segment in segments:
            self._apply(self._decoded(store.read(segment), only))

    def _apply(self, changes: Iterable[Changes]) -> None:
        for part in changes:
            self._tables[part.table].apply(part)

    def _decoded(self, payload: bytes, only: KeyGroupFilter | None) -> Iterator[Changes]:
        for changes, description in decode_changes(payload):
            if changes.kind is ChangeKind.DROP:
                self._forget(changes.table)
                continue
            self._restored(changes.table, description)
            yield changes if only is None else only.of(changes, description)

    def _forget(self, name: str) -> None:
        table = self._tables.pop(name, None)
        if table is not None:
            self._declarations.forget(name)
            self._discard(table)

    def load(self, payload: bytes, only: KeyGroupFilter | None = None) -> None:
        """Add the content of a file of a savepoint to the bases.

        No segment has it, so the next ``seal`` writes everything.
        """
        self._uncovered = True
        self._apply(self._decoded(payload, only))

    def declare_restored(self, descriptions: Mapping[str, TableDescription]) -> None:
        """Note the tables of a savepoint. Some of them may have no entries."""
        for name, description in descriptions.items():
            self._restored(name, description)

    def close(self) -> None:
        """Release threads and files."""
        self._abandon_snapshot()
        self._abandon_merge()
