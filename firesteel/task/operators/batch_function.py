"""The base of operators whose function takes columns: a pyarrow.RecordBatch instead of a record."""

from __future__ import annotations

from typing import Any

from firesteel.common.columns import ColumnLayout
from firesteel.errors import TypeMismatchError
from firesteel.graph.operator_specs import BatchFunctionSpec
from firesteel.task.column_batch import ColumnBatch, columns_of
from firesteel.task.operators.base import FunctionOperator, OperatorContext
from firesteel.task.record_batch import RecordBatch
from firesteel.usercode.failures import USER_ERRORS


class BatchFunctionOperator(FunctionOperator):
    """Makes columns of records that come as Python objects, and calls the function with them."""

    method_name: str
    """The method of a function object."""

    def __init__(self, spec: BatchFunctionSpec, context: OperatorContext) -> None:
        super().__init__(context, spec.function)
        # Results are fitted to the declared type as columns.
        self.checks_results = False
        self._call = self.method(self.method_name)
        self._input = ColumnLayout(spec.input_type)

    def process(self, batch: RecordBatch) -> None:
        try:
            columns = columns_of(batch, self._input)
        except TypeMismatchError as error:
            error.operator = error.operator or self.name
            raise
        try:
            result = self.results_of(self._call(columns.columns), columns)
        except USER_ERRORS as error:
            raise self.failure(error, self._call) from error
        if len(result):
            self.output.emit(result)

    def results_of(self, result: Any, batch: ColumnBatch) -> ColumnBatch:
        """Return the batch to emit, given what the function returned.

        Raises:
            ColumnsError: The result does not fit the declared type or the batch.
        """
        raise NotImplementedError
