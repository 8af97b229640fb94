"""The job as the coordinator sees it: operators, their subtasks, and what these report."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from firesteel.checkpoint.metadata import SubtaskState
from firesteel.checkpoint.state_descriptions import StateDescription
from firesteel.graph.job_graph import JobGraph
from firesteel.graph.operator_specs import SourceSpec

__all__ = [
    "NO_TIMING",
    "OperatorInfo",
    "TaskAck",
    "TaskId",
    "TaskTiming",
    "operators_of",
    "tasks_of",
]

TaskId = tuple[int, int]
"""A vertex and the index of one of its subtasks."""


@dataclass(frozen=True, slots=True)
class OperatorInfo:
    """What a checkpoint says of an operator besides its state."""

    operator_id: str
    uid: str | None
    name: str
    parallelism: int
    max_parallelism: int
    vertex: int
    vertex_name: str = ""
    is_source: bool = False


@dataclass(frozen=True, slots=True)
class TaskTiming:
    """Seconds. ``start_delay``: from the trigger until the first barrier reached the subtask.

    ``alignment``: from there to its last barrier. ``sync``: while processing stood still.
    ``asynchronous``: what was written for this checkpoint while processing went on; that had begun
    long before the barrier, so the checkpoint did not wait for it.
    """

    start_delay: float = 0.0
    alignment: float = 0.0
    sync: float = 0.0
    asynchronous: float = 0.0

    @property
    def total(self) -> float:
        """What the checkpoint waited for."""
        return self.start_delay + self.alignment + self.sync


NO_TIMING = TaskTiming()


@dataclass(frozen=True, slots=True)
class TaskAck:
    """The snapshot of one subtask of a vertex: the states of its operators by operator id.

    ``states`` describe what is in them, as far as the subtask knows.
    """

    task: TaskId
    operators: Mapping[str, SubtaskState] = field(default_factory=dict)
    states: Mapping[str, tuple[StateDescription, ...]] = field(default_factory=dict)
    timing: TaskTiming = NO_TIMING


def operators_of(graph: JobGraph) -> tuple[OperatorInfo, ...]:
    return tuple(
        OperatorInfo(
            operator_id=node.operator_id,
            uid=node.uid,
            name=node.name,
            parallelism=vertex.parallelism,
            max_parallelism=node.max_parallelism,
            vertex=vertex.id,
            vertex_name=vertex.name,
            is_source=isinstance(node.spec, SourceSpec),
        )
        for vertex in graph.vertices
        for node in (graph.nodes[operator] for operator in vertex.operators)
    )


def tasks_of(operators: Iterable[OperatorInfo]) -> frozenset[TaskId]:
    return frozenset(
        (operator.vertex, subtask)
        for operator in operators
        for subtask in range(operator.parallelism)
    )
