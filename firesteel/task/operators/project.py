"""project: some fields of a tuple or row."""

from __future__ import annotations

from operator import itemgetter

from firesteel.graph.operator_specs import ProjectSpec
from firesteel.task.operators.base import Operator, OperatorContext
from firesteel.task.record_batch import RecordBatch
from firesteel.usercode.failures import USER_ERRORS


class ProjectOperator(Operator):
    def __init__(self, spec: ProjectSpec, context: OperatorContext) -> None:
        super().__init__(context)
        # With a single index itemgetter gives the field itself instead of a tuple.
        (first, *others) = spec.field_indexes
        self._project = itemgetter(first, *others) if others else lambda value: (value[first],)

    def process(self, batch: RecordBatch) -> None:
        iterator = iter(batch.values)
        try:
            results = list(map(self._project, iterator))
        except USER_ERRORS as error:
            raise self.failure(error, self._project, batch.values, iterator) from error
        self.output.emit(RecordBatch(results, batch.timestamps))
