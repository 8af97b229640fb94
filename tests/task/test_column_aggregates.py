"""sum, min and max of columns, compared with Python's operators record by record."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from firesteel.common import Row, RowKind, Types
from firesteel.common.columns import ColumnLayout
from firesteel.common.expressions import col
from firesteel.common.key_expressions import KeyExpressions
from firesteel.graph.column_aggregation import ColumnAggregation, column_aggregation
from firesteel.task.column_aggregates import FieldAggregates
from firesteel.task.column_groups import groups_of

_COMBINED: dict[str, Any] = {"sum": operator.add, "min": min, "max": max}
_records = st.lists(
    st.tuples(st.sampled_from([1, 1, 1, 2, 3]), st.integers(-9, 9)), min_size=1, max_size=150
) | st.lists(
    st.tuples(
        st.sampled_from([1, 1, 1, 2, 3]),
        st.sampled_from([0.1, 0.2, 0.3, 1e16, -1e16, -0.0, 0.0, float("inf"), float("nan")]),
    ),
    min_size=1,
    max_size=150,
)


def aggregates_of(kind: str, element: Any) -> Any:
    found = Types.ROW_NAMED(["key", "x"], [Types.LONG(), element])
    aggregation = column_aggregation(kind, "x", found, KeyExpressions((col("key"),), found))
    assert isinstance(aggregation, ColumnAggregation)
    return FieldAggregates(aggregation)


@given(records=_records, kind=st.sampled_from(["sum", "min", "max"]))
def test_results_are_those_of_python(records: list[tuple[int, Any]], kind: str) -> None:
    is_float = isinstance(records[0][1], float)
    aggregates = aggregates_of(kind, Types.DOUBLE() if is_float else Types.LONG())
    columns = aggregates.layout.columns_of([Row(key=key, x=value) for key, value in records])
    values = aggregates.values_in(columns)
    if values is None:
        # The order of these is not that of Arrow.
        assert kind != "sum"
        assert any(repr(value) in ("nan", "-0.0") for _, value in records)
        return
    groups = groups_of([columns.column(0)])
    kept: dict[int, Any] = {}
    wanted = []
    for key, value in records:
        kept[key] = _COMBINED[kind](kept[key], value) if key in kept else value
        wanted.append(kept[key])
    held = aggregates.begin(values, groups)
    assert repr(aggregates.roll(held, values, groups).tolist()) == repr(wanted)
    assert repr(held.tolist()) == repr(list(kept.values()))
    at_once = aggregates.begin(values, groups)
    aggregates.add(at_once, values, groups)
    assert repr(at_once.tolist()) == repr(list(kept.values()))


def test_sums_that_could_overflow_are_known_before() -> None:
    aggregates = aggregates_of("sum", Types.LONG())
    assert not aggregates.overflows(aggregates.bound_of(np.array([2**62, 5 - 2**62 - 5])) - 1)
    assert aggregates.overflows(aggregates.bound_of(np.array([2**62, 1])))
    assert aggregates.bound_of(np.array([-(2**63)])) == 2**63
    assert aggregates_of("max", Types.LONG()).bound_of(np.array([2**62, 1])) == 0
    assert aggregates_of("sum", Types.DOUBLE()).bound_of(np.array([1e300, 1e300])) == 0


def test_a_field_with_none_has_no_values() -> None:
    aggregates = aggregates_of("sum", Types.DOUBLE())
    assert aggregates.values_in(aggregates.layout.columns_of([Row(key=1, x=None)])) is None


def test_results_must_fit_the_field() -> None:
    aggregates = aggregates_of("sum", Types.SHORT())
    columns = aggregates.layout.columns_of([Row(key=1, x=1)])
    assert aggregates.with_values(columns, np.array([2])).to_pylist() == [{"key": 1, "x": 2}]
    with pytest.raises(pa.ArrowInvalid):
        aggregates.with_values(columns, np.array([2**15]))
    assert aggregates.records_of(columns, np.array([2**15])) == [Row(key=1, x=2**15)]


def test_records_of_other_classes_stay_records() -> None:
    aggregates = aggregates_of("sum", Types.LONG())
    deleted = Row(key=1, x=1)
    deleted.set_row_kind(RowKind.DELETE)
    assert aggregates.columns_of([deleted]) is None
    assert aggregates.columns_of([Row(key="a", x=1)]) is None
    for strange in (True, 1.0, None, 2**63):
        assert aggregates.values_of([Row(key=1, x=strange)]) is None
    assert aggregates.values_of([Row(key=1, x=7)]).tolist() == [7]


@pytest.mark.parametrize(
    ("record_type", "position", "record", "wanted"),
    [
        (Types.TUPLE([Types.LONG(), Types.LONG()]), 1, (3, 4), (3, 9)),
        (Types.LONG(), 0, 4, 9),
    ],
)
def test_tuples_and_values(record_type: Any, position: int, record: Any, wanted: Any) -> None:
    aggregation = column_aggregation(
        "sum", position, record_type, KeyExpressions((col(0),), record_type)
    )
    assert isinstance(aggregation, ColumnAggregation)
    aggregates: Any = FieldAggregates(aggregation)
    assert aggregates.values_of([record]).tolist() == [4]
    columns = ColumnLayout(record_type).columns_of([record])
    assert aggregates.records_of(columns, np.array([9])) == [wanted]
    assert aggregates.columns_of([record]).num_rows == 1
