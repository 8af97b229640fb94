"""Wiring of a chain: where the results of an operator go, and which operators share a loop.

A loop does not end with the chain: the operator at the head of a neighbor in the same slot can be part
of it, as in a union of two chains.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from firesteel.errors import TypeMismatchError
from firesteel.graph.stream_graph import StreamEdge
from firesteel.task.codegen.fusion import Emit, FusedNode, StepKind, fuse
from firesteel.task.exchange.input_gate import Entrance, InputGate
from firesteel.task.exchange.record_writers import RecordWriter
from firesteel.task.operators.base import Operator
from firesteel.task.operators.dataframe_source import DataFrameSourceOperator
from firesteel.task.operators.source import SourceOperator

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class LocalEdge:
    """An edge to another subtask of the slot: its gate, and the operator that the edge leads to."""

    edge: StreamEdge
    gate: InputGate
    target: Operator


@dataclass(frozen=True, slots=True)
class Neighbor:
    """Somebody in the same slot, behind a gate, who takes an operator's results."""

    entrance: Entrance
    operator: Operator

    def fused(self) -> FusedNode | None:
        """Its part of a loop that begins on this side of the gate."""
        node = self.operator.fused
        return None if node is None else replace(node.copy(), count=self.entrance.count)


def connect_operators(
    operators: dict[int, Operator],
    chained: Sequence[StreamEdge],
    writers: Sequence[RecordWriter],
    local: Sequence[LocalEdge],
    subtask: int,
) -> None:
    """Say where every operator's results go: down the chain, to other slots, to neighbors.

    Neighbors must be connected already.
    """
    chained_to: dict[tuple[int, str | None], list[Operator]] = {}
    neighbors: dict[tuple[int, str | None], list[Neighbor]] = {}
    emits: dict[tuple[int, str | None], list[Emit]] = {}
    watermarks: dict[int, list[Callable[[int], None]]] = {}
    idles: dict[int, list[Callable[[bool], None]]] = {}
    for edge in chained:
        target = operators[edge.target]
        chained_to.setdefault((edge.source, edge.side_output), []).append(target)
        watermarks.setdefault(edge.source, []).append(target.accept_watermark)
        idles.setdefault(edge.source, []).append(target.process_idle)
    for writer in writers:
        edge = writer.edge
        emits.setdefault((edge.source, edge.side_output), []).append(writer.emit)
        watermarks.setdefault(edge.source, []).append(writer.watermark)
        idles.setdefault(edge.source, []).append(writer.idle)
    for one in local:
        edge, entrance = one.edge, one.gate.accept_local(one.edge.id, subtask)
        neighbors.setdefault((edge.source, edge.side_output), []).append(
            Neighbor(entrance, one.target)
        )
        watermarks.setdefault(edge.source, []).append(entrance.watermark)
        idles.setdefault(edge.source, []).append(entrance.idle)
    # From the end of the chain: an operator's entry must stand before its neighbor uses it.
    for node_id, operator in reversed(operators.items()):
        node = operator.context.node
        operator.output.watermark = tell_all(watermarks.get(node_id, []))
        declared = node.output_type if is_held_to_its_type(operator) else None
        operator.output.idle = tell_all(idles.get(node_id, []))
        wire_main_output(
            operator,
            chained_to.pop((node_id, None), []),
            neighbors.pop((node_id, None), []),
            emits.pop((node_id, None), []),
            declared,
        )
    for node_id, tag_id in {**chained_to, **neighbors, **emits}:
        assert tag_id is not None
        operator = operators[node_id]
        tag_type = operator.context.node.side_output_types.get(tag_id)
        entries = [target.entry for target in chained_to.get((node_id, tag_id), [])]
        entries += [one.entrance.emit for one in neighbors.get((node_id, tag_id), [])]
        operator.output.side_outputs[tag_id] = checked(
            to_all(entries + emits.get((node_id, tag_id), [])),
            tag_type,
            f"{operator.name}, side output {tag_id}",
        )


def is_source(operator: Operator) -> bool:
    return isinstance(operator, SourceOperator | DataFrameSourceOperator)


def is_held_to_its_type(operator: Operator) -> bool:
    """What users have written or declared is checked; our own sources say themselves what they produce."""
    if isinstance(operator, SourceOperator):
        return operator.checked
    return not isinstance(operator, DataFrameSourceOperator)


def wire_main_output(
    operator: Operator,
    chained: list[Operator],
    neighbors: list[Neighbor],
    emits: list[Emit],
    declared: Any,
) -> None:
    """Give an operator its consumers: chained to it, in the same slot, and others that take batches.

    Those chained to it and its neighbors are wired already. If it works record by record and so
    do they, they become one loop, which is then the entry of this operator.
    """
    step = operator.step()
    is_checked = _needs_check(declared)
    takers = [(o.fused, o.entry) for o in chained]
    takers += [(neighbor.fused(), neighbor.entrance.emit) for neighbor in neighbors]
    if takers or emits:
        emit = to_all([entry for _, entry in takers] + emits)
        operator.output.emit = checked(emit, declared, operator.name)
    elif is_checked:
        # Nobody consumes the results, but they must be right nevertheless.
        operator.output.emit = checked(operator.output.emit, declared, operator.name)
    if isinstance(operator, SourceOperator):
        # Record writers and whoever has a step go through a batch once.
        operator.gives_ranges = all(node is not None for node, _ in takers)
    if step is None:
        return
    if is_checked:
        # A loop ends here: results are checked batch by batch.
        operator.fused = FusedNode(step, emit=operator.output.emit)
        return
    loop = FusedNode(step)
    apart = [entry for node, entry in takers if node is None or not loop.adopt(node)] + emits
    if apart:
        loop.emit = to_all(apart)
    operator.fused = loop
    if loop.children and step.kind is not StepKind.REDUCE:
        operator.entry = fuse(loop)


def to_all(emits: list[Emit]) -> Emit:
    if len(emits) == 1:
        return emits[0]

    def emit(values: list[Any], timestamps: list[int] | None) -> None:
        for consumer in emits:
            consumer(values, timestamps)

    return emit


def _needs_check(declared: Any) -> bool:
    return declared is not None and not declared.is_pickled


def checked(emit: Emit, output_type: Any, name: str) -> Emit:
    """Check and convert results to the declared type, if there is one."""
    if not _needs_check(output_type):
        return emit
    convert = output_type.convert_batch

    def emit_converted(values: list[Any], timestamps: list[int] | None) -> None:
        try:
            converted = convert(values)
        except TypeMismatchError as error:
            error.operator = name
            raise
        emit(converted, timestamps)

    return emit_converted


def tell_all(receivers: list[Callable[[_T], None]]) -> Callable[[_T], None]:
    if len(receivers) == 1:
        return receivers[0]

    def tell(what: _T) -> None:
        for receiver in receivers:
            receiver(what)

    return tell
