"""Levels: the assignment of vertices to Spark stages and of subtasks to slots."""

from __future__ import annotations

from dataclasses import dataclass

from firesteel.graph.job_graph import JobGraph, JobVertex
from firesteel.graph.operator_specs import DataFrameSourceSpec
from firesteel.graph.partitioning import ShipStrategy
from firesteel.graph.stream_graph import StreamEdge


@dataclass(frozen=True, slots=True)
class Levels:
    """A job graph with its levels and slots.

    ``level_of``: the level of each vertex.
    ``slot_offset``: by slot sharing group g, subtask i of a vertex runs in slot ``slot_offset[g] + i``.
    ``slots``: the number of slots of each level, which is its number of Spark partitions.
    ``local_edges``: ids of the edges that stay in the memory of a slot. Others cross an exchange.
    """

    job_graph: JobGraph
    level_of: dict[int, int]
    slot_offset: dict[str, int]
    slots: tuple[int, ...]
    local_edges: frozenset[int]

    @property
    def required_slots(self) -> int:
        """The task slots for one level after the other."""
        return max(self.slots)

    @property
    def required_live_slots(self) -> int:
        """The task slots for all levels at the same time."""
        return sum(self.slots)


def assign_levels(job_graph: JobGraph) -> Levels:
    """Assign levels: the longest path from a source, counting the edges that leave a slot."""
    vertex_of = job_graph.vertex_of()
    level_of = _level_of(job_graph, vertex_of)
    slot_offset = _slot_offsets(job_graph)
    local_edges = frozenset(
        edge.id
        for edge in job_graph.edges
        if _stays_in_slot(edge, vertex_of)
        and level_of[vertex_of[edge.source].id] == level_of[vertex_of[edge.target].id]
    )
    return Levels(
        job_graph=job_graph,
        level_of=level_of,
        slot_offset=slot_offset,
        slots=_slots(job_graph, level_of, slot_offset),
        local_edges=local_edges,
    )


def _stays_in_slot(edge: StreamEdge, vertex_of: dict[int, JobVertex]) -> bool:
    """True if subtask i sends to subtask i only, and both run in the same slot."""
    upstream, downstream = vertex_of[edge.source], vertex_of[edge.target]
    return (
        edge.partitioning.strategy is ShipStrategy.FORWARD
        and upstream.slot_sharing_group == downstream.slot_sharing_group
        and upstream.parallelism == downstream.parallelism
    )


def _level_of(job_graph: JobGraph, vertex_of: dict[int, JobVertex]) -> dict[int, int]:
    incoming: dict[int, list[StreamEdge]] = {vertex.id: [] for vertex in job_graph.vertices}
    for edge in job_graph.edges:
        incoming[vertex_of[edge.target].id].append(edge)
    level_of: dict[int, int] = {}
    # The order of ids is topological: the id of a head is lower than those of its chain, and the
    # id of an input is lower than that of its consumer.
    for vertex in sorted(job_graph.vertices, key=lambda vertex: vertex.id):
        # Level 0 reads from the clock. Spark reads a DataFrame, so its source is at level 1.
        from_data_frame = isinstance(job_graph.nodes[vertex.operators[0]].spec, DataFrameSourceSpec)
        level_of[vertex.id] = max(
            [
                1 if from_data_frame else 0,
                *(
                    level_of[vertex_of[edge.source].id] + (not _stays_in_slot(edge, vertex_of))
                    for edge in incoming[vertex.id]
                ),
            ]
        )
    return level_of


def _slot_offsets(job_graph: JobGraph) -> dict[str, int]:
    """Groups lie side by side, in the order of the program, each as wide as its widest vertex."""
    width: dict[str, int] = {}
    for vertex in job_graph.vertices:
        group = vertex.slot_sharing_group
        width[group] = max(width.get(group, 0), vertex.parallelism)
    offsets: dict[str, int] = {}
    offset = 0
    for group, slots in width.items():
        offsets[group] = offset
        offset += slots
    return offsets


def _slots(
    job_graph: JobGraph, level_of: dict[int, int], slot_offset: dict[str, int]
) -> tuple[int, ...]:
    slots = [1] * (max(level_of.values()) + 1)
    for vertex in job_graph.vertices:
        level = level_of[vertex.id]
        last_slot = slot_offset[vertex.slot_sharing_group] + vertex.parallelism
        slots[level] = max(slots[level], last_slot)
    return tuple(slots)
