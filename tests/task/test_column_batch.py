"""Batches of columns: the records that operators without columns see."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from firesteel.common.columns import ColumnLayout
from firesteel.common.typeinfo import Types
from firesteel.common.types import Row, RowKind
from firesteel.task.column_batch import ColumnBatch, columns_of
from firesteel.task.record_batch import RecordBatch

ROWS = Types.ROW_NAMED(["text", "number"], [Types.STRING(), Types.LONG()])
LAYOUT = ColumnLayout(ROWS)


def rows_of(values: list[tuple[Any, Any]], kinds: list[RowKind]) -> list[Row]:
    rows = ROWS.convert_batch(values)
    for row, kind in zip(rows, kinds, strict=True):
        row.set_row_kind(kind)
    return rows


@st.composite
def batches(draw: st.DrawFn) -> RecordBatch:
    fields = st.tuples(st.none() | st.text(), st.none() | st.integers(-5, 5))
    values = draw(st.lists(fields, min_size=1, max_size=8))
    count = len(values)
    kinds = draw(st.lists(st.sampled_from(RowKind), min_size=count, max_size=count))
    if draw(st.booleans()):
        kinds = [RowKind.INSERT] * count
    stamps = st.lists(st.integers(-(2**63), 2**63 - 1), min_size=count, max_size=count)
    return RecordBatch(rows_of(values, kinds), draw(st.none() | stamps))


def without_rows(batch: ColumnBatch) -> ColumnBatch:
    """The batch as it comes from an operator of columns."""
    return ColumnBatch(batch.columns, batch.layout, batch.stamps, batch.kinds)


def seen(batch: RecordBatch) -> tuple[list[Any], list[RowKind], list[int] | None]:
    return batch.values, [row.get_row_kind() for row in batch.values], batch.timestamps


@given(batches(), st.booleans())
def test_columns_hold_the_same_records(batch: RecordBatch, keep_rows: bool) -> None:
    columns = columns_of(batch, LAYOUT)
    columns = columns if keep_rows else without_rows(columns)
    assert len(columns) == len(batch)
    assert seen(columns) == seen(batch)


@given(batches(), st.booleans(), st.data())
def test_parts_and_masks_choose_the_same_records(
    batch: RecordBatch, keep_rows: bool, data: st.DataObject
) -> None:
    columns = columns_of(batch, LAYOUT)
    columns = columns if keep_rows else without_rows(columns)
    count = len(batch)
    start = data.draw(st.integers(0, count - 1))
    stop = data.draw(st.integers(start + 1, count))
    assert seen(columns.part(start, stop)) == seen(batch.part(start, stop))
    masks = st.lists(st.sampled_from([True, False, None]), min_size=count, max_size=count)
    mask = data.draw(masks)
    kept = columns.kept(pa.array(mask, pa.bool_()))
    chosen = [place for place in range(count) if mask[place]]
    values, kinds, stamps = seen(batch)
    assert seen(kept) == (
        [values[place] for place in chosen],
        [kinds[place] for place in chosen],
        stamps and [stamps[place] for place in chosen],
    )


def test_records_are_made_once() -> None:
    batch = ColumnBatch(LAYOUT.columns_of([Row("a", 1)]), LAYOUT)
    assert batch.values is batch.values


def test_columns_of_columns_are_the_batch_itself() -> None:
    batch = ColumnBatch(LAYOUT.columns_of([Row("a", 1)]), LAYOUT)
    assert columns_of(batch, ColumnLayout(ROWS)) is batch


def test_columns_of_another_type_are_converted() -> None:
    batch = ColumnBatch(LAYOUT.columns_of([Row("a", 1)]), LAYOUT)
    other = ColumnLayout(Types.ROW_NAMED(["word", "count"], [Types.STRING(), Types.LONG()]))
    assert columns_of(batch, other).columns.schema.names == ["word", "count"]


def test_columns_keep_timestamps_that_are_changed() -> None:
    batch = columns_of(RecordBatch([Row("a", 1)], [5]), LAYOUT)
    assert batch.stamped([7]).timestamps == [7]
    assert batch.stamped(pa.array([8])).timestamps == [8]
    assert batch.stamped(None).timestamps is None
