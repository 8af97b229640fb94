"""Pictures of the three graphs as text, Mermaid or DOT, and the plan as JSON.

Each graph becomes a Picture of boxes, frames and arrows. Each format renders a Picture.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from firesteel.graph.execution_graph import execution_graph
from firesteel.graph.job_graph import JobGraph, JobVertex
from firesteel.graph.levels import Levels
from firesteel.graph.operator_specs import SINK_SPECS, SOURCE_SPECS
from firesteel.graph.stream_graph import FEEDBACK, StreamEdge, StreamGraph, StreamNode
from firesteel.graph.transformations import ChainingStrategy

_NO_FORMS: Mapping[int, str] = {}


@dataclass(frozen=True, slots=True)
class Box:
    """A labeled box. ``details`` are lines below the title."""

    id: str
    title: str
    details: tuple[str, ...] = ()
    frame: str | None = None


@dataclass(frozen=True, slots=True)
class Arrow:
    """A labeled arrow. ``local`` ones stay in a slot."""

    source: str
    target: str
    label: str
    local: bool = False


@dataclass(frozen=True, slots=True)
class Picture:
    """A drawing. ``notes`` are lines below it."""

    title: str
    boxes: tuple[Box, ...]
    arrows: tuple[Arrow, ...]
    notes: tuple[str, ...] = ()


# -- graphs to pictures ------------------------------------------------------------------------


def picture_of_stream_graph(graph: StreamGraph, forms: Mapping[int, str] = _NO_FORMS) -> Picture:
    """Draw the operators. ``forms`` has the form of the records on each edge."""
    return Picture(
        title=f"StreamGraph of '{graph.job_name}'",
        boxes=tuple(
            Box(str(node.id), node.name, _node_details(node)) for node in graph.nodes.values()
        ),
        arrows=tuple(
            Arrow(str(edge.source), str(edge.target), _edge_label(edge, forms))
            for edge in graph.edges
        )
        + tuple(Arrow(str(e.tail), str(e.head), FEEDBACK) for e in graph.feedback_edges),
    )


def picture_of_job_graph(graph: JobGraph, forms: Mapping[int, str] = _NO_FORMS) -> Picture:
    """Draw the chains. ``forms`` has the form of the records on each edge."""
    vertex_of = graph.vertex_of()
    return Picture(
        title=f"JobGraph of '{graph.job_name}'",
        boxes=tuple(
            Box(str(vertex.id), vertex.name, (_places(vertex),)) for vertex in graph.vertices
        ),
        arrows=tuple(
            Arrow(
                str(vertex_of[edge.source].id),
                str(vertex_of[edge.target].id),
                _edge_label(edge, forms),
            )
            for edge in graph.edges
        )
        + tuple(
            Arrow(str(vertex_of[e.tail].id), str(vertex_of[e.head].id), FEEDBACK)
            for e in graph.feedback_edges
        ),
    )


def picture_of_levels(levels: Levels) -> Picture:
    """The ExecutionGraph, with a frame for each slot of each level."""
    graph = execution_graph(levels)
    return Picture(
        title=f"ExecutionGraph of '{graph.job_name}'",
        boxes=tuple(
            Box(
                f"{vertex.vertex}.{vertex.subtask}",
                vertex.name,
                frame=f"level {vertex.level} slot {vertex.slot} of {graph.slots[vertex.level]}",
            )
            for vertex in sorted(graph.vertices, key=lambda v: (v.level, v.slot, v.vertex))
        ),
        arrows=tuple(
            Arrow(
                f"{edge.source.vertex}.{edge.source.subtask}",
                f"{edge.target.vertex}.{edge.target.subtask}",
                edge.ship_strategy,
                edge.local,
            )
            for edge in graph.edges
        ),
    )


def note_on_slots(levels: Levels, *, batch: bool) -> str:
    """Return the task slots that Spark must have for the job."""
    one_level = f"{levels.required_slots} (the largest level)"
    if batch:
        return f"task slots: {one_level}"
    parts = " + ".join(map(str, levels.slots))
    live = f"{levels.required_live_slots}" + (f" ({parts})" if len(levels.slots) > 1 else "")
    return f"task slots: {live} in real time, {one_level} in micro-batches"


def _places(operators: StreamNode | JobVertex) -> str:
    return (
        f"parallelism {operators.parallelism}/{operators.max_parallelism}, "
        f"group {operators.slot_sharing_group}"
    )


def _node_details(node: StreamNode) -> tuple[str, ...]:
    details = [_places(node)]
    if node.chaining is not ChainingStrategy.ALWAYS:
        details.append(f"chaining {node.chaining.value}")
    if node.uid is not None:
        details.append(f"uid {node.uid}")
    return tuple(details)


def _edge_label(edge: StreamEdge, forms: Mapping[int, str]) -> str:
    label = edge.partitioning.strategy.value
    if edge.input_index:
        label += f" input {edge.input_index + 1}"
    if edge.side_output is not None:
        label += f" side output '{edge.side_output}'"
    if edge.id in forms:
        label += f", {forms[edge.id]}"
    return label


# -- pictures to text --------------------------------------------------------------------------


def as_text(picture: Picture) -> str:
    """One paragraph per box, with its outgoing arrows."""
    lines = [picture.title]
    frame = None
    for box in picture.boxes:
        if box.frame != frame:
            frame = box.frame
            lines.append(f"{frame}:")
        lines.append(f"  [{box.id}] {box.title}")
        lines += [f"        {detail}" for detail in box.details]
        lines += [
            f"    --{arrow.label}{' (local)' if arrow.local else ''}--> [{arrow.target}]"
            for arrow in picture.arrows
            if arrow.source == box.id
        ]
    return "\n".join([*lines, *picture.notes]) + "\n"


def as_mermaid(picture: Picture) -> str:
    lines = [f"%% {text}" for text in (picture.title, *picture.notes)]
    lines.append("flowchart LR")
    for number, (frame, boxes) in enumerate(_by_frame(picture)):
        indent = "    "
        if frame is not None:
            lines.append(f'    subgraph frame{number}["{_mermaid_text(frame)}"]')
            indent = "        "
        for box in boxes:
            text = "<br/>".join(_mermaid_text(line) for line in (box.title, *box.details))
            lines.append(f'{indent}{_mermaid_id(box.id)}["{text}"]')
        if frame is not None:
            lines.append("    end")
    for arrow in picture.arrows:
        line = "-.->" if arrow.local else "-->"
        lines.append(
            f'    {_mermaid_id(arrow.source)} {line}|"{_mermaid_text(arrow.label)}"| '
            f"{_mermaid_id(arrow.target)}"
        )
    return "\n".join(lines) + "\n"


def as_dot(picture: Picture) -> str:
    lines = [f"digraph {_dot_text(picture.title)} {{", "  rankdir=LR;", "  node [shape=box];"]
    for number, (frame, boxes) in enumerate(_by_frame(picture)):
        indent = "  "
        if frame is not None:
            lines += [f"  subgraph cluster_{number} {{", f"    label={_dot_text(frame)};"]
            indent = "    "
        for box in boxes:
            text = "\n".join((box.title, *box.details))
            lines.append(f"{indent}{_dot_text(box.id)} [label={_dot_text(text)}];")
        if frame is not None:
            lines.append("  }")
    for arrow in picture.arrows:
        style = ", style=dashed" if arrow.local else ""
        lines.append(
            f"  {_dot_text(arrow.source)} -> {_dot_text(arrow.target)} "
            f"[label={_dot_text(arrow.label)}{style}];"
        )
    lines += [f"  // {note}" for note in picture.notes]
    return "\n".join([*lines, "}"]) + "\n"


def _by_frame(picture: Picture) -> list[tuple[str | None, list[Box]]]:
    frames: dict[str | None, list[Box]] = {}
    for box in picture.boxes:
        frames.setdefault(box.frame, []).append(box)
    return list(frames.items())


def _mermaid_id(box_id: str) -> str:
    return f"n{box_id.replace('.', '_')}"


def _mermaid_text(text: str) -> str:
    return (
        text.replace("&", "#amp;")
        .replace('"', "#quot;")
        .replace("<", "#lt;")
        .replace(">", "#gt;")
        .replace("\n", " ")
    )


def _dot_text(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def plan_json(stream_graph: StreamGraph) -> str:
    """Flink's JSON plan. Sinks come last; otherwise nodes are in the order of the program."""
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
                # Flink prints "second" for every input, including the first one.
                "side": "second",
            }
            for edge in stream_graph.in_edges(node.id)
        ]
        # Flink has no such entry. Consumers of its plans ignore unknown values.
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
