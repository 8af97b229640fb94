"""The StreamGraph: one node per operator, one edge per stream between two of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from firesteel.graph.operator_specs import OperatorSpec
from firesteel.graph.partitioning import Partitioning
from firesteel.graph.transformations import ChainingStrategy

FEEDBACK = "FEEDBACK"
"""The ship strategy that plans and pictures show for the edge from a tail to its head."""


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
    # By the program or its configuration. A derived value gives way to that of a checkpoint.
    max_parallelism_is_set: bool = False
    # Types of the side outputs with consumers, by tag id.
    side_output_types: dict[str, Any] = field(default_factory=dict)
    # All records arrive as columns (see ``graph.column_flow``).
    takes_columns: bool = False


@dataclass(frozen=True, slots=True)
class StreamEdge:
    """A stream. ``input_index`` is 0, or 1 for the second input of a connected stream."""

    id: int
    source: int
    target: int
    partitioning: Partitioning
    input_index: int = 0
    side_output: str | None = None


@dataclass(frozen=True, slots=True)
class FeedbackEdge:
    """From the tail of an iteration to its head, subtask i to subtask i, one epoch later.

    It is not among the edges of a graph, so the graph has no cycles.
    """

    tail: int
    head: int


@dataclass(frozen=True, slots=True)
class StreamGraph:
    """Operators and streams. ``driver_objects``, by node id, never leave the driver."""

    job_name: str
    nodes: dict[int, StreamNode]
    edges: tuple[StreamEdge, ...]
    driver_objects: dict[int, Any]
    feedback_edges: tuple[FeedbackEdge, ...] = ()

    def in_edges(self, node_id: int) -> tuple[StreamEdge, ...]:
        return tuple(edge for edge in self.edges if edge.target == node_id)
