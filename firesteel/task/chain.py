"""Connects the operators of a chain, and decides which of them share a loop.

A loop does not end with the chain. It can include the first operator of a local subtask, as in a
union of two chains.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from firesteel.common.columns import column_layout
from firesteel.errors import TypeMismatchError
from firesteel.graph.stream_graph import StreamEdge
from firesteel.task.codegen.fusion import FusedNode, without_count
from firesteel.task.column_batch import ColumnBatch
from firesteel.task.exchange.input_gate import Entrance
from firesteel.task.exchange.record_writers import RecordWriter
from firesteel.task.operators.base import Operator
from firesteel.task.record_batch import Emit, RecordBatch, SentRecords

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Consumer:
    """An operator as the operators before it see it.

    emit: takes batches. It is the operator's ``process`` or the loop that the operator begins.
    loop: the operators that share a loop with this one, or None if it needs whole batches.
    """

    emit: Emit
    loop: FusedNode | None = None


@dataclass(frozen=True, slots=True)
class LocalEdge:
    """An edge to a different subtask of the same slot.

    entrance: the way into the gate of that subtask.
    target: the operator after the gate.
    """

    edge: StreamEdge
    entrance: Entrance
    target: Consumer


def _through(entrance: Entrance, target: Consumer) -> Consumer:
    """The consumer as seen from outside its gate, which counts the records that enter."""
    loop = target.loop
    if loop is not None:
        loop = replace(loop.copy(), count=entrance.count)
    return Consumer(entrance.emit, loop)


def connect_operators(
    operators: dict[int, Operator],
    chained: Sequence[StreamEdge],
    writers: Sequence[RecordWriter],
    local: Sequence[LocalEdge],
) -> dict[int, Consumer]:
    """Connect the outputs of all operators: down the chain, to other slots, to local subtasks.

    Local subtasks must be connected already. Returns the operators as consumers.
    """
    consumers: dict[int, Consumer] = {}
    chained_to: dict[tuple[int, str | None], list[int]] = {}
    neighbors: dict[tuple[int, str | None], list[Consumer]] = {}
    emits: dict[tuple[int, str | None], list[Emit]] = {}
    watermarks: dict[int, list[Callable[[int], None]]] = {}
    idles: dict[int, list[Callable[[bool], None]]] = {}
    for edge in chained:
        target = operators[edge.target]
        chained_to.setdefault((edge.source, edge.side_output), []).append(edge.target)
        watermarks.setdefault(edge.source, []).append(target.accept_watermark)
        idles.setdefault(edge.source, []).append(target.process_idle)
    for writer in writers:
        edge = writer.edge
        emits.setdefault((edge.source, edge.side_output), []).append(writer.emit)
        watermarks.setdefault(edge.source, []).append(writer.watermark)
        idles.setdefault(edge.source, []).append(writer.idle)
    for one in local:
        edge, entrance = one.edge, one.entrance
        neighbors.setdefault((edge.source, edge.side_output), []).append(
            _through(entrance, one.target)
        )
        watermarks.setdefault(edge.source, []).append(entrance.watermark)
        idles.setdefault(edge.source, []).append(entrance.idle)
    # From the end of the chain: an operator's consumers must exist before it is connected.
    for node_id, operator in reversed(operators.items()):
        node = operator.context.node
        operator.output.watermark = tell_all(watermarks.get(node_id, []))
        declared = node.output_type if operator.checks_results else None
        operator.output.idle = tell_all(idles.get(node_id, []))
        takers = [consumers[target] for target in chained_to.pop((node_id, None), [])]
        takers += neighbors.pop((node_id, None), [])
        consumers[node_id] = connect_main_output(
            operator, takers, emits.pop((node_id, None), []), declared
        )
    for node_id, tag_id in {**chained_to, **neighbors, **emits}:
        assert tag_id is not None
        operator = operators[node_id]
        tag_type = operator.context.node.side_output_types.get(tag_id)
        takers = [consumers[target] for target in chained_to.get((node_id, tag_id), [])]
        takers += neighbors.get((node_id, tag_id), [])
        sent = operator.output.sent[tag_id] = SentRecords()
        operator.output.side_outputs[tag_id] = checked(
            sent.counted(
                to_all([taker.emit for taker in takers] + emits.get((node_id, tag_id), []))
            ),
            tag_type,
            f"{operator.name}, side output {tag_id}",
        )
    return consumers


def connect_main_output(
    operator: Operator, takers: list[Consumer], emits: list[Emit], declared: Any
) -> Consumer:
    """Connect an operator to its consumers, and return it as a consumer itself.

    If it works record by record and so do its consumers, all of them become one loop.

    takers: operators of the same slot.
    emits: others, which take batches.
    declared: the type of the results, or None if there is nothing to check.
    """
    step = operator.step()
    is_checked = _needs_check(declared)
    emit = operator.output.emit
    if takers or emits:
        emit = to_all([taker.emit for taker in takers] + emits)
    # Without a consumer, the results must have the declared type nevertheless.
    emit = checked(emit, declared, operator.name)
    sent = operator.output.sent[None] = SentRecords()
    operator.output.emit = sent.counted(emit)
    # Record writers and loops iterate over a batch once.
    operator.output.is_iterated_once = all(taker.loop is not None for taker in takers)
    if step is None:
        return Consumer(operator.process)
    if is_checked:
        # A loop ends here: results are checked batch by batch.
        loop = FusedNode(step, emit=emit, sent=sent)
    else:
        loop = FusedNode(step, sent=sent)
        apart = [t.emit for t in takers if t.loop is None or not loop.adopt(t.loop)] + emits
        if apart:
            loop.emit = to_all(apart)
    for unknown in without_count(loop):
        unknown.is_known = False
    return Consumer(operator.begin_loop(loop), loop)


def to_all(emits: list[Emit]) -> Emit:
    if len(emits) == 1:
        return emits[0]

    def emit(batch: RecordBatch) -> None:
        for consumer in emits:
            consumer(batch)

    return emit


def _needs_check(declared: Any) -> bool:
    return declared is not None and not declared.is_pickled


def checked(emit: Emit, output_type: Any, name: str) -> Emit:
    """Check and convert results to the declared type, if there is one."""
    if not _needs_check(output_type):
        return emit
    convert, layout = output_type.convert_batch, column_layout(output_type)

    def emit_converted(batch: RecordBatch) -> None:
        if layout is not None and isinstance(batch, ColumnBatch) and layout.fits(batch.layout):
            # The columns of a source have their types already.
            emit(batch)
            return
        try:
            converted = convert(batch.values)
        except TypeMismatchError as error:
            error.operator = name
            raise
        emit(RecordBatch(converted, batch.timestamps))

    return emit_converted


def tell_all(receivers: list[Callable[[_T], None]]) -> Callable[[_T], None]:
    if len(receivers) == 1:
        return receivers[0]

    def tell(what: _T) -> None:
        for receiver in receivers:
            receiver(what)

    return tell
