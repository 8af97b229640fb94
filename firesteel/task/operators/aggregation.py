"""sum, min, max, min_by, max_by: rolling aggregations of one field.

sum, min and max keep the other fields of the first record. min_by and max_by keep the whole record,
and the earlier one if two are equal. A value that is no tuple, list or row is its own field 0.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from firesteel.common.types import Row, copy_row
from firesteel.errors import InvalidProgramError
from firesteel.graph.operator_specs import AggregationSpec, ReduceSpec
from firesteel.task.codegen import aggregations
from firesteel.task.codegen.fusion import CALL_REDUCTION, Step, StepKind
from firesteel.task.operators.base import OperatorContext
from firesteel.task.operators.reduce import ReduceOperator

Combine = Callable[[Any, Any], Any]


class AggregationOperator(ReduceOperator):
    may_change = False

    def __init__(self, spec: AggregationSpec, context: OperatorContext) -> None:
        super().__init__(ReduceSpec(None, output_mode=spec.output_mode), context)
        self._spec = spec
        self._aggregation: FieldAggregation | None = None

    def step(self) -> Step:
        step = self.step_of(StepKind.REDUCE, self._reduce)
        return (
            step if self._aggregation is None else replace(step, combine=self._aggregation.source)
        )

    def _look_at(self, record: Any) -> None:
        if self._aggregation is None:
            self._aggregation = field_aggregation(self._spec.kind, self._spec.position, record)
            self._reduce = self._aggregation.function


@dataclass(frozen=True, slots=True)
class FieldAggregation:
    """An aggregation for records of one shape.

    Args:
        function: Combines the value kept so far with a record.
        source: The same as statements for a loop.
    """

    function: Combine
    source: tuple[str, ...] = CALL_REDUCTION


def field_aggregation(kind: str, position: int | str, record: Any) -> FieldAggregation:
    """Return the aggregation for records that have the type and the size of ``record``."""
    shape = type(record)
    has_fields = issubclass(shape, tuple | list | Row)
    if not has_fields and position != 0:
        raise InvalidProgramError(
            f"{kind}({position!r}) on a value of type {shape.__name__}: a value without fields "
            "has only field 0, which is the value itself"
        )
    if issubclass(shape, tuple):
        position = _tuple_index(kind, position, shape)
    # An enum is written as the value that it stands for.
    position = int(position) if isinstance(position, int) else str(position)
    if not has_fields:
        source = aggregations.of_values(kind.removesuffix("_by"))
        return FieldAggregation(aggregations.combining_function(kind, source), source)
    if kind.endswith("_by"):
        source = aggregations.of_whole_records(kind, position)
        return FieldAggregation(aggregations.combining_function(kind, source), source)
    combine_values = aggregations.combining_function(kind, aggregations.of_values(kind))
    if not issubclass(shape, tuple):
        return FieldAggregation(_combine_in_copy(combine_values, position))
    assert isinstance(position, int)
    in_tuple = _combine_in_tuple(combine_values, position, shape)
    if shape is not tuple or not -len(record) <= position < len(record):
        return FieldAggregation(in_tuple)
    source = aggregations.of_tuples(kind, position % len(record), len(record))
    return FieldAggregation(aggregations.combining_function(kind, source, in_tuple), source)


def _tuple_index(kind: str, position: int | str, shape: type[tuple[Any, ...]]) -> int:
    """Return the index of a field. Only named tuples have names, and they too are indexed by numbers."""
    if isinstance(position, int):
        return position
    fields: tuple[str, ...] = getattr(shape, "_fields", ())
    if position not in fields:
        raise InvalidProgramError(
            f"{kind}({position!r}): a tuple has no field names; use an index, or a Row with names"
            if not fields
            else f"{kind}({position!r}): {shape.__name__} has the fields {', '.join(fields)}"
        )
    return fields.index(position)


def _combine_in_tuple(combine: Combine, index: int, shape: type[tuple[Any, ...]]) -> Combine:
    # A named tuple stays one.
    make: Callable[[list[Any]], Any] = getattr(shape, "_make", tuple)

    def in_tuple(kept: tuple[Any, ...], new: tuple[Any, ...]) -> Any:
        fields = list(kept)
        fields[index] = combine(kept[index], new[index])
        return make(fields)

    return in_tuple


def _combine_in_copy(combine: Combine, position: Any) -> Combine:
    """Copy lists and rows, because operators downstream may still use the value kept before."""

    def in_copy(kept: Any, new: Any) -> Any:
        copy = _copy_of(kept)
        copy[position] = combine(kept[position], new[position])
        return copy

    return in_copy


def _copy_of(value: Any) -> Any:
    if isinstance(value, Row):
        return copy_row(value)
    return list(value)
