"""Calls about the driver and the session as a whole."""

from __future__ import annotations

import os
import platform
import sys
import threading
from collections import Counter
from datetime import datetime

from firesteel.common.job_status import JobStatus
from firesteel.config import rest_options
from firesteel.config.sensitive import hide_secrets
from firesteel.dispatcher.dispatcher import Dispatcher
from firesteel.processes import cpu_seconds, memory_of, thread_stacks
from firesteel.rest import models
from firesteel.rest.calls import Call
from firesteel.rest.metric_values import Values
from firesteel.rest.metrics import answer
from firesteel.rest.task_managers import processes
from firesteel.version import __version__

# The version of the API, which clients compare, and that of the implementation.
_VERSION = f"2.3.0-firesteel-{__version__}"
_REVISION = f"firesteel-{__version__}"


def config(call: Call) -> models.DashboardConfiguration:
    settings = call.dispatcher.configuration
    zone = datetime.now().astimezone()
    offset = zone.utcoffset()
    return {
        "refresh-interval": round(settings.get(rest_options.WEB_REFRESH).total_seconds() * 1000),
        "timezone-name": zone.tzname() or "UTC",
        "timezone-offset": 0 if offset is None else round(offset.total_seconds() * 1000),
        "flink-version": _VERSION,
        "flink-revision": _REVISION,
        "features": {
            "web-submit": call.dispatcher.programs is not None
            and settings.get(rest_options.WEB_SUBMIT),
            "web-cancel": settings.get(rest_options.WEB_CANCEL),
            "web-rescale": settings.get(rest_options.WEB_RESCALE),
            "web-history": call.dispatcher.is_history,
        },
        "firesteel-version": __version__,
    }


def overview(call: Call) -> models.ClusterOverview:
    counts = Counter(job.status() for job in call.dispatcher.jobs())
    slots = call.dispatcher.slots()
    return {
        "taskmanagers": len(processes(call.dispatcher)),
        "slots-total": slots.total,
        "slots-available": slots.free,
        # Archived jobs of an earlier session may be suspended.
        "jobs-running": sum(n for status, n in counts.items() if not status.is_terminal_state()),
        "jobs-finished": counts[JobStatus.FINISHED],
        "jobs-cancelled": counts[JobStatus.CANCELED],
        "jobs-failed": counts[JobStatus.FAILED],
        "flink-version": _VERSION,
        "flink-commit": _REVISION,
    }


def configuration(call: Call) -> list[models.ConfigurationEntry]:
    settings = hide_secrets(call.dispatcher.configuration.to_dict())
    return [{"key": key, "value": value} for key, value in sorted(settings.items())]


def environment(call: Call) -> models.EnvironmentInfo:
    return {
        "jvm": {
            "version": f"Python {platform.python_version()}",
            "arch": platform.machine(),
            "options": [sys.executable, *sys.orig_argv[1:]],
        },
        "classpath": [path for path in sys.path if path],
        "python": sys.version,
    }


def driver_metrics(call: Call) -> list[models.Metric]:
    return answer(call, driver_values(call.dispatcher))


def driver_values(dispatcher: Dispatcher) -> Values:
    """Return metrics of the driver. Flink's names of memory stand for the memory of the process."""
    jobs = dispatcher.jobs()
    slots = dispatcher.slots()
    memory = memory_of(os.getpid())
    return {
        "numRunningJobs": sum(not job.status().is_terminal_state() for job in jobs),
        "numRegisteredTaskManagers": len(processes(dispatcher)),
        "taskSlotsTotal": slots.total,
        "taskSlotsAvailable": slots.free,
        "Status.JVM.CPU.Time": round(cpu_seconds(os.getpid()) * 1e9),
        "Status.JVM.Threads.Count": threading.active_count(),
        "Status.JVM.Memory.Heap.Used": memory.resident,
        "Status.JVM.Memory.Heap.Committed": memory.resident,
        "Status.JVM.Memory.Heap.Max": memory.limit,
        "Status.JVM.Memory.NonHeap.Used": 0,
        "Status.JVM.Memory.NonHeap.Committed": 0,
        "Status.JVM.Memory.NonHeap.Max": 0,
        "Status.JVM.Memory.Metaspace.Used": 0,
        "Status.JVM.Memory.Metaspace.Max": 0,
        "Status.JVM.Memory.Direct.Count": 0,
        "Status.JVM.Memory.Direct.MemoryUsed": 0,
        "Status.JVM.Memory.Direct.TotalCapacity": 0,
        "Status.JVM.Memory.Mapped.Count": 0,
        "Status.JVM.Memory.Mapped.MemoryUsed": 0,
        "Status.JVM.Memory.Mapped.TotalCapacity": 0,
    }


def thread_dump(call: Call) -> models.ThreadDump:
    """Return the stacks of the driver's threads."""
    return {"threadInfos": thread_stacks()}


def jars(call: Call) -> models.JarList:
    """Return the programs that were uploaded. Flink's name for a program is jar."""
    programs = call.dispatcher.programs
    return {
        "address": call.address,
        "files": [
            {"id": one.id, "name": one.name, "uploaded": one.uploaded, "entry": []}
            for one in ([] if programs is None else programs.all())
        ],
    }
