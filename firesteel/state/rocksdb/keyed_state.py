"""Keyed state in RocksDB: the bases on local disk, the overlays in memory."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path
from typing import Any

from firesteel.common.typeinfo import TypeInformation
from firesteel.state.backend import KeyGroupFilter
from firesteel.state.backend_factory import StateBackendSettings
from firesteel.state.changelog import (
    FullSnapshot,
    Segment,
    SegmentFile,
    SegmentStore,
    check_version,
    delete_files,
)
from firesteel.state.changes import Changes
from firesteel.state.overlay.keyed_state import OverlayKeyedState
from firesteel.state.rocksdb.database import Database, is_data_file
from firesteel.state.rocksdb.rows import RowFormat, key_group_of_row, moved_to_table
from firesteel.state.rocksdb.tables import RocksDBListTable, RocksDBMapTable, RocksDBValueTable
from firesteel.state.tables import Table, TableDescription, TableKind
from firesteel.state.type_descriptions import describe_table, table_of

# Table 0 has the names of the others.
_META = b"\x00\x00tables"
_NAME, _DESCRIPTION = "name", "description"

RocksDBTable = RocksDBValueTable | RocksDBListTable | RocksDBMapTable


class RocksDBKeyedState(OverlayKeyedState[RocksDBTable]):
    in_memory = False

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
        # Data files that a segment has already, by their names.
        self._kept_files: dict[str, SegmentFile] = {}
        # The epoch that the bases are of, if the end of the running one is to begin a snapshot of them.
        self._planned: tuple[int, SegmentStore] | None = None

    def _create_table(self, name: str, description: TableDescription) -> RocksDBTable:
        number = self._numbers.get(name)
        if number is None:
            # Tables come and go, and their numbers are few.
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
        """A full segment consists of RocksDB's files as they are, so it has them all."""

    # Changes

    def _apply(self, changes: Iterable[Changes]) -> None:
        for part in changes:
            # One by one: what a list's or map's removal has to delete is looked up in the database.
            self._database.write(self._tables[part.table].operations(part))

    def _confirm(self) -> None:
        self._apply(self._sealed_changes)
        for table in self._tables.values():
            table.forget_changes()

    def _discard(self, table: RocksDBTable) -> None:
        self._database.delete_all(table.rows.table_prefix)
        del self._numbers[table.name]

    def _clear(self) -> None:
        self._database.clear()
        self._kept_files.clear()
        self._planned = None
        for table in self._tables.values():
            table.forget_changes()

    # Full segments

    def _cover(self, epoch: int, store: SegmentStore) -> Segment:
        """The bases are those of the epoch before."""
        return self._write_files(self._checkpoint(), epoch - 1, store, lambda: None)

    def _plan_snapshot(self, epoch: int, store: SegmentStore) -> None:
        """Nothing is written to the database while an epoch runs, so there is time for a flush.

        A checkpoint would have to wait for it, and processing with it.
        """
        self._planned = epoch, store
        self._database.start_flush()

    def _start_snapshot(self, epoch: int, store: SegmentStore) -> FullSnapshot:
        directory = self._checkpoint()
        return FullSnapshot(lambda go_on: self._write_files(directory, epoch, store, go_on))

    def _checkpoint(self) -> Path:
        self._write_meta()
        self._checkpoints += 1
        return self._database.checkpoint(self._checkpoints)

    def _write_files(
        self, directory: Path, epoch: int, store: SegmentStore, go_on: Callable[[], None]
    ) -> Segment:
        known = self._kept_files if self._settings.incremental else {}
        paths = sorted(directory.iterdir())
        shared = [known[path.name] for path in paths if path.name in known]
        written: list[SegmentFile] = []

        def write(path: Path) -> None:
            go_on()
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
        """They need not be written again, as long as RocksDB has them."""
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

    # Coming back

    def _read(
        self, segments: Sequence[Segment], store: SegmentStore, only: KeyGroupFilter | None
    ) -> None:
        logs = list(segments)
        # Only an empty database of this subtask alone can take over files as they are.
        if logs and logs[0].files and only is None and not self._uncovered:
            self._take_over(logs.pop(0), store)
        for segment in logs:
            if segment.files:
                self._copy_rows(segment, store, only)
            else:
                super()._read([segment], store, only)
        # Otherwise the first snapshot would do it, and processing would stand still meanwhile.
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
        """The tables keep the numbers that they have in the files."""
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
        """Rows of another subtask's database, by their key groups."""
        check_version(segment)
        other = Database(self._settings)
        try:
            _place(segment, store, other.replace_files())
            other.reopen()
            meta = _meta_of(other)
            # Parts of lists keep their order, and come before what is appended from now on.
            self._parts = max(self._parts, meta["parts"])
            for table in meta["tables"]:
                mine = self._restored(table[_NAME], table_of(table[_DESCRIPTION]))
                prefix = RowFormat(table["number"], mine.description, 1).table_prefix
                rows = other.scan(prefix)
                self._database.write(
                    (moved_to_table(row, mine.rows.number), value)
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
