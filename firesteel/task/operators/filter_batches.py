"""filter_batches: the records for which a mask is true."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from firesteel.common.columns import ColumnsError, array_in
from firesteel.errors import shorten
from firesteel.task.column_batch import ColumnBatch
from firesteel.task.operators.batch_function import BatchFunctionOperator


class FilterBatchesOperator(BatchFunctionOperator):
    method_name = "filter"

    def results_of(self, result: Any, batch: ColumnBatch) -> ColumnBatch:
        mask = _mask_in(result)
        if len(mask) != len(batch):
            raise ColumnsError(
                f"filter_batches must return a boolean for each of the {len(batch)} records, but "
                f"it returned {len(mask)}"
            )
        # Most batches of many filters pass whole, or not at all.
        return batch if mask.true_count == len(batch) else batch.kept(mask)


def _mask_in(result: Any) -> pa.BooleanArray:
    if isinstance(result, Sequence) and not isinstance(result, str | bytes):
        if not all(type(one) is bool for one in result):
            raise ColumnsError(f"filter_batches must return booleans, got {shorten(result)}")
        return pa.array(result, pa.bool_())
    mask = array_in(result)
    if mask.type != pa.bool_():
        raise ColumnsError(
            f"filter_batches must return an array of booleans, got an array of {mask.type}"
        )
    return mask
