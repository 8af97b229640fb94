"""The ExecutionGraph: every subtask with its level and slot. It is for display only."""

from __future__ import annotations

from dataclasses import dataclass

from firesteel.graph.levels import Levels
from firesteel.graph.partitioning import target_subtasks
from firesteel.graph.stream_graph import FEEDBACK


@dataclass(frozen=True, slots=True)
class ExecutionVertex:
    """Subtask ``subtask`` of a job vertex, in slot ``slot`` of level ``level``."""

    vertex: int
    subtask: int
    name: str
    level: int
    slot: int


@dataclass(frozen=True, slots=True)
class ExecutionEdge:
    """A channel between two subtasks. A ``local`` channel stays in the memory of a slot."""

    source: ExecutionVertex
    target: ExecutionVertex
    ship_strategy: str
    local: bool


@dataclass(frozen=True, slots=True)
class ExecutionGraph:
    job_name: str
    vertices: tuple[ExecutionVertex, ...]
    edges: tuple[ExecutionEdge, ...]
    slots: tuple[int, ...]


def execution_graph(levels: Levels) -> ExecutionGraph:
    job_graph = levels.job_graph
    subtasks = {
        vertex.id: [
            ExecutionVertex(
                vertex=vertex.id,
                subtask=subtask,
                name=f"{vertex.name} ({subtask + 1}/{vertex.parallelism})",
                level=levels.level_of[vertex.id],
                slot=levels.slot_offset[vertex.slot_sharing_group] + subtask,
            )
            for subtask in range(vertex.parallelism)
        ]
        for vertex in job_graph.vertices
    }
    vertex_of = job_graph.vertex_of()
    edges = [
        ExecutionEdge(
            source=upstream,
            target=subtasks[vertex_of[edge.target].id][target],
            ship_strategy=edge.partitioning.strategy.value,
            local=edge.id in levels.local_edges,
        )
        for edge in job_graph.edges
        for upstream in subtasks[vertex_of[edge.source].id]
        for target in target_subtasks(
            edge.partitioning.strategy,
            upstream.subtask,
            vertex_of[edge.source].parallelism,
            vertex_of[edge.target].parallelism,
        )
    ]
    edges += [
        ExecutionEdge(tail, head, FEEDBACK, local=False)
        for edge in job_graph.feedback_edges
        for tail, head in zip(
            subtasks[vertex_of[edge.tail].id], subtasks[vertex_of[edge.head].id], strict=True
        )
    ]
    return ExecutionGraph(
        job_name=job_graph.job_name,
        vertices=tuple(subtask for group in subtasks.values() for subtask in group),
        edges=tuple(edges),
        slots=levels.slots,
    )
