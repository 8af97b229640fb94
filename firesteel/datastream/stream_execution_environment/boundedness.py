"""Which sources never end, and what cannot be done with their records."""

from __future__ import annotations

from firesteel.datastream.connectors.base import Boundedness
from firesteel.errors import InvalidProgramError
from firesteel.graph.operator_specs import (
    DataFrameSourceSpec,
    KeyedAggregationSpec,
    OperatorSpec,
    SourceSpec,
)
from firesteel.graph.stream_graph import StreamGraph, StreamNode


def unbounded_sources(stream_graph: StreamGraph) -> list[str]:
    """The names of the sources that do not end by themselves."""
    return [node.name for node in stream_graph.nodes.values() if _is_unbounded(node.spec)]


def check_final_results(stream_graph: StreamGraph) -> None:
    """What is emitted when it is final must become final."""
    for node in stream_graph.nodes.values():
        if isinstance(node.spec, KeyedAggregationSpec) and node.spec.output_mode == "append":
            endless = _unbounded_source_of(stream_graph, node)
            if endless is not None:
                raise InvalidProgramError(
                    f"'{node.name}': output_mode('append') on a keyed stream waits until no record "
                    f"can change a result any more, which is at the end of the input, and "
                    f"'{endless}' never ends. Use windows, of which each one ends, or "
                    f"output_mode('update')."
                )


def _unbounded_source_of(stream_graph: StreamGraph, node: StreamNode) -> str | None:
    waiting, seen = [node.id], {node.id}
    while waiting:
        current = waiting.pop()
        if _is_unbounded(stream_graph.nodes[current].spec):
            return stream_graph.nodes[current].name
        sources = {edge.source for edge in stream_graph.in_edges(current)} - seen
        waiting += sources
        seen |= sources
    return None


def _is_unbounded(spec: OperatorSpec) -> bool:
    if isinstance(spec, DataFrameSourceSpec):
        return not spec.bounded
    if isinstance(spec, SourceSpec):
        return bool(spec.source.get_boundedness() is not Boundedness.BOUNDED)
    return False
