"""A DataFrame as a sink: records leave as Arrow streams, Spark writes them."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from firesteel.graph.operator_specs import DataFrameSinkSpec
from firesteel.task.operators.base import Operator, OperatorContext
from firesteel.task.rows import DATAFRAME


class DataFrameSinkOperator(Operator):
    def __init__(self, spec: DataFrameSinkSpec, context: OperatorContext) -> None:
        super().__init__(context)
        self._schema = arrow_schema(spec.value_type)
        self._has_fields = isinstance(spec.value_type.to_arrow_type(), pa.StructType)

    def process(self, values: list[Any], timestamps: list[int] | None) -> None:
        columns = zip(*values, strict=True) if self._has_fields else (values,)
        batch = pa.RecordBatch.from_arrays(
            [
                pa.array(column, type=column_field.type)
                for column, column_field in zip(columns, self._schema, strict=True)
            ],
            schema=self._schema,
        )
        stream = pa.BufferOutputStream()
        with pa.ipc.new_stream(stream, self._schema) as writer:
            writer.write_batch(batch)
        self.context.to_driver(DATAFRAME, stream.getvalue().to_pybytes())


def arrow_schema(value_type: Any) -> pa.Schema:
    """A row or tuple gives its fields as columns, any other type one column ``value``."""
    arrow_type = value_type.to_arrow_type()
    if isinstance(arrow_type, pa.StructType):
        return pa.schema(list(arrow_type))
    return pa.schema([("value", arrow_type)])
