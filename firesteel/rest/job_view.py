"""A job as the REST API shows it: vertices and subtasks with their states, times and figures."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from firesteel.common.job_status import JobStatus
from firesteel.dispatcher.job_handle import JobHandle
from firesteel.master.job_description import JobDescription, VertexDescription
from firesteel.rest.calls import Call, RestError
from firesteel.rest.models import IoMetrics

#: The states of subtasks, in the order of a life.
STATES = (
    "CREATED",
    "SCHEDULED",
    "DEPLOYING",
    "INITIALIZING",
    "RUNNING",
    "FINISHED",
    "CANCELING",
    "CANCELED",
    "FAILED",
    "RECONCILING",
)
JOB_STATES = (
    "INITIALIZING",
    "CREATED",
    "RUNNING",
    "FAILING",
    "FAILED",
    "CANCELLING",
    "CANCELED",
    "FINISHED",
    "RESTARTING",
    "SUSPENDED",
    "RECONCILING",
)
# The state of a vertex is the first of these that one of its subtasks has, as in Flink.
_PRECEDENCE = (
    "FAILED",
    "CANCELING",
    "CANCELED",
    "DEPLOYING",
    "SCHEDULED",
    "CREATED",
    "INITIALIZING",
    "RUNNING",
    "FINISHED",
)
# The state of a subtask that is neither running nor finished, by the state of its job.
_STATE_BY_JOB = {
    JobStatus.CREATED: "SCHEDULED",
    JobStatus.RUNNING: "DEPLOYING",
    JobStatus.FAILING: "CANCELING",
    JobStatus.FAILED: "CANCELED",
    JobStatus.CANCELLING: "CANCELING",
    JobStatus.CANCELED: "CANCELED",
    JobStatus.FINISHED: "FINISHED",
    JobStatus.RESTARTING: "SCHEDULED",
    JobStatus.SUSPENDED: "CANCELED",
    JobStatus.RECONCILING: "RECONCILING",
}


def now_millis() -> int:
    return int(time.time() * 1000)


@dataclass(frozen=True, slots=True)
class SubtaskView:
    """A subtask. ``figures`` is its part of ``JobHandle.overview``."""

    index: int
    attempt: int
    status: str
    endpoint: str
    task_manager: str
    timestamps: dict[str, int]
    figures: Mapping[str, Any]

    @property
    def start(self) -> int:
        return self.timestamps.get("DEPLOYING") or self.timestamps.get("SCHEDULED") or -1

    @property
    def end(self) -> int:
        ends = ("FINISHED", "CANCELED", "FAILED")
        return self.timestamps.get(self.status, -1) if self.status in ends else -1

    @property
    def duration(self) -> int:
        return duration(self.start, self.end)

    def status_durations(self) -> dict[str, int]:
        """Return the time in each state so far, in milliseconds; -1 for states not reached."""
        names = ("CREATED", "SCHEDULED", "DEPLOYING", "INITIALIZING", "RUNNING")
        found = {}
        reached = [(name, self.timestamps[name]) for name in names if self.timestamps.get(name)]
        for number, (name, at) in enumerate(reached):
            until = reached[number + 1][1] if number + 1 < len(reached) else self.end
            found[name] = max(0, (until if until > 0 else now_millis()) - at)
        return {name: found.get(name, -1) for name in names}

    def metric(self, name: str) -> float:
        return float(self.figures.get("metrics", {}).get(name, 0.0))

    def io_metrics(self) -> IoMetrics:
        figures = self.figures
        return {
            "read-bytes": int(figures.get("bytes_in", 0)),
            "read-bytes-complete": True,
            "write-bytes": int(figures.get("bytes_out", 0)),
            "write-bytes-complete": True,
            "read-records": int(figures.get("records_in", 0)),
            "read-records-complete": True,
            "write-records": int(figures.get("records_out", 0)),
            "write-records-complete": True,
            "accumulated-backpressured-time": round(
                figures.get("back_pressured_seconds", 0.0) * 1000
            ),
            "accumulated-idle-time": round(figures.get("idle_seconds", 0.0) * 1000),
            "accumulated-busy-time": round(figures.get("busy_seconds", 0.0) * 1000),
        }


@dataclass(frozen=True, slots=True)
class VertexView:
    description: VertexDescription
    subtasks: list[SubtaskView]

    @property
    def id(self) -> str:
        return self.description.id

    @property
    def status(self) -> str:
        found = {subtask.status for subtask in self.subtasks}
        return next((status for status in _PRECEDENCE if status in found), "CREATED")

    def counts(self) -> dict[str, int]:
        return count_states(subtask.status for subtask in self.subtasks)

    @property
    def start(self) -> int:
        return min((one.start for one in self.subtasks if one.start > 0), default=-1)

    @property
    def end(self) -> int:
        ends = [one.end for one in self.subtasks]
        return max(ends) if ends and min(ends) > 0 else -1

    def io_metrics(self) -> IoMetrics:
        return sum_io(self.subtasks)


class JobView:
    """Everything that is shown of a job. It is read once, so that its parts fit together."""

    def __init__(self, job: JobHandle) -> None:
        self.job = job
        self.id = str(job.job_id)
        self.status = job.status()
        self.timestamps = job.timestamps()
        self.description: JobDescription = job.description()

    @cached_property
    def overview(self) -> Mapping[str, Any]:
        return self.job.overview()

    @cached_property
    def vertices(self) -> list[VertexView]:
        figures = {vertex["id"]: vertex["subtasks"] for vertex in self.overview["vertices"]}
        return [
            VertexView(
                vertex,
                [
                    self._subtask(index, found)
                    for index, found in enumerate(figures.get(vertex.number, []))
                ],
            )
            for vertex in self.description.vertices
        ]

    def vertex(self, call: Call) -> VertexView:
        """Return the vertex that the path of a call names."""
        vertex_id = call.id("vertexid")
        for vertex in self.vertices:
            if vertex.id == vertex_id:
                return vertex
        raise RestError(404, f"Job vertex {vertex_id} not found in job {self.id}")

    @property
    def start(self) -> int:
        return self.timestamps.get("INITIALIZING", -1)

    @property
    def end(self) -> int:
        return self.timestamps.get(self.status.name, -1) if self.status.is_terminal_state() else -1

    @property
    def duration(self) -> int:
        return duration(self.start, self.end)

    @property
    def job_type(self) -> str:
        return "BATCH" if self.description.is_batch else "STREAMING"

    def _subtask(self, index: int, figures: Mapping[str, Any]) -> SubtaskView:
        status, timestamps = self._life(figures)
        host = figures.get("host")
        return SubtaskView(
            index=index,
            attempt=figures.get("attempt", 0),
            status=status,
            endpoint=host or "(unassigned)",
            task_manager=task_manager_id(host) if host else "(unassigned)",
            timestamps=timestamps,
            figures=figures,
        )

    def _life(self, figures: Mapping[str, Any]) -> tuple[str, dict[str, int]]:
        """Return the state of a subtask, and the times at which it reached its states."""
        created = self.timestamps.get(JobStatus.CREATED.name, self.start)
        times = {"CREATED": created, "SCHEDULED": figures.get("scheduled_at") or created}
        running_at, finished_at = figures.get("running_at"), figures.get("finished_at")
        if (scheduled := figures.get("scheduled_at")) and self.status is not JobStatus.CREATED:
            times["DEPLOYING"] = times["INITIALIZING"] = scheduled
        if running_at:
            times["RUNNING"] = running_at
        if finished_at or self.status is JobStatus.FINISHED:
            times["FINISHED"] = finished_at or self.end
            return "FINISHED", _all_states(times)
        if figures.get("failed") and self.status in (JobStatus.FAILED, JobStatus.FAILING):
            status = "FAILED"
        elif self.status is JobStatus.RUNNING and running_at:
            status = "RUNNING"
        else:
            status = _STATE_BY_JOB[self.status]
        if status in ("CANCELING", "CANCELED", "FAILED"):
            times[status] = self.timestamps.get(self.status.name, now_millis())
        return status, _all_states(times)


def _all_states(times: Mapping[str, int]) -> dict[str, int]:
    return {state: times.get(state, 0) for state in STATES}


def duration(start: int, end: int) -> int:
    if start < 0:
        return -1
    return max(0, (end if end > 0 else now_millis()) - start)


def count_states(states: Iterable[str]) -> dict[str, int]:
    counts = dict.fromkeys(STATES, 0)
    for state in states:
        counts[state] += 1
    return counts


def sum_io(subtasks: Iterable[SubtaskView]) -> IoMetrics:
    total = SubtaskView(0, 0, "", "", "", {}, {}).io_metrics()
    for subtask in subtasks:
        for name, value in subtask.io_metrics().items():
            if not isinstance(value, bool):
                total[name] += value  # type: ignore[literal-required]  # the names are its own
    return total


def task_manager_id(host: str) -> str:
    """Return the id of the task manager of a process: its machine and its process id.

    >>> task_manager_id("worker-3:4711")
    'worker-3-4711'
    """
    machine, _, pid = host.rpartition(":")
    return f"{machine}-{pid}"
