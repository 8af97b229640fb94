"""Slices of columns: what they merge, what goes into tables, and what they leave to rows."""

from __future__ import annotations

from typing import Any

import pytest

from firesteel.common import Row, Types
from firesteel.common.expressions import col
from firesteel.common.key_expressions import KeyExpressions
from firesteel.graph.column_aggregation import ColumnAggregation
from firesteel.task.column_aggregates import FieldAggregates
from firesteel.task.windowing import column_slices
from firesteel.task.windowing.column_slices import ColumnSlice

TYPE = Types.ROW_NAMED(["key", "n", "text"], [Types.LONG(), Types.LONG(), Types.STRING()])
KEYS = KeyExpressions((col("key"),), TYPE)
SUM = FieldAggregates(ColumnAggregation("sum", 1, False, KEYS))


@pytest.fixture(params=[1, 1000])
def waiting(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(column_slices, "_WAITING_RECORDS", request.param)


def add(found: ColumnSlice, *records: tuple[int, int, str]) -> bool:
    columns = SUM.layout.columns_of([row(*record) for record in records])
    values = SUM.values_in(columns)
    assert values is not None
    return found.add(columns, KEYS.arrays_of(columns), values)


def row(key: int, n: int, text: str) -> Row:
    return Row(key=key, n=n, text=text)


def results(found: ColumnSlice) -> list[tuple[Any, ...]]:
    batch = found.results()
    return [] if batch is None else [tuple(one) for one in SUM.layout.values_of(batch)]


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
