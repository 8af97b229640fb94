"""A RocksDB instance on local disk, private to an operator subtask."""

from __future__ import annotations

import os
import shutil
import weakref
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import chain, islice
from pathlib import Path
from typing import Any

from rocksdict import (
    BlockBasedIndexType,
    BlockBasedOptions,
    Cache,
    Checkpoint,
    DBCompressionType,
    IngestExternalFileOptions,
    Options,
    Rdict,
    RdictIter,
    ReadOptions,
    SstFileWriter,
    WriteBatch,
    WriteBufferManager,
    WriteOptions,
)

from firesteel.filesystems.scratch import ScratchDirectory
from firesteel.state.backend_factory import StateBackendSettings

# Operations per batch. Batches limit memory. Nothing reads the database between two batches, so
# they do not have to be atomic.
_BATCH_OPERATIONS = 5_000
# Rows are read in chunks of up to so many, and of about so many bytes. The objects of a chunk should
# fit into a core's cache. With 5,000 rows of 100 bytes, a row costs twice as much.
_CHUNK_ROWS = 1_000
_CHUNK_BYTES = 1 << 20
_FIRST_CHUNK_ROWS = 64
_READ_AHEAD_BYTES = 2 << 20
# A row begins with the number of its table.
_TABLE_BYTES = 2


class Cursor:
    """Reads many rows in order, in chunks. It costs a fraction of ``scan`` per row.

    It compares keys itself. An iterator with an upper bound would read memory that is not its own
    once its options are gone.
    """

    def __init__(self, rows: Iterator[tuple[Any, bytes]]) -> None:
        self._remaining = rows
        self._size = _FIRST_CHUNK_ROWS
        self._keys: Sequence[bytes] = ()
        self._values: Sequence[bytes] = ()
        self._position = 0

    def before(self, end: bytes) -> Iterator[tuple[Sequence[bytes], Sequence[bytes]]]:
        """The keys and values of the next rows, up to ``end``."""
        while self._position < len(self._keys) or self._fill():
            start = self._position
            stop = self._position = bisect_left(self._keys, end, start)
            if stop > start:
                yield self._keys[start:stop], self._values[start:stop]
            if stop < len(self._keys):
                return

    def _fill(self) -> bool:
        chunk = list(islice(self._remaining, self._size))
        if not chunk:
            return False
        self._keys = [row[0] for row in chunk]
        self._values = [row[1] for row in chunk]
        self._position = 0
        size = sum(map(len, self._values))
        if size < _CHUNK_BYTES:
            self._size = min(2 * self._size, _CHUNK_ROWS)
        else:
            self._size = max(1, self._size * _CHUNK_BYTES // size)
        return True


class View:
    """The rows of a table at one moment. One thread at a time may read it.

    It has iterators, which RocksDB keeps at the moment of their creation.
    """

    def __init__(self, db: Rdict, prefix: bytes) -> None:
        self._seeking: RdictIter | None = db.iter(_scan_options())
        self._cursor: Cursor | None = Cursor(db.items(from_key=prefix, read_opt=_bulk_options()))

    def first(self, start: bytes) -> tuple[bytes, bytes] | None:
        """The first row at or after ``start``."""
        assert self._seeking is not None
        return _first(self._seeking, start)

    def before(self, end: bytes) -> Iterator[tuple[Sequence[bytes], Sequence[bytes]]]:
        """The keys and values of the next rows, up to ``end``."""
        assert self._cursor is not None
        return self._cursor.before(end)

    def release(self) -> None:
        """Let the database forget the rows that it has replaced since."""
        self._seeking = self._cursor = None


def _scan(rows: RdictIter, prefix: bytes, start: bytes) -> Iterator[tuple[bytes, bytes]]:
    rows.seek(start)
    while rows.valid():
        key: bytes = rows.key()
        if not key.startswith(prefix):
            return
        yield key, rows.value()
        rows.next()


def _first(rows: RdictIter, start: bytes) -> tuple[bytes, bytes] | None:
    rows.seek(start)
    return (rows.key(), rows.value()) if rows.valid() else None


class _SortedFile:
    """A data file of rows of one table in ascending order, which a database can ingest."""

    def __init__(self, path: Path, first: bytes, options: Options) -> None:
        self.path = path
        self._table = first[:_TABLE_BYTES]
        self._last = b""
        self._writer = SstFileWriter(options)
        self._writer.open(str(path))

    def continues_with(self, keys: Sequence[bytes]) -> bool:
        return self._last < keys[0] and keys[0].startswith(self._table)

    def add(self, keys: Sequence[bytes], values: Sequence[bytes]) -> None:
        writer = self._writer
        for key, value in zip(keys, values, strict=True):
            writer[key] = value
        self._last = keys[-1]

    def finish(self) -> None:
        self._writer.finish()


class Database:
    """Sorted rows of bytes. The files are temporary: segments have everything that must survive."""

    def __init__(self, settings: StateBackendSettings) -> None:
        self._settings = settings
        self._scratch = _scratch(settings)
        self._directory = self._scratch.path
        self._write_options = WriteOptions()
        # Recovery does not use this database, so it needs no write-ahead log.
        self._write_options.disable_wal = True  # type: ignore[method-assign,assignment]
        self._db = self._open()
        self.get = self._db.get
        self._ingested = 0
        # The open database, if there is one.
        self._opened = [self._db]
        # It has the directory too, so that no file is deleted before.
        self._finalizer = weakref.finalize(self, _close, self._opened, self._scratch, os.getpid())
        self._finalizer.atexit = False

    def get_all(self, keys: list[bytes]) -> list[bytes | None]:
        """The values of many rows, or None for each that is absent."""
        # The types of the library do not know lists of bytes.
        get: Callable[[list[bytes]], Any] = self._db.get  # type: ignore[assignment]
        found: list[bytes | None] = get(keys)
        return found

    def _open(self) -> Rdict:
        return Rdict(str(self._directory / "db"), _options(self._settings))

    def scan(self, prefix: bytes, start: bytes | None = None) -> Iterator[tuple[bytes, bytes]]:
        """All rows whose key begins with ``prefix``, beginning at ``start``."""
        return _scan(self._db.iter(_scan_options()), prefix, prefix if start is None else start)

    def cursor(self, start: bytes) -> Cursor:
        """Read the rows from ``start`` on."""
        return Cursor(self._db.items(from_key=start, read_opt=_bulk_options()))

    def view(self, prefix: bytes) -> View:
        """The rows of a table at this moment. A different thread may read them."""
        return View(self._db, prefix)

    def first(self, start: bytes) -> tuple[bytes, bytes] | None:
        """The first row at or after ``start``."""
        return _first(self._db.iter(_scan_options()), start)

    def write(self, operations: Iterable[tuple[bytes, bytes | None]]) -> None:
        """Put rows. A value of None deletes the row."""
        batch = WriteBatch(raw_mode=True)
        for key, value in operations:
            if value is None:
                batch.delete(key)
            else:
                batch.put(key, value)
            if len(batch) >= _BATCH_OPERATIONS:
                self._db.write(batch, self._write_options)
                batch = WriteBatch(raw_mode=True)
        if len(batch):
            self._db.write(batch, self._write_options)

    def put_all(self, keys: Sequence[bytes], values: Sequence[bytes]) -> None:
        """Put rows. It is faster than ``write``."""
        for start in range(0, len(keys), _BATCH_OPERATIONS):
            stop = start + _BATCH_OPERATIONS
            batch = WriteBatch(raw_mode=True)
            put = batch.put
            for key, value in zip(keys[start:stop], values[start:stop], strict=True):
                put(key, value)
            self._db.write(batch, self._write_options)

    def ingest(self, parts: Iterable[tuple[Sequence[bytes], Sequence[bytes]]]) -> None:
        """Add many rows that the database does not have. Those of each part are in order.

        They become files directly, without a write buffer and a compaction. A few are just written.
        """
        remaining = iter(parts)
        first: list[tuple[Sequence[bytes], Sequence[bytes]]] = []
        while sum(len(keys) for keys, _ in first) < _BATCH_OPERATIONS:
            part = next(remaining, None)
            if part is None:
                for keys, values in first:
                    self.put_all(keys, values)
                return
            first.append(part)
        self._ingest_files(chain(first, remaining))

    def _ingest_files(self, parts: Iterable[tuple[Sequence[bytes], Sequence[bytes]]]) -> None:
        writers: list[_SortedFile] = []
        for keys, values in parts:
            writer = next((one for one in writers if one.continues_with(keys)), None)
            if writer is None:
                self._ingested += 1
                path = self._directory / f"ingest-{self._ingested}.sst"
                writer = _SortedFile(path, keys[0], _options(self._settings))
                writers.append(writer)
            writer.add(keys, values)
        for writer in writers:
            writer.finish()
        options = IngestExternalFileOptions()
        options.set_move_files(True)
        self._db.ingest_external_file([str(one.path) for one in writers], options)

    def delete_all(self, prefix: bytes) -> None:
        """Delete all rows whose key begins with ``prefix``."""
        after = (int.from_bytes(prefix) + 1).to_bytes(len(prefix))
        self.delete_range(prefix, after)

    def delete_range(self, start: bytes, end: bytes) -> None:
        """Delete all rows from ``start`` on that are before ``end``."""
        self._db.delete_range(start, end, write_opt=self._write_options)

    def is_empty(self) -> bool:
        return self.first(b"") is None

    def flush(self) -> None:
        """Write buffered rows to files, so that the next checkpoint does not wait for a flush."""
        self._db.flush()

    def start_flush(self) -> None:
        """Start a flush in the background."""
        self._db.flush(wait=False)

    def checkpoint(self, number: int) -> Path:
        """Create hard links to the present files, in a new directory."""
        target = self._directory / f"checkpoint-{number}"
        Checkpoint(self._db).create_checkpoint(str(target))
        return target

    def replace_files(self) -> Path:
        """Close the database, and return an empty directory for the files that ``reopen`` opens."""
        # Until ``reopen`` there is nothing to close.
        self._opened.clear()
        self._db.close()
        shutil.rmtree(self._directory / "db", ignore_errors=True)
        (self._directory / "db").mkdir()
        return self._directory / "db"

    def reopen(self) -> None:
        self._db = self._open()
        self._opened.append(self._db)
        self.get = self._db.get

    def clear(self) -> None:
        """Delete everything."""
        self.replace_files()
        self.reopen()

    def close(self) -> None:
        """Close the database and delete its files. Further calls do nothing."""
        was_alive = self._finalizer.detach() is not None
        if was_alive and self._directory.exists():
            while self._opened:
                self._opened.pop().close()
        self._scratch.remove()


def _close(opened: list[Rdict], _directory: ScratchDirectory, pid: int) -> None:
    """Close a database that is not used any more, except in a fork of the process that opened it.

    Without its files, RocksDB would fail to write its buffers, and wait for seconds after that.
    """
    if os.getpid() == pid:
        while opened:
            opened.pop().close()


def is_data_file(name: str) -> bool:
    """True for files that RocksDB never changes, so that snapshots can share them."""
    return name.endswith(".sst")


def _options(settings: StateBackendSettings) -> Options:
    cache, write_buffers = _shared_memory(settings.memory_bytes)
    options = Options(raw_mode=True)
    options.create_if_missing(True)
    options.set_write_buffer_manager(write_buffers)
    options.set_write_buffer_size(max(1 << 20, settings.memory_bytes // 8))
    options.set_max_write_buffer_number(2)
    options.set_compression_type(DBCompressionType.lz4())
    options.set_keep_log_file_num(1)
    blocks = BlockBasedOptions()
    blocks.set_block_cache(cache)
    blocks.set_bloom_filter(10, False)
    blocks.set_format_version(5)
    # Indexes and filters are part of the cache, so the memory limit holds for any state size. They
    # are partitioned, because the whole filter of a large file does not fit into a shard of the
    # cache. It would be read again for every key.
    blocks.set_cache_index_and_filter_blocks(True)
    blocks.set_index_type(BlockBasedIndexType.two_level_index_search())
    blocks.set_partition_filters(True)
    blocks.set_metadata_block_size(4096)
    blocks.set_pin_top_level_index_and_filter(True)
    blocks.set_pin_l0_filter_and_index_blocks_in_cache(True)
    options.set_max_open_files(512)
    _predefined(settings.predefined_options, options, blocks)
    options.set_block_based_table_factory(blocks)
    return options


def _predefined(name: str, options: Options, blocks: BlockBasedOptions) -> None:
    """Apply the options of Flink's PredefinedOptions that matter here."""
    if name == "DEFAULT":
        return
    options.set_max_background_jobs(4)
    options.set_max_open_files(-1)
    if name.startswith("SPINNING_DISK"):
        options.set_level_compaction_dynamic_level_bytes(True)
    if name == "SPINNING_DISK_OPTIMIZED_HIGH_MEM":
        options.set_target_file_size_base(256 << 20)
        options.set_max_bytes_for_level_base(1 << 30)
        blocks.set_block_size(128 << 10)


@lru_cache(maxsize=4)
def _shared_memory(size: int) -> tuple[Cache, WriteBufferManager]:
    """One cache for all databases of the process. Write buffers are part of it."""
    cache = Cache(size)
    buffers = WriteBufferManager.new_write_buffer_manager_with_cache(size // 2, False, cache)
    return cache, buffers


@lru_cache(maxsize=1)
def _scan_options() -> ReadOptions:
    options = ReadOptions()
    options.set_total_order_seek(True)
    return options


def _bulk_options() -> ReadOptions:
    """Options for reading many rows once. They leave the cache to the rows that the job uses."""
    options = _scan_options()
    options.fill_cache(False)  # type: ignore[call-arg]  # its stub lacks the parameter
    options.set_readahead_size(_READ_AHEAD_BYTES)
    return options


def _scratch(settings: StateBackendSettings) -> ScratchDirectory:
    parents = settings.local_directories or (None,)
    # Processes share the directories.
    return ScratchDirectory("rocksdb", parents[os.getpid() % len(parents)])
