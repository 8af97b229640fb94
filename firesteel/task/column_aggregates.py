"""sum, min and max of a field of columns, with the results that Python has for the records.

Integers are exact, or left to rows before they exceed 64 bits. Floats are added one by one, in the
order of the records. NaN, which is neither less nor greater, and the two zeros, which are equal,
are left to rows by min and max.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from firesteel.common.columns import ColumnLayout
from firesteel.common.types import RowKind, new_row, row_kind_of, values_of
from firesteel.graph.column_aggregation import ColumnAggregation
from firesteel.task.column_batch import ColumnBatch
from firesteel.task.column_groups import Groups

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    # 64-bit integers or floats.
    Values = npt.NDArray[Any]
else:
    from firesteel.common import numpy_on_demand as np

    Values = Any

__all__ = ["FieldAggregates", "Values"]

_UFUNCS = {"sum": "add", "min": "minimum", "max": "maximum"}
_BEYOND = 2**63
# Groups with more records are accumulated one by one, and smaller ones together.
_LARGE_GROUP = 32


class FieldAggregates:
    """The aggregation of a field for batches of columns.

    Args:
        aggregation: The kind, the field and the keys.
    """

    def __init__(self, aggregation: ColumnAggregation) -> None:
        self.keys = aggregation.keys
        self.layout = ColumnLayout(aggregation.keys.record_type)
        self._kind = aggregation.kind
        self._place = aggregation.place
        self._is_float = aggregation.is_float
        self._combine = getattr(np, _UFUNCS[aggregation.kind])

    def accepts(self, batch: ColumnBatch) -> bool:
        """Return True if the records are inserts of the type, with keys that are expressions."""
        return (
            batch.kinds is None and batch.column_keys is not None and self.layout.fits(batch.layout)
        )

    # Values of the field

    def values_in(self, columns: pa.RecordBatch) -> Values | None:
        """Return the values of the field, or None if only rows give the result, or the error."""
        array = columns.column(self._place)
        if array.null_count:
            return None
        return self._exact(array.to_numpy().astype(np.float64 if self._is_float else np.int64))

    def values_of(self, records: list[Any]) -> Values | None:
        """Return the values of the field in Python records, or None if they have to stay records."""
        found = [self._field_of(record) for record in records]
        if set(map(type, found)) != {float if self._is_float else int}:
            return None
        try:
            return self._exact(np.array(found, np.float64 if self._is_float else np.int64))
        except OverflowError:
            return None

    def _field_of(self, record: Any) -> Any:
        if self.layout.is_row:
            return values_of(record)[self._place]
        return record[self._place] if self.layout.has_fields else record

    def _exact(self, values: Values) -> Values | None:
        if not self._is_float or self._kind == "sum":
            return values
        is_zero_below = (values == 0) & np.signbit(values)
        return None if np.isnan(values).any() or is_zero_below.any() else values

    def bound_of(self, values: Values) -> int:
        """Return a number that no partial sum of the values exceeds. It is 0 if none overflows."""
        if self._is_float or self._kind != "sum" or not len(values):
            return 0
        return len(values) * max(abs(int(values.min())), abs(int(values.max())))

    @staticmethod
    def overflows(bound: int) -> bool:
        return bound >= _BEYOND

    # Aggregation

    def begin(self, values: Values, groups: Groups) -> Values:
        """Return what each group begins with, given the values of all records."""
        if self._kind != "sum":
            return values.take(groups.first)
        # Only this zero leaves each float as it is.
        return np.full(len(groups), -0.0 if self._is_float else 0, values.dtype)

    def add(self, held: Values, values: Values, groups: Groups) -> None:
        """Add values to those of their groups, in order."""
        self._combine.at(held, groups.numbers, values)

    def roll(self, held: Values, values: Values, groups: Groups) -> Values:
        """Do the same, and return the value of the group after each record."""
        numbers, combine = groups.numbers, self._combine
        order = np.argsort(numbers, kind="stable")
        counts = np.bincount(numbers, minlength=len(groups))
        begins = np.cumsum(counts) - counts
        ordered = values.take(order)
        rolled = np.empty_like(ordered)
        for group in np.flatnonzero(counts > _LARGE_GROUP):
            begin, end = begins[group], begins[group] + counts[group]
            series = np.concatenate((held[group : group + 1], ordered[begin:end]))
            rolled[begin:end] = combine.accumulate(series)[1:]
            held[group] = rolled[end - 1]
        counts[counts > _LARGE_GROUP] = 0
        for nth in range(counts.max(initial=0)):
            those = np.flatnonzero(counts > nth)
            places = begins.take(those) + nth
            held[those] = rolled[places] = combine(held.take(those), ordered.take(places))
        results = np.empty_like(rolled)
        results[order] = rolled
        return results

    # Records

    def with_values(self, columns: pa.RecordBatch, values: Values) -> pa.RecordBatch:
        """Return records with different values of the field.

        Raises:
            pyarrow.ArrowInvalid: A value exceeds the type of the field.
        """
        field = columns.schema.field(self._place)
        return columns.set_column(self._place, field, pa.array(values).cast(field.type))

    def records_of(self, columns: pa.RecordBatch, values: Values) -> list[Any]:
        """Return Python records with different values of the field, which may exceed its type."""
        records, place = self.layout.values_of(columns), self._place
        if not self.layout.is_row:
            return self.replaced(records, values)
        for record, value in zip(records, values.tolist(), strict=True):
            values_of(record)[place] = value
        return records

    def replaced(self, records: list[Any], values: Values) -> list[Any]:
        """Return copies of Python records with different values of the field."""
        place = self._place
        found: list[Any] = values.tolist()
        if self.layout.is_row:
            names, insert = self.layout.schema.names, RowKind.INSERT
            copies = []
            for record, value in zip(records, found, strict=True):
                fields = list(values_of(record))
                fields[place] = value
                copies.append(new_row(fields, names, insert))
            return copies
        if not self.layout.has_fields:
            return found
        return [
            (*record[:place], value, *record[place + 1 :])
            for record, value in zip(records, found, strict=True)
        ]

    def columns_of(self, records: list[Any]) -> pa.RecordBatch | None:
        """Return the columns of Python records, except for the field; None if they have none."""
        if self.layout.is_row and any(row_kind_of(one) is not RowKind.INSERT for one in records):
            return None
        zeros = np.zeros(len(records), np.float64 if self._is_float else np.int64)
        try:
            return self.layout.columns_of(self.replaced(records, zeros))
        except (TypeError, ValueError):
            return None
