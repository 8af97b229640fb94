"""select and map of expressions: the fields of a row or one value, computed from a record."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa

from firesteel.common.columns import ColumnLayout
from firesteel.common.expression_evaluation import evaluation_of
from firesteel.common.types import RowKind, new_row
from firesteel.errors import TypeMismatchError
from firesteel.graph.operator_specs import ComputeSpec
from firesteel.task.codegen.fusion import Step, StepKind
from firesteel.task.column_batch import ColumnBatch
from firesteel.task.operators.base import Operator, OperatorContext
from firesteel.task.record_batch import RecordBatch
from firesteel.usercode.failures import USER_ERRORS


class ComputeOperator(Operator):
    """Computes columns from columns, and records from records."""

    def __init__(self, spec: ComputeSpec, context: OperatorContext) -> None:
        super().__init__(context)
        # Evaluations have the declared types. Only values without a place for None are checked.
        self.checks_results = False
        self._spec = spec
        self._evaluations = [evaluation_of(one, spec.input_type) for one in spec.expressions]
        self._layout = ColumnLayout(spec.output_type)
        self._input = ColumnLayout(spec.input_type)
        self._of_record = self._record_function()

    def _record_function(self) -> Callable[[Any], Any]:
        """Return the function that computes the result for a record."""
        functions = [evaluation.of_record for evaluation in self._evaluations]
        if self._layout.is_row:
            names, insert = self._layout.schema.names, RowKind.INSERT

            def row(record: Any) -> Any:
                return new_row([function(record) for function in functions], names, insert)

            return row
        (of_value,) = functions

        def value(record: Any) -> Any:
            result = of_value(record)
            if result is None:
                raise self._none_error()
            return result

        return value

    def _none_error(self) -> TypeMismatchError:
        return TypeMismatchError(
            None,
            self._layout.type_info,
            f"{self._spec.expressions[0]!r} is None for a record; use fill_null(), or select() "
            "instead of map(), because the fields of rows may be None.",
            self.name,
        )

    def step(self) -> Step | None:
        # A shared loop takes records.
        if self.context.node.takes_columns:
            return None
        return Step(StepKind.MAP, self._of_record, self._explain)

    def process(self, batch: RecordBatch) -> None:
        if isinstance(batch, ColumnBatch) and self._input.fits(batch.layout):
            columns = self._columns(batch)
            if columns is not None:
                self.output.emit(ColumnBatch(columns, self._layout, batch.stamps))
                return
        of_record = self._of_record
        iterator = iter(batch.values)
        try:
            results = [of_record(record) for record in iterator]
        except USER_ERRORS as error:
            raise self.failure(error, of_record, batch.values, iterator) from error
        self.output.emit(RecordBatch(results, batch.timestamps))

    def _columns(self, batch: ColumnBatch) -> pa.RecordBatch | None:
        """Return the results, or None if only the way of records knows them or the error."""
        try:
            arrays = [evaluation.array_of(batch.columns) for evaluation in self._evaluations]
        except pa.ArrowException:
            return None
        if not self._layout.is_row and arrays[0].null_count:
            return None
        return pa.RecordBatch.from_arrays(arrays, schema=self._layout.schema)

    def _explain(self, error: BaseException, record: Any) -> Exception:
        return self.failure(error, self._of_record, [record])
