"""A DataFrame as a source: Spark reads, the records arrive as Arrow streams."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from firesteel.common.types import new_row
from firesteel.graph.operator_specs import DataFrameSourceSpec
from firesteel.task.operators.base import Operator, OperatorContext


class DataFrameSourceOperator(Operator):
    """Turns the rows of a DataFrame into named Rows."""

    def __init__(self, spec: DataFrameSourceSpec, context: OperatorContext) -> None:
        super().__init__(context)
        self._names = list(spec.column_names)

    def receive_external(self, payload: bytes) -> int:
        """Emit the records of one Arrow stream; how many they are."""
        count = 0
        names = self._names
        with pa.ipc.open_stream(payload) as reader:
            for batch in reader:
                columns = [column.to_pylist() for column in batch.columns]
                values: list[Any] = [
                    new_row(list(fields), names) for fields in zip(*columns, strict=True)
                ]
                count += len(values)
                self.output.emit(values, None)
        return count
