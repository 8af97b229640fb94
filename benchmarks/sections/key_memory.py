"""Memory per key of each kind of state and timer in the hash map, without Spark.

Each kind fills the state of a subtask in a process of its own, ends the epoch, and compares the
memory of the process with that before. Keys and values are integers.
"""

import gc
import os
import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from benchmarks.measure import Arguments, Figures, report
from benchmarks.sections.section import Section
from firesteel.state.backend import KeyedStateBackend
from firesteel.state.changelog import Segment, SegmentStore
from firesteel.state.hashmap.backend import HashMapKeyedStateBackend
from firesteel.task.time.clock import SubtaskClock
from firesteel.task.time.timers import InternalTimerService

_KEYS = 1_000_000
# Integers below 257 exist already.
_FIRST_KEY = 1 << 20
_HOUR_MILLIS = 3_600_000

Fill = Callable[[KeyedStateBackend, range], Any]
"""Fills a backend, and returns what has to stay alive."""


def fill_values(backend: KeyedStateBackend, keys: range) -> None:
    table = backend.value_table("state")
    for key in keys:
        table.put(key, key + _KEYS)


def fill_lists(backend: KeyedStateBackend, keys: range) -> None:
    table = backend.list_table("state")
    for key in keys:
        table.append(key, key + _KEYS)


def fill_maps(backend: KeyedStateBackend, keys: range) -> None:
    table = backend.map_table("state")
    for key in keys:
        table.put(key, "entry", key + _KEYS)


def fill_windows(backend: KeyedStateBackend, keys: range) -> None:
    table = backend.value_table("state", namespaced=True)
    window = (0, _HOUR_MILLIS)
    for key in keys:
        table.put((key, window), key + _KEYS)


def fill_timers(backend: KeyedStateBackend, keys: range) -> InternalTimerService:
    return _with_timers(backend, ((key, key * 10) for key in keys))


def fill_timers_of_one_time(backend: KeyedStateBackend, keys: range) -> InternalTimerService:
    return _with_timers(backend, ((key, _HOUR_MILLIS) for key in keys))


def _with_timers(
    backend: KeyedStateBackend, timers: Iterable[tuple[int, int]]
) -> InternalTimerService:
    def forget(key: Any, namespace: Any, time: int) -> None:
        pass

    service = InternalTimerService("timers", backend, SubtaskClock(), forget, forget)
    for key, time in timers:
        service.register_event_time_timer(key, None, time)
    return service


KINDS: dict[str, Fill] = {
    "value": fill_values,
    "list of one element": fill_lists,
    "map of one entry": fill_maps,
    "value of a window": fill_windows,
    "timer": fill_timers,
    "timer, all of one time": fill_timers_of_one_time,
}


class ForgetfulStore(SegmentStore):
    """Writes nothing, so that only the state itself takes memory."""

    def write(
        self, payload: Iterable[bytes], *, epoch: int, full: bool, inline_bytes: int = 0
    ) -> Segment:
        return Segment(epoch, full, 1, inline=b"")


def resident_bytes() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def bytes_per_key(fill: Fill, count: int) -> float:
    backend = HashMapKeyedStateBackend()
    gc.collect()
    before = resident_bytes()
    alive = fill(backend, range(_FIRST_KEY, _FIRST_KEY + count))
    backend.seal(1, ForgetfulStore(None, 1 << 40))
    backend.confirm()
    gc.collect()
    used = resident_bytes() - before
    del alive
    return used / count


def measure(arguments: Arguments) -> None:
    count = int(_KEYS * arguments.scale)
    for kind in KINDS:
        command = [sys.executable, "-m", __name__, kind, str(count)]
        found = subprocess.run(command, check=True, capture_output=True, text=True)
        report(section="key_memory", kind=kind, bytes=float(found.stdout))


def row(figures: Figures) -> list[str]:
    return [figures["kind"], f"{figures['bytes']:.0f} B"]


SECTION = Section("key_memory", ("state in memory", "per key"), row, measure)

if __name__ == "__main__":
    print(bytes_per_key(KINDS[sys.argv[1]], int(sys.argv[2])))
