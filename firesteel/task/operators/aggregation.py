"""sum, min, max, min_by, max_by: rolling aggregations of one field.

sum, min and max keep the other fields of the first record; min_by and max_by keep the whole
record, the earlier one if two are equal. A value that is no tuple, list or row is its own field 0.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from firesteel.common.types import Row, new_row
from firesteel.errors import InvalidProgramError
from firesteel.graph.operator_specs import AggregationSpec, ReduceSpec
from firesteel.task.codegen.fusion import Step, StepKind
from firesteel.task.operators.base import OperatorContext
from firesteel.task.operators.reduce import ReduceOperator

Combine = Callable[[Any, Any], Any]

# min and max keep the earlier of two equal values.
_FIELD: dict[str, Combine] = {
    "sum": lambda kept, new: kept + new,
    "min": min,
    "max": max,
}


class AggregationOperator(ReduceOperator):
    may_change = False

    def __init__(self, spec: AggregationSpec, context: OperatorContext) -> None:
        super().__init__(ReduceSpec(None, output_mode=spec.output_mode), context)
        self._spec = spec
        self._shape: type | None = None
        self._sums_pairs = False

    def step(self) -> Step:
        kind = StepKind.SUM_OF_PAIRS if self._sums_pairs else StepKind.REDUCE
        return self.step_of(kind, self._reduce)

    def _look_at(self, record: Any) -> None:
        if self._shape is None:
            self._shape = type(record)
            self._reduce = reducer(self._spec.kind, self._spec.position, self._shape)
            self._sums_pairs = (
                self._shape is tuple
                and len(record) == 2
                and (self._spec.kind, self._spec.position) == ("sum", 1)
            )


def reducer(kind: str, position: int | str, shape: type) -> Combine:
    """A function for records of ``shape`` (tuple, list, Row, or a basic type)."""
    has_fields = issubclass(shape, tuple | list | Row)
    if not has_fields and position != 0:
        raise InvalidProgramError(
            f"{kind}({position!r}) on a value of type {shape.__name__}: a value without fields "
            "has only field 0, which is the value itself"
        )
    if issubclass(shape, tuple):
        position = _tuple_index(kind, position, shape)
    if kind == "min_by":
        return _keep_smaller(position) if has_fields else _FIELD["min"]
    if kind == "max_by":
        return _keep_larger(position) if has_fields else _FIELD["max"]
    if not has_fields:
        return _FIELD[kind]
    if issubclass(shape, tuple):
        return _combine_in_tuple(_FIELD[kind], kind, int(position), shape)
    return _combine_in_copy(_FIELD[kind], position)


def _keep_smaller(position: Any) -> Combine:
    return lambda kept, new: new if new[position] < kept[position] else kept


def _keep_larger(position: Any) -> Combine:
    return lambda kept, new: new if new[position] > kept[position] else kept


def _tuple_index(kind: str, position: int | str, shape: type[tuple[Any, ...]]) -> int:
    """Only named tuples have names, and they too are indexed by numbers."""
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


def _combine_in_tuple(
    combine: Combine, kind: str, index: int, shape: type[tuple[Any, ...]]
) -> Combine:
    if shape is not tuple:
        # A named tuple stays one.
        make = shape._make  # type: ignore[attr-defined]
        return lambda kept, new: make(
            (*kept[:index], combine(kept[index], new[index]), *kept[index + 1 :])
        )
    if kind == "sum" and index == 1:

        def sum_of_pair(kept: tuple[Any, ...], new: tuple[Any, ...]) -> tuple[Any, ...]:
            if len(kept) == 2:
                return (kept[0], kept[1] + new[1])
            return (kept[0], kept[1] + new[1], *kept[2:])

        return sum_of_pair

    def in_tuple(kept: tuple[Any, ...], new: tuple[Any, ...]) -> tuple[Any, ...]:
        fields = list(kept)
        fields[index] = combine(kept[index], new[index])
        return tuple(fields)

    return in_tuple


def _combine_in_copy(combine: Combine, position: Any) -> Combine:
    """Lists and rows are copied: the record kept before may still be on its way downstream."""

    def in_copy(kept: Any, new: Any) -> Any:
        copy = _copy_of(kept)
        copy[position] = combine(kept[position], new[position])
        return copy

    return in_copy


def _copy_of(value: Any) -> Any:
    if isinstance(value, Row):
        return new_row(list(value), value._fields, value.get_row_kind())
    return list(value)
