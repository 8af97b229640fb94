"""filter and select: the records for which a condition holds."""

from __future__ import annotations

from collections.abc import Callable
from itertools import compress
from typing import Any

from firesteel.graph.operator_specs import FilterSpec, SelectSpec
from firesteel.task.codegen.fusion import Step, StepKind
from firesteel.task.operators.base import FunctionOperator, OperatorContext
from firesteel.task.record_batch import RecordBatch
from firesteel.usercode.failures import USER_ERRORS


class FilterOperator(FunctionOperator):
    def __init__(self, spec: FilterSpec, context: OperatorContext) -> None:
        super().__init__(context, spec.function)
        self._condition = self.method("filter")

    def step(self) -> Step | None:
        # A shared loop does not tell functions the key.
        return None if self.uses_keys else self.step_of(StepKind.FILTER, self._condition)

    def process(self, batch: RecordBatch) -> None:
        condition = self._condition
        values, timestamps = batch.values, batch.timestamps
        iterator = iter(values)
        fed = self.fed(iterator, batch)
        stamps: list[int] | None = None
        try:
            if timestamps is None:
                kept = [value for value in fed if condition(value)]
            else:
                chosen = [condition(value) for value in fed]
                kept = list(compress(values, chosen))
                stamps = list(compress(timestamps, chosen))
        except USER_ERRORS as error:
            raise self.failure(error, condition, values, iterator) from error
        if kept:
            self.output.emit(RecordBatch(kept, stamps))


class SelectOperator(FilterOperator):
    """split(...).select(...): keeps the records that the selector puts under one of the names."""

    def __init__(self, spec: SelectSpec, context: OperatorContext) -> None:
        # The function is opened and closed. The plain selector is called.
        super().__init__(FilterSpec(_keep_all), context)
        if spec.functions:
            self.function = spec.functions[0]
        select, names = spec.selector, spec.names
        self._selector = select

        def condition(value: Any) -> bool:
            outputs = select(value)
            if type(outputs) is str:
                # A single name. Iterating over it would give its letters.
                return outputs in names
            return not names.isdisjoint(outputs)

        self._condition = condition

    def failure(
        self,
        error: BaseException,
        function: Callable[..., Any],
        values: list[Any] | None = None,
        iterator: Any = None,
    ) -> Exception:
        # The user's selector failed, not the condition around it.
        return super().failure(error, self._selector, values, iterator)


def _keep_all(value: Any) -> bool:
    return True
