"""filter of an expression: the records for which it is true."""

from __future__ import annotations

from itertools import compress
from typing import Any

import pyarrow as pa

from firesteel.common.columns import ColumnLayout
from firesteel.common.expression_evaluation import evaluation_of
from firesteel.graph.operator_specs import ConditionSpec
from firesteel.task.codegen.fusion import Step, StepKind
from firesteel.task.column_batch import ColumnBatch
from firesteel.task.operators.base import Operator, OperatorContext
from firesteel.task.record_batch import RecordBatch
from firesteel.usercode.failures import USER_ERRORS


class ConditionOperator(Operator):
    def __init__(self, spec: ConditionSpec, context: OperatorContext) -> None:
        super().__init__(context)
        # Records that pass do not change.
        self.checks_results = False
        self._input = ColumnLayout(spec.input_type)
        self._evaluation = evaluation_of(spec.condition, spec.input_type)
        self._holds = self._evaluation.of_record

    def step(self) -> Step | None:
        # A shared loop takes records.
        if self.context.node.takes_columns:
            return None
        return Step(StepKind.FILTER, self._holds, self._explain)

    def process(self, batch: RecordBatch) -> None:
        kept = self._kept(batch)
        if len(kept):
            self.output.emit(kept)

    def _kept(self, batch: RecordBatch) -> RecordBatch:
        if isinstance(batch, ColumnBatch) and self._input.fits(batch.layout):
            try:
                mask = self._evaluation.array_of(batch.columns)
            except pa.ArrowException:
                # Only the way of records knows the values, or the error.
                mask = pa.array(self._chosen(batch), pa.bool_())
            return batch if mask.true_count == len(batch) else batch.kept(mask)
        chosen, stamps = self._chosen(batch), batch.timestamps
        return RecordBatch(
            list(compress(batch.values, chosen)), stamps and list(compress(stamps, chosen))
        )

    def _chosen(self, batch: RecordBatch) -> list[Any]:
        holds = self._holds
        iterator = iter(batch.values)
        try:
            return [holds(record) for record in iterator]
        except USER_ERRORS as error:
            raise self.failure(error, holds, batch.values, iterator) from error

    def _explain(self, error: BaseException, record: Any) -> Exception:
        return self.failure(error, self._holds, [record])
