"""Keyed state in RocksDB. The bases are on local disk, the overlays in memory."""

from __future__ import annotations

import json
import shutil
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path
from types import MappingProxyType
from typing import Any

from firesteel.common.typeinfo import TypeInformation
from firesteel.state.backend import SNAPSHOT_TITLE, KeyedStateBackend, KeyGroupFilter
from firesteel.state.backend_factory import StateBackendSettings
from firesteel.state.changelog import (
    BackgroundSegment,
    Segment,
    SegmentFile,
    SegmentStore,
    check_version,
    delete_files,
)
from firesteel.state.changes import Changes
from firesteel.state.frozen_state import FrozenFiles, FrozenState
from firesteel.state.key_groups import KeyGroupRange
from firesteel.state.rocksdb.database import Database, View, is_data_file
from firesteel.state.rocksdb.rows import (
    AFTER,
    RowFormat,
    group_prefix,
    moved_to_table,
    table_prefix,
)
from firesteel.state.rocksdb.tables import (
    FrozenRows,
    RocksDBListTable,
    RocksDBMapTable,
    RocksDBValueTable,
)
from firesteel.state.segment_format import decode_parts
from firesteel.state.table_descriptions import (
    TableDescription,
    TableKind,
    describe_table,
    table_of,
)
from firesteel.state.tables import Table

# Table 0 has the names and descriptions of the other tables.
_META = b"\x00\x00tables"
_NAME, _DESCRIPTION = "name", "description"

RocksDBTable = RocksDBValueTable | RocksDBListTable | RocksDBMapTable


class RocksDBKeyedStateBackend(KeyedStateBackend):
    in_memory = False
    # ``_create_table`` is the only source of tables.
    _tables: dict[str, RocksDBTable]  # type: ignore[assignment]

    def __init__(
        self,
        key_type: TypeInformation | None,
        max_parallelism: int,
        settings: StateBackendSettings,
    ) -> None:
        super().__init__(key_type)
        self._max_parallelism = max_parallelism
        self._settings = settings
        self._database = Database(settings)
        self._numbers: dict[str, int] = {}
        self._parts = 0
        self._checkpoints = 0
        # Data files that an earlier segment contains, by name.
        self._kept_files: dict[str, SegmentFile] = {}
        # The epoch of the bases and the store, if the end of the running epoch starts a snapshot.
        self._planned: tuple[int, SegmentStore] | None = None

    def _create_table(self, name: str, description: TableDescription) -> RocksDBTable:
        number = self._numbers.get(name)
        if number is None:
            # A table number has two bytes, so the numbers of dropped tables are reused.
            taken = set(self._numbers.values())
            number = self._numbers[name] = next(n for n in count(1) if n not in taken)
        rows = RowFormat(number, description, self._max_parallelism)
        if description.kind is TableKind.VALUE:
            return RocksDBValueTable(name, description, self._database, rows)
        if description.kind is TableKind.MAP:
            return RocksDBMapTable(name, description, self._database, rows)
        return RocksDBListTable(name, description, self._database, rows, self._next_part)

    def _next_part(self) -> int:
        self._parts += 1
        return self._parts

    def leave_out_of_full_segments(self, table: Table, expired: Callable[[Any], bool]) -> None:
        """Do nothing: a full segment consists of RocksDB's files, and contains all elements."""

    # Changes

    def _confirm(self) -> None:
        self._apply(self._sealed_changes)
        for table in self._tables.values():
            table.forget_changes()

    def _discard(self, table: Table) -> None:
        number = self._numbers.pop(table.name)
        self._database.delete_all(table_prefix(number))

    def _clear(self) -> None:
        self._database.clear()
        self._kept_files.clear()
        self._planned = None
        for table in self._tables.values():
            table.forget_changes()

    # Snapshots

    def freeze(self, max_parallelism: int) -> FrozenState:
        tables: list[FrozenRows] = []
        views: list[View] = []
        for name, table in self._tables.items():
            views.append(self._database.view(table.rows.table_prefix))
            tables.append(FrozenRows(name, table.description.kind, table.rows, views[-1]))

        def release() -> None:
            for view in views:
                view.release()

        return FrozenState(tables, dict(self.descriptions()), release)

    def freeze_files(self) -> FrozenFiles:
        epoch = 0 if self._sealed is None else self._sealed[0]
        directory = self._checkpoint()
        return FrozenFiles(
            dict(self.descriptions()),
            lambda store, check: self._write_files(directory, epoch, store, check),
            lambda: shutil.rmtree(directory, ignore_errors=True),
        )

    def _cover(self, epoch: int, store: SegmentStore) -> Segment:
        """Write the files of the bases, which are at the previous epoch."""
        known = self._known_files()
        return self._write_files(self._checkpoint(), epoch - 1, store, lambda: None, known)

    def _plan_snapshot(self, epoch: int, store: SegmentStore) -> None:
        """Start a flush, and plan the snapshot for the end of the running epoch.

        Nothing is written to the database while an epoch runs. Without this early flush, the
        snapshot would have to flush first, and processing would wait for it.
        """
        self._planned = epoch, store
        self._database.start_flush()

    def _start_snapshot(self, epoch: int, store: SegmentStore) -> BackgroundSegment:
        directory, known = self._checkpoint(), self._known_files()
        return BackgroundSegment(
            SNAPSHOT_TITLE, lambda check: self._write_files(directory, epoch, store, check, known)
        )

    def _known_files(self) -> Mapping[str, SegmentFile]:
        return self._kept_files if self._settings.incremental else {}

    def _checkpoint(self) -> Path:
        self._write_meta()
        self._checkpoints += 1
        return self._database.checkpoint(self._checkpoints)

    def _write_files(
        self,
        directory: Path,
        epoch: int,
        store: SegmentStore,
        check: Callable[[], None],
        known: Mapping[str, SegmentFile] = MappingProxyType({}),
    ) -> Segment:
        """Write the files of a directory, except known ones, and delete the directory."""
        paths = sorted(directory.iterdir())
        shared = [known[path.name] for path in paths if path.name in known]
        written: list[SegmentFile] = []

        def write(path: Path) -> None:
            check()
            written.append(store.write_file(path))

        try:
            with ThreadPoolExecutor(self._settings.transfer_threads) as threads:
                list(threads.map(write, (path for path in paths if path.name not in known)))
        except BaseException:
            delete_files({file.path for file in written if file.path is not None})
            raise
        finally:
            shutil.rmtree(directory, ignore_errors=True)
        files = (*shared, *written)
        names = frozenset(file.name for file in shared)
        return Segment(epoch, True, sum(file.size for file in files), files=files, shared=names)

    def seal(self, epoch: int, store: SegmentStore) -> tuple[Segment, ...]:
        segments = super().seal(epoch, store)
        if self._planned is not None:
            self._snapshot = self._start_snapshot(*self._planned)
            self._planned = None
        for segment in segments:
            if segment.full:
                self._keep_files_of(segment)
        return segments

    def _keep_files_of(self, segment: Segment) -> None:
        """Remember the data files of a segment. Later segments share the files still in use."""
        self._kept_files = {file.name: file for file in segment.files if is_data_file(file.name)}

    def _write_meta(self) -> None:
        meta = json.dumps(
            {
                "parts": self._parts,
                "tables": [
                    {
                        "number": self._numbers[name],
                        _NAME: name,
                        _DESCRIPTION: describe_table(description),
                    }
                    for name, description in self.descriptions().items()
                ],
            }
        ).encode()
        self._database.write([(_META, meta)])

    # Restoring

    def _read(
        self, segments: Sequence[Segment], store: SegmentStore, only: KeyGroupFilter | None
    ) -> None:
        logs = list(segments)
        if logs and logs[0].files and self._database.is_empty():
            self._take_over(logs.pop(0), store, only)
        for segment in logs:
            if segment.files:
                self._copy_rows(segment, store, only)
            else:
                super()._read([segment], store, only)
        # Flush now. Otherwise the first snapshot would flush while processing waits.
        self._database.flush()

    def _take_over(
        self, segment: Segment, store: SegmentStore, only: KeyGroupFilter | None
    ) -> None:
        """Continue with the files of a segment. No row is read."""
        check_version(segment)
        directory = self._database.replace_files()
        self._place(segment, store, directory)
        self._database.reopen()
        if not self._uncovered:
            # The segment belongs to this subtask.
            self._keep_files_of(segment)
        meta = _meta_of(self._database)
        self._parts = max(self._parts, meta["parts"])
        self._number_tables(meta)
        if only is not None:
            self._clip(only.key_groups)

    def _clip(self, groups: KeyGroupRange) -> None:
        """Delete the rows of all other key groups. Compaction removes them from the files later."""
        for number in self._numbers.values():
            prefix = table_prefix(number)
            self._database.delete_range(prefix, group_prefix(prefix, groups.start))
            self._database.delete_range(group_prefix(prefix, groups.end + 1), prefix + AFTER * 2)

    def _number_tables(self, meta: dict[str, Any]) -> None:
        """Give the tables the numbers that they have in the files."""
        numbers = {table[_NAME]: table["number"] for table in meta["tables"]}
        unknown = [name for name in self._numbers if name not in numbers]
        next_number = max(numbers.values(), default=0) + 1
        numbers.update({name: next_number + index for index, name in enumerate(unknown)})
        self._numbers = numbers
        for table in meta["tables"]:
            self._restored(table[_NAME], table_of(table[_DESCRIPTION]))
        for name, table in self._tables.items():
            table.rows.renumber(numbers[name])

    def _copy_rows(
        self, segment: Segment, store: SegmentStore, only: KeyGroupFilter | None
    ) -> None:
        """Copy the rows of a different subtask's database, selected by key group."""
        check_version(segment)
        other = Database(self._settings)
        try:
            self._place(segment, store, other.replace_files())
            other.reopen()
            meta = _meta_of(other)
            # Copied parts of lists keep their numbers. Later parts get higher ones.
            self._parts = max(self._parts, meta["parts"])
            for table in meta["tables"]:
                name = table[_NAME]
                self._restored(name, table_of(table[_DESCRIPTION]))
                start, end = _bounds(table["number"], only)
                prefix = table_prefix(self._numbers[name])
                self._database.ingest(
                    (moved_to_table(rows, prefix), values)
                    for rows, values in other.cursor(start).before(end)
                )
        finally:
            other.close()

    def load(self, payload: bytes, only: KeyGroupFilter | None = None) -> None:
        self._uncovered = True
        self._database.ingest(self._loaded(payload, only))

    def _loaded(
        self, payload: bytes, only: KeyGroupFilter | None
    ) -> Iterator[tuple[Sequence[bytes], Sequence[bytes]]]:
        """The encoded rows of a file of a savepoint. Other content is added to the tables."""
        for part, description in decode_parts(payload):
            table = self._restored(part.table, description)
            if isinstance(part, Changes):
                table.apply(part if only is None else only.of(part, description))
                continue
            number = self._numbers[part.table]
            prefix = table_prefix(number)
            rows, values = moved_to_table(part.rows, prefix), part.values
            if only is not None:
                start, end = _bounds(number, only)
                low, high = bisect_left(rows, start), bisect_left(rows, end)
                rows, values = rows[low:high], values[low:high]
            if rows:
                yield rows, values

    def _place(self, segment: Segment, store: SegmentStore, directory: Path) -> None:
        def read(file: SegmentFile) -> None:
            store.read_file(file, directory / file.name)

        with ThreadPoolExecutor(self._settings.transfer_threads) as threads:
            list(threads.map(read, segment.files))

    def pickles(self, only: Collection[str]) -> Iterator[tuple[str, bytes]]:
        for name in only:
            rows = self._tables[name].rows
            for _, value in self._database.scan(rows.table_prefix):
                for pickle in rows.pickles(value):
                    yield name, pickle

    def close(self) -> None:
        super().close()
        self._database.close()


def _meta_of(database: Database) -> dict[str, Any]:
    payload = database.get(_META)
    assert payload is not None
    meta: dict[str, Any] = json.loads(payload)
    return meta


def _bounds(number: int, only: KeyGroupFilter | None) -> tuple[bytes, bytes]:
    """The keys between which all wanted rows of a table are."""
    prefix = table_prefix(number)
    if only is None:
        return prefix, prefix + AFTER * 2
    groups = only.key_groups
    return group_prefix(prefix, groups.start), group_prefix(prefix, groups.end + 1)
