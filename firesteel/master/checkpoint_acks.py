"""From what a subtask reports to what a checkpoint keeps of it, and the way back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from firesteel import pickling
from firesteel.checkpoint.metadata import CheckpointMetadata, SnapshotType, SubtaskState
from firesteel.checkpoint.payload import Payload, payload_of_split, split_of_payload
from firesteel.checkpoint.restore import OperatorAssignment, RestorePlan, SubtaskAssignment
from firesteel.graph.job_graph import JobGraph, JobVertex
from firesteel.graph.operator_specs import SinkSpec, SourceSpec, TwoPhaseCommitSinkSpec
from firesteel.graph.stream_graph import StreamNode
from firesteel.task.messages import OperatorHandle, RestoredState, SourceStatus, SubtaskHandle


def subtask_state(
    node: StreamNode,
    handle: OperatorHandle | None,
    source: SourceStatus | None,
    committables: Sequence[Any],
    watermark: int | None,
    *,
    finished: bool,
) -> SubtaskState:
    """The state of one operator subtask at the end of an epoch."""
    handle = handle or OperatorHandle()
    is_sink = isinstance(node.spec, SinkSpec | TwoPhaseCommitSinkSpec)
    splits = source.splits if source is not None else ()
    wholes = [one for one in (handle.whole, *handle.more) if one is not None]
    return SubtaskState(
        segments=handle.segments,
        operator_state=handle.operator_state,
        splits=tuple(map(payload_of_split, splits)),
        # Pickled in the slot, and unpickled only there. What others keep whole, positions and
        # watermarks, is here in words.
        writer_states=tuple(Payload(pickled=one) for one in wholes) if is_sink else (),
        committables=tuple(map(Payload.of, committables)),
        opaque=None if watermark is None else Payload(json=watermark),
        finished=finished,
    )


def restored_handles(
    graph: JobGraph, plan: RestorePlan, metadata: CheckpointMetadata
) -> Mapping[tuple[int, int], SubtaskHandle]:
    """What slots need to bring the subtasks back, by vertex and subtask.

    After a savepoint event time starts over, as in Flink: the job may be given older data.
    """
    keeps_time = metadata.type is SnapshotType.CHECKPOINT
    handles = {}
    for vertex in graph.vertices:
        for subtask in range(vertex.parallelism):
            operators = {
                node_id: _operator_handle(
                    graph.nodes[node_id], operator, operator.subtasks[subtask], keeps_time
                )
                for node_id in vertex.operators
                if (operator := plan.assignments.get(graph.nodes[node_id].operator_id)) is not None
            }
            handles[vertex.id, subtask] = SubtaskHandle(
                operators,
                restored_checkpoint_id=metadata.checkpoint_id,
                finished=_had_finished(graph, vertex, subtask, plan),
            )
    return handles


def _had_finished(graph: JobGraph, vertex: JobVertex, subtask: int, plan: RestorePlan) -> bool:
    """Whether all operators of a subtask had ended, and none of them has anything left to read."""
    for node_id in vertex.operators:
        operator = plan.assignments.get(graph.nodes[node_id].operator_id)
        if operator is None:
            return False
        state = operator.subtasks[subtask]
        if not state.finished or state.splits:
            return False
    return True


def _operator_handle(
    node: StreamNode,
    operator: OperatorAssignment,
    assignment: SubtaskAssignment,
    keeps_time: bool,
) -> OperatorHandle:
    wholes = [one.pickled for one in assignment.writer_states if one.pickled is not None]
    if isinstance(node.spec, SourceSpec):
        splits = tuple(map(split_of_payload, assignment.splits))
        # Watermark generators start over, as in Flink; what they have sent on still holds.
        wholes = [pickling.dumps((splits, assignment.finished and not splits, None))]
    parts = assignment.keyed
    restored = None
    if assignment.must_materialize:
        restored = RestoredState(assignment, operator.max_parallelism, operator.states)
    return OperatorHandle(
        segments=parts[0].segments if parts and restored is None else (),
        whole=wholes[0] if wholes else None,
        more=tuple(wholes[1:]),
        operator_state=assignment.operator_state,
        restored=restored,
        watermark=assignment.opaque.load() if keeps_time and assignment.opaque else None,
    )
