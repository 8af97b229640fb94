"""Keyed state in RocksDB. The bases are on local disk, the overlays in memory."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path
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
from firesteel.state.frozen_state import FrozenState
from firesteel.state.rocksdb.database import Database, is_data_file
from firesteel.state.rocksdb.rows import RowFormat, key_group_of_row, moved_to_table, table_prefix
from firesteel.state.rocksdb.tables import (
    FrozenRows,
    RocksDBListTable,
    RocksDBMapTable,
    RocksDBValueTable,
)
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
        view = self._database.snapshot()
        tables = [
            FrozenRows(name, table.description.kind, table.rows, view)
            for name, table in self._tables.items()
        ]
        return FrozenState(tables, dict(self.descriptions()), view.release)

    def _cover(self, epoch: int, store: SegmentStore) -> Segment:
        """Write the files of the bases, which are at the previous epoch."""
        return self._write_files(self._checkpoint(), epoch - 1, store, lambda: None)

    def _plan_snapshot(self, epoch: int, store: SegmentStore) -> None:
        """Start a flush, and plan the snapshot for the end of the running epoch.

        Nothing is written to the database while an epoch runs. Without this early flush, the
        snapshot would have to flush first, and processing would wait for it.
        """
        self._planned = epoch, store
        self._database.start_flush()

    def _start_snapshot(self, epoch: int, store: SegmentStore) -> BackgroundSegment:
        directory = self._checkpoint()
        return BackgroundSegment(
            SNAPSHOT_TITLE, lambda check: self._write_files(directory, epoch, store, check)
        )

    def _checkpoint(self) -> Path:
        self._write_meta()
        self._checkpoints += 1
        return self._database.checkpoint(self._checkpoints)

    def _write_files(
        self, directory: Path, epoch: int, store: SegmentStore, check: Callable[[], None]
    ) -> Segment:
        known = self._kept_files if self._settings.incremental else {}
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
        # Files can be taken over unchanged if they are the only state of this subtask.
        if logs and logs[0].files and only is None and not self._uncovered:
            self._take_over(logs.pop(0), store)
        for segment in logs:
            if segment.files:
                self._copy_rows(segment, store, only)
            else:
                super()._read([segment], store, only)
        # Flush now. Otherwise the first snapshot would flush while processing waits.
        self._database.flush()

    def _take_over(self, segment: Segment, store: SegmentStore) -> None:
        check_version(segment)
        directory = self._database.replace_files()
        _place(segment, store, directory)
        self._database.reopen()
        self._keep_files_of(segment)
        meta = _meta_of(self._database)
        self._parts = max(self._parts, meta["parts"])
        self._number_tables(meta)

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
            _place(segment, store, other.replace_files())
            other.reopen()
            meta = _meta_of(other)
            # Copied parts of lists keep their numbers. Later parts get higher ones.
            self._parts = max(self._parts, meta["parts"])
            for table in meta["tables"]:
                name = table[_NAME]
                self._restored(name, table_of(table[_DESCRIPTION]))
                number = self._numbers[name]
                rows = other.scan(table_prefix(table["number"]))
                self._database.write(
                    (moved_to_table(row, number), value)
                    for row, value in rows
                    if only is None or key_group_of_row(row) in only.key_groups
                )
        finally:
            other.close()

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


def _place(segment: Segment, store: SegmentStore, directory: Path) -> None:
    for file in segment.files:
        store.read_file(file, directory / file.name)
