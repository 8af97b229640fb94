"""The JobGraph: operators chained into vertices."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from firesteel.common.typeinfo import TypeInformation
from firesteel.graph.operator_specs import BroadcastProcessSpec
from firesteel.graph.partitioning import ShipStrategy
from firesteel.graph.settings import GraphSettings
from firesteel.graph.stream_graph import FeedbackEdge, StreamEdge, StreamGraph, StreamNode
from firesteel.graph.transformations import ChainingStrategy


@dataclass(frozen=True, slots=True)
class JobVertex:
    """A chain. ``operators`` are node ids: the head first, and every operator after its input."""

    id: int
    name: str
    operators: tuple[int, ...]
    parallelism: int
    max_parallelism: int
    slot_sharing_group: str


@dataclass(frozen=True, slots=True)
class JobGraph:
    """Vertices and edges. ``chained_edges`` are inside a vertex; ``edges`` connect vertices."""

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


def key_types_of(graph: JobGraph) -> dict[int, TypeInformation | None]:
    """The key types of the keyed operators by node id. With two keyed inputs, the first one counts.

    An operator is keyed if all of its inputs are. Otherwise a record without a key, from a union or
    from the other input, would use the state of a different record's key. The broadcast input of a
    BroadcastProcessSpec does not count.
    """
    broadcast = broadcast_edges(graph)
    incoming: defaultdict[int, list[StreamEdge]] = defaultdict(list)
    for edge in graph.edges:
        if edge.id not in broadcast:
            incoming[edge.target].append(edge)
    return {
        node: min(edges, key=lambda edge: edge.input_index).partitioning.key_type
        for node, edges in incoming.items()
        if all(edge.partitioning.strategy is ShipStrategy.HASH for edge in edges)
    }


def broadcast_edges(graph: JobGraph) -> frozenset[int]:
    """The ids of the edges that carry the broadcast side of an operator."""
    return frozenset(
        edge.id
        for edge in graph.edges
        if edge.input_index == 1 and isinstance(graph.nodes[edge.target].spec, BroadcastProcessSpec)
    )


def keyed_edges(graph: JobGraph) -> frozenset[int]:
    """The ids of the edges whose records belong to the keys of a keyed operator."""
    keyed, broadcast = key_types_of(graph), broadcast_edges(graph)
    return frozenset(
        edge.id for edge in graph.edges if edge.target in keyed and edge.id not in broadcast
    )


def generate_job_graph(stream_graph: StreamGraph, settings: GraphSettings) -> JobGraph:
    in_degree = _in_degree(stream_graph)
    chained = tuple(
        edge
        for edge in stream_graph.edges
        if in_degree[edge.target] == 1 and _is_chainable(edge, stream_graph.nodes, settings)
    )
    chained_ids = {edge.id for edge in chained}
    return JobGraph(
        job_name=stream_graph.job_name,
        nodes=stream_graph.nodes,
        vertices=_vertices(stream_graph, chained),
        chained_edges=chained,
        edges=tuple(edge for edge in stream_graph.edges if edge.id not in chained_ids),
        feedback_edges=stream_graph.feedback_edges,
    )


def _in_degree(stream_graph: StreamGraph) -> dict[int, int]:
    in_degree = dict.fromkeys(stream_graph.nodes, 0)
    for edge in stream_graph.edges:
        in_degree[edge.target] += 1
    return in_degree


def _is_chainable(
    edge: StreamEdge, nodes: Mapping[int, StreamNode], settings: GraphSettings
) -> bool:
    """Flink's conditions for an edge, given that it is the only one into its target."""
    upstream, downstream = nodes[edge.source], nodes[edge.target]
    return (
        settings.chaining_enabled
        and edge.partitioning.strategy is ShipStrategy.FORWARD
        and upstream.slot_sharing_group == downstream.slot_sharing_group
        and upstream.parallelism == downstream.parallelism
        and upstream.chaining is not ChainingStrategy.NEVER
        and downstream.chaining is ChainingStrategy.ALWAYS
        and (
            settings.chain_operators_with_different_max_parallelism
            or upstream.max_parallelism == downstream.max_parallelism
        )
    )


def _vertices(stream_graph: StreamGraph, chained: tuple[StreamEdge, ...]) -> tuple[JobVertex, ...]:
    """The chains. A vertex has the id of its head, so that two versions of a plan compare."""
    followers: dict[int, list[int]] = {}
    for edge in chained:
        followers.setdefault(edge.source, []).append(edge.target)
    chained_targets = {edge.target for edge in chained}
    return tuple(
        _vertex(node, stream_graph.nodes, followers)
        for node in stream_graph.nodes.values()
        if node.id not in chained_targets
    )


def _vertex(
    head: StreamNode, nodes: Mapping[int, StreamNode], followers: Mapping[int, list[int]]
) -> JobVertex:
    return JobVertex(
        id=head.id,
        name=_chain_name(head.id, nodes, followers),
        operators=tuple(_depth_first(head.id, followers)),
        parallelism=head.parallelism,
        max_parallelism=head.max_parallelism,
        slot_sharing_group=head.slot_sharing_group,
    )


def _depth_first(head: int, followers: Mapping[int, list[int]]) -> list[int]:
    """Node ids, every operator after its input. Not recursive, because chains can be long."""
    order: list[int] = []
    waiting = [head]
    while waiting:
        node = waiting.pop()
        order.append(node)
        waiting.extend(reversed(followers.get(node, ())))
    return order


def _chain_name(
    head: int, nodes: Mapping[int, StreamNode], followers: Mapping[int, list[int]]
) -> str:
    """The name of a task as in Flink: ``a -> b``, and ``a -> (b, c)`` where a chain forks."""
    names: dict[int, str] = {}
    for node in reversed(_depth_first(head, followers)):
        tails = [names[follower] for follower in followers.get(node, ())]
        name = nodes[node].name
        if len(tails) > 1:
            name = f"{name} -> ({', '.join(tails)})"
        elif tails:
            name = f"{name} -> {tails[0]}"
        names[node] = name
    return names[head]
