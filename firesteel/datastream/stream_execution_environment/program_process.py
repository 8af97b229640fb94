"""The process of the program: its cores, and a prompt if there is one."""

from __future__ import annotations

import os
import sys

from firesteel.config.spark_master import local_master


def default_parallelism(master: str | None, cores: int) -> int:
    """Return the parallelism of a program that sets none, for Spark's ``master``.

    It is the number of cores of the machine. On a cluster it is 1, as in Flink.
    """
    if master is None:
        return cores
    local = local_master(master)
    if local is None:
        return 1
    return cores if local.threads is None else local.threads


def available_cores() -> int:
    """Return the cores this process may use; in a container they are fewer than the machine has."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def is_interactive() -> bool:
    """Return True at a prompt or in a notebook, which continue after an error."""
    return hasattr(sys, "ps1") or "ipykernel" in sys.modules
