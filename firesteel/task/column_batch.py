"""A batch of records as Arrow columns, whose records become Python objects only when needed.

Operators that know columns take them. All others ask for ``values`` or ``timestamps``, as of any
batch, and the batch makes them once for all of its consumers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import compress
from typing import Any

import pyarrow as pa

from firesteel.common.columns import ColumnLayout
from firesteel.common.key_expressions import KeyExpressions
from firesteel.common.types import RowKind, new_rows, row_kind_of, values_of
from firesteel.task.codegen.key_loops import KeySelection, keys_of
from firesteel.task.record_batch import RecordBatch

_INSERT = RowKind.INSERT


@dataclass(frozen=True, slots=True)
class ColumnKeys:
    """Computes the keys of columns that come without them.

    Args:
        expressions: The key of a record.
        operator: The name that errors give to the key_by.
    """

    expressions: KeyExpressions
    operator: str

    def keys_of(self, batch: ColumnBatch) -> list[Any]:
        expressions = self.expressions
        try:
            return expressions.keys_of(expressions.arrays_of(batch.columns))
        except pa.ArrowException:
            return keys_of(batch.values, expressions, self.operator)


class ColumnBatch(RecordBatch):
    """Records as columns.

    columns: the records.
    layout: makes records of the columns.
    stamps: the event time of each record as int64 or as a list, or None if there is none.
    kinds: the kinds of the rows, or None if all of them are inserts.
    rows: the records as Python objects, if there are any already.
    column_keys: computes the keys of a keyed edge.
    """

    __slots__ = (
        "_keys",
        "_rows",
        "_stamps",
        "_timestamps",
        "column_keys",
        "columns",
        "kinds",
        "layout",
    )

    def __init__(
        self,
        columns: pa.RecordBatch,
        layout: ColumnLayout,
        stamps: pa.Array | list[int] | None = None,
        kinds: list[RowKind] | None = None,
        rows: list[Any] | None = None,
        selection: KeySelection | None = None,
        column_keys: ColumnKeys | None = None,
    ) -> None:
        # The base class would set the values.
        self.columns = columns
        self.layout = layout
        self.kinds = kinds
        self.selection = selection
        self.column_keys = column_keys
        self._keys: list[Any] | None = None
        self._rows = rows
        is_list = isinstance(stamps, list)
        self._timestamps: list[int] | None = stamps if is_list else None
        self._stamps: pa.Array | None = None if is_list else stamps

    @property
    def values(self) -> list[Any]:  # type: ignore[override]  # made when it is read
        if self._rows is None:
            rows = self.layout.values_of(self.columns)
            if self.kinds is not None:
                names = self.columns.schema.names
                rows = new_rows(map(values_of, rows), names, self.kinds)
            self._rows = rows
        return self._rows

    @property
    def timestamps(self) -> list[int] | None:  # type: ignore[override]  # made when it is read
        if self._timestamps is None and self._stamps is not None:
            self._timestamps = self._stamps.to_pylist()
        return self._timestamps

    @property
    def sent_keys(self) -> list[Any] | None:
        """The keys that are expressions of the record."""
        if self._keys is None and self.column_keys is not None:
            self._keys = self.column_keys.keys_of(self)
        return self._keys

    @sent_keys.setter
    def sent_keys(self, keys: list[Any] | None) -> None:
        self._keys = keys

    @property
    def stamps(self) -> pa.Array | None:
        """The timestamps as an array."""
        if self._stamps is None and self._timestamps is not None:
            self._stamps = pa.array(self._timestamps, pa.int64())
        return self._stamps

    def __len__(self) -> int:
        count: int = self.columns.num_rows
        return count

    def part(self, start: int, stop: int) -> ColumnBatch:
        count = stop - start
        stamps = self.stamps
        return ColumnBatch(
            self.columns.slice(start, count),
            self.layout,
            None if stamps is None else stamps.slice(start, count),
            self.kinds and self.kinds[start:stop],
            self._rows and self._rows[start:stop],
            self.selection,
            self.column_keys,
        )

    def taken(self, places: pa.Array) -> ColumnBatch:
        """The records at some places."""
        kinds, stamps = self.kinds, self.stamps
        return ColumnBatch(
            self.columns.take(places),
            self.layout,
            None if stamps is None else stamps.take(places),
            None if kinds is None else [kinds[place] for place in places.to_pylist()],
            column_keys=self.column_keys,
        )

    def stamped(self, stamps: pa.Array | list[int] | None) -> ColumnBatch:
        """The same records with different timestamps."""
        return ColumnBatch(self.columns, self.layout, stamps, self.kinds, self._rows)

    def kept(self, mask: pa.BooleanArray) -> ColumnBatch:
        """The records for which the mask is true. A null is not."""
        rows, kinds, stamps = self._rows, self.kinds, self.stamps
        if rows is not None or kinds is not None:
            chosen = mask.to_pylist()
            rows = rows and list(compress(rows, chosen))
            kinds = kinds and list(compress(kinds, chosen))
        return ColumnBatch(
            self.columns.filter(mask),
            self.layout,
            None if stamps is None else stamps.filter(mask),
            kinds,
            rows,
            column_keys=self.column_keys,
        )


def joined(batches: Sequence[ColumnBatch]) -> ColumnBatch:
    """The records of several batches of one layout. All of them have timestamps, or none has."""
    first = batches[0]
    if len(batches) == 1:
        return first
    stamps = [batch.stamps for batch in batches]
    kinds = None
    if any(batch.kinds for batch in batches):
        kinds = [kind for one in batches for kind in one.kinds or [_INSERT] * len(one)]
    return ColumnBatch(
        pa.concat_batches([batch.columns for batch in batches]),
        first.layout,
        None if stamps[0] is None else pa.concat_arrays(stamps),
        kinds,
        column_keys=first.column_keys,
    )


def columns_of(batch: RecordBatch, layout: ColumnLayout) -> ColumnBatch:
    """Return the columns of a batch. Records that are Python objects are converted here.

    Raises:
        TypeMismatchError: A record does not fit the type.
    """
    if isinstance(batch, ColumnBatch) and layout.fits(batch.layout):
        return batch
    values, timestamps = batch.values, batch.timestamps
    kinds = None
    if layout.is_row:
        found = list(map(row_kind_of, values))
        kinds = None if found.count(_INSERT) == len(found) else found
    return ColumnBatch(
        layout.columns_of(values),
        layout,
        timestamps,
        kinds,
        values,
        batch.selection,
    )
