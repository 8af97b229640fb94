"""Metrics of a job, added up from the acks of its epochs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from firesteel.graph.job_graph import JobVertex
from firesteel.metrics import OperatorSnapshots, counter_totals, job_report
from firesteel.protocol.messages import SubtaskAck, VertexMetrics


@dataclass(slots=True)
class JobMetrics:
    """Totals by vertex and subtask, and the user's metrics."""

    # By node, in the order of the program.
    operator_names: Mapping[int, str]
    vertices: dict[tuple[int, int], VertexMetrics] = field(default_factory=dict)
    user: dict[tuple[int, int], OperatorSnapshots] = field(default_factory=dict)
    hosts: dict[tuple[int, int], str] = field(default_factory=dict)
    epochs: int = 0
    last_epoch_seconds: float = 0.0
    longest_epoch_seconds: float = 0.0

    def take(self, ack: SubtaskAck, host: str) -> None:
        key = (ack.vertex, ack.subtask)
        self.hosts[key] = host
        if ack.user_metrics:
            self.user[key] = ack.user_metrics
        total, epoch = self.vertices.setdefault(key, VertexMetrics()), ack.metrics
        total.records_in += epoch.records_in
        total.records_out += epoch.records_out
        total.bytes_in += epoch.bytes_in
        total.bytes_out += epoch.bytes_out
        total.busy_seconds += epoch.busy_seconds

    def overview(self, vertices: Iterable[JobVertex]) -> dict[str, Any]:
        """Return the totals of all subtasks as JSON."""
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

    def user_metrics(self) -> dict[str, Any]:
        return job_report(self.operator_names, self._by_subtask())

    def user_counters(self) -> dict[str, int]:
        return counter_totals(self.operator_names, self._by_subtask())

    def _by_subtask(self) -> list[OperatorSnapshots]:
        # A copy first: the job's thread continues while other threads ask.
        found = list(self.user.items())
        return [snapshots for _, snapshots in sorted(found, key=lambda item: item[0])]
