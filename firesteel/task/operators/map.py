"""map: one result per record."""

from __future__ import annotations

from typing import Any

from firesteel.graph.operator_specs import MapSpec
from firesteel.task.operators.base import FunctionOperator, OperatorContext


class MapOperator(FunctionOperator):
    def __init__(self, spec: MapSpec, context: OperatorContext) -> None:
        super().__init__(context, spec.function)
        self._map = self.method("map")

    def process(self, values: list[Any], timestamps: list[int] | None) -> None:
        self.receive(values, None, timestamps)

    def receive(
        self, values: list[Any], keys: list[Any] | None, timestamps: list[int] | None
    ) -> None:
        iterator = iter(values)
        try:
            results = list(map(self._map, self.fed(iterator, keys)))
        except Exception as error:
            raise self.failure(error, self._map, values, iterator) from error
        self.output.emit(results, timestamps)
