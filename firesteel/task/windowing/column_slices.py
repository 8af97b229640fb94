"""Slices whose records are columns, with one accumulator per key.

Columns wait until there are many, and are merged with those before them at once. Changed keys are
written into the table of the slice at the end of an epoch, in the form of the row path, so the table
of a slice that fires within the epoch stays empty.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from firesteel.task.column_aggregates import FieldAggregates, Values
from firesteel.task.column_groups import groups_of

# Records that wait, at least. Later, they are as many as the slice has keys.
_WAITING_RECORDS = 1 << 16


class ColumnSlice:
    """The records of a slice.

    Args:
        aggregates: The aggregation.
    """

    def __init__(self, aggregates: FieldAggregates) -> None:
        self._aggregates = aggregates
        # Records, the arrays of their keys, and the values of their field.
        self._waiting: list[tuple[pa.RecordBatch, list[pa.Array], Values]] = []
        self._waiting_records = 0
        # The first record of each key, the arrays of the keys, and the accumulators.
        self._records: pa.RecordBatch | None = None
        self._keys: list[pa.Array] = []
        self._held: Values = np.empty(0)
        # Keys whose accumulator is not in the table.
        self._is_changed = np.empty(0, np.bool_)
        self._bound = 0

    def load(self, entries: dict[Any, Any]) -> bool:
        """Take the entries of the slice's table. Return False if they have to stay rows."""
        if not entries:
            return True
        aggregates, keys, records = self._aggregates, list(entries), list(entries.values())
        held, columns = aggregates.values_of(records), aggregates.columns_of(records)
        arrays = aggregates.keys.arrays_in(keys)
        if held is None or columns is None or arrays is None:
            return False
        self._records, self._keys, self._held = columns, arrays, held
        self._is_changed = np.zeros(len(keys), np.bool_)
        self._bound = aggregates.bound_of(held)
        return not aggregates.overflows(self._bound)

    def add(self, records: pa.RecordBatch, keys: list[pa.Array], values: Values) -> bool:
        """Add records. Return False, and change nothing, if an accumulator could overflow."""
        bound = self._bound + self._aggregates.bound_of(values)
        if self._aggregates.overflows(bound):
            return False
        self._bound = bound
        self._waiting.append((records, keys, values))
        self._waiting_records += len(values)
        if self._waiting_records >= max(_WAITING_RECORDS, len(self._held)):
            self._merge()
        return True

    def _merge(self) -> None:
        if not self._waiting:
            return
        known = [] if self._records is None else [(self._records, self._keys, self._held)]
        parts = known + self._waiting
        self._waiting, self._waiting_records = [], 0
        records = pa.concat_batches([part[0] for part in parts])
        columns = zip(*[part[1] for part in parts], strict=True)
        keys = [pa.concat_arrays(arrays) for arrays in columns]
        values = np.concatenate([part[2] for part in parts])
        groups = groups_of(keys)
        self._held = self._aggregates.begin(values, groups)
        self._aggregates.add(self._held, values, groups)
        # The keys so far come first, and keep their places.
        before = len(self._is_changed)
        is_changed = np.zeros(len(groups), np.bool_)
        is_changed[:before] = self._is_changed
        is_changed[groups.numbers[before:]] = True
        self._is_changed = is_changed
        if len(groups) > before:
            first = pa.array(groups.first)
            self._records = records.take(first)
            self._keys = [array.take(first) for array in keys]

    def take_changed(self) -> tuple[list[Any], list[Any]]:
        """Return the keys that have changed since the last call, and their records."""
        self._merge()
        changed = np.flatnonzero(self._is_changed)
        self._is_changed[:] = False
        if self._records is None or not len(changed):
            return [], []
        places = pa.array(changed)
        keys = self._aggregates.keys.keys_of([array.take(places) for array in self._keys])
        records = self._records.take(places)
        return keys, self._aggregates.records_of(records, self._held.take(changed))

    def results(self) -> pa.RecordBatch | None:
        """Return the result of each key.

        Raises:
            pyarrow.ArrowInvalid: A result exceeds the type of the field.
        """
        self._merge()
        if self._records is None:
            return None
        return self._aggregates.with_values(self._records, self._held)
