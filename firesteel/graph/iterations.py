"""Iterations of a program: the edges from tails to heads, and the rules for both."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from firesteel.errors import InvalidProgramError
from firesteel.graph.operator_specs import IterationHeadSpec
from firesteel.graph.stream_graph import FeedbackEdge, StreamEdge, StreamGraph, StreamNode
from firesteel.graph.transformations import Transformation


def check_closed(program: Iterable[Transformation]) -> None:
    for transformation in program:
        if isinstance(transformation.spec, IterationHeadSpec) and not transformation.tails:
            raise InvalidProgramError(
                f"The iteration '{transformation.name}' does not have any feedback edges. Close it "
                "with close_with(feedback_stream) before the program is executed."
            )


def with_settings_of_heads(program: Sequence[Transformation]) -> list[Transformation]:
    """Copy the settings of iteration heads to their tails, which users cannot configure.

    The records of an iteration are state of its tail. The uid of the tail derives from the head's
    uid, so that a restored job finds this state.
    """
    settings = {}
    for head in program:
        name = head.uid or head.uid_hash
        for number, tail in enumerate(head.tails, start=1):
            uid = None if name is None else f"{name} feedback {number}"
            settings[tail.id] = replace(tail, uid=uid, max_parallelism=head.max_parallelism)
    return [settings.get(transformation.id, transformation) for transformation in program]


def feedback_edges(
    by_id: Mapping[int, Transformation], ids: Mapping[int, int]
) -> tuple[FeedbackEdge, ...]:
    return tuple(
        FeedbackEdge(ids[tail.id], head_id)
        for head_id, head in by_id.items()
        for tail in head.tails
    )


def as_parallel_as(
    node_id: int, transformation: Transformation, inputs: Sequence[int], head_of: Mapping[int, int]
) -> int | None:
    """The node whose parallelism an operator takes: a head its input's, a tail its head's."""
    if isinstance(transformation.spec, IterationHeadSpec) and transformation.parallelism is None:
        return inputs[0]
    return head_of.get(node_id)


def check_parallelism(
    nodes: Mapping[int, StreamNode],
    edges: Iterable[StreamEdge],
    feedback: Iterable[FeedbackEdge],
) -> None:
    """Check Flink's rule that the feedback stream has the parallelism of the iterated stream."""
    head_of = {edge.tail: nodes[edge.head] for edge in feedback}
    for edge in edges:
        head, source = head_of.get(edge.target), nodes[edge.source]
        if head is not None and head.parallelism != source.parallelism:
            raise InvalidProgramError(
                "Parallelism of the feedback stream must match the parallelism of the original "
                f"stream. The iteration '{head.name}' has parallelism {head.parallelism}, but "
                f"'{source.name}' has parallelism {source.parallelism}. Change one of them with "
                "set_parallelism()."
            )


def iterations_of(graph: StreamGraph) -> list[str]:
    """The names of the iteration heads."""
    heads = dict.fromkeys(edge.head for edge in graph.feedback_edges)
    return [graph.nodes[head].name for head in heads]
