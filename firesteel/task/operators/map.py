"""map: one result per record."""

from __future__ import annotations

from firesteel.graph.operator_specs import MapSpec
from firesteel.task.codegen.fusion import Step, StepKind
from firesteel.task.operators.base import FunctionOperator, OperatorContext
from firesteel.task.record_batch import RecordBatch
from firesteel.usercode.failures import USER_ERRORS


class MapOperator(FunctionOperator):
    def __init__(self, spec: MapSpec, context: OperatorContext) -> None:
        super().__init__(context, spec.function)
        self._map = self.method("map")

    def step(self) -> Step | None:
        # A shared loop does not tell functions the key.
        return None if self.uses_keys else self.step_of(StepKind.MAP, self._map)

    def process(self, batch: RecordBatch) -> None:
        function = self._map
        iterator = iter(batch.values)
        try:
            # Faster than map(): the interpreter calls Python from Python without leaving its loop.
            results = [function(value) for value in self.fed(iterator, batch)]
        except USER_ERRORS as error:
            raise self.failure(error, function, batch.values, iterator) from error
        self.output.emit(RecordBatch(results, batch.timestamps))
