"""Slices of columns: what they merge, what goes into tables, and what they leave to rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from firesteel.common import Row, Types
from firesteel.common.expressions import col
from firesteel.common.key_expressions import KeyExpressions
from firesteel.graph.column_aggregation import ColumnAggregation
from firesteel.task.column_aggregates import FieldAggregates
from firesteel.task.windowing import column_slices
from firesteel.task.windowing.column_slices import (
    ColumnSlice,
    KeyedColumns,
    MergedPanes,
    places_in_slices,
)
from firesteel.task.windowing.slices import SliceLayout, positions_of

TYPE = Types.ROW_NAMED(["key", "n", "text"], [Types.LONG(), Types.LONG(), Types.STRING()])
KEYS = KeyExpressions((col("key"),), TYPE)
SUM = FieldAggregates(ColumnAggregation("sum", 1, False, KEYS))


_few = st.integers(-3, 3)


@pytest.fixture(params=[1, 1000])
def waiting(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(column_slices, "_WAITING_RECORDS", request.param)


def add(found: ColumnSlice, *records: tuple[int, int, str]) -> bool:
    columns = SUM.layout.columns_of([row(*record) for record in records])
    values = SUM.values_in(columns)
    assert values is not None
    if not found.takes(values):
        return False
    found.add(KeyedColumns(columns, KEYS.arrays_of(columns), values))
    return True


def row(key: int, n: int, text: str) -> Row:
    return Row(key=key, n=n, text=text)


def results(found: ColumnSlice) -> list[tuple[Any, ...]]:
    kept = found.kept()
    if kept is None:
        return []
    records = SUM.layout.values_of(SUM.with_values(kept.records, kept.values))
    return [tuple(one) for one in records]


@pytest.mark.usefixtures("waiting")
def test_a_slice_keeps_the_first_record_and_the_sum_of_each_key() -> None:
    found = ColumnSlice(SUM)
    assert results(found) == []
    assert add(found, (1, 5, "a"), (2, 6, "b"), (1, 7, "c"))
    assert results(found) == [(1, 12, "a"), (2, 6, "b")]
    assert add(found, (3, 1, "d"), (2, 1, "e"))
    assert results(found) == [(1, 12, "a"), (2, 7, "b"), (3, 1, "d")]


@pytest.mark.usefixtures("waiting")
def test_only_changed_keys_go_into_the_table() -> None:
    found = ColumnSlice(SUM)
    assert found.take_changed() == ([], [])
    add(found, (1, 5, "a"), (2, 6, "b"))
    assert found.take_changed() == ([1, 2], [row(1, 5, "a"), row(2, 6, "b")])
    assert found.take_changed() == ([], [])
    add(found, (2, 1, "c"))
    add(found, (3, 1, "d"))
    assert found.take_changed() == ([2, 3], [row(2, 7, "b"), row(3, 1, "d")])
    assert results(found) == [(1, 5, "a"), (2, 7, "b"), (3, 1, "d")]


@given(
    st.dictionaries(st.integers(-9, 20), st.lists(st.tuples(_few, _few), min_size=1), min_size=1),
    st.sampled_from([(4, 2), (6, 4), (5, 1)]),
    st.data(),
)
def test_windows_merge_their_panes(
    records: dict[int, list[tuple[int, int]]], sizes: tuple[int, int], data: st.DataObject
) -> None:
    size, slide = sizes
    layout = SliceLayout(size, slide, 0)
    panes: dict[int, ColumnSlice] = {}
    windows = MergedPanes(layout, SUM)
    known: list[tuple[int, int, int]] = []
    waiting = [(time, *pair) for time, pairs in sorted(records.items()) for pair in pairs]
    first = layout.ends(layout.slice_of(min(records)))[-1]
    for end in range(first, layout.last_end(layout.slice_of(max(records))) + 1, slide):
        while waiting and (waiting[0][0] < end or data.draw(st.booleans())):
            # Some come before their windows, and some after windows that have fired.
            time, key, number = waiting.pop(data.draw(st.integers(0, len(waiting) - 1)))
            known.append((time, key, number))
            start = layout.slice_of(time)
            add(panes.setdefault(start, ColumnSlice(SUM)), (key, number, ""))
            windows.added(start)
        wanted: dict[int, int] = {}
        for time, key, number in known:
            if end - size <= time < end:
                wanted[key] = wanted.get(key, 0) + number
        found = windows.window(end, panes)
        keys = [] if found is None else found.keys[0].to_pylist()
        assert (
            dict(zip(keys, [] if found is None else found.values.tolist(), strict=True)) == wanted
        )
        for start in [one for one in panes if layout.last_end(one) <= end]:
            del panes[start]


def test_a_sum_that_could_overflow_is_refused_and_changes_nothing() -> None:
    found = ColumnSlice(SUM)
    assert add(found, (1, 2**62, "a"))
    assert not add(found, (1, 2**62, "b"))
    assert add(found, (1, -5, "c"))
    assert results(found) == [(1, 2**62 - 5, "a")]


def test_a_slice_continues_from_its_table() -> None:
    found = ColumnSlice(SUM)
    assert found.load({1: Row(key=1, n=5, text="a"), None: Row(key=None, n=1, text="b")})
    assert found.take_changed() == ([], [])
    add(found, (1, 1, "c"))
    assert results(found) == [(1, 6, "a"), (None, 1, "b")]
    assert found.take_changed() == ([1], [row(1, 6, "a")])


@pytest.mark.parametrize(
    "entries",
    [
        {1: Row(key=1, n=2**63, text="a")},
        {1: Row(key=1, n=1.5, text="a")},
        {1: Row(key=1, n=1, text=7)},
        {"1": Row(key=1, n=1, text="a")},
    ],
)
def test_other_tables_stay_rows(entries: dict[Any, Any]) -> None:
    assert not ColumnSlice(SUM).load(entries)


@given(
    stamps=st.lists(st.integers(-100, 100), min_size=1, max_size=400),
    sizes=st.sampled_from([(10, 10, 0), (10, 10, 3), (200, 100, 7), (6, 4, 1)]),
)
def test_places_are_those_of_each_slice(stamps: list[int], sizes: tuple[int, int, int]) -> None:
    layout = SliceLayout(*sizes)
    found = places_in_slices(layout, np.array(stamps, np.int64))
    wanted = positions_of(layout.slices_of(stamps))
    if found is None:
        assert len(wanted) > 4
    else:
        assert {start: places.tolist() for start, places in found.items()} == wanted


def test_times_near_the_end_of_time_are_left_to_rows() -> None:
    layout = SliceLayout(10, 10, 3)
    assert places_in_slices(layout, np.array([2**63 - 1])) is None
    assert places_in_slices(layout, np.array([-(2**63)])) is None
