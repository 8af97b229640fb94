"""What a job has done so far: totals by vertex and subtask, and the user's metrics."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from firesteel.task.messages import VertexMetrics


@dataclass(slots=True)
class JobMetrics:
    """Keys are (vertex, subtask)."""

    vertices: dict[tuple[int, int], VertexMetrics] = field(default_factory=dict)
    user: dict[tuple[int, int], dict[str, Any]] = field(default_factory=dict)
    hosts: dict[tuple[int, int], str] = field(default_factory=dict)
    epochs: int = 0
    last_epoch_seconds: float = 0.0
    longest_epoch_seconds: float = 0.0

    def add(self, key: tuple[int, int], epoch: VertexMetrics) -> None:
        total = self.vertices.setdefault(key, VertexMetrics())
        total.records_in += epoch.records_in
        total.records_out += epoch.records_out
        total.bytes_in += epoch.bytes_in
        total.bytes_out += epoch.bytes_out
        total.busy_seconds += epoch.busy_seconds
