"""Which operators have keys, and of what types."""

from __future__ import annotations

from collections import defaultdict

from firesteel.common.typeinfo import TypeInformation
from firesteel.graph.job_graph import JobGraph
from firesteel.graph.operator_specs import BroadcastProcessSpec
from firesteel.graph.partitioning import ShipStrategy
from firesteel.graph.stream_graph import StreamEdge


def key_types_of(graph: JobGraph) -> dict[int, TypeInformation | None]:
    """The types of the keys, by node; of a node with two keyed inputs, those of the first.

    An operator has keys if all that it gets is keyed: a record without one, from a union or from the other side
    of a connection, would work in the state of somebody else's key. Only what is broadcast to rules has none.
    """
    incoming: defaultdict[int, list[StreamEdge]] = defaultdict(list)
    for edge in graph.edges:
        broadcast = edge.input_index == 1 and isinstance(
            graph.nodes[edge.target].spec, BroadcastProcessSpec
        )
        if not broadcast:
            incoming[edge.target].append(edge)
    return {
        node: min(edges, key=lambda edge: edge.input_index).partitioning.key_type
        for node, edges in incoming.items()
        if all(edge.partitioning.strategy is ShipStrategy.HASH for edge in edges)
    }
