"""Samples of thread stacks: functions that run, and functions that use the processor."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import TypedDict

__all__ = ["StackSample", "sample_stacks"]

# 100 samples a second.
_PAUSE_SECONDS = 0.01
_LONGEST_SECONDS = 300.0

_Stack = tuple[str, ...]


class StackSample(TypedDict):
    """A stack, from the outermost function inward, and the number of samples that found it.

    ``on_cpu`` is true if the thread used the processor at that time, and false if it waited.
    """

    functions: list[str]
    on_cpu: bool
    samples: int


def sample_stacks(
    threads: Mapping[int, int], seconds: float, outermost: str | None = None
) -> list[StackSample]:
    """Sample the stacks of threads of this process.

    Args:
        threads: The native ids of the threads by their ids.
        seconds: The time for which to sample, at most five minutes.
        outermost: A module. Its functions, and those around them, are left out.
    """
    found: Counter[tuple[_Stack, bool]] = Counter()
    clocks: dict[int, Callable[[], float]] = {}
    used: dict[int, float] = {}
    for ident, native in threads.items():
        # A thread that has ended has no clock.
        with suppress(OSError):
            clocks[ident] = _runnable_clock(ident, native)
            used[ident] = clocks[ident]()
    now = time.monotonic()
    until = now + min(seconds, _LONGEST_SECONDS)
    while now < until and clocks:
        frames = sys._current_frames()  # noqa: SLF001 - no public way
        stacks = {ident: _stack_of(frames[ident], outermost) for ident in clocks if ident in frames}
        del frames
        before = now
        time.sleep(_PAUSE_SECONDS)
        now = time.monotonic()
        for ident, stack in stacks.items():
            try:
                used_now = clocks[ident]()
            except OSError:
                # The thread has ended.
                del clocks[ident]
                continue
            found[stack, used_now - used[ident] >= 0.5 * (now - before)] += 1
            used[ident] = used_now
    return [
        {"functions": list(functions), "on_cpu": on_cpu, "samples": samples}
        for (functions, on_cpu), samples in found.items()
    ]


def _runnable_clock(ident: int, native_id: int) -> Callable[[], float]:
    """Return a clock of the seconds that a thread has run or could have run.

    On a busy machine a thread that computes also waits for a processor. Linux counts both times.
    Elsewhere the clock counts only the time on a processor.
    """
    path = Path(f"/proc/self/task/{native_id}/schedstat")
    if not path.exists():
        clock = time.pthread_getcpuclockid(ident)
        return lambda: time.clock_gettime(clock)

    def read() -> float:
        ran, waited, _ = path.read_text().split()
        return (int(ran) + int(waited)) / 1e9

    return read


def _stack_of(frame: FrameType, outermost: str | None) -> _Stack:
    """Return the functions of a stack with their lines."""
    functions = []
    current: FrameType | None = frame
    while current is not None and current.f_globals.get("__name__") != outermost:
        module = current.f_globals.get("__name__", "?")
        functions.append(f"{module}.{current.f_code.co_qualname}:{current.f_lineno}")
        current = current.f_back
    return tuple(reversed(functions))
