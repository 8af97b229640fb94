"""From what a subtask reports to what a checkpoint keeps of it, and the way back."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from firesteel import pickling
from firesteel.checkpoint.metadata import (
    SPLITS,
    WRITER_STATE,
    ListState,
    Redistribution,
    StateDescription,
    SubtaskState,
)
from firesteel.checkpoint.payload import Payload, payload_of_split, split_of_payload
from firesteel.checkpoint.restore import OperatorAssignment, SubtaskAssignment
from firesteel.graph.operator_specs import SourceSpec
from firesteel.graph.stream_graph import StreamNode
from firesteel.state.redistribution import OperatorState, OperatorStates
from firesteel.state.redistribution import Redistribution as StateRedistribution
from firesteel.task.messages import OperatorHandle, RestoredState, SourceStatus

_DESCRIPTION = "description"
_OWN = (SPLITS, WRITER_STATE)


def operator_states_of(
    node: StreamNode,
    handle: OperatorHandle | None,
    source: SourceStatus | None,
    committables: Sequence[Any],
    *,
    finished: bool,
) -> SubtaskState:
    """The state of one operator subtask at the end of an epoch."""
    handle = handle or OperatorHandle()
    lists = [
        ListState(
            name,
            Redistribution(state.mode.value),
            tuple(Payload(pickled=element) for element in state.elements),
        )
        for name, state in handle.operator_state.items()
    ]
    if isinstance(node.spec, SourceSpec):
        splits = source.splits if source is not None else ()
        lists.append(
            ListState(SPLITS, Redistribution.SPLIT, tuple(map(payload_of_split, splits)))
        )
    elif handle.whole is not None:
        whole = (Payload(pickled=handle.whole),)
        lists.append(ListState(WRITER_STATE, Redistribution.SPLIT, whole))
    return SubtaskState(
        segments=handle.segments,
        lists=tuple(lists),
        committables=tuple(map(Payload.of, committables)),
        finished=finished,
    )


def state_descriptions_of(
    tables: Iterable[StateDescription], handle: OperatorHandle | None
) -> tuple[StateDescription, ...]:
    lists = () if handle is None else handle.operator_state.items()
    return (
        *tables,
        *(
            StateDescription(
                name, f"operator {state.mode.value}", {_DESCRIPTION: state.description}
            )
            for name, state in lists
        ),
    )


def restored_handle(
    node: StreamNode, operator: OperatorAssignment, assignment: SubtaskAssignment
) -> OperatorHandle:
    """What a slot needs to bring an operator subtask back, if it has to restore."""
    lists = {state.name: state for state in assignment.lists}
    wholes: list[bytes] = [
        payload.pickled
        for payload in _elements(lists.get(WRITER_STATE))
        if payload.pickled is not None
    ]
    if isinstance(node.spec, SourceSpec):
        splits = tuple(map(split_of_payload, _elements(lists.get(SPLITS))))
        wholes = [pickling.dumps((splits, assignment.finished and not splits))]
    exact = not assignment.must_materialize
    return OperatorHandle(
        segments=assignment.keyed[0].segments if exact and assignment.keyed else (),
        whole=wholes[0] if wholes else None,
        more=tuple(wholes[1:]),
        operator_state=_operator_state(operator, assignment),
        restored=None
        if exact
        else RestoredState(assignment, operator.max_parallelism, operator.states),
    )


def _elements(state: ListState | None) -> tuple[Payload, ...]:
    return () if state is None else state.elements


def _operator_state(
    operator: OperatorAssignment, assignment: SubtaskAssignment
) -> OperatorStates:
    described = {state.name: state for state in operator.states}
    return {
        state.name: OperatorState(
            StateRedistribution(state.redistribution.value),
            tuple(payload.pickled or b"" for payload in state.elements),
            str(described[state.name].types[_DESCRIPTION]),
        )
        for state in assignment.lists
        if state.name not in _OWN
    }
