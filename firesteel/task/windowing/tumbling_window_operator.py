"""Event-time tumbling windows with an incremental aggregate and the default trigger.

The results are those of the general operator. A window is one table with the accumulators of all
keys, so the only work per record is the call of the user's function.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from firesteel.graph.operator_specs import WindowSpec
from firesteel.state.tables import MISSING
from firesteel.task.copies import copy_of, is_immutable
from firesteel.task.operators.base import OperatorContext
from firesteel.task.record_batch import RecordBatch
from firesteel.task.windowing.aggregators import create_aggregator
from firesteel.task.windowing.aligned_window_operator import AlignedWindowOperator
from firesteel.task.windowing.slices import AccumulatorTables, accumulators

_EMIT_RECORDS = 4096


class TumblingWindowOperator(AlignedWindowOperator):
    def __init__(self, spec: WindowSpec, context: OperatorContext) -> None:
        super().__init__(spec, context)
        self._aggregator = create_aggregator(spec.contents, self.name)
        self.stateless_function = self._aggregator.function
        self._slices = AccumulatorTables(
            context.keyed_state, "slice", self._aggregator.accumulator_type
        )

    # Records

    def _prepare(self, values: list[Any], keys: list[Any]) -> None:
        self._aggregator.prepare(values)

    def _add_to_slice(self, start: int, values: list[Any], keys: list[Any]) -> None:
        table = self._slices.get(start)
        if table is None:
            table = self._slices.create(start)
            self._schedule_slice(start)
        self._aggregator.add_batch(table, values, keys)

    def _add_late(self, values: list[Any], keys: list[Any], starts: list[int]) -> None:
        for value, key, start in zip(values, keys, starts, strict=True):
            end = self._layout.last_end(start)
            before = self._result_of(key, end) if self._mode == "update" else MISSING
            self._add(start, [value], [key])
            result = self._result_of(key, end)
            if before is MISSING or result != before:
                self._collect(key, end, result)
        self.emit_collected()

    # Results

    def _fire(self, end: int) -> None:
        contents = self._contents(end)
        if self.calls.function is not None or self._mode == "update":
            for key, accumulator in contents.items():
                self._collect(key, end, self._results((accumulator,))[0])
            self.emit_collected()
            return
        results = self._results(contents.values())
        emit, timestamp = self.output.emit, end - 1
        for first in range(0, len(results), _EMIT_RECORDS):
            chunk = results[first : first + _EMIT_RECORDS]
            emit(RecordBatch(chunk, [timestamp] * len(chunk)))

    def _results(self, found: Iterable[Any]) -> list[Any]:
        result = self._aggregator.result
        try:
            results = [result(accumulator) for accumulator in found]
        except Exception as error:
            raise self.failure(error, self._aggregator.called_for_result) from error
        if self._fires_late and results and not is_immutable(results[0]):
            # The accumulators may change after their results were emitted.
            return list(map(copy_of, results))
        return results

    def _contents(self, end: int) -> dict[Any, Any]:
        """The accumulators of all keys. The caller must not change them."""
        table = self._slices.get(end - self._layout.size)
        return {} if table is None else accumulators(table)

    def _result_of(self, key: Any, end: int) -> Any:
        """The result of a key's window, or MISSING if the window is empty."""
        table = self._slices.get(end - self._layout.size)
        accumulator = MISSING if table is None else table.get(key)
        return MISSING if accumulator is MISSING else self._results((accumulator,))[0]

    def _collect(self, key: Any, end: int, result: Any) -> None:
        window = self._window(end)
        if self._mode == "update":
            self.collected.add([((key, window), result)], end - 1)
        else:
            self.call_function(key, window, [result])

    def _fire_key(self, key: Any, end: int) -> None:
        result = self._result_of(key, end)
        if result is not MISSING:
            self._collect(key, end, result)

    def _clear(self, end: int) -> None:
        window = self._window(end)
        for key in self._contents(end):
            self.clear_function(key, window)

    # State

    def _drop_slice(self, start: int) -> None:
        self._slices.drop(start)

    def _load_slices(self) -> None:
        self._slices.restore()
        for start in self._slices:
            self._schedule_slice(start)
