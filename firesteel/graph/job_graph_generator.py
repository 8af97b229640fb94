"""StreamGraph -> JobGraph: operators that need no exchange between them become one vertex."""

from __future__ import annotations

from collections.abc import Mapping

from firesteel.graph.graph_settings import GraphSettings
from firesteel.graph.job_graph import JobGraph, JobVertex
from firesteel.graph.partitioning import ShipStrategy
from firesteel.graph.stream_graph import StreamEdge, StreamGraph, StreamNode
from firesteel.graph.transformations import ChainingStrategy


def generate(stream_graph: StreamGraph, settings: GraphSettings) -> JobGraph:
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
    """A vertex has the id of its head: one that a new version of the plan can be compared by."""
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
    """Every operator after its input; a loop, because a chain may be longer than the stack."""
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
    """As Flink names tasks: ``a -> b``, and ``a -> (b, c)`` where a chain forks."""
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
