"""DataFrame sinks: records leave as Arrow streams, and Spark writes them."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from firesteel.common.arrow_values import MISFITS, arrow_writer, misfit
from firesteel.errors import TypeMismatchError
from firesteel.graph.operator_specs import DataFrameSinkSpec
from firesteel.protocol.rows import DATAFRAME
from firesteel.task.operators.base import Operator, OperatorContext
from firesteel.task.record_batch import RecordBatch


class DataFrameSinkOperator(Operator):
    def __init__(self, spec: DataFrameSinkSpec, context: OperatorContext) -> None:
        super().__init__(context)
        self._type = spec.value_type
        self._schema = arrow_schema(spec.value_type)
        self._write = arrow_writer(spec.value_type)
        self._has_fields = isinstance(spec.value_type.to_arrow_type(), pa.StructType)

    def process(self, batch: RecordBatch) -> None:
        stream = pa.BufferOutputStream()
        with pa.ipc.new_stream(stream, self._schema) as writer:
            writer.write_batch(self._arrow_batch(batch.values))
        self.context.to_driver(DATAFRAME, stream.getvalue().to_pybytes())

    def _arrow_batch(self, values: list[Any]) -> pa.RecordBatch:
        column = self._column(values)
        if not self._has_fields:
            return pa.RecordBatch.from_arrays([column], schema=self._schema)
        if column.null_count:
            raise TypeMismatchError(
                None, self._type, "a record with fields must not be None.", self.name
            )
        return pa.RecordBatch.from_struct_array(column)

    def _column(self, values: list[Any]) -> pa.Array:
        try:
            return self._write(values)
        except MISFITS as error:
            found = misfit(values, self._type, self._write)
            if found is None:
                raise
            found.operator = self.name
            raise found from error


def arrow_schema(value_type: Any) -> pa.Schema:
    """The fields of a row or tuple are columns. Any other type is one column ``value``."""
    arrow_type = value_type.to_arrow_type()
    if isinstance(arrow_type, pa.StructType):
        return pa.schema(list(arrow_type))
    return pa.schema([("value", arrow_type)])
