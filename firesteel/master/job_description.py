"""Plain data about a job: its vertices and its failures, without functions of the user.

Clients, the dashboard and archives read it. It can be written as JSON, and read without the modules
of the program.
"""

from __future__ import annotations

import traceback
from dataclasses import dataclass
from typing import Any

from firesteel.errors import FiresteelError, UserFunctionError
from firesteel.graph.job_graph import JobGraph, JobVertex
from firesteel.graph.levels import Levels
from firesteel.graph.operator_specs import SINK_SPECS, SOURCE_SPECS
from firesteel.graph.settings import JobSettings
from firesteel.graph.stream_graph import FEEDBACK


@dataclass(frozen=True, slots=True)
class OperatorDescription:
    """An operator of a chain. ``kind`` is "source", "sink" or "operator"."""

    id: str
    node: int
    name: str
    description: str
    kind: str
    uid: str | None = None


@dataclass(frozen=True, slots=True)
class InputDescription:
    """An edge into a vertex. ``vertex`` is the id of the vertex that it comes from."""

    vertex: str
    ship_strategy: str
    side_output: str | None = None


@dataclass(frozen=True, slots=True)
class VertexDescription:
    """A chain of operators.

    ``id`` is that of its first operator, 32 hexadecimal digits. ``number`` is the id of the vertex in
    the job graph. Subtask i runs in slot ``slot_offset`` + i of ``level``.
    """

    id: str
    number: int
    name: str
    parallelism: int
    max_parallelism: int
    slot_sharing_group: str
    level: int
    slot_offset: int
    operators: tuple[OperatorDescription, ...]
    inputs: tuple[InputDescription, ...]


@dataclass(frozen=True, slots=True)
class JobDescription:
    """The job graph of a job. ``slots`` has the number of slots of each level."""

    job_id: str
    name: str
    is_batch: bool
    slots: tuple[int, ...]
    vertices: tuple[VertexDescription, ...]

    @property
    def parallelism(self) -> int:
        return max(vertex.parallelism for vertex in self.vertices)

    @staticmethod
    def from_json(document: dict[str, Any]) -> JobDescription:
        """Read the result of ``dataclasses.asdict``, also after a way through JSON."""
        vertices = tuple(
            VertexDescription(
                **{
                    **vertex,
                    "operators": tuple(OperatorDescription(**o) for o in vertex["operators"]),
                    "inputs": tuple(InputDescription(**i) for i in vertex["inputs"]),
                }
            )
            for vertex in document["vertices"]
        )
        return JobDescription(
            **{**document, "slots": tuple(document["slots"]), "vertices": vertices}
        )


@dataclass(frozen=True, slots=True)
class FailureRecord:
    """A failure of an attempt. ``timestamp`` is in epoch milliseconds.

    ``operator`` and ``record`` are known if a function of the user failed. ``restarted`` is
    True if the job started again.
    """

    timestamp: int
    exception_name: str
    stacktrace: str
    operator: str | None = None
    function: str | None = None
    record: str | None = None
    restarted: bool = False


def describe_job(job_id: str, settings: JobSettings, levels: Levels) -> JobDescription:
    graph = levels.job_graph
    return JobDescription(
        job_id=job_id,
        name=settings.job_name,
        is_batch=settings.is_batch,
        slots=levels.slots,
        vertices=tuple(_describe_vertex(vertex, graph, levels) for vertex in graph.vertices),
    )


def _describe_vertex(vertex: JobVertex, graph: JobGraph, levels: Levels) -> VertexDescription:
    vertex_of = graph.vertex_of()
    edges = [edge for edge in graph.edges if vertex_of[edge.target] is vertex]
    feedback = [edge for edge in graph.feedback_edges if vertex_of[edge.head] is vertex]
    return VertexDescription(
        id=_id_of(vertex, graph),
        number=vertex.id,
        name=vertex.name,
        parallelism=vertex.parallelism,
        max_parallelism=vertex.max_parallelism,
        slot_sharing_group=vertex.slot_sharing_group,
        level=levels.level_of[vertex.id],
        slot_offset=levels.slot_offset[vertex.slot_sharing_group],
        operators=tuple(_describe_operator(node, graph) for node in vertex.operators),
        inputs=tuple(
            InputDescription(
                _id_of(vertex_of[edge.source], graph),
                edge.partitioning.strategy.value,
                edge.side_output,
            )
            for edge in edges
        )
        + tuple(
            InputDescription(_id_of(vertex_of[edge.tail], graph), FEEDBACK) for edge in feedback
        ),
    )


def _describe_operator(node_id: int, graph: JobGraph) -> OperatorDescription:
    node = graph.nodes[node_id]
    kind = "operator"
    if isinstance(node.spec, SOURCE_SPECS):
        kind = "source"
    elif isinstance(node.spec, SINK_SPECS):
        kind = "sink"
    return OperatorDescription(
        node.operator_id, node.id, node.name, node.description, kind, node.uid
    )


def _id_of(vertex: JobVertex, graph: JobGraph) -> str:
    return graph.nodes[vertex.operators[0]].operator_id


def record_failure(error: FiresteelError, timestamp: int, *, restarted: bool) -> FailureRecord:
    """Describe a failure. The traceback of a function of the user comes first."""
    if isinstance(error, UserFunctionError):
        return FailureRecord(
            timestamp,
            error.cause or type(error).__name__,
            str(error),
            error.operator,
            error.function,
            error.record,
            restarted,
        )
    kind = type(error)
    text = "".join(traceback.format_exception(error))
    return FailureRecord(
        timestamp, f"{kind.__module__}.{kind.__qualname__}", text, restarted=restarted
    )
