"""flat_map: any number of results per record."""

from __future__ import annotations

from itertools import chain, repeat
from typing import Any

from firesteel.graph.operator_specs import FlatMapSpec
from firesteel.task.operators.base import FunctionOperator, OperatorContext
from firesteel.task.record_batch import RecordBatch
from firesteel.usercode.failures import USER_ERRORS


class FlatMapOperator(FunctionOperator):
    def __init__(self, spec: FlatMapSpec, context: OperatorContext) -> None:
        super().__init__(context, spec.function)
        self._flat_map = self.method("flat_map")

    def process(self, batch: RecordBatch) -> None:
        flat_map = self._flat_map
        values, timestamps = batch.values, batch.timestamps
        iterator = iter(values)
        stamps: list[int] | None = None
        try:
            # No map() around a user's function: it takes the function's StopIteration for the end.
            if timestamps is None:
                results: list[Any] = []
                extend = results.extend
                for value in self.fed(iterator, batch):
                    extend(flat_map(value))
            else:
                lists = [list(flat_map(value)) for value in self.fed(iterator, batch)]
                results = list(chain.from_iterable(lists))
                stamps = list(chain.from_iterable(map(repeat, timestamps, map(len, lists))))
        except USER_ERRORS as error:
            raise self.failure(error, flat_map, values, iterator) from error
        if results:
            self.output.emit(RecordBatch(results, stamps))
