"""Flame graphs: samples of the stacks of a vertex, taken on request and kept for some seconds."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

from firesteel.rest import models
from firesteel.rest.calls import Call, RestError
from firesteel.rest.job_view import JobView, VertexView, now_millis

# Flink's defaults are 100 samples, 50 ms apart, and a new graph every minute.
_SAMPLE_SECONDS = 3.0
_REFRESH_SECONDS = 10.0
# Vertices whose samples are kept.
_MOST = 100
_WAITING = -1
_TYPES = ("full", "on_cpu", "off_cpu")

Sample = Mapping[str, Any]


@dataclass(slots=True)
class _Samples:
    """Samples of one subtask each. ``asked_at`` is in seconds of the monotonic clock."""

    asked_at: float
    futures: list[Future[Any]]
    # The complete samples before these.
    previous: tuple[int, list[Sample]] | None = None
    ended_at: int = _WAITING

    def is_complete(self) -> bool:
        return all(future.done() for future in self.futures)

    def found(self) -> list[Sample]:
        return [
            sample
            for future in self.futures
            if future.exception() is None
            for sample in future.result().get("stacks", [])
        ]


@dataclass(slots=True)
class FlameGraphs:
    """The samples by job, vertex and subtask."""

    clock: Callable[[], float] = time.monotonic
    _known: dict[tuple[str, str, int | None], _Samples] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def find(
        self, key: tuple[str, str, int | None], ask: Callable[[], list[Future[Any]]]
    ) -> tuple[int, list[Sample]] | None:
        """Return the newest complete samples and their time, or None while there are none.

        Args:
            key: Job, vertex and subtask.
            ask: Begins to sample. It is called if the samples are too old.
        """
        with self._lock:
            samples = self._known.get(key)
            if samples is not None and not samples.is_complete():
                return samples.previous
            now = self.clock()
            complete = None
            if samples is not None:
                if samples.ended_at == _WAITING:
                    samples.ended_at = now_millis()
                complete = (samples.ended_at, samples.found())
                if now - samples.asked_at < _REFRESH_SECONDS:
                    return complete
            while len(self._known) >= _MOST:
                del self._known[next(iter(self._known))]
            self._known[key] = _Samples(now, ask(), complete)
            return complete


def flame_graph(call: Call) -> models.FlameGraph:
    """Return the newest graph. The first call of a vertex begins to sample, and has none yet."""
    kind = (call.one("type") or "full").lower()
    if kind not in _TYPES:
        raise RestError(400, f"type must be one of {', '.join(_TYPES)}, got {kind!r}.")
    view = JobView(call.job())
    vertex = view.vertex(call)
    only = call.count("subtaskindex", -1)
    if view.status.is_terminal_state() or only >= len(vertex.subtasks):
        return {"endTimestamp": _WAITING, "data": None}
    index = only if only >= 0 else None
    found = call.flame_graphs.find((view.id, vertex.id, index), lambda: _ask(view, vertex, index))
    if found is None:
        return {"endTimestamp": _WAITING, "data": None}
    ended_at, samples = found
    wanted = [one for one in samples if kind == "full" or one["on_cpu"] == (kind == "on_cpu")]
    return {"endTimestamp": ended_at, "data": tree_of(wanted)}


def _ask(view: JobView, vertex: VertexView, index: int | None) -> list[Future[Any]]:
    description = vertex.description
    return [
        view.job.ask_slot(
            description.level,
            description.slot_offset + subtask.index,
            "stacks",
            {"seconds": _SAMPLE_SECONDS},
        )
        for subtask in vertex.subtasks
        if index is None or subtask.index == index
    ]


def tree_of(samples: Iterable[Sample]) -> models.FlameGraphNode:
    """Merge stacks with the same beginning."""
    root: models.FlameGraphNode = {"name": "root", "value": 0, "children": []}
    for sample in samples:
        node = root
        node["value"] += sample["samples"]
        for function in sample["functions"]:
            node = _child(node, function)
            node["value"] += sample["samples"]
    return root


def _child(node: models.FlameGraphNode, function: str) -> models.FlameGraphNode:
    children: list[models.FlameGraphNode] = node["children"]
    for child in children:
        if child["name"] == function:
            return child
    children.append({"name": function, "value": 0, "children": []})
    return children[-1]
