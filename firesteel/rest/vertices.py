"""Calls about a vertex: its subtasks, their times, places, watermarks and accumulators."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean
from typing import Any

from firesteel.common.constants import MIN_WATERMARK
from firesteel.rest import models
from firesteel.rest.calls import Call, RestError
from firesteel.rest.job_view import (
    JobView,
    SubtaskView,
    VertexView,
    count_states,
    duration,
    now_millis,
    sum_io,
)

_AGGREGATED = (
    "read-bytes",
    "write-bytes",
    "read-records",
    "write-records",
    "accumulated-backpressured-time",
    "accumulated-idle-time",
    "accumulated-busy-time",
)


def _vertex(call: Call) -> VertexView:
    return JobView(call.job()).vertex(call)


def _subtask(call: Call) -> SubtaskView:
    vertex, index = _vertex(call), call.number("subtaskindex")
    if index >= len(vertex.subtasks):
        raise RestError(404, f"Vertex {vertex.id} has no subtask {index}")
    return vertex.subtasks[index]


def vertex_details(call: Call) -> models.VertexDetails:
    vertex = _vertex(call)
    return {
        "id": vertex.id,
        "name": vertex.description.name,
        "parallelism": vertex.description.parallelism,
        "maxParallelism": vertex.description.max_parallelism,
        "now": now_millis(),
        "subtasks": [subtask_body(subtask) for subtask in vertex.subtasks],
        "aggregated": _aggregated(vertex.subtasks),
    }


def subtask_body(subtask: SubtaskView) -> models.SubtaskDetails:
    return {
        "subtask": subtask.index,
        "status": subtask.status,
        "attempt": subtask.attempt,
        "endpoint": subtask.endpoint,
        "start-time": subtask.start,
        "start_time": subtask.start,
        "end-time": subtask.end,
        "duration": subtask.duration,
        "metrics": subtask.io_metrics(),
        "taskmanager-id": subtask.task_manager,
        "status-duration": subtask.status_durations(),
    }


def subtask_details(call: Call) -> models.SubtaskDetails:
    return subtask_body(_subtask(call))


def subtask_attempt(call: Call) -> models.SubtaskDetails:
    return subtask_body(_current_attempt(call))


def _current_attempt(call: Call) -> SubtaskView:
    subtask, attempt = _subtask(call), call.number("attempt")
    if attempt != subtask.attempt:
        raise RestError(404, f"Only attempt {subtask.attempt} of subtask {subtask.index} is known")
    return subtask


def _aggregated(subtasks: Sequence[SubtaskView]) -> models.AggregatedTaskDetails:
    metrics: list[Mapping[str, Any]] = [subtask.io_metrics() for subtask in subtasks]
    durations = [subtask.status_durations() for subtask in subtasks]
    names = dict.fromkeys(name for one in durations for name in one)
    return {
        "metrics": {name: _aggregate(one[name] for one in metrics) for name in _AGGREGATED},
        "status-duration": {name: _aggregate(one[name] for one in durations) for name in names},
    }


def _aggregate(values: Iterable[float]) -> dict[str, int]:
    ordered = sorted(values)
    return {
        "min": round(ordered[0]),
        "max": round(ordered[-1]),
        "avg": round(fmean(ordered)),
        "sum": round(sum(ordered)),
        "median": round(percentile(ordered, 0.5)),
        "p25": round(percentile(ordered, 0.25)),
        "p75": round(percentile(ordered, 0.75)),
        "p95": round(percentile(ordered, 0.95)),
    }


def percentile(ordered: Sequence[float], share: float) -> float:
    """Return the value below which a share of the sorted values lies, between two if need be.

    >>> percentile([10, 20, 30], 0.5), percentile([10, 20], 0.5)
    (20.0, 15.0)
    """
    place = share * (len(ordered) - 1)
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)


def subtask_times(call: Call) -> models.SubtaskTimes:
    vertex = _vertex(call)
    return {
        "id": vertex.id,
        "name": vertex.description.name,
        "now": now_millis(),
        "subtasks": [
            {
                "subtask": subtask.index,
                "endpoint": subtask.endpoint,
                "duration": subtask.duration,
                "timestamps": subtask.timestamps,
            }
            for subtask in vertex.subtasks
        ],
    }


def vertex_task_managers(call: Call) -> models.VertexTaskManagers:
    vertex = _vertex(call)
    by_process: dict[tuple[str, str], list[SubtaskView]] = {}
    for subtask in vertex.subtasks:
        by_process.setdefault((subtask.endpoint, subtask.task_manager), []).append(subtask)
    return {
        "id": vertex.id,
        "name": vertex.description.name,
        "now": now_millis(),
        "taskmanagers": [
            _on_task_manager(vertex, endpoint, process, subtasks)
            for (endpoint, process), subtasks in by_process.items()
        ],
    }


def _on_task_manager(
    vertex: VertexView, endpoint: str, process: str, subtasks: list[SubtaskView]
) -> models.VertexTaskManager:
    part = VertexView(vertex.description, subtasks)
    return {
        "endpoint": endpoint,
        "taskmanager-id": process,
        "status": part.status,
        "start-time": part.start,
        "end-time": part.end,
        "duration": duration(part.start, part.end),
        "metrics": sum_io(subtasks),
        "status-counts": count_states(subtask.status for subtask in subtasks),
        "aggregated": _aggregated(subtasks),
    }


def watermarks(call: Call) -> list[models.Metric]:
    vertex = _vertex(call)
    if not vertex.description.inputs:
        return []
    return [
        {
            "id": f"{subtask.index}.currentInputWatermark",
            "value": str(subtask.figures.get("watermark_in", MIN_WATERMARK)),
        }
        for subtask in vertex.subtasks
    ]


# Accumulators


def vertex_accumulators(call: Call) -> models.VertexAccumulators:
    vertex = _vertex(call)
    totals: dict[str, float] = {}
    for subtask in vertex.subtasks:
        for name, value in _counters(subtask).items():
            totals[name] = totals.get(name, 0) + value
    return {"id": vertex.id, "user-accumulators": _accumulators(totals)}


def subtask_accumulators(call: Call) -> models.AllSubtaskAccumulators:
    vertex = _vertex(call)
    return {
        "id": vertex.id,
        "parallelism": vertex.description.parallelism,
        "subtasks": [
            {
                "subtask": subtask.index,
                "attempt": subtask.attempt,
                "endpoint": subtask.endpoint,
                "user-accumulators": _accumulators(_counters(subtask)),
            }
            for subtask in vertex.subtasks
        ],
    }


def attempt_accumulators(call: Call) -> models.AttemptAccumulators:
    subtask = _current_attempt(call)
    return {
        "id": call.id("vertexid"),
        "subtask": subtask.index,
        "attempt": subtask.attempt,
        "user-accumulators": _accumulators(_counters(subtask)),
    }


def _counters(subtask: SubtaskView) -> dict[str, float]:
    """Return the counters of the user's functions in a subtask."""
    return {
        name: value["count"]
        for metrics in subtask.figures.get("user_metrics", {}).values()
        for name, value in metrics.items()
        if value["kind"] == "counter"
    }


def _accumulators(counters: Mapping[str, float]) -> list[models.UserAccumulator]:
    return [
        {"name": name, "type": "LongCounter", "value": str(value)}
        for name, value in counters.items()
    ]
