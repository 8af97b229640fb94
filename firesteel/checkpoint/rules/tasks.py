"""Operators, tasks and their acks, as the coordinator needs them."""

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
"""A vertex id and the index of a subtask."""


@dataclass(frozen=True, slots=True)
class OperatorInfo:
    """The facts about an operator that a checkpoint records."""

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
    """Durations of a snapshot in seconds.

    ``start_delay``: from the trigger to the first barrier of the subtask.
    ``alignment``: from the first to the last barrier.
    ``sync``: the time for which processing paused.
    ``asynchronous``: the time of writing in the background, before the barrier. The checkpoint does
    not wait for it.
    ``is_unaligned``: the barrier has overtaken records. ``persisted_bytes`` of them are part of the
    checkpoint.
    """

    start_delay: float = 0.0
    alignment: float = 0.0
    sync: float = 0.0
    asynchronous: float = 0.0
    is_unaligned: bool = False
    persisted_bytes: int = 0

    @property
    def total(self) -> float:
        """The time for which the checkpoint waited."""
        return self.start_delay + self.alignment + self.sync


NO_TIMING = TaskTiming()


@dataclass(frozen=True, slots=True)
class TaskAck:
    """The snapshot of a task.

    ``operators``: state by operator id.
    ``states``: descriptions of the states that the task knows, by operator id.
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
