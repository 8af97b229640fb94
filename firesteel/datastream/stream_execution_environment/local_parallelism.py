"""How parallel a program is that does not say it: as many subtasks as the machine has cores."""

from __future__ import annotations

import os

from firesteel.config.spark_master import local_master


def default_parallelism(master: str | None, cores: int) -> int:
    """For Spark's ``master``. On a cluster it is 1, Flink's default for a cluster."""
    if master is None:
        return cores
    local = local_master(master)
    if local is None:
        return 1
    return cores if local.threads is None else local.threads


def available_cores() -> int:
    """The cores this process may use, which in a container are fewer than the machine has."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
