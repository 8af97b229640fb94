"""The JobGraph: operators fused into vertices (chains)."""

from __future__ import annotations

from dataclasses import dataclass

from firesteel.graph.stream_graph import FeedbackEdge, StreamEdge, StreamNode


@dataclass(frozen=True, slots=True)
class JobVertex:
    """A chain. ``operators`` are node ids, the head first, every operator after its input."""

    id: int
    name: str
    operators: tuple[int, ...]
    parallelism: int
    max_parallelism: int
    slot_sharing_group: str


@dataclass(frozen=True, slots=True)
class JobGraph:
    """``chained_edges`` run inside a vertex; ``edges`` connect vertices."""

    job_name: str
    nodes: dict[int, StreamNode]
    vertices: tuple[JobVertex, ...]
    chained_edges: tuple[StreamEdge, ...]
    edges: tuple[StreamEdge, ...]
    feedback_edges: tuple[FeedbackEdge, ...] = ()

    def vertex(self, vertex_id: int) -> JobVertex:
        return next(vertex for vertex in self.vertices if vertex.id == vertex_id)

    def vertex_of(self) -> dict[int, JobVertex]:
        """The vertex of every node id."""
        return {node: vertex for vertex in self.vertices for node in vertex.operators}
