"""CoProcess: a process function for two inputs, keyed or not."""

from __future__ import annotations

from firesteel.graph.operator_specs import CoProcessSpec, ProcessSpec
from firesteel.task.operators.base import OperatorContext
from firesteel.task.operators.process import ProcessOperator
from firesteel.task.record_batch import RecordBatch


class CoProcessOperator(ProcessOperator):
    def __init__(self, spec: CoProcessSpec, context: OperatorContext) -> None:
        super().__init__(ProcessSpec(spec.function), context)

    def process(self, batch: RecordBatch) -> None:
        self.process_with(self.function.process_element1, batch)

    def process_second(self, batch: RecordBatch) -> None:
        self.process_with(self.function.process_element2, batch)
