"""flat_map: any number of results per record."""

from __future__ import annotations

from itertools import chain, repeat
from typing import Any

from firesteel.graph.operator_specs import FlatMapSpec
from firesteel.task.operators.base import FunctionOperator, OperatorContext


class FlatMapOperator(FunctionOperator):
    def __init__(self, spec: FlatMapSpec, context: OperatorContext) -> None:
        super().__init__(context, spec.function)
        self._flat_map = self.method("flat_map")

    def process(self, values: list[Any], timestamps: list[int] | None) -> None:
        iterator = iter(values)
        stamps: list[int] | None = None
        try:
            if timestamps is None:
                results = list(chain.from_iterable(map(self._flat_map, iterator)))
            else:
                groups = [list(group) for group in map(self._flat_map, iterator)]
                results = list(chain.from_iterable(groups))
                stamps = list(chain.from_iterable(map(repeat, timestamps, map(len, groups))))
        except Exception as error:
            raise self.failure(error, self._flat_map, values, iterator) from error
        if results:
            self.output.emit(results, stamps)
