"""Back pressure: the share of time for which subtasks wait for later ones, and its cause."""

from __future__ import annotations

from firesteel.rest import models
from firesteel.rest.calls import Call
from firesteel.rest.job_view import JobView, SubtaskView, VertexView, now_millis

# Flink's limits.
_OK = 0.10
_LOW = 0.50
# A vertex that is busy for this share of the time has no time left for more records.
_SATURATED = 0.70


def level_of(ratio: float) -> str:
    """Return Flink's level of a share of time.

    >>> level_of(0.1), level_of(0.5), level_of(0.51)
    ('ok', 'low', 'high')
    """
    if ratio <= _OK:
        return "ok"
    return "low" if ratio <= _LOW else "high"


def _share(subtask: SubtaskView, name: str) -> float:
    return round(subtask.metric(f"{name}TimeMsPerSecond") / 1000, 3)


def vertex_back_pressure(call: Call) -> models.VertexBackPressure:
    vertex = JobView(call.job()).vertex(call)
    level = level_of(back_pressured(vertex))
    return {
        "status": "ok",
        "backpressureLevel": level,
        "backpressure-level": level,
        "end-timestamp": now_millis(),
        "subtasks": [_subtask(subtask) for subtask in vertex.subtasks],
    }


def _subtask(subtask: SubtaskView) -> models.SubtaskBackPressure:
    ratio = _share(subtask, "backPressured")
    level = level_of(ratio)
    return {
        "subtask": subtask.index,
        "attempt-number": subtask.attempt,
        "backpressureLevel": level,
        "backpressure-level": level,
        "ratio": ratio,
        "idleRatio": _share(subtask, "idle"),
        "busyRatio": _share(subtask, "busy"),
    }


def back_pressured(vertex: VertexView) -> float:
    """Return the largest back-pressured share of a subtask, which decides about its vertex."""
    return max((_share(subtask, "backPressured") for subtask in vertex.subtasks), default=0.0)


def busy(vertex: VertexView) -> float:
    return max((_share(subtask, "busy") for subtask in vertex.subtasks), default=0.0)


def roots(view: JobView) -> list[VertexView]:
    """Return the vertices that cause back pressure.

    A root has a vertex before it that is back-pressured, and is not so itself: it takes all the time
    it has. If no such vertex is saturated, and the level is HIGH, the busiest of them is the root.
    Subtasks of a slot wait together, so a vertex can wait although the vertices after it are idle.
    Those are no roots.
    """
    by_id = {vertex.id: vertex for vertex in view.vertices}
    consumers: dict[str, list[VertexView]] = {}
    for vertex in view.vertices:
        for edge in vertex.description.inputs:
            if edge.vertex in by_id:
                consumers.setdefault(edge.vertex, []).append(vertex)
    ends: dict[str, VertexView] = {}
    for vertex in view.vertices:
        if level_of(back_pressured(vertex)) == "ok":
            continue
        # Follow the pressure downstream to the vertices that no longer wait for others.
        waiting, seen = [vertex], {vertex.id}
        while waiting:
            for after in consumers.get(waiting.pop().id, []):
                if after.id in seen:
                    continue
                seen.add(after.id)
                if level_of(back_pressured(after)) == "ok":
                    ends[after.id] = after
                else:
                    waiting.append(after)
    least = _SATURATED
    if any(level_of(back_pressured(vertex)) == "high" for vertex in view.vertices):
        least = min(least, max(map(busy, ends.values()), default=0.0))
    return [
        vertex
        for vertex in view.vertices
        if vertex.id in ends and busy(vertex) >= least and level_of(busy(vertex)) != "ok"
    ]


def job_back_pressure(call: Call) -> models.JobBackPressure:
    view = JobView(call.job())
    return {
        "roots": [_described(vertex) for vertex in roots(view)],
        "vertices": [_described(vertex) for vertex in view.vertices],
    }


def _described(vertex: VertexView) -> models.BackPressuredVertex:
    ratio = back_pressured(vertex)
    return {
        "id": vertex.id,
        "name": vertex.description.name,
        "level": level_of(ratio),
        "ratio": ratio,
        "busy": busy(vertex),
    }
