"""sum, min, max, min_by, max_by: rolling aggregations of one field.

sum, min and max keep the other fields of the first record. min_by and max_by keep the whole record,
and the earlier one if two are equal. A value that is no tuple, list or row is its own field 0.

sum, min and max of columns read and write the value of a key once per batch. The values are those
of the row path.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import repeat
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from firesteel.common.types import Row, copy_row
from firesteel.errors import InvalidProgramError
from firesteel.graph.column_aggregation import ColumnAggregation
from firesteel.graph.operator_specs import AggregationSpec, ReduceSpec
from firesteel.state.tables import MISSING
from firesteel.task.codegen import aggregations
from firesteel.task.codegen.fusion import CALL_REDUCTION, Step, StepKind
from firesteel.task.column_aggregates import FieldAggregates
from firesteel.task.column_batch import ColumnBatch
from firesteel.task.column_groups import groups_of
from firesteel.task.operators.base import OperatorContext
from firesteel.task.operators.keyed_aggregation import EveryResult
from firesteel.task.operators.reduce import ReduceOperator
from firesteel.task.record_batch import RecordBatch

if TYPE_CHECKING:
    import numpy as np
else:
    from firesteel.common import numpy_on_demand as np

Combine = Callable[[Any, Any], Any]


class AggregationOperator(ReduceOperator):
    may_change = False

    def __init__(self, spec: AggregationSpec, context: OperatorContext) -> None:
        super().__init__(ReduceSpec(None, output_mode=spec.output_mode), context)
        self._spec = spec
        self._aggregation: FieldAggregation | None = None
        self._aggregates: FieldAggregates | None = None
        if isinstance(spec.columns, ColumnAggregation) and type(self.results) is EveryResult:
            self._aggregates = FieldAggregates(spec.columns)

    def process(self, batch: RecordBatch) -> None:
        if self._aggregates is not None and isinstance(batch, ColumnBatch):
            results = self._roll(batch, self._aggregates)
            if results is not None:
                self.output.emit(results)
                return
        super().process(batch)

    def _roll(self, batch: ColumnBatch, aggregates: FieldAggregates) -> ColumnBatch | None:
        """Return the results of a batch, or None, without a change, if only rows have them."""
        if not aggregates.accepts(batch):
            return None
        columns = batch.columns
        values = aggregates.values_in(columns)
        if values is None:
            return None
        try:
            arrays = aggregates.keys.arrays_of(columns)
        except pa.ArrowException:
            return None
        groups = groups_of(arrays)
        first = pa.array(groups.first)
        keys = aggregates.keys.keys_of([array.take(first) for array in arrays])
        kept = self._kept(keys)
        places = np.array([place for place, one in enumerate(kept) if one is not MISSING], np.int64)
        records = [one for one in kept if one is not MISSING]
        held, bound = aggregates.begin(values, groups), aggregates.bound_of(values)
        firsts = columns.take(first)
        if records:
            known, of_kept = aggregates.values_of(records), aggregates.columns_of(records)
            if known is None or of_kept is None:
                return None
            held[places] = known
            bound += aggregates.bound_of(known)
            # The records of the keys that are known replace the first ones of the batch.
            order = np.arange(len(groups))
            order[places] = np.arange(len(records)) + len(groups)
            firsts = pa.concat_batches([firsts, of_kept]).take(pa.array(order))
        if aggregates.overflows(bound):
            return None
        rolled = aggregates.roll(held, values, groups)
        try:
            results = aggregates.with_values(firsts.take(pa.array(groups.numbers)), rolled)
        except pa.ArrowException:
            return None
        self.table.overlay.update(zip(keys, aggregates.records_of(firsts, held), strict=True))
        return ColumnBatch(results, aggregates.layout, batch.stamps)

    def _kept(self, keys: list[Any]) -> list[Any]:
        """Return the records that are kept for the keys, or MISSING."""
        overlay, missing = self.table.overlay, MISSING
        in_memory = self.context.keyed_state.in_memory
        in_base = self.table.base.get if in_memory else self.table.reader(keys)
        kept = list(map(overlay.get, keys, repeat(missing)))
        return [
            in_base(key, missing) if one is missing else one
            for key, one in zip(keys, kept, strict=True)
        ]

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
