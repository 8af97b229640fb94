"""The slots that live in this process: a slot host's, or a Spark worker's own."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from firesteel.task.messages import SlotAddress
from firesteel.task.program import PackedProgram
from firesteel.task.slot import Slot


@dataclass(slots=True)
class SlotEntry:
    """A slot and the lock that keeps a second attempt of its task out while the first still runs."""

    slot: Slot
    lock: threading.Lock = field(default_factory=threading.Lock)


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
                slot = Slot(packed.unpack(), address.level, address.slot, renew=packed.unpack)
                entry = self._slots[key] = SlotEntry(slot)
            return entry

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
