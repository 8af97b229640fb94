"""Spark's master URL: which ones mean this machine, with how many threads and attempts."""

from __future__ import annotations

import re
from dataclasses import dataclass

# `local-cluster[...]` is none of these: its executors are processes with directories of their own.
_LOCAL = re.compile(r"local(?:\[\s*(\*|\d+)\s*(?:,\s*(\d+)\s*)?\])?")


@dataclass(frozen=True, slots=True)
class LocalMaster:
    """Driver and tasks share one process and its disk."""

    # None: as many as there are cores.
    threads: int | None
    # How often Spark tries a task before it gives up.
    attempts: int


def local_master(master: str) -> LocalMaster | None:
    """What a master like ``local``, ``local[4]`` or ``local[*,3]`` says; None for a cluster's."""
    match = _LOCAL.fullmatch(master.strip())
    if match is None:
        return None
    threads, attempts = match[1] or "1", int(match[2] or 1)
    return LocalMaster(None if threads == "*" else int(threads), attempts)
