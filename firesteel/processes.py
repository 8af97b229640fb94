"""Processes of this machine: life, memory, processor time, and the stacks of their threads."""

from __future__ import annotations

import ctypes
import os
import sys
import threading
import traceback
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict

_PAGE = os.sysconf("SC_PAGE_SIZE")
_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Memory:
    """Bytes: in use by a process, and the most that it may use."""

    resident: int
    limit: int


def physical_memory() -> int:
    return os.sysconf("SC_PHYS_PAGES") * _PAGE


def free_memory() -> int:
    """Return the memory that programs can still get, in bytes."""
    with suppress(OSError, ValueError):
        for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    return os.sysconf("SC_AVPHYS_PAGES") * _PAGE


def memory_of(pid: int) -> Memory:
    """Return the memory of a process. It is 0 if the process is gone or on a different machine."""
    resident = 0
    with suppress(OSError, ValueError, IndexError):
        fields = Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()
        resident = int(fields[1]) * _PAGE
    return Memory(resident, physical_memory())


def cpu_seconds(pid: int) -> float:
    """Return the processor time of a process, 0 if it is gone or on a different machine."""
    with suppress(OSError, ValueError, IndexError):
        # The name of the process may contain spaces and parentheses.
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / _TICKS
    return 0.0


def is_alive(pid: int) -> bool:
    """Return True if a process has this id, of any user."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def release_memory() -> None:
    """Return to the system what this process has freed, where the C library can do it.

    The GNU library keeps it in a heap per thread, in pieces that other threads do not use.
    """
    with suppress(AttributeError):
        ctypes.CDLL(None).malloc_trim(0)
    arrow = sys.modules.get("pyarrow")
    if arrow is not None:
        arrow.default_memory_pool().release_unused()


class ThreadInfo(TypedDict):
    """The stack of a thread, in the form of Flink's thread dump."""

    threadName: str
    stringifiedThreadInfo: str


def thread_stacks() -> list[ThreadInfo]:
    """Return the stacks of all threads of this process."""
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    return [
        {
            "threadName": names.get(ident, str(ident)),
            "stringifiedThreadInfo": f'"{names.get(ident, ident)}" Id={ident}\n'
            + "".join(traceback.format_stack(frame)),
        }
        for ident, frame in sys._current_frames().items()  # noqa: SLF001 - no public way
    ]
