"""Savepoint and restore of one slot, without Spark: rates against a plain write of as many bytes.

A slot writes its files from its state, and reads them again. The rates are those of its keys and
values, which are hard to compress. The driver writes the metadata only, so its memory is measured
too: for completing the savepoint and for opening it.
"""

import os
import shutil
import tempfile
import time
import tracemalloc
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from random import Random
from typing import Literal

from benchmarks.cases import BY_NAME
from benchmarks.measure import Arguments, Figures, report, report_skipped
from benchmarks.sections.section import Section
from benchmarks.text import below
from firesteel.checkpoint.metadata import (
    CheckpointMetadata,
    KeyedStateFile,
    OperatorFiles,
    OperatorMetadata,
    SnapshotType,
    SubtaskState,
    with_files,
)
from firesteel.checkpoint.savepoints.keyed_state_files import write_frozen_state
from firesteel.checkpoint.savepoints.savepoint import complete_savepoint
from firesteel.checkpoint.state_descriptions import describe_tables
from firesteel.checkpoint.storage.discovery import find_checkpoint
from firesteel.checkpoint.storage.segment_store import StorageSegmentStore
from firesteel.checkpoint.storage.storage import Storage, open_storage
from firesteel.checkpoint.storage.verification import facts_of
from firesteel.common import Types
from firesteel.errors import ConfigurationError
from firesteel.state.backend import KeyedStateBackend
from firesteel.state.backend_factory import StateBackendSettings, create_keyed_state
from firesteel.state.changelog import Segment, SegmentStore
from firesteel.task.state.savepoint_writing import NativeFiles

_MAX_PARALLELISM = 128
_STATE_BYTES = 128 << 20
# Sizes of a value. Small ones cost time per key, large ones per byte.
_VALUES = (100, 1_000)
_TURNS = 3
_GOAL = 200.0
_CHUNK_BYTES = 4 << 20
_EPOCH = 1
_EPOCH_KEYS = 100_000

Backend = Literal["hashmap", "rocksdb"]
# The backends, and whether the savepoint has their own format.
_FORMATS: tuple[tuple[Backend, bool], ...] = (
    ("hashmap", False),
    ("rocksdb", False),
    ("rocksdb", True),
)


class Timed:
    """The best of several turns, in seconds: by the clock, and of the processor."""

    def __init__(self) -> None:
        self.wall = self.cpu = float("inf")

    def run(self, work: Callable[[], None]) -> None:
        wall, cpu = time.perf_counter(), time.process_time()
        work()
        self.wall = min(self.wall, time.perf_counter() - wall)
        self.cpu = min(self.cpu, time.process_time() - cpu)


class Slot:
    """The keyed state of a slot, in memory or in RocksDB."""

    def __init__(self, kind: Backend, value_bytes: int, directory: Path, total: int) -> None:
        self._settings = StateBackendSettings(kind, (str(directory / "local"),))
        self.backend = self._create()
        put = self.backend.value_table("state", element_type=Types.STRING()).put
        random = Random(1)
        self.keys = total // value_bytes
        self.bytes = 0
        for number in range(self.keys):
            key, value = f"key-{number}", random.randbytes(value_bytes // 2).hex()
            put(key, value)
            self.bytes += len(key) + len(value)
            if number % _EPOCH_KEYS == _EPOCH_KEYS - 1:
                self._end_epoch()
        self._end_epoch()
        self.files: list[KeyedStateFile] = []
        self.segment: Segment | None = None

    def _end_epoch(self) -> None:
        self.backend.seal(_EPOCH, _Nowhere(None, 0))
        self.backend.confirm()

    def _create(self) -> KeyedStateBackend:
        return create_keyed_state(self._settings, Types.STRING(), _MAX_PARALLELISM)

    def save(self, target: Storage) -> None:
        frozen = self.backend.freeze(_MAX_PARALLELISM)
        self.files = list(
            write_frozen_state(frozen, target, "state-benchmark-0", key_type=Types.STRING())
        )
        frozen.release()

    def save_natively(self, target: Storage) -> None:
        frozen = self.backend.freeze_files()
        assert frozen is not None
        store = NativeFiles(target, "state-benchmark-0", lambda: None, [])
        self.segment = frozen.copy(store, lambda: None)
        frozen.release()

    def restore(self, target: Storage) -> None:
        self.backend.close()
        self.backend = self._create()
        if self.segment is not None:
            self.backend.add([self.segment], StorageSegmentStore(None, 0))
        for file in self.files:
            facts = facts_of(file)
            self.backend.load(target.read(facts.name, facts))

    def driver_bytes(self, target: Storage) -> int:
        """The most memory that the driver needs to complete the savepoint, and to open it."""
        states = describe_tables(self.backend.descriptions(), Types.STRING())
        taken = _metadata()
        tracemalloc.start()
        files = [OperatorFiles("benchmark", 0, tuple(self.files), states, self.segment)]
        complete_savepoint(with_files(taken, files), target)
        find_checkpoint(target.location, deep=False)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return peak


def _metadata() -> CheckpointMetadata:
    operator = OperatorMetadata(
        "benchmark", "benchmark", "benchmark", 1, _MAX_PARALLELISM, (SubtaskState(),)
    )
    return CheckpointMetadata(1, SnapshotType.SAVEPOINT, "job", "job", 1, 0, 0, (operator,))


class _Nowhere(SegmentStore):
    """Drops segments: the savepoint does not need them."""

    def write(
        self, payload: Iterable[bytes], *, epoch: int, full: bool, inline_bytes: int = 0
    ) -> Segment:
        return Segment(epoch, full, 0, inline=b"")


def write_plainly(path: Path, size: int) -> None:
    """Write as many bytes as a savepoint has, and make them durable as it does."""
    chunk = os.urandom(_CHUNK_BYTES)
    with path.open("wb") as file:
        for _ in range(size // _CHUNK_BYTES):
            file.write(chunk)
        file.flush()
        os.fsync(file.fileno())


def measure(arguments: Arguments) -> None:
    total = arguments.records_of(BY_NAME["reduce_1m"], _STATE_BYTES)
    for kind, native in _FORMATS:
        for value_bytes in _VALUES:
            with tempfile.TemporaryDirectory() as directory:
                try:
                    measure_slot(kind, value_bytes, Path(directory), total, native=native)
                except ConfigurationError as error:
                    report_skipped("savepoint", kind, str(error))


def measure_slot(
    kind: Backend, value_bytes: int, directory: Path, total: int, *, native: bool
) -> None:
    slot = Slot(kind, value_bytes, directory, total)
    target = open_storage(str(directory / "savepoint"))
    plain, save, restore = Timed(), Timed(), Timed()
    try:
        for turn in range(_TURNS):
            shutil.rmtree(directory / "savepoint", ignore_errors=True)
            save.run(partial(slot.save_natively if native else slot.save, target))
            path = directory / f"plain-{turn}"
            plain.run(partial(write_plainly, path, slot.bytes))
            path.unlink()
            restore.run(lambda: slot.restore(target))
        driver_bytes = slot.driver_bytes(target)
    finally:
        slot.backend.close()
    report(
        section="savepoint",
        backend=f"{kind}, native" if native else kind,
        keys=slot.keys,
        value_bytes=value_bytes,
        bytes=slot.bytes,
        plain_seconds=plain.wall,
        save_seconds=save.wall,
        save_cpu_seconds=save.cpu,
        restore_seconds=restore.wall,
        restore_cpu_seconds=restore.cpu,
        driver_bytes=driver_bytes,
    )


def row(figures: Figures) -> list[str]:
    megabytes = figures["bytes"] / 1e6
    plain = megabytes / figures["plain_seconds"]
    save = megabytes / figures["save_seconds"]
    goal = min(_GOAL, plain)
    return [
        f"{figures['backend']}, values of {figures['value_bytes']:,} bytes, {megabytes:,.0f} MB",
        f"{plain:,.0f} MB/s",
        below(goal / save, 1.0, f"{save:,.0f} MB/s"),
        f"{megabytes / figures['save_cpu_seconds']:,.0f} MB/s",
        f"{megabytes / figures['restore_seconds']:,.0f} MB/s",
        f"{megabytes / figures['restore_cpu_seconds']:,.0f} MB/s",
        f"{figures['driver_bytes'] / 1e6:,.2f} MB",
    ]


SECTION = Section(
    "savepoint",
    (
        "savepoint of a slot",
        "plain write",
        "savepoint",
        "per CPU second",
        "restore",
        "per CPU second",
        "driver's memory",
    ),
    row,
    measure,
)
