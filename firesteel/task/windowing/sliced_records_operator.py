"""Event-time sliding windows whose function gets all records. The windows share the records.

A record is kept once, in its slice, with the number of its arrival. A window that fires restores
the order of arrival among the records of its slices.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from firesteel.graph.operator_specs import AllRecords, WindowSpec
from firesteel.state.tables import ListTable
from firesteel.task.operators.base import OperatorContext
from firesteel.task.record_batch import RecordBatch
from firesteel.task.windowing.aligned_window_operator import AlignedWindowOperator
from firesteel.task.windowing.arrivals import Arrivals, numbered_type
from firesteel.task.windowing.slices import RecordTables

_EMIT_RECORDS = 4096


class SlicedRecordsOperator(AlignedWindowOperator):
    """Keeps records as pairs of (number, record), from ``process`` to the tables."""

    def __init__(self, spec: WindowSpec, context: OperatorContext) -> None:
        super().__init__(spec, context)
        contents = spec.contents
        assert isinstance(contents, AllRecords)
        kind = numbered_type(contents.element_type)
        self._slices = RecordTables(context.keyed_state, "records", kind)
        self._arrivals = Arrivals(context)

    # Records

    def process(self, batch: RecordBatch) -> None:
        self.ensure_loaded()
        numbers = self._arrivals.take(len(batch))
        numbered = list(zip(numbers, batch.values, strict=True))
        super().process(RecordBatch(numbered, batch.timestamps, batch.keys))

    def _drop_late(self, values: list[Any], timestamps: list[int]) -> None:
        super()._drop_late([value for _, value in values], timestamps)

    def _add_to_slice(self, start: int, values: list[Any], keys: list[Any]) -> None:
        table = self._slices.get(start)
        if table is None:
            table = self._slices.create(start)
            self._schedule_slice(start)
        table.append_all(keys, values)

    # Results

    def _fire(self, end: int) -> None:
        window = self._window(end)
        for key, records in self._contents(end):
            self.call_function(key, window, records)
            if len(self.collected.results) >= _EMIT_RECORDS:
                self.emit_collected()
        self.emit_collected()

    def _fire_key(self, key: Any, end: int) -> None:
        records = self._arrivals.records(self._tables(end), key, self._expiry(end))
        if records:
            self.call_function(key, self._window(end), records)

    def _clear(self, end: int) -> None:
        window = self._window(end)
        for key, _ in self._contents(end):
            self.clear_function(key, window)

    def _contents(self, end: int) -> Iterator[tuple[Any, list[Any]]]:
        """Yield the records key by key, because those of all keys may not fit into memory."""
        tables_of: dict[Any, list[ListTable]] = {}
        for table in self._tables(end):
            for key in table.keys():  # noqa: SIM118 - a table is no mapping
                tables_of.setdefault(key, []).append(table)
        for key, tables in tables_of.items():
            records = self._arrivals.records(tables, key, self._expiry(end))
            if records:
                yield key, records

    def _tables(self, end: int) -> list[ListTable]:
        found = map(self._slices.get, self._layout.slices(end))
        return [table for table in found if table is not None]

    # State

    def _drop_slice(self, start: int) -> None:
        self._slices.drop(start)

    def _load_slices(self) -> None:
        self._arrivals.load(self._passed.saved)
        self._slices.restore()
        for start in self._slices:
            self._schedule_slice(start)

    def snapshot_state(self, checkpoint_id: int | None, timestamp: int = 0) -> None:
        super().snapshot_state(checkpoint_id, timestamp)
        self._arrivals.save()
