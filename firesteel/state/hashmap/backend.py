"""Keyed state in dictionaries of the process. It is fast, and limited by memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from firesteel.common.typeinfo import TypeInformation
from firesteel.state.backend import SNAPSHOT_TITLE, KeyedStateBackend, KeyGroupFilter
from firesteel.state.changelog import (
    CHUNK_ENTRIES,
    BackgroundSegment,
    Segment,
    SegmentStore,
    UnknownFormatError,
)
from firesteel.state.changes import Changes
from firesteel.state.frozen_state import FrozenState, GroupedTable
from firesteel.state.hashmap.tables import HashMapListTable, HashMapMapTable, HashMapValueTable
from firesteel.state.segment_format import encode_changes
from firesteel.state.table_descriptions import TableDescription, TableKind
from firesteel.state.tables import Table

# A state up to about this size is written in the foreground, without a thread.
_SMALL_BYTES = 1 << 20

HashMapTable = HashMapValueTable | HashMapListTable | HashMapMapTable


class HashMapKeyedStateBackend(KeyedStateBackend):
    in_memory = True
    # ``_create_table`` is the only source of tables.
    _tables: dict[str, HashMapTable]  # type: ignore[assignment]

    def __init__(self, key_type: TypeInformation | None = None, *, compress: bool = False) -> None:
        super().__init__(key_type, compress=compress)
        self._expired: dict[str, Callable[[Any], bool]] = {}
        # The tables that the running snapshot has frozen.
        self._frozen: list[HashMapTable] = []

    def _create_table(self, name: str, description: TableDescription) -> HashMapTable:
        return _TABLES[description.kind](name, description)

    def leave_out_of_full_segments(self, table: Table, expired: Callable[[Any], bool]) -> None:
        self._expired[table.name] = expired

    def _alive(self, changes: Iterable[Changes]) -> Iterator[Changes]:
        for part in changes:
            expired = self._expired.get(part.table)
            yield part if expired is None else part.without(expired)

    def _confirm(self) -> None:
        for name, table in self._tables.items():
            if name in self._converted:
                table.forget_changes()
            else:
                table.confirm()
        self._apply(part for part in self._sealed_changes if part.table in self._converted)

    def _discard(self, table: Table) -> None:
        self._expired.pop(table.name, None)

    def _clear(self) -> None:
        for table in self._tables.values():
            table.clear()

    def _prefers_everything(self, store: SegmentStore, log_bytes: int) -> bool:
        account = self._account
        small = account.full_bytes + account.log_bytes + log_bytes <= _SMALL_BYTES
        return small and account.is_log_long(store, log_bytes)

    def _cover(self, epoch: int, store: SegmentStore) -> Segment:
        """Write the bases, which are at the previous epoch."""
        write = self._full_segment(epoch - 1, store)
        try:
            return write(lambda: None)
        finally:
            self._thaw()

    def _start_snapshot(self, epoch: int, store: SegmentStore) -> BackgroundSegment:
        return BackgroundSegment(SNAPSHOT_TITLE, self._full_segment(epoch, store))

    def _full_segment(
        self, epoch: int, store: SegmentStore
    ) -> Callable[[Callable[[], None]], Segment]:
        """Freeze the bases, and return the function that writes them."""
        descriptions = dict(self.descriptions())
        self._frozen = list(self._tables.values())
        frozen = [table.freeze() for table in self._frozen]

        def write(check: Callable[[], None]) -> Segment:
            alive = self._alive(chunks(check))
            payload = encode_changes(alive, descriptions, self._key_type, compress=self._compress)
            return store.write(payload, epoch=epoch, full=True)

        def chunks(check: Callable[[], None]) -> Iterator[Changes]:
            for table in frozen:
                for chunk in table.chunks(CHUNK_ENTRIES):
                    check()
                    yield chunk

        return write

    def _snapshot_ended(self) -> None:
        super()._snapshot_ended()
        self._thaw()

    def _thaw(self) -> None:
        for table in self._frozen:
            table.thaw()
        self._frozen = []

    def freeze(self, max_parallelism: int) -> FrozenState:
        tables = list(self._tables.values())

        def release() -> None:
            for table in tables:
                table.thaw()

        return FrozenState(
            [
                GroupedTable(
                    table.name,
                    table.description.namespaced,
                    table.freeze().columns,
                    max_parallelism,
                )
                for table in tables
            ],
            dict(self.descriptions()),
            release,
        )

    def _read(
        self, segments: Sequence[Segment], store: SegmentStore, only: KeyGroupFilter | None
    ) -> None:
        for segment in segments:
            if segment.files:
                raise UnknownFormatError(
                    f"the state of epoch {segment.epoch} consists of files of the rocksdb backend, "
                    "as in its checkpoints and native savepoints. Only a canonical savepoint can be "
                    "restored with a different backend. Set state.backend.type to rocksdb, or "
                    "restore a canonical savepoint."
                )
        super()._read(segments, store, only)


_TABLES: dict[TableKind, type[HashMapTable]] = {
    TableKind.VALUE: HashMapValueTable,
    TableKind.LIST: HashMapListTable,
    TableKind.MAP: HashMapMapTable,
}
