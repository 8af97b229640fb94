"""Spark's master URLs for this machine, with the number of threads and attempts."""

from __future__ import annotations

import re
from dataclasses import dataclass

# `local-cluster[...]` does not match: its executors are processes with their own directories.
_LOCAL = re.compile(r"local(?:\[\s*(\*|\d+)\s*(?:,\s*(\d+)\s*)?\])?")


@dataclass(frozen=True, slots=True)
class LocalMaster:
    """A master whose driver and tasks share one process and its disk."""

    # None means one thread per core.
    threads: int | None
    # The number of times that Spark attempts a task.
    attempts: int


def local_master(master: str) -> LocalMaster | None:
    """Parse a master such as ``local``, ``local[4]`` or ``local[*,3]``; None for a cluster."""
    match = _LOCAL.fullmatch(master.strip())
    if match is None:
        return None
    threads, attempts = match[1] or "1", int(match[2] or 1)
    return LocalMaster(None if threads == "*" else int(threads), attempts)
