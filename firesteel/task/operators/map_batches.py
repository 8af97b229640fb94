"""map_batches: as many results as records, as columns."""

from __future__ import annotations

from typing import Any

from firesteel.common.columns import ColumnLayout, ColumnsError
from firesteel.graph.operator_specs import MapBatchesSpec
from firesteel.task.column_batch import ColumnBatch
from firesteel.task.operators.base import OperatorContext
from firesteel.task.operators.batch_function import BatchFunctionOperator


class MapBatchesOperator(BatchFunctionOperator):
    method_name = "map"

    def __init__(self, spec: MapBatchesSpec, context: OperatorContext) -> None:
        super().__init__(spec, context)
        self._output = ColumnLayout(spec.output_type)

    def results_of(self, result: Any, batch: ColumnBatch) -> ColumnBatch:
        columns = self._output.fitted(result)
        if columns.num_rows != len(batch):
            raise ColumnsError(
                f"map_batches must return a result for each of the {len(batch)} records, but it "
                f"returned {columns.num_rows}; use filter_batches or flat_map_batches to change "
                "their number"
            )
        return ColumnBatch(columns, self._output, batch.stamps)
