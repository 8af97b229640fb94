"""How parallel a program is that does not say it: as many subtasks as the machine has cores."""

from __future__ import annotations

import os
import re

_LOCAL_MASTER = re.compile(r"local(?:\[\s*(\*|\d+)\s*(?:,\s*\d+\s*)?\])?")


def default_parallelism(master: str | None, cores: int) -> int:
    """For Spark's ``master``. On a cluster it is 1, Flink's default for a cluster."""
    if master is None:
        return cores
    match = _LOCAL_MASTER.fullmatch(master.strip())
    if match is None:
        return 1
    threads = match[1] or "1"
    return cores if threads == "*" else int(threads)


def available_cores() -> int:
    """The cores this process may use, which in a container are fewer than the machine has."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
