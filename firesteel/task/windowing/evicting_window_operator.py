"""The window operator with an evictor: all records are kept, and some leave when a window fires."""

from __future__ import annotations

from typing import Any

from firesteel.graph.operator_specs import WindowSpec
from firesteel.task.operators.base import OperatorContext
from firesteel.task.windowing.aggregators import Aggregator, create_aggregator
from firesteel.task.windowing.window_operator import WindowOperator
from firesteel.task.windowing.window_state import TimedRecordsState, WindowState


class EvictingWindowOperator(WindowOperator):
    """A reduction or aggregation is computed anew at each firing, from the records that are left."""

    def __init__(self, spec: WindowSpec, context: OperatorContext) -> None:
        self._aggregator: Aggregator | None = None
        super().__init__(spec, context)
        self._evictor = spec.evictor
        if spec.contents.is_aggregate:
            self._aggregator = create_aggregator(spec.contents, self.name)
            self.stateless_function = self._aggregator.function

    def create_state(self, spec: WindowSpec, context: OperatorContext) -> WindowState:
        self._records = TimedRecordsState(context.keyed_state)
        return self._records

    def fire(self, key: Any, window: Any, state_window: Any) -> None:
        elements = self._records.timed(key, state_window)
        if not elements:
            return
        context, evictor = self._trigger_context, self._evictor
        kept = list(evictor.evict_before(elements, len(elements), window, context))
        values = [element.value for element in kept]
        if values or self._aggregator is None:
            self._results.fire(key, window, self._aggregated(values))
        kept = list(evictor.evict_after(kept, len(kept), window, context))
        if len(kept) < len(elements):
            self._records.replace(key, state_window, kept)

    def final_contents(self, key: Any, window: Any, state_window: Any) -> list[Any] | None:
        elements = self._records.timed(key, state_window)
        if not elements:
            return None
        kept = self._evictor.evict_before(elements, len(elements), window, self._trigger_context)
        values = [element.value for element in kept]
        return self._aggregated(values) if values or self._aggregator is None else None

    def _aggregated(self, values: list[Any]) -> list[Any]:
        aggregator = self._aggregator
        if aggregator is None:
            return values
        aggregator.prepare(values)
        first, *rest = values
        accumulator = aggregator.first(first)
        for value in rest:
            accumulator = aggregator.add(accumulator, value)
        return [aggregator.result(accumulator)]

    def _functions(self) -> list[Any]:
        called = [] if self._aggregator is None else [self._aggregator.called]
        evicting = [self._evictor.evict_before, self._evictor.evict_after]
        return [*super()._functions(), *called, *evicting]
