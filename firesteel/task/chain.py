"""Wiring of a chain: where the results of an operator go, and which operators share a loop."""

from __future__ import annotations

from typing import Any

from firesteel.errors import TypeMismatchError
from firesteel.task.fusion import Emit, FusedNode, fuse
from firesteel.task.operators.base import Operator


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
