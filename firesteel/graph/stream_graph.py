"""The StreamGraph: one node per operator, one edge per stream between two of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from firesteel.graph.operator_specs import OperatorSpec
from firesteel.graph.partitioning import Partitioning
from firesteel.graph.transformations import ChainingStrategy

FEEDBACK = "FEEDBACK"
"""How plans and pictures call the way from the tail of a loop to its head."""


@dataclass(frozen=True, slots=True)
class StreamNode:
    """An operator with all of its settings decided. ``operator_id`` is stable across restarts."""

    id: int
    operator_id: str
    name: str
    description: str
    spec: OperatorSpec
    parallelism: int
    max_parallelism: int
    slot_sharing_group: str
    chaining: ChainingStrategy
    buffer_timeout: int
    output_type: Any = None
    uid: str | None = None
    # By the program or its configuration; else it was derived, and gives way to a checkpoint's.
    max_parallelism_is_set: bool = False
    # Types of the side outputs that are read, by tag id.
    side_output_types: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class StreamEdge:
    """``input_index`` is 0, or 1 for the second input of a connected stream."""

    id: int
    source: int
    target: int
    partitioning: Partitioning
    input_index: int = 0
    side_output: str | None = None


@dataclass(frozen=True, slots=True)
class FeedbackEdge:
    """From the tail of a loop to its head, subtask i to subtask i, one epoch later.

    It is none of the edges of a graph: without it there are no cycles.
    """

    tail: int
    head: int


@dataclass(frozen=True, slots=True)
class StreamGraph:
    """``driver_objects`` (by node id) never leave the driver."""

    job_name: str
    nodes: dict[int, StreamNode]
    edges: tuple[StreamEdge, ...]
    driver_objects: dict[int, Any]
    feedback_edges: tuple[FeedbackEdge, ...] = ()

    def in_edges(self, node_id: int) -> tuple[StreamEdge, ...]:
        return tuple(edge for edge in self.edges if edge.target == node_id)
