"""The task slots of Spark: the number of tasks that it can run at the same time."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any

from pyspark import SparkContext

from firesteel.config.spark_master import local_master

_LOOK_SECONDS = 0.2
# Executors of a cluster that has just started register within this time of each other.
_BETWEEN_EXECUTORS_SECONDS = 5.0
# Spark's own setting of the time that it waits for executors, and its default.
_WAITING_TIME, _WAITING_TIME_DEFAULT = "spark.scheduler.maxRegisteredResourcesWaitingTime", "30s"
_MOST_CORES = "spark.cores.max"


def task_slots(context: SparkContext, wanted: int = 0) -> int:
    """Return the number of task slots.

    On a cluster whose application has just started, wait until there are as many as ``wanted``, or
    until no more executors come.
    """
    local = local_master(str(context.master))
    if local is not None:
        return (os.cpu_count() or 1) if local.threads is None else local.threads
    java: Any = context._jsc.sc()  # noqa: SLF001 - no public way
    conf = context.getConf()
    most = int(conf.get(_MOST_CORES, "0") or 0) or wanted
    deadline = context.startTime / 1000 + java.conf().getTimeAsSeconds(
        _WAITING_TIME, _WAITING_TIME_DEFAULT
    )
    return wait_for_slots(
        lambda: int(
            java.maxNumConcurrentTasks(java.resourceProfileManager().defaultResourceProfile())
        ),
        min(wanted, most),
        deadline - time.time(),
    )


def wait_for_slots(
    count: Callable[[], int],
    wanted: int,
    seconds: float,
    *,
    now: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> int:
    """Count the slots until there are enough, until they no longer grow, or for ``seconds``."""
    began = grew_at = now()
    slots = count()
    while slots < wanted and now() - began < seconds:
        if slots and now() - grew_at >= _BETWEEN_EXECUTORS_SECONDS:
            break
        sleep(_LOOK_SECONDS)
        latest = count()
        if latest > slots:
            grew_at = now()
        slots = latest
    return slots
