"""The slots that live in this process: a slot host's, or a Spark worker's own."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from firesteel.task.errors import USER_ERRORS, InterruptedSlotError
from firesteel.task.messages import SlotAddress
from firesteel.task.program import PackedProgram
from firesteel.task.slot import Slot
from firesteel.task.unloaded_slot import UnloadedSlot


@dataclass(slots=True)
class SlotEntry:
    """A slot and the lock that keeps a second attempt of its task out while the first still runs."""

    slot: Slot | UnloadedSlot
    # Where the functions run that have archives; None: wherever the process is.
    working_directory: str | None = None
    lock: threading.Lock = field(default_factory=threading.Lock)
    # The thread that holds the lock.
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
        """End what the slot does, so that it can be closed; whether it has ended in time.

        Python delivers an interrupt when the function comes back to Python code. One that sleeps
        or waits for another machine does not.
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
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._programs: dict[tuple[str, int], PackedProgram] = {}
        self._slots: dict[tuple[str, int, int, int], SlotEntry] = {}

    def has_program(self, job_id: str, attempt: int) -> bool:
        with self._lock:
            return (job_id, attempt) in self._programs

    def entry(self, address: SlotAddress, load: Callable[[], PackedProgram]) -> SlotEntry:
        """The slot at an address, built if it is not here yet."""
        key = (address.job_id, address.attempt, address.level, address.slot)
        with self._lock:
            entry = self._slots.get(key)
            if entry is None:
                # Every slot unpacks its own: subtasks never share function objects.
                packed = self._program(address, load)
                slot = _build(packed, address)
                entry = self._slots[key] = SlotEntry(slot, packed.placed.working_directory)
            return entry

    def find(self, address: SlotAddress) -> SlotEntry | None:
        with self._lock:
            return self._slots.get((address.job_id, address.attempt, address.level, address.slot))

    def close_idle(self) -> None:
        """Close the slots that do nothing at the moment, of all jobs: their process is to end."""
        with self._lock:
            entries = list(self._slots.values())
        for entry in entries:
            if entry.lock.acquire(blocking=False):
                # It stays locked: nobody shall use it any more.
                entry.slot.close_quietly()

    def _program(self, address: SlotAddress, load: Callable[[], PackedProgram]) -> PackedProgram:
        key = (address.job_id, address.attempt)
        program = self._programs.get(key)
        if program is None:
            program = self._programs[key] = load()
        return program

    def forget(self, address: SlotAddress) -> None:
        """The slot has been closed. With the job's last slot its program goes too."""
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
        # The driver is to learn why, in the way it learns of other failures.
        return UnloadedSlot(error, packed.job_name)
