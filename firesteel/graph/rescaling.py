"""Changes of parallelism of a compiled job: the chains stay, and their number of subtasks changes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from firesteel.errors import InvalidProgramError
from firesteel.graph.job_graph import JobGraph, JobVertex
from firesteel.graph.levels import Levels, assign_levels
from firesteel.graph.operator_specs import DataFrameSinkSpec, DataFrameSourceSpec
from firesteel.graph.partitioning import ShipStrategy
from firesteel.graph.stream_graph import StreamGraph


def highest_parallelism(graph: JobGraph) -> dict[int, int]:
    """Return the parallelism that each vertex can have at most, by vertex id.

    Vertices whose subtasks send to the subtask of the same number only have a common limit.
    """
    limits = {}
    for group in tied_vertices(graph):
        nodes = [graph.nodes[node] for vertex in group for node in vertex.operators]
        limit = min(node.max_parallelism for node in nodes)
        limits.update(dict.fromkeys((vertex.id for vertex in group), limit))
    return limits


def uniform_parallelism(graph: JobGraph, parallelism: int) -> dict[int, int]:
    """Return a parallelism for each vertex: the given one, or its limit if that is lower."""
    return {vertex: min(parallelism, limit) for vertex, limit in highest_parallelism(graph).items()}


def rescale(levels: Levels, parallelism: Mapping[int, int]) -> Levels:
    """Return the levels of the same job with a different parallelism, by vertex id.

    A vertex that is tied to others takes the parallelism that one of them is given.

    Raises:
        InvalidProgramError: A vertex cannot have its parallelism.
    """
    graph = levels.job_graph
    _check_data_frames(graph)
    wanted = _agreed(graph, parallelism)
    limits = highest_parallelism(graph)
    for vertex in graph.vertices:
        if not 1 <= wanted[vertex.id] <= limits[vertex.id]:
            raise InvalidProgramError(
                f"'{vertex.name}' cannot have parallelism {wanted[vertex.id]}: it can have 1 to "
                f"{limits[vertex.id]}. The maximum parallelism of a running job cannot change."
            )
    vertex_of = graph.vertex_of()
    nodes = {
        node.id: replace(node, parallelism=wanted[vertex_of[node.id].id])
        for node in graph.nodes.values()
    }
    vertices = tuple(replace(one, parallelism=wanted[one.id]) for one in graph.vertices)
    return assign_levels(replace(graph, nodes=nodes, vertices=vertices))


def rescaled_stream_graph(graph: StreamGraph, levels: Levels) -> StreamGraph:
    """Return the stream graph with the parallelism of the levels."""
    nodes = {
        node.id: replace(node, parallelism=levels.job_graph.nodes[node.id].parallelism)
        for node in graph.nodes.values()
    }
    return replace(graph, nodes=nodes)


def tied_vertices(graph: JobGraph) -> list[list[JobVertex]]:
    """Return groups of vertices that must have the same parallelism. Most groups have one vertex."""
    vertex_of = graph.vertex_of()
    group_of = {vertex.id: [vertex] for vertex in graph.vertices}
    for first, second in _ties(graph):
        one, other = group_of[vertex_of[first].id], group_of[vertex_of[second].id]
        if one is not other:
            one += other
            group_of.update((vertex.id, one) for vertex in other)
    return list({id(group): group for group in group_of.values()}.values())


def _ties(graph: JobGraph) -> Iterable[tuple[int, int]]:
    for edge in graph.edges:
        if edge.partitioning.strategy is ShipStrategy.FORWARD:
            yield edge.source, edge.target
    for feedback in graph.feedback_edges:
        yield feedback.tail, feedback.head


def _agreed(graph: JobGraph, parallelism: Mapping[int, int]) -> dict[int, int]:
    agreed = {}
    for group in tied_vertices(graph):
        changed = {
            parallelism[vertex.id]
            for vertex in group
            if parallelism.get(vertex.id, vertex.parallelism) != vertex.parallelism
        }
        if len(changed) > 1:
            names = ", ".join(f"'{vertex.name}'" for vertex in group)
            raise InvalidProgramError(
                f"These vertices must have the same parallelism, because each subtask sends to the "
                f"subtask of the same number only: {names}."
            )
        for vertex in group:
            agreed[vertex.id] = next(iter(changed), vertex.parallelism)
    return agreed


def _check_data_frames(graph: JobGraph) -> None:
    for node in graph.nodes.values():
        if isinstance(node.spec, DataFrameSourceSpec | DataFrameSinkSpec):
            raise InvalidProgramError(
                f"'{node.name}' is a DataFrame, so the running job cannot be rescaled. Stop it with "
                "a savepoint, and start it from there with a different parallelism."
            )
