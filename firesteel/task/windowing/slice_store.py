"""The accumulators of sliced windows, and how those of a window are put together."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from firesteel.state.backend import KeyedStateBackend
from firesteel.state.missing import MISSING
from firesteel.state.tables import ValueTable
from firesteel.task.windowing.aggregators import Aggregator
from firesteel.task.windowing.deep_copies import deep_copy_of
from firesteel.task.windowing.merge_probe import UNKNOWN, probe_merge
from firesteel.task.windowing.slice_combiner import SliceCombiner
from firesteel.task.windowing.slice_tables import AccumulatorTables, accumulators
from firesteel.task.windowing.slices import SliceLayout


class SliceStore:
    """Keeps slices, which windows share; or whole windows, where accumulators cannot be merged.

    ``on_slice`` and ``on_window`` hear of each table that begins.
    """

    def __init__(
        self,
        backend: KeyedStateBackend,
        layout: SliceLayout,
        aggregator: Aggregator,
        on_slice: Callable[[int], None],
        on_window: Callable[[int], None],
    ) -> None:
        self._layout = layout
        self._aggregator = aggregator
        self._on_slice = on_slice
        self._on_window = on_window
        self.slices = AccumulatorTables(backend, "slice", aggregator.accumulator_type)
        self.windows = AccumulatorTables(backend, "window", aggregator.accumulator_type)
        # None: not known yet.
        self._shares_slices: bool | None = True if layout.is_tumbling else None
        self._merge = UNKNOWN
        self._probed = False
        self._combiner = SliceCombiner(layout, aggregator.merge, self._slice)

    def prepare(self, values: list[Any], keys: list[Any]) -> None:
        """Look at the first records that come to this process."""
        if self._probed:
            return
        self._probed = True
        self._aggregator.prepare(values)
        if not self._layout.is_tumbling:
            self._merge = probe_merge(self._aggregator, values, keys)
            if self._shares_slices is None:
                self._shares_slices = self._merge.agrees

    def tables(self, start: int, is_alive: Callable[[int], bool]) -> list[ValueTable]:
        """Where a record of the slice goes: once, or once for each window that is alive."""
        if self._shares_slices:
            self._combiner.changed(start)
            table = self.slices.get(start)
            if table is None:
                table = self.slices.create(start)
                self._on_slice(start)
            return [table]
        tables = []
        for end in self._layout.ends(start):
            table = self.windows.get(end)
            if table is None and is_alive(end):
                table = self.windows.create(end)
                self._on_window(end)
            if table is not None:
                tables.append(table)
        return tables

    def contents(self, end: int) -> dict[Any, Any]:
        """The accumulators of all keys of a window; not to be changed."""
        if self._merge.is_pure and not self.windows:
            return self._combiner.contents(end)
        tables = list(self._tables_in(end))
        if len(tables) <= 1:
            return accumulators(tables[0]) if tables else {}
        merge, missing = self._aggregator.merge, MISSING
        merged: dict[Any, Any] = {}
        kept = merged.get
        for table in tables:
            for key, found in accumulators(table).items():
                so_far, accumulator = kept(key, missing), deep_copy_of(found)
                merged[key] = accumulator if so_far is missing else merge(so_far, accumulator)
        return merged

    def accumulator(self, key: Any, end: int) -> Any:
        """That of one key of a window, or MISSING."""
        so_far: Any = MISSING
        for table in self._tables_in(end):
            accumulator = table.get(key)
            if accumulator is MISSING:
                continue
            if not self._merge.is_pure:
                accumulator = deep_copy_of(accumulator)
            if so_far is MISSING:
                so_far = accumulator
            else:
                so_far = self._aggregator.merge(so_far, accumulator)
        return so_far

    def _tables_in(self, end: int) -> Iterator[ValueTable]:
        if self.windows and (table := self.windows.get(end)) is not None:
            yield table
        if self.slices:
            for start in self._layout.slices(end):
                if (table := self.slices.get(start)) is not None:
                    yield table

    def _slice(self, start: int) -> dict[Any, Any] | None:
        table = self.slices.get(start)
        return None if table is None else accumulators(table)

    def restore(self) -> None:
        """The backend has become another one."""
        self._combiner = SliceCombiner(self._layout, self._aggregator.merge, self._slice)
        self.slices.restore()
        self.windows.restore()
        if not self._layout.is_tumbling and (self.slices or self.windows):
            self._shares_slices = bool(self.slices)
        sample = next((a for tables in (self.slices, self.windows) for a in tables.any()), MISSING)
        if sample is not MISSING:
            self._aggregator.prepare([sample])
        for start in self.slices:
            self._on_slice(start)
        for end in self.windows:
            self._on_window(end)
