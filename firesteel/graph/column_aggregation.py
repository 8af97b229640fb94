"""Aggregations of a field that work on columns, and the reasons for which others do not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from firesteel.common.columns import fields_of, reason_for_rows
from firesteel.common.key_expressions import KeyExpressions
from firesteel.common.typeinfo import BasicType, BasicTypeInfo, RowTypeInfo, TypeInformation

_INTEGERS = frozenset({BasicType.BYTE, BasicType.SHORT, BasicType.INT, BasicType.LONG})
_KINDS = ("sum", "min", "max")


@dataclass(frozen=True, slots=True)
class ColumnAggregation:
    """sum, min or max of a field per key.

    ``kind``: one of sum, min, max.
    ``place``: the position of the field.
    ``is_float``: the field is a DOUBLE. Otherwise it is an integer.
    ``keys``: the key of a record, and the type of the records.
    """

    kind: str
    place: int
    is_float: bool
    keys: KeyExpressions

    @property
    def reason_for_rows_in_panes(self) -> str | None:
        """The reason for which panes cannot be merged in any order, or None."""
        if self.kind == "sum" and self.is_float:
            return "sums of floats depend on the order of records"
        places = {*self.keys.fields, self.place}
        if len(places) < len(fields_of(self.keys.record_type)):
            return "a field is neither the key nor aggregated, so the first record counts"
        return None


def column_aggregation(
    kind: str,
    position: int | str,
    record_type: TypeInformation,
    key_selector: Callable[[Any], Any] | None,
) -> ColumnAggregation | str:
    """Return the aggregation of a field of columns, or the reason for which it works on rows."""
    if kind not in _KINDS:
        return f"{kind} works on rows"
    lacking = reason_for_rows(record_type)
    if lacking is not None:
        return f"the stream has {lacking}"
    if not isinstance(key_selector, KeyExpressions):
        return "the key is a function of rows"
    if key_selector.reason_for_rows is not None:
        return key_selector.reason_for_rows
    fields = fields_of(record_type)
    names = [name for name, _ in fields]
    if isinstance(record_type, RowTypeInfo) and position in names:
        place = names.index(str(position))
    elif isinstance(position, int) and 0 <= position < len(fields):
        place = int(position)
    else:
        return f"{position!r} is a field of rows"
    type_info = fields[place][1]
    assert isinstance(type_info, BasicTypeInfo)
    is_float = type_info.basic_type is BasicType.DOUBLE
    if not is_float and type_info.basic_type not in _INTEGERS:
        return f"a field of the type {type_info}"
    return ColumnAggregation(kind, place, is_float, key_selector)
