"""The processor time of a process and all its descendants, from /proc."""

from __future__ import annotations

import os
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")


def cpu_seconds(root: int) -> float:
    """Return the processor time of a process tree, with that of children which have ended."""
    times: dict[int, float] = {}
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
        times[pid] = sum(map(int, fields[11:15])) / _TICKS
    total, left = 0.0, [root]
    while left:
        pid = left.pop()
        total += times.get(pid, 0.0)
        left += children.get(pid, [])
    return total
