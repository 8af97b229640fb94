"""What reduce, fold and the aggregations of a field have in common: one value for each key."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any, ClassVar

from firesteel.graph.operator_specs import KeyedAggregationSpec
from firesteel.task.copies import copying, copying_get
from firesteel.task.operators.base import FunctionOperator, OperatorContext
from firesteel.task.operators.keyed_results import create_results

# Takes what nobody wants, at the price of a list's append.
_forget: Callable[[Any], None] = deque[Any](maxlen=0).append


class KeyedAggregationOperator(FunctionOperator):
    """Subclasses combine the records of a batch with what ``table`` has."""

    may_change: ClassVar[bool] = True
    """Whether the function may change its arguments in place."""

    def __init__(
        self, spec: KeyedAggregationSpec, context: OperatorContext, function: Any, table: str
    ) -> None:
        super().__init__(context, function)
        self.table = context.keyed_state.value_table(table)
        self.results = create_results(
            spec.output_mode, self.table, self.output, batch=context.subtask.batch
        )

    def adder(self, results: list[Any], *, copies: bool) -> Callable[[Any], None]:
        """Takes the result of each record. ``copies``: it may go on changing in place."""
        if not self.results.rolls:
            return _forget
        return copying(results.append) if copies else results.append

    def reader(self, *, copies: bool) -> Callable[[Any, Any], Any]:
        """Reads the base, from which a function gets what it may change in place."""
        get = self.table.base.get
        # Where results are compared with the base, nothing in it may change, whatever it looks like.
        if copies or (self.results.compares and self.may_change):
            return copying_get(get)
        return get

    def process_watermark(self, watermark: int) -> None:
        self.results.watermark(watermark)

    def process_idle(self, idle: bool) -> None:
        self.results.idle(idle)

    def end_epoch(self, *, finished: bool) -> None:
        if not finished:
            self.results.end_epoch()

    def finish(self) -> None:
        self.results.finish()

    def restore(self, whole: Any) -> None:
        self.results.reset()
