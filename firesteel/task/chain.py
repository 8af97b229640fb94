"""Wiring of a chain: where the results of an operator go, and which operators share a loop."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from firesteel.errors import TypeMismatchError
from firesteel.graph.stream_graph import StreamEdge
from firesteel.task.fusion import Emit, FusedNode, fuse
from firesteel.task.input_gate import InputGate
from firesteel.task.operators.base import Operator
from firesteel.task.operators.dataframe_source import DataFrameSourceOperator
from firesteel.task.operators.source import SourceOperator
from firesteel.task.record_writers import RecordWriter

_T = TypeVar("_T")


def connect_operators(
    operators: dict[int, Operator],
    chained: Sequence[StreamEdge],
    writers: Sequence[RecordWriter],
    local: Sequence[tuple[StreamEdge, InputGate]],
    subtask: int,
) -> None:
    """Say where every operator's results go: down the chain, to other slots, to neighbors."""
    chained_to: dict[tuple[int, str | None], list[Operator]] = {}
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
    for edge, gate in local:
        emit, watermark, idle = gate.accept_local(edge.id, subtask)
        emits.setdefault((edge.source, edge.side_output), []).append(emit)
        watermarks.setdefault(edge.source, []).append(watermark)
        idles.setdefault(edge.source, []).append(idle)
    # From the end of the chain: an operator's entry must stand before its neighbor uses it.
    for node_id, operator in reversed(operators.items()):
        node = operator.context.node
        operator.output.watermark = tell_all(watermarks.get(node_id, []))
        # A source says itself what it produces; user functions are held to what they declare.
        declared = None if is_source(operator) else node.output_type
        operator.output.idle = tell_all(idles.get(node_id, []))
        wire_main_output(
            operator,
            chained_to.pop((node_id, None), []),
            emits.pop((node_id, None), []),
            declared,
        )
    for node_id, tag_id in {**chained_to, **emits}:
        assert tag_id is not None
        operator = operators[node_id]
        tag_type = operator.context.node.side_output_types.get(tag_id)
        entries = [target.entry for target in chained_to.get((node_id, tag_id), [])]
        operator.output.side_outputs[tag_id] = checked(
            to_all(entries + emits.get((node_id, tag_id), [])),
            tag_type,
            f"{operator.name}, side output {tag_id}",
        )


def is_source(operator: Operator) -> bool:
    return isinstance(operator, SourceOperator | DataFrameSourceOperator)


def wire_main_output(
    operator: Operator, chained: list[Operator], emits: list[Emit], declared: Any
) -> None:
    """Give an operator its consumers: operators chained to it, and others that take batches.

    Those chained to it are wired already. If it works record by record and so do they, they become
    one loop, which is then the entry of this operator.
    """
    step = operator.step()
    is_checked = _needs_check(declared)
    fused = [] if step is None or is_checked else [o for o in chained if o.fused is not None]
    apart = [o.entry for o in chained if o not in fused] + emits
    emit = to_all([o.entry for o in chained] + emits)
    if chained or emits:
        operator.output.emit = checked(emit, declared, operator.name)
    elif is_checked:
        # Nobody consumes the results, but they must be right nevertheless.
        operator.output.emit = checked(operator.output.emit, declared, operator.name)
    if step is None:
        return
    children = [node for child in fused if (node := child.fused) is not None]
    takes_batches = to_all(apart) if apart else None
    if is_checked:
        takes_batches = operator.output.emit
    operator.fused = FusedNode(step, children, takes_batches)
    if children:
        operator.entry = fuse(operator.fused)


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
    def tell(what: _T) -> None:
        for receiver in receivers:
            receiver(what)

    return tell
