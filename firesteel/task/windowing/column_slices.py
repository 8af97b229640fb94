"""Slices whose records are columns, with one accumulator per key.

Columns wait until there are many, and are merged with those before them at once. Changed keys are
written into the table of the slice at the end of an epoch, in the form of the row path, so the table
of a slice that fires within the epoch stays empty.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa

from firesteel.task.column_aggregates import FieldAggregates, Values
from firesteel.task.column_batch import ColumnBatch
from firesteel.task.column_groups import Groups, Integers, groups_of
from firesteel.task.operators.base import Output
from firesteel.task.windowing.slices import SliceLayout

if TYPE_CHECKING:
    import numpy as np
else:
    from firesteel.common import numpy_on_demand as np

# Records that wait, at least. Later, they are as many as the slice has keys.
_WAITING_RECORDS = 1 << 16


# Results per emitted batch.
_EMIT_RECORDS = 1 << 16
# Columns pay from this many records of a batch in each slice.
_RECORDS_PER_SLICE = 16
# So many slices are tried. More are found by sorting.
_FEW_SLICES = 16
# Times beyond it could overflow when slices are computed.
_LATEST = 2**62


def places_in_slices(layout: SliceLayout, stamps: Integers) -> dict[int, Integers] | None:
    """Return the places of the records of each slice, or None if columns do not pay."""
    first, last = int(stamps.min()), int(stamps.max())
    if max(-first, last) > _LATEST:
        return None
    start = layout.slice_of(first)
    if last < start + layout.width:
        return {start: np.arange(len(stamps))}
    starts = stamps - np.mod(stamps - layout.offset, layout.width)
    distinct = list(range(start, layout.slice_of(last) + 1, layout.width)[: _FEW_SLICES + 1])
    if len(distinct) > _FEW_SLICES:
        distinct = np.unique(starts).tolist()
    if len(distinct) * _RECORDS_PER_SLICE > max(len(stamps), 4 * _RECORDS_PER_SLICE):
        return None
    found = {one: np.flatnonzero(starts == one) for one in distinct}
    return {one: places for one, places in found.items() if len(places)}


def part_of(batch: ColumnBatch, places: Integers) -> ColumnBatch:
    return batch if len(places) == len(batch) else batch.taken(pa.array(places))


def emit_columns(output: Output, results: ColumnBatch, timestamp: int) -> None:
    """Emit the results of a window."""
    for first in range(0, len(results), _EMIT_RECORDS):
        part = results.part(first, min(first + _EMIT_RECORDS, len(results)))
        output.emit(part.stamped(pa.array(np.full(len(part), timestamp))))


class KeyedColumns(NamedTuple):
    """Records, the arrays of their keys, and the values of their field."""

    records: pa.RecordBatch
    keys: list[pa.Array]
    values: Values

    def at(self, places: Integers) -> KeyedColumns:
        if len(places) == len(self.values):
            return self
        chosen = pa.array(places)
        return KeyedColumns(
            self.records.take(chosen),
            [array.take(chosen) for array in self.keys],
            self.values.take(places),
        )


def merged(parts: list[KeyedColumns], aggregates: FieldAggregates) -> tuple[KeyedColumns, Groups]:
    """Merge parts into one record per key. The keys of the first part come first."""
    records = pa.concat_batches([part.records for part in parts])
    columns = zip(*[part.keys for part in parts], strict=True)
    keys = [pa.concat_arrays(arrays) for arrays in columns]
    values = np.concatenate([part.values for part in parts])
    groups = groups_of(keys)
    held = aggregates.begin(values, groups)
    aggregates.add(held, values, groups)
    return KeyedColumns(records, keys, values).at(groups.first)._replace(values=held), groups


class ColumnSlice:
    """The records of a slice.

    Args:
        aggregates: The aggregation.
    """

    def __init__(self, aggregates: FieldAggregates) -> None:
        self._aggregates = aggregates
        self._waiting: list[KeyedColumns] = []
        self._waiting_records = 0
        # The first record of each key, with its accumulator.
        self._kept: KeyedColumns | None = None
        # Keys whose accumulator is not in the table.
        self._is_changed = np.empty(0, np.bool_)
        # No sum of values exceeds it.
        self.bound = 0

    def load(self, entries: dict[Any, Any]) -> bool:
        """Take the entries of the slice's table. Return False if they have to stay rows."""
        if not entries:
            return True
        aggregates, keys, records = self._aggregates, list(entries), list(entries.values())
        held, columns = aggregates.values_of(records), aggregates.columns_of(records)
        arrays = aggregates.keys.arrays_in(keys)
        if held is None or columns is None or arrays is None:
            return False
        self._kept = KeyedColumns(columns, arrays, held)
        self._is_changed = np.zeros(len(keys), np.bool_)
        self.bound = aggregates.bound_of(held)
        return not aggregates.overflows(self.bound)

    def takes(self, values: Values) -> bool:
        """Return False if an accumulator could overflow with these values."""
        return not self._aggregates.overflows(self.bound + self._aggregates.bound_of(values))

    def add(self, columns: KeyedColumns) -> None:
        """Add records."""
        values = columns.values
        self.bound += self._aggregates.bound_of(values)
        self._waiting.append(columns)
        self._waiting_records += len(values)
        if self._waiting_records >= max(_WAITING_RECORDS, len(self._is_changed)):
            self.kept()

    def kept(self) -> KeyedColumns | None:
        """Return the first record of each key, with its accumulator."""
        if not self._waiting:
            return self._kept
        parts = [*([] if self._kept is None else [self._kept]), *self._waiting]
        self._waiting, self._waiting_records = [], 0
        self._kept, groups = merged(parts, self._aggregates)
        # The keys so far come first, and keep their places.
        before = len(self._is_changed)
        is_changed = np.zeros(len(groups), np.bool_)
        is_changed[:before] = self._is_changed
        is_changed[groups.numbers[before:]] = True
        self._is_changed = is_changed
        return self._kept

    def take_changed(self) -> tuple[list[Any], list[Any]]:
        """Return the keys that have changed since the last call, and their records."""
        kept = self.kept()
        places = np.flatnonzero(self._is_changed)
        self._is_changed[:] = False
        if kept is None or not len(places):
            return [], []
        changed = kept.at(places)
        keys = self._aggregates.keys.keys_of(changed.keys)
        return keys, self._aggregates.records_of(changed.records, changed.values)


class MergedPanes:
    """The windows of panes, which are slices of sliding windows.

    Time is divided into blocks, and each window has the end of one block and the beginning of the
    next, as in ``window_panes.py``.
    """

    def __init__(self, layout: SliceLayout, aggregates: FieldAggregates) -> None:
        self._layout = layout
        self._aggregates = aggregates
        self.forget()

    def forget(self) -> None:
        """Merge everything again for the next window."""
        # The end of the window that the merged parts are for, or None without parts.
        self._next_end: int | None = None
        self._block = self._covered = 0
        # By slice of the last block, the merged columns from there to its end.
        self._ends: dict[int, KeyedColumns | None] = {}
        self._beginning: KeyedColumns | None = None

    def added(self, start: int) -> None:
        """Note that a slice has new records."""
        if self._next_end is not None and start < self._covered:
            self.forget()

    def window(self, end: int, panes: dict[int, ColumnSlice]) -> KeyedColumns | None:
        """Return the keys of a window, with their accumulators."""
        layout = self._layout
        width, first = layout.width, end - layout.size
        last = end - width
        block = last - (last - layout.offset) % layout.size
        if self._next_end != end or block != self._block:
            self.forget()
            self._block = self._covered = block
            known = None
            for start in range(block - width, first - width, -width):
                known = self._ends[start] = self._merged(_kept(panes, start), known)
        for start in range(self._covered, end, width):
            self._beginning = self._merged(self._beginning, _kept(panes, start))
        self._covered = end
        found = self._merged(self._ends.get(first), self._beginning)
        self._next_end = end + layout.slide
        for start in range(first, first + layout.slide, width):
            self._ends.pop(start, None)
        return found

    def _merged(self, one: KeyedColumns | None, other: KeyedColumns | None) -> KeyedColumns | None:
        if one is None or other is None:
            return other if one is None else one
        return merged([one, other], self._aggregates)[0]


def _kept(panes: dict[int, ColumnSlice], start: int) -> KeyedColumns | None:
    found = panes.get(start)
    return None if found is None else found.kept()
