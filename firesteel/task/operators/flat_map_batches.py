"""flat_map_batches: any number of results per record, as columns."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from firesteel.common.columns import ColumnLayout, ColumnsError, array_in
from firesteel.graph.operator_specs import FlatMapBatchesSpec
from firesteel.task.column_batch import ColumnBatch
from firesteel.task.operators.base import OperatorContext
from firesteel.task.operators.batch_function import BatchFunctionOperator


class FlatMapBatchesOperator(BatchFunctionOperator):
    """Results take the timestamp of the record that they come from, which the function names."""

    method_name = "flat_map"

    def __init__(self, spec: FlatMapBatchesSpec, context: OperatorContext) -> None:
        super().__init__(spec, context)
        self._output = ColumnLayout(spec.output_type)

    def results_of(self, result: Any, batch: ColumnBatch) -> ColumnBatch:
        origins = None
        if isinstance(result, tuple):
            if len(result) != 2:
                raise ColumnsError(
                    "flat_map_batches must return columns, or a pair of columns and the position "
                    f"of each result's record, but it returned a tuple of {len(result)}"
                )
            result, origins = result
        columns = self._output.fitted(result)
        if origins is not None:
            origins = _checked_origins(origins, columns.num_rows, len(batch))
        stamps = batch.stamps
        if stamps is not None:
            if origins is None:
                raise ColumnsError(
                    "the records have timestamps, so flat_map_batches must tell whose timestamp a "
                    "result takes: return a pair of the columns and an array with the position of "
                    "each result's record in the batch"
                )
            stamps = stamps.take(origins)
        return ColumnBatch(columns, self._output, stamps)


def _checked_origins(origins: Any, results: int, records: int) -> pa.Array:
    array = pa.array(origins, pa.int64()) if isinstance(origins, list) else array_in(origins)
    if not pa.types.is_integer(array.type) and not pa.types.is_null(array.type):
        raise ColumnsError(f"positions of records must be integers, got an array of {array.type}")
    array = array.cast(pa.int64())
    if len(array) != results:
        raise ColumnsError(
            f"flat_map_batches returned {results} results, but {len(array)} positions of records"
        )
    if array.null_count:
        raise ColumnsError("a position of a record is null")
    if len(array):
        bounds = pc.min_max(array)
        least, greatest = bounds["min"].as_py(), bounds["max"].as_py()
        if least < 0 or greatest >= records:
            raise ColumnsError(
                f"positions of records must be from 0 to {records - 1}, got "
                f"{least if least < 0 else greatest}"
            )
    return array
