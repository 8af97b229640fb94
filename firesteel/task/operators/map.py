"""map: one result per record."""

from __future__ import annotations

from typing import Any

from firesteel.graph.operator_specs import MapSpec
from firesteel.task.codegen.fusion import Step, StepKind
from firesteel.task.operators.base import FunctionOperator, OperatorContext
from firesteel.usercode.failures import USER_ERRORS


class MapOperator(FunctionOperator):
    def __init__(self, spec: MapSpec, context: OperatorContext) -> None:
        super().__init__(context, spec.function)
        self._map = self.method("map")

    def step(self) -> Step:
        return self.step_of(StepKind.MAP, self._map)

    def process(self, values: list[Any], timestamps: list[int] | None) -> None:
        self._map_all(values, None, timestamps)

    def receive(
        self, values: list[Any], keys: list[Any] | None, timestamps: list[int] | None
    ) -> None:
        if self.uses_keys:
            self._map_all(values, keys, timestamps)
        else:
            self.entry(values, timestamps)

    def _map_all(
        self, values: list[Any], keys: list[Any] | None, timestamps: list[int] | None
    ) -> None:
        function = self._map
        iterator = iter(values)
        try:
            # Faster than map(): the interpreter calls Python from Python without leaving its loop.
            results = [function(value) for value in self.fed(iterator, keys)]
        except USER_ERRORS as error:
            raise self.failure(error, function, values, iterator) from error
        self.output.emit(results, timestamps)
