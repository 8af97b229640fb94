"""Runs a slot for a Spark task, in its slot host or in Spark's Python worker."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache, partial
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

# The slots of this worker process, for jobs without slot hosts.
_worker_slots = SlotRegistry()


@dataclass(frozen=True, slots=True)
class SlotTask:
    """The location of the program and of its slots.

    Args:
        program_file: The driver's path of the packed program.
        hosts: The slot hosts, or None if slots live in Spark's Python workers.
        batch: True for a batch job.
        max_attempts: The number of attempts that Spark makes per task of a batch job.
    """

    program_file: str
    hosts: HostSettings | None
    batch: bool = False
    max_attempts: int = 1

    def load_program(self, attempt: int = 0) -> PackedProgram:
        """Load the program. All attempts of the job share the file."""
        path = _locate(self.program_file)
        packed = pickling.loads(path.read_bytes())
        assert isinstance(packed, PackedProgram)
        # Next to the program. That directory is removed with the job, or with Spark's executor.
        resources = path.parent / f"resources-{packed.job_id}"
        return replace(
            packed,
            attempt=attempt,
            # Spark may have shipped files to this worker after its host was started.
            search_path=packed.search_path.then(SearchPath.of_task()),
            placed=packed.resources.place(resources, _locate),
        )

    def run(
        self,
        address: SlotAddress,
        batches: Iterable[pa.RecordBatch] | None,
        control: SlotControl | None,
    ) -> Iterator[pa.RecordBatch]:
        spare_imports()
        if self.hosts is None:
            return self._run_here(address, batches, control)
        if address.by_force:
            return self._close_by_force(self.hosts, address, batches, control)
        load = partial(self.load_program, address.attempt)
        return run_in_host(self.hosts, address, load, batches, control)

    def _close_by_force(
        self,
        hosts: HostSettings,
        address: SlotAddress,
        batches: Iterable[pa.RecordBatch] | None,
        control: SlotControl | None,
    ) -> Iterator[pa.RecordBatch]:
        try:
            load = partial(self.load_program, address.attempt)
            yield from run_in_host(hosts, address, load, batches, control)
        except HostIsGoneError:
            # The open functions died with the host. Rows for later levels must still be passed on.
            yield from self._run_here(address, batches, control)

    def _run_here(
        self,
        address: SlotAddress,
        batches: Iterable[pa.RecordBatch] | None,
        control: SlotControl | None,
    ) -> Iterator[pa.RecordBatch]:
        # The same thresholds as in a slot host.
        gc.set_threshold(100_000, 20, 50)
        entry = _worker_slots.entry(address, partial(self.load_program, address.attempt))
        context = TaskContext.get()
        attempt = context.attemptNumber() if context is not None else 0
        with working_directory(entry.working_directory):
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
def spare_imports() -> None:
    """Exempt imported modules from garbage collection, once per worker.

    PySpark runs the collector after every task. A scan of all imported modules takes longer than
    a small epoch. A second call would exempt what an earlier task has left, which may be in use for
    another moment, and that would never be freed.
    """
    gc.freeze()


def _locate(path: str) -> Path:
    """Return the path on this machine of a file of the driver."""
    if Path(path).exists():
        return Path(path)
    # This is not the driver's machine, so Spark has shipped the file.
    return Path(SparkFiles.get(Path(path).name))


@contextmanager
def working_directory(path: str | None) -> Iterator[None]:
    """Change the working directory for one task. The next task may belong to a different job."""
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
