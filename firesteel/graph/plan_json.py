"""The execution plan as JSON, in the form that Flink's visualizer reads."""

from __future__ import annotations

import json
from typing import Any

from firesteel.graph.operator_specs import SINK_SPECS, SOURCE_SPECS
from firesteel.graph.stream_graph import FEEDBACK, StreamGraph, StreamNode


def plan_json(stream_graph: StreamGraph) -> str:
    """Sinks come last, otherwise nodes are in the order of the program."""
    ordered = sorted(
        stream_graph.nodes.values(), key=lambda node: (isinstance(node.spec, SINK_SPECS), node.id)
    )
    plan = {"nodes": [_node(node, stream_graph) for node in ordered]}
    return json.dumps(plan, indent=2, ensure_ascii=False)


def _node(node: StreamNode, stream_graph: StreamGraph) -> dict[str, Any]:
    plan_node: dict[str, Any] = {
        "id": node.id,
        "type": node.name,
        "pact": _pact(node),
        "contents": node.description,
        "parallelism": node.parallelism,
    }
    if not isinstance(node.spec, SOURCE_SPECS):
        plan_node["predecessors"] = [
            {
                "id": edge.source,
                "ship_strategy": edge.partitioning.strategy.value,
                # Flink prints "second" for every input, the first one too.
                "side": "second",
            }
            for edge in stream_graph.in_edges(node.id)
        ]
        # No consumer of Flink's plans knows these, but they only draw what they find.
        plan_node["predecessors"] += [
            {"id": edge.tail, "ship_strategy": FEEDBACK, "side": "feedback"}
            for edge in stream_graph.feedback_edges
            if edge.head == node.id
        ]
    return plan_node


def _pact(node: StreamNode) -> str:
    if isinstance(node.spec, SOURCE_SPECS):
        return "Data Source"
    return "Data Sink" if isinstance(node.spec, SINK_SPECS) else "Operator"
