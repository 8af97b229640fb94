"""Event-time tumbling windows with an incremental aggregate and the default trigger.

The results are those of the general operator. A window is one table with the accumulators of all
keys, so the only work per record is the call of the user's function.

sum, min and max of columns have no work per record. A slice is kept as columns, or by rows in its
table. It changes to rows for what columns cannot do: records of windows that have fired, values
that exceed 64 bits, and windows that fire again after a restart.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from firesteel.graph.column_aggregation import ColumnAggregation
from firesteel.graph.operator_specs import WindowSpec
from firesteel.state.tables import MISSING, ValueTable
from firesteel.task.column_aggregates import FieldAggregates
from firesteel.task.column_batch import ColumnBatch
from firesteel.task.column_groups import Integers
from firesteel.task.copies import copy_of, is_immutable
from firesteel.task.operators.base import OperatorContext
from firesteel.task.record_batch import RecordBatch
from firesteel.task.windowing.aggregators import create_aggregator
from firesteel.task.windowing.aligned_window_operator import AlignedWindowOperator
from firesteel.task.windowing.column_slices import (
    ColumnSlice,
    KeyedColumns,
    emit_columns,
    part_of,
    places_in_slices,
)
from firesteel.task.windowing.slices import AccumulatorTables, accumulators

if TYPE_CHECKING:
    import numpy as np
else:
    from firesteel.common import numpy_on_demand as np

_EMIT_RECORDS = 4096


class TumblingWindowOperator(AlignedWindowOperator):
    def __init__(self, spec: WindowSpec, context: OperatorContext) -> None:
        super().__init__(spec, context)
        self._aggregator = create_aggregator(spec.contents, self.name)
        self.stateless_function = self._aggregator.function
        self._slices = AccumulatorTables(
            context.keyed_state, "slice", self._aggregator.accumulator_type
        )
        self._aggregates: FieldAggregates | None = None
        # Columns keep all keys of a slice in memory.
        if isinstance(spec.columns, ColumnAggregation) and context.keyed_state.in_memory:
            self._aggregates = FieldAggregates(spec.columns)
        self._columns: dict[int, ColumnSlice] = {}
        # Slices that stay rows.
        self._rows: set[int] = set()

    # Records

    def _prepare(self, values: list[Any], keys: list[Any]) -> None:
        self._aggregator.prepare(values)

    def process(self, batch: RecordBatch) -> None:
        aggregates = self._aggregates
        if (
            aggregates is None
            or not isinstance(batch, ColumnBatch)
            or not self._process_columns(batch, aggregates)
        ):
            super().process(batch)

    def _process_columns(self, batch: ColumnBatch, aggregates: FieldAggregates) -> bool:
        """Add a batch of columns. Return False, and change nothing, if it must be added as rows."""
        stamps = batch.stamps
        if stamps is None or not aggregates.accepts(batch):
            return False
        self.ensure_loaded()
        if self.context.clock.watermark < self._passed.fired_until:
            return False
        values = aggregates.values_in(batch.columns)
        if values is None:
            return False
        parts = places_in_slices(self._layout, stamps.to_numpy())
        if parts is None:
            return False
        try:
            keys = aggregates.keys.arrays_of(batch.columns)
        except pa.ArrowException:
            return False
        columns = KeyedColumns(batch.columns, keys, values)
        too_late: list[Integers] = []
        late: list[Integers] = []
        for start, places in parts.items():
            if self._is_over(start):
                too_late.append(places)
            elif self._fires_late and self._refires(start):
                late.append(places)
            elif not self._add_columns(start, columns.at(places)):
                self._add_as_rows(start, part_of(batch, places))
        if too_late:
            # Their order is visible, so they keep the order of arrival.
            self.late.add(part_of(batch, np.sort(np.concatenate(too_late))), self.side)
        if late:
            part = part_of(batch, np.sort(np.concatenate(late)))
            late_values, late_keys, late_stamps = self.event_time_columns(part)
            self._prepare(late_values, late_keys)
            self._add_late(late_values, late_keys, self._layout.slices_of(late_stamps))
        return True

    def _add_columns(self, start: int, columns: KeyedColumns) -> bool:
        """Add records to a slice of columns. Return False if the slice must be rows."""
        found = self._column_slice(start)
        if found is None or not found.takes(columns.values):
            return False
        found.add(columns)
        return True

    def _column_slice(self, start: int) -> ColumnSlice | None:
        """Return the columns of a slice, or None if it must be rows."""
        found = self._columns.get(start)
        if found is not None or start in self._rows:
            return found
        assert self._aggregates is not None
        table = self._slices.get(start)
        if table is None:
            self._create_slice(start)
        found = ColumnSlice(self._aggregates)
        if table is not None and not found.load(accumulators(table)):
            self._rows.add(start)
            return None
        self._columns[start] = found
        return found

    def _add_as_rows(self, start: int, part: ColumnBatch) -> None:
        values, keys = part.values, part.keys
        assert keys is not None
        self._prepare(values, keys)
        self._add(start, values, keys)

    def _write_columns(self, start: int) -> None:
        """Write the keys of a slice that have changed into its table."""
        table = self._slices.get(start)
        assert table is not None
        table.overlay.update(zip(*self._columns[start].take_changed(), strict=True))

    def _make_rows(self, start: int) -> None:
        """Continue a slice by rows."""
        if start in self._columns:
            self._write_columns(start)
            del self._columns[start]
        if self._aggregates is not None:
            self._rows.add(start)

    def _create_slice(self, start: int) -> ValueTable:
        table = self._slices.create(start)
        self._schedule_slice(start)
        return table

    def _add_to_slice(self, start: int, values: list[Any], keys: list[Any]) -> None:
        self._make_rows(start)
        table = self._slices.get(start)
        if table is None:
            table = self._create_slice(start)
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
        start = end - self._layout.size
        if start in self._columns and self._fire_columns(start, end - 1):
            return
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

    def _fire_columns(self, start: int, timestamp: int) -> bool:
        """Emit the results of a slice. Return False if only rows have the results, or the error."""
        assert self._aggregates is not None
        kept = self._columns[start].kept()
        if kept is None:
            return True
        try:
            results = self._aggregates.with_values(kept.records, kept.values)
        except pa.ArrowException:
            self._make_rows(start)
            return False
        emit_columns(self.output, ColumnBatch(results, self._aggregates.layout), timestamp)
        return True

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
        start = end - self._layout.size
        if start in self._columns:
            self._make_rows(start)
        table = self._slices.get(start)
        return {} if table is None else accumulators(table)

    def _result_of(self, key: Any, end: int) -> Any:
        """The result of a key's window, or MISSING if the window is empty."""
        start = end - self._layout.size
        if start in self._columns:
            self._make_rows(start)
        table = self._slices.get(start)
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
        self._columns.pop(start, None)
        self._rows.discard(start)

    def snapshot_state(self, checkpoint_id: int | None, timestamp: int = 0) -> None:
        super().snapshot_state(checkpoint_id, timestamp)
        for start in self._columns:
            self._write_columns(start)

    def _load_slices(self) -> None:
        self._columns.clear()
        self._rows.clear()
        self._slices.restore()
        for start in self._slices:
            self._schedule_slice(start)
