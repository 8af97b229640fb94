"""What a job has done so far: totals by vertex and subtask, and the user's metrics."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from typing import Any

from firesteel.graph.job_graph import JobVertex
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

    def overview(self, vertices: Iterable[JobVertex]) -> dict[str, Any]:
        """JSON."""
        return {
            "epochs": self.epochs,
            "last_epoch_seconds": self.last_epoch_seconds,
            "longest_epoch_seconds": self.longest_epoch_seconds,
            "vertices": [
                {
                    "id": vertex.id,
                    "name": vertex.name,
                    "subtasks": [
                        {
                            "host": self.hosts.get((vertex.id, subtask)),
                            **asdict(self.vertices.get((vertex.id, subtask), VertexMetrics())),
                        }
                        for subtask in range(vertex.parallelism)
                    ],
                }
                for vertex in vertices
            ],
        }
