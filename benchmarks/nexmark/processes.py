"""The processor time of a process and all its descendants, from /proc."""

from __future__ import annotations

import os
import threading
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")
_SECONDS_BETWEEN_SAMPLES = 0.2


class CpuMeter:
    """Adds up the processor time of a process tree.

    Workers may end without being waited for, so their parents never count them. A thread looks at
    the tree a few times per second, and the last time of an ended process remains.
    """

    def __init__(self, root: int) -> None:
        self._root = root
        # By process id and start time, because ids are used again.
        self._seen: dict[tuple[int, str], float] = {}
        self._lock = threading.Lock()
        threading.Thread(target=self._run, name="cpu-meter", daemon=True).start()

    def seconds(self) -> float:
        """Return the processor time of all processes so far."""
        with self._lock:
            self._sample()
            return sum(self._seen.values())

    def _run(self) -> None:
        pause = threading.Event()
        while True:
            with self._lock:
                self._sample()
            pause.wait(_SECONDS_BETWEEN_SAMPLES)

    def _sample(self) -> None:
        times: dict[int, tuple[str, float]] = {}
        children: dict[int, list[int]] = {}
        for path in Path("/proc").iterdir():
            if not path.name.isdigit():
                continue
            try:
                # The name of the program is in parentheses and may contain spaces.
                fields = (path / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            pid = int(path.name)
            children.setdefault(int(fields[1]), []).append(pid)
            times[pid] = fields[19], (int(fields[11]) + int(fields[12])) / _TICKS
        # A process whose parent has ended is no descendant any more, but is known.
        left = {pid for pid, begin in self._seen if pid in times and times[pid][0] == begin}
        left.add(self._root)
        counted: set[int] = set()
        while left:
            pid = left.pop()
            if pid in times and pid not in counted:
                counted.add(pid)
                begin, seconds = times[pid]
                self._seen[pid, begin] = seconds
                left.update(children.get(pid, ()))
