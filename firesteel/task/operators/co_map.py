"""CoMap: one function for two inputs, one result per record. As in PyFlink, None is no result."""

from __future__ import annotations

from collections.abc import Callable
from itertools import compress
from typing import Any

from firesteel.graph.operator_specs import CoMapSpec
from firesteel.task.operators.base import FunctionOperator, OperatorContext
from firesteel.task.record_batch import RecordBatch
from firesteel.usercode.failures import USER_ERRORS


class CoMapOperator(FunctionOperator):
    def __init__(self, spec: CoMapSpec, context: OperatorContext) -> None:
        super().__init__(context, spec.function)

    def process(self, batch: RecordBatch) -> None:
        self._map(self.function.map1, batch)

    def process_second(self, batch: RecordBatch) -> None:
        self._map(self.function.map2, batch)

    def _map(
        self,
        function: Callable[[Any], Any],
        batch: RecordBatch,
    ) -> None:
        values, timestamps = batch.values, batch.timestamps
        iterator = iter(values)
        try:
            results = [function(value) for value in self.fed(iterator, batch)]
        except USER_ERRORS as error:
            raise self.failure(error, function, values, iterator) from error
        present = [result is not None for result in results]
        if not all(present):
            results = list(compress(results, present))
            timestamps = None if timestamps is None else list(compress(timestamps, present))
        if results:
            self.output.emit(RecordBatch(results, timestamps))
