"""CoFlatMap: one function for two inputs, any number of results per record."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from firesteel.graph.operator_specs import CoFlatMapSpec
from firesteel.task.operators.base import FunctionOperator, OperatorContext
from firesteel.task.record_batch import RecordBatch
from firesteel.usercode.failures import USER_ERRORS


class CoFlatMapOperator(FunctionOperator):
    def __init__(self, spec: CoFlatMapSpec, context: OperatorContext) -> None:
        super().__init__(context, spec.function)

    def process(self, batch: RecordBatch) -> None:
        self._flat_map(self.function.flat_map1, batch)

    def process_second(self, batch: RecordBatch) -> None:
        self._flat_map(self.function.flat_map2, batch)

    def _flat_map(
        self,
        function: Callable[[Any], Iterable[Any] | None],
        batch: RecordBatch,
    ) -> None:
        values, timestamps = batch.values, batch.timestamps
        results: list[Any] = []
        stamps: list[int] = []
        iterator = iter(values)
        try:
            for index, value in enumerate(self.fed(iterator, batch)):
                before = len(results)
                # As in PyFlink, a function without results for this input may return None.
                results.extend(function(value) or ())
                if timestamps is not None:
                    stamps.extend([timestamps[index]] * (len(results) - before))
        except USER_ERRORS as error:
            raise self.failure(error, function, values, iterator) from error
        if results:
            self.output.emit(RecordBatch(results, stamps if timestamps is not None else None))
