"""What a Spark task does for a slot: run it in its host, or right here in the worker."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import pyarrow as pa
from pyspark import SparkFiles, TaskContext

from firesteel.protocol.messages import SlotAddress, SlotControl
from firesteel.protocol.program import PackedProgram
from firesteel.protocol.rows import BufferRow, rows_of
from firesteel.slothost.client import HostIsGoneError, HostSettings, run_in_host
from firesteel.slothost.registry import SlotRegistry
from firesteel.usercode import pickling
from firesteel.usercode.search_path import SearchPath

# The slots of this worker process, where no hosts are used.
_worker_slots = SlotRegistry()


@dataclass(frozen=True, slots=True)
class SlotTask:
    """Where the program is and where slots live. ``hosts`` None: in the worker itself."""

    program_file: str
    hosts: HostSettings | None
    batch: bool = False
    # A batch task that fails is tried again by Spark this many times in all.
    max_attempts: int = 1

    def load_program(self) -> PackedProgram:
        path = _locate(self.program_file)
        packed = pickling.loads(path.read_bytes())
        assert isinstance(packed, PackedProgram)
        # Beside the program: that directory goes with the job, or with Spark's executor.
        resources = path.parent / f"resources-{packed.job_id}"
        return replace(
            packed,
            # What Spark has shipped to this worker since its host was started.
            search_path=packed.search_path.then(SearchPath.of_task()),
            placed=packed.resources.place(resources, _locate),
        )

    def run(
        self,
        address: SlotAddress,
        batches: Iterable[pa.RecordBatch] | None,
        control: SlotControl | None,
    ) -> Iterator[pa.RecordBatch]:
        _spare_imports()
        if self.hosts is None:
            return self._run_here(address, batches, control)
        if address.by_force:
            return self._close_by_force(self.hosts, address, batches, control)
        return run_in_host(self.hosts, address, self.load_program, batches, control)

    def _close_by_force(
        self,
        hosts: HostSettings,
        address: SlotAddress,
        batches: Iterable[pa.RecordBatch] | None,
        control: SlotControl | None,
    ) -> Iterator[pa.RecordBatch]:
        try:
            yield from run_in_host(hosts, address, self.load_program, batches, control)
        except HostIsGoneError:
            # Nothing is open any more. What is for later levels must still be passed on.
            yield from self._run_here(address, batches, control)

    def _run_here(
        self,
        address: SlotAddress,
        batches: Iterable[pa.RecordBatch] | None,
        control: SlotControl | None,
    ) -> Iterator[pa.RecordBatch]:
        # As in a slot host.
        gc.set_threshold(100_000, 20, 50)
        entry = _worker_slots.entry(address, self.load_program)
        context = TaskContext.get()
        attempt = context.attemptNumber() if context is not None else 0
        with _working_directory(entry.working_directory):
            try:
                yield from entry.slot.run_epoch(
                    address,
                    _rows(batches),
                    control,
                    last=self.batch,
                    raise_errors=self.batch and attempt + 1 < self.max_attempts,
                )
            finally:
                if self.batch or entry.slot.closed:
                    _worker_slots.forget(address)


@cache
def _spare_imports() -> None:
    """Once in each worker. PySpark has it look for cycles after every task, before it can take the next.

    Going through all that was ever imported takes longer than a small epoch's work.
    """
    gc.freeze()


def _locate(path: str) -> Path:
    """A file of the driver's, on this machine."""
    if Path(path).exists():
        return Path(path)
    # Another machine: Spark has shipped the file.
    return Path(SparkFiles.get(Path(path).name))


@contextmanager
def _working_directory(path: str | None) -> Iterator[None]:
    """Spark's worker goes back where it was: its next task may be another job's."""
    if path is None:
        yield
        return
    before = os.getcwd()
    os.chdir(path)
    try:
        yield
    finally:
        os.chdir(before)


def _rows(batches: Iterable[pa.RecordBatch] | None) -> Iterator[BufferRow]:
    for batch in batches or ():
        yield from rows_of(batch)
