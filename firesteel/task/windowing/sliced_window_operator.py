"""Tumbling and sliding windows of event time with an incremental aggregate: the fast way.

It gives what the general operator gives for the default trigger, but works on slices: a window that
fires combines the accumulators of its slices. Nothing is done per record besides calling the user's
function.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from firesteel.graph.operator_specs import WindowSpec
from firesteel.state.missing import MISSING
from firesteel.task.operators.base import OperatorContext
from firesteel.task.windowing.aggregators import create_aggregator
from firesteel.task.windowing.aligned_window_operator import AlignedWindowOperator
from firesteel.task.windowing.deep_copies import deep_copy_of, is_plain
from firesteel.task.windowing.slice_store import SliceStore

_EMIT_RECORDS = 4096


class SlicedWindowOperator(AlignedWindowOperator):
    def __init__(self, spec: WindowSpec, context: OperatorContext) -> None:
        super().__init__(spec, context)
        self._aggregator = create_aggregator(spec.contents, self.name)
        self.stateless_function = self._aggregator.function
        # Whether accumulators are still used after a window has fired.
        self._goes_on = self._fires_late or not self._layout.is_tumbling
        self._store = SliceStore(
            context.keyed_state,
            self._layout,
            self._aggregator,
            self._schedule_slice,
            self._schedule_own_window,
        )

    # Records

    def _prepare(self, values: list[Any], keys: list[Any]) -> None:
        self._store.prepare(values, keys)

    def _add_to_slice(self, start: int, values: list[Any], keys: list[Any]) -> None:
        add_batch = self._aggregator.add_batch
        tables = self._store.tables(start, self._is_alive)
        for table in tables[1:]:
            add_batch(table, list(map(deep_copy_of, values)), keys)
        add_batch(tables[0], values, keys)

    def _add_late(self, values: list[Any], keys: list[Any], starts: list[int]) -> None:
        accumulator = self._store.accumulator
        for value, key, start in zip(values, keys, starts, strict=True):
            ends = [end for end in self._layout.ends(start) if self._has_fired(end)]
            before = (
                [self._result(accumulator(key, end)) for end in ends]
                if self._mode == "update"
                else None
            )
            self._add(start, [value], [key])
            for index, end in enumerate(ends):
                result = self._result(accumulator(key, end))
                if before is None or result != before[index]:
                    self._collect(key, end, result)
        self.emit_collected()

    # Results

    def _fire(self, end: int) -> None:
        contents = self._store.contents(end)
        if self.calls.function is not None or self._mode == "update":
            for key, accumulator in contents.items():
                self._collect(key, end, self._result(accumulator))
            self.emit_collected()
            return
        results = self._results(contents.values())
        emit, timestamp = self.output.emit, end - 1
        for first in range(0, len(results), _EMIT_RECORDS):
            chunk = results[first : first + _EMIT_RECORDS]
            emit(chunk, [timestamp] * len(chunk))

    def _results(self, found: Iterable[Any]) -> list[Any]:
        result = self._aggregator.result
        try:
            results = [result(accumulator) for accumulator in found]
        except Exception as error:
            raise self.failure(error, self._aggregator.called_for_result) from error
        if self._goes_on and results and not is_plain(results[0]):
            # The accumulators may go on changing after their results were emitted.
            return list(map(deep_copy_of, results))
        return results

    def _result(self, accumulator: Any) -> Any:
        """MISSING if there is nothing in the window."""
        if accumulator is MISSING:
            return MISSING
        (result,) = self._results((accumulator,))
        return result

    def _collect(self, key: Any, end: int, result: Any) -> None:
        window = self._window(end)
        if self._mode == "update":
            self.collected.add([((key, window), result)], end - 1)
        else:
            self.call_function(key, window, [result])

    def _fire_key(self, key: Any, end: int) -> None:
        result = self._result(self._store.accumulator(key, end))
        if result is not MISSING:
            self._collect(key, end, result)

    def _clear(self, end: int) -> None:
        window = self._window(end)
        for key in self._store.contents(end):
            self.clear_function(key, window)

    # State

    def _drop_slice(self, start: int) -> None:
        self._store.slices.drop(start)

    def _drop_window(self, end: int) -> None:
        self._store.windows.drop(end)

    def _load_slices(self) -> None:
        self._store.restore()
