"""Batches of records: their keys, and parts of them."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from firesteel.task.codegen.key_loops import KeySelection
from firesteel.task.record_batch import RecordBatch


def parity(record: int) -> int:
    return record % 2


_SELECTION = KeySelection(parity, "key_by")


def test_a_batch_without_a_key_has_no_keys() -> None:
    assert RecordBatch([1, 2]).keys is None


def test_keys_that_were_sent_are_not_computed() -> None:
    assert RecordBatch([1, 2], None, ["a", "b"], _SELECTION).keys == ["a", "b"]


def test_keys_are_computed_once_when_an_operator_asks_for_them() -> None:
    batch = RecordBatch([1, 2, 3], selection=_SELECTION)
    assert batch.sent_keys is None
    keys = batch.keys
    assert keys == [1, 0, 1]
    assert batch.keys is keys


@given(
    values=st.lists(st.integers(), min_size=1),
    stamped=st.booleans(),
    keys=st.sampled_from(["none", "sent", "computed"]),
    data=st.data(),
)
def test_parts_are_the_batch_again(
    values: list[int], stamped: bool, keys: str, data: st.DataObject
) -> None:
    batch = RecordBatch(
        values,
        [value * 10 for value in values] if stamped else None,
        [parity(value) for value in values] if keys == "sent" else None,
        _SELECTION if keys == "computed" else None,
    )
    cut = data.draw(st.integers(1, len(values)))
    parts = [batch.part(0, cut)]
    if cut < len(values):
        parts.append(batch.part(cut, len(values)))
    assert sum(map(len, parts)) == len(batch)
    assert joined(parts, "values") == values
    assert joined(parts, "timestamps") == batch.timestamps
    assert joined(parts, "keys") == batch.keys


def joined(parts: list[RecordBatch], column: str) -> list[Any] | None:
    columns = [getattr(part, column) for part in parts]
    return None if columns[0] is None else [item for one in columns for item in one]
