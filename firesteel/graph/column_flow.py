"""The form in which records travel along each edge: as columns, or as rows with the reason.

Rows are records as Python objects.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from firesteel.common.columns import reason_for_rows
from firesteel.common.key_expressions import KeyExpressions
from firesteel.graph.column_aggregation import ColumnAggregation
from firesteel.graph.operator_specs import (
    AggregationSpec,
    BatchFunctionSpec,
    ComputeSpec,
    ConditionSpec,
    DataFrameSourceSpec,
    SourceSpec,
    TimestampsAndWatermarksSpec,
    WindowSpec,
)
from firesteel.graph.partitioning import ShipStrategy
from firesteel.graph.stream_graph import StreamEdge, StreamGraph, StreamNode

# They pass columns on as columns, and rows as rows.
_EITHER_WAY = (ComputeSpec, ConditionSpec, TimestampsAndWatermarksSpec)
_KNOWING = (BatchFunctionSpec, *_EITHER_WAY)
_AGGREGATING = (AggregationSpec, WindowSpec)


def with_column_flow(graph: StreamGraph, *, batch: bool = False) -> StreamGraph:
    """Tell the operators whose whole input consists of columns.

    batch: the job runs by the rules of batch mode.
    """
    flow = column_flow(graph, batch=batch)
    taking = {edge.target for edge in graph.edges} - {
        edge.target for edge in graph.edges if flow[edge.id] is not None
    }
    nodes = {
        node.id: replace(node, takes_columns=True) if node.id in taking else node
        for node in graph.nodes.values()
    }
    return replace(graph, nodes=nodes)


def _uses_columns(graph: StreamGraph) -> bool:
    return any(
        isinstance(node.spec, BatchFunctionSpec | ComputeSpec | ConditionSpec)
        or _reason_of_node(node, {}, graph) is None
        for node in graph.nodes.values()
    )


def forms_of_edges(graph: StreamGraph, *, batch: bool = False) -> dict[int, str]:
    """Return the form of the records on each edge as text. Empty if no operator knows columns."""
    if not _uses_columns(graph):
        return {}
    flow = column_flow(graph, batch=batch)
    return {edge: _form(graph, edge, reason) for edge, reason in flow.items()}


def _form(graph: StreamGraph, edge_id: int, reason: str | None) -> str:
    if reason is not None:
        return f"rows: {reason}"
    target = graph.nodes[next(edge.target for edge in graph.edges if edge.id == edge_id)]
    if isinstance(target.spec, _KNOWING):
        return "columns"
    if isinstance(target.spec, _AGGREGATING):
        found = target.spec.columns
        return "columns" if _aggregates(target) else f"columns, made rows by {target.name}: {found}"
    return f"columns, made rows: {target.name} works on rows"


def _aggregates(node: StreamNode) -> bool:
    """Return True if an aggregation works on columns, when it gets them."""
    spec = node.spec
    return isinstance(spec, _AGGREGATING) and isinstance(spec.columns, ColumnAggregation)


def column_flow(graph: StreamGraph, *, batch: bool = False) -> dict[int, str | None]:
    """Return the reason for which the records of each edge are rows. None stands for columns.

    Operators come after their inputs. An edge that feeds an operator back does not count.
    """
    reasons: dict[int, str | None] = {}
    of_nodes: dict[int, str | None] = {}
    for node in graph.nodes.values():
        of_nodes[node.id] = _reason_of_node(node, reasons, graph)
        for edge in graph.edges:
            if edge.source == node.id:
                reason = of_nodes[node.id]
                reasons[edge.id] = _reason_of_edge(edge, reason, node, batch=batch)
    return reasons


def _reason_of_node(
    node: StreamNode, reasons: Mapping[int, str | None], graph: StreamGraph
) -> str | None:
    """Return the reason for which an operator gives rows, given its inputs."""
    spec = node.spec
    if isinstance(spec, BatchFunctionSpec):
        return None
    if isinstance(spec, SourceSpec | DataFrameSourceSpec):
        if isinstance(spec, SourceSpec) and not spec.source.gives_columns:
            return "the source gives rows"
        lacking = reason_for_rows(node.output_type)
        return None if lacking is None else f"the stream has {lacking}"
    if isinstance(spec, _EITHER_WAY) or _aggregates(node):
        inputs = [reasons.get(edge.id, "") for edge in graph.in_edges(node.id)]
        return next((f"{node.name} gets rows" for one in inputs if one is not None), None)
    return f"{node.name} works on rows"


def _reason_of_edge(
    edge: StreamEdge, of_source: str | None, source: StreamNode, *, batch: bool
) -> str | None:
    if edge.side_output is not None:
        return "side outputs are rows"
    if of_source is not None:
        return of_source
    strategy, selector = edge.partitioning.strategy, edge.partitioning.key_selector
    if strategy is ShipStrategy.HASH:
        if batch:
            return "batch jobs sort rows by key"
        if not isinstance(selector, KeyExpressions):
            return "the key is a function of rows"
        if selector.reason_for_rows is not None:
            return selector.reason_for_rows
    elif strategy is ShipStrategy.CUSTOM:
        return "the partitioner is a function of rows"
    if strategy is not ShipStrategy.FORWARD and source.buffer_timeout == 0:
        return "buffer timeout 0 sends each record as a row"
    return None
