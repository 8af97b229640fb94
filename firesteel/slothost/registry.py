"""Slots and programs of a slot host, and the stand-in for a slot whose program cannot be loaded."""

from __future__ import annotations

import ctypes
import logging
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

import pyarrow as pa

from firesteel.protocol.messages import (
    ConfirmedRuns,
    SlotAck,
    SlotAddress,
    SlotControl,
    SlotFailure,
    decode,
    encode,
    new_run_id,
)
from firesteel.protocol.program import PackedProgram
from firesteel.protocol.rows import ACK, CONTROL, FAILURE, FOR_DRIVER, HEADER, BufferRow, RowBatcher
from firesteel.task.slot import Slot, host_name, unloaded_error
from firesteel.usercode.failures import USER_ERRORS, InterruptedSlotError

_log = logging.getLogger("firesteel")


@dataclass(slots=True)
class SlotEntry:
    """A slot, with a lock that makes a second attempt of its task wait for the first.

    ``working_directory`` contains the archives of the job, if it has any. ``worker`` is the thread
    that holds the lock.
    """

    slot: Slot | UnloadedSlot
    working_directory: str | None = None
    lock: threading.Lock = field(default_factory=threading.Lock)
    worker: int | None = None

    @contextmanager
    def use(self) -> Iterator[Slot | UnloadedSlot]:
        with self.lock:
            self.worker = threading.get_ident()
            try:
                yield self.slot
            finally:
                self.worker = None

    def interrupt(self, seconds: float) -> bool:
        """Interrupt the slot, so that it can be closed. Return whether it stopped in time.

        Python delivers an interrupt when the function returns to Python code. A function that
        sleeps or waits for a different machine does not.
        """
        worker = self.worker
        if worker is not None:
            ctypes.pythonapi.PyThreadState_SetAsyncExc(
                ctypes.c_ulong(worker), ctypes.py_object(InterruptedSlotError)
            )
        if not self.lock.acquire(timeout=seconds):
            return False
        self.lock.release()
        return True


class SlotRegistry:
    """The slots of a process, by job, attempt, level and index, and the programs of their jobs."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._programs: dict[tuple[str, int], PackedProgram] = {}
        self._slots: dict[tuple[str, int, int, int], SlotEntry] = {}

    def has_program(self, job_id: str, attempt: int) -> bool:
        with self._lock:
            return (job_id, attempt) in self._programs

    def entry(self, address: SlotAddress, load: Callable[[], PackedProgram]) -> SlotEntry:
        """Return the slot at an address. Build it if it does not exist yet."""
        key = (address.job_id, address.attempt, address.level, address.slot)
        with self._lock:
            entry = self._slots.get(key)
            if entry is None:
                # Every slot unpacks the program, so subtasks never share function objects.
                packed = self._program(address, load)
                slot = _build(packed, address)
                entry = self._slots[key] = SlotEntry(slot, packed.placed.working_directory)
            return entry

    def find(self, address: SlotAddress) -> SlotEntry | None:
        with self._lock:
            return self._slots.get((address.job_id, address.attempt, address.level, address.slot))

    def close_idle(self) -> None:
        """Close the idle slots of all jobs, before the process ends."""
        with self._lock:
            entries = list(self._slots.values())
        for entry in entries:
            if entry.lock.acquire(blocking=False):
                # It stays locked, so that no task uses it again.
                for error in entry.slot.close_quietly():
                    _log.warning("a slot could not be closed: %s", error)

    def _program(self, address: SlotAddress, load: Callable[[], PackedProgram]) -> PackedProgram:
        key = (address.job_id, address.attempt)
        program = self._programs.get(key)
        if program is None:
            program = self._programs[key] = load()
        return program

    def forget(self, address: SlotAddress) -> None:
        """Remove a closed slot, and with the last slot of a job also its program."""
        with self._lock:
            self._slots.pop((address.job_id, address.attempt, address.level, address.slot), None)
            if not any(key[:2] == (address.job_id, address.attempt) for key in self._slots):
                self._programs.pop((address.job_id, address.attempt), None)

    def is_empty(self) -> bool:
        with self._lock:
            return not self._slots


def _build(packed: PackedProgram, address: SlotAddress) -> Slot | UnloadedSlot:
    try:
        return Slot(packed.unpack(), address.level, address.slot, renew=packed.unpack)
    except USER_ERRORS as error:
        # The driver learns of it in the same way as of other failures.
        return UnloadedSlot(error, packed.job_name)


class UnloadedSlot:
    """A slot whose program cannot be loaded. It reports the reason in every epoch.

    It does not pass on records. A later level that misses them fails, too, but the driver reports
    the failure of the first level.
    """

    def __init__(self, error: BaseException, job_name: str) -> None:
        self._error = error
        self._job_name = job_name
        self.closed = False

    def run_epoch(
        self,
        address: SlotAddress,
        rows: Iterable[BufferRow],
        control: SlotControl | None = None,
        *,
        last: bool = False,
        raise_errors: bool = False,
    ) -> Iterator[pa.RecordBatch]:
        """Consume all input, as ``Slot.run_epoch`` does, and pass on rows for the driver and for other levels."""
        if raise_errors:
            raise unloaded_error(self._error, self._job_name, address.level, address.slot)
        batcher = RowBatcher()
        for row in rows:
            addressed = row.kind in (CONTROL, HEADER)
            if row.kind in FOR_DRIVER or (addressed and row.edge != address.level):
                batcher.add(row)
            elif row.kind == CONTROL:
                control = decode(row.payload)
            if batcher.is_full():
                yield batcher.take()
        batcher.add(self._answer(address, control, last=last))
        yield batcher.take()

    def _answer(
        self, address: SlotAddress, control: SlotControl | None, *, last: bool
    ) -> BufferRow:
        self.closed = last or (control is not None and control.close)
        if control is None or last or control.has_work:
            failure = SlotFailure(
                address, unloaded_error(self._error, self._job_name, address.level, address.slot)
            )
            return BufferRow(address.slot, 0, 0, 0, FAILURE, encode(failure))
        ack = SlotAck(
            address=replace(address, confirmed_runs=ConfirmedRuns()),
            host=host_name(),
            subtasks=(),
            run_id=new_run_id(),
        )
        return BufferRow(address.slot, 0, 0, 0, ACK, encode(ack))

    def close_quietly(self) -> list[Exception]:
        self.closed = True
        return []
