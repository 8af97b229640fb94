"""Calls about task managers: the processes in which the slots of jobs live."""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass, field

from firesteel.dispatcher.dispatcher import Dispatcher
from firesteel.dispatcher.job_handle import JobHandle
from firesteel.processes import cpu_seconds, free_memory, memory_of, physical_memory
from firesteel.rest import models
from firesteel.rest.calls import Call, RestError
from firesteel.rest.job_view import JobView, now_millis, task_manager_id
from firesteel.rest.metric_values import Values
from firesteel.rest.metrics import answer, answer_aggregated

_MEGABYTE = 1 << 20


@dataclass(slots=True)
class Process:
    """A process with slots of running jobs."""

    host: str
    # One of its slots: job, level and slot.
    place: tuple[JobHandle, int, int]
    # The subtasks by job: "name (1/2)".
    subtasks: dict[str, list[str]] = field(default_factory=dict)

    @property
    def id(self) -> str:
        return task_manager_id(self.host)

    @property
    def pid(self) -> int | None:
        """The process id, if the process is on this machine."""
        machine, _, pid = self.host.rpartition(":")
        return int(pid) if machine == socket.gethostname() and pid.isdigit() else None

    @property
    def tasks(self) -> int:
        return sum(len(subtasks) for subtasks in self.subtasks.values())


def processes(dispatcher: Dispatcher) -> list[Process]:
    """Return the processes of all running jobs, in the order of their ids."""
    found: dict[str, Process] = {}
    for job in _running(dispatcher):
        view = JobView(job)
        for vertex in view.vertices:
            for subtask in vertex.subtasks:
                host = subtask.figures.get("host")
                if host:
                    description = vertex.description
                    place = (job, description.level, description.slot_offset + subtask.index)
                    process = found.setdefault(host, Process(host, place))
                    name = description.name
                    process.subtasks.setdefault(view.id, []).append(
                        f"{name} ({subtask.index + 1}/{description.parallelism})"
                    )
    return sorted(found.values(), key=lambda process: process.id)


def _running(dispatcher: Dispatcher) -> list[JobHandle]:
    return [job for job in dispatcher.jobs() if not job.status().is_terminal_state()]


def task_managers(call: Call) -> models.TaskManagers:
    return {"taskmanagers": [_body(process) for process in processes(call.dispatcher)]}


def find_process(call: Call) -> Process:
    wanted = call.path["taskmanagerid"]
    for process in processes(call.dispatcher):
        if process.id == wanted:
            return process
    raise RestError(404, f"TaskManager {wanted} not found")


def _body(process: Process) -> models.TaskManager:
    memory = memory_of(process.pid) if process.pid is not None else None
    profile = _profile()
    used = 0 if memory is None else memory.resident
    return {
        "id": process.id,
        "path": process.host,
        "dataPort": -1,
        "jmxPort": -1,
        "timeSinceLastHeartbeat": now_millis(),
        # A process has the slots that its subtasks occupy.
        "slotsNumber": len(process.subtasks),
        "freeSlots": 0,
        "assignedTasks": process.tasks,
        "blocked": False,
        "totalResource": profile,
        "freeResource": profile,
        "hardware": {
            "cpuCores": os.cpu_count() or 1,
            "physicalMemory": physical_memory(),
            "freeMemory": free_memory(),
            "managedMemory": 0,
        },
        "memoryConfiguration": {
            "frameworkHeap": 0,
            "taskHeap": used,
            "frameworkOffHeap": 0,
            "taskOffHeap": 0,
            "networkMemory": 0,
            "managedMemory": 0,
            "jvmMetaspace": 0,
            "jvmOverhead": 0,
            "totalFlinkMemory": used,
            "totalProcessMemory": used,
        },
        "subtasks": [name for names in process.subtasks.values() for name in names],
    }


def _profile() -> models.ResourceProfile:
    return {
        "cpuCores": float(os.cpu_count() or 1),
        "taskHeapMemory": physical_memory() // _MEGABYTE,
        "taskOffHeapMemory": 0,
        "managedMemory": 0,
        "networkMemory": 0,
        "extendedResources": {},
    }


def task_manager(call: Call) -> models.TaskManagerDetails:
    process = find_process(call)
    memory = memory_of(process.pid) if process.pid is not None else memory_of(-1)
    return {
        **_body(process),
        "allocatedSlots": [
            {"jobId": job, "assignedTasks": len(subtasks), "resource": _profile()}
            for job, subtasks in process.subtasks.items()
        ],
        "metrics": {
            "heapUsed": memory.resident,
            "heapCommitted": memory.resident,
            "heapMax": memory.limit,
            "nonHeapUsed": 0,
            "nonHeapCommitted": 0,
            "nonHeapMax": 0,
            "directCount": 0,
            "directUsed": 0,
            "directMax": 0,
            "mappedCount": 0,
            "mappedUsed": 0,
            "mappedMax": 0,
            "nettyShuffleMemorySegmentsAvailable": 0,
            "nettyShuffleMemorySegmentsUsed": 0,
            "nettyShuffleMemorySegmentsTotal": 0,
            "nettyShuffleMemoryAvailable": 0,
            "nettyShuffleMemoryUsed": 0,
            "nettyShuffleMemoryTotal": 0,
            "garbageCollectors": [],
        },
    }


def process_values(process: Process) -> Values:
    """Return metrics of a task manager. Flink's names of memory stand for the memory of the process."""
    memory = memory_of(process.pid) if process.pid is not None else memory_of(-1)
    return {
        "Status.JVM.CPU.Time": round(cpu_seconds(process.pid or -1) * 1e9),
        "Status.JVM.Memory.Heap.Used": memory.resident,
        "Status.JVM.Memory.Heap.Committed": memory.resident,
        "Status.JVM.Memory.Heap.Max": memory.limit,
        "Status.JVM.Memory.Metaspace.Used": 0,
        "Status.JVM.Memory.Metaspace.Max": 0,
        "Status.Flink.Memory.Managed.Used": 0,
        "Status.Flink.Memory.Managed.Total": 0,
        "Status.Shuffle.Netty.UsedMemory": 0,
        "Status.Shuffle.Netty.TotalMemory": 0,
    }


def task_manager_metrics(call: Call) -> list[models.Metric]:
    return answer(call, process_values(find_process(call)))


def all_task_manager_metrics(call: Call) -> list[models.AggregatedMetric]:
    wanted = call.words("taskmanagers")
    found = [p for p in processes(call.dispatcher) if wanted is None or p.id in wanted]
    return answer_aggregated(call, [process_values(process) for process in found])
