"""Feedback records of an iteration, from the tail to the head between two epochs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from firesteel.protocol.messages import OperatorHandle
from firesteel.state.changelog import SegmentStore
from firesteel.state.key_groups import KeyGroupRange, key_group_of, subtask_of
from firesteel.state.segment_format import decode_changes
from firesteel.task.operators.iteration import (
    keys_of,
    read_feedback,
    uniform_batches,
    write_feedback,
)

_records = st.lists(
    st.tuples(st.one_of(st.integers(), st.text(), st.none()), st.none() | st.integers(0, 9)),
    max_size=40,
)


@given(records=_records, subtask=st.integers(0, 6), stamped=st.booleans())
def test_records_come_back_in_their_order_with_their_timestamps(records, subtask, stamped):
    store = SegmentStore(None, 0)
    keys = keys_of(KeyGroupRange.of_subtask(subtask, 7, 16), 16)
    values = [value for value, _ in records]
    stamps = [stamp for _, stamp in records] if stamped and records else None
    segments = write_feedback(values, stamps, keys, 1, store)
    assert read_feedback(OperatorHandle(segments), store) == (values, stamps)


@given(records=_records)
def test_a_batch_has_timestamps_for_all_of_its_records_or_for_none(records):
    batches = list(uniform_batches([v for v, _ in records], [t for _, t in records]))
    flat: list[Any] = []
    for batch in batches:
        stamps: Sequence[int | None] = batch.timestamps or [None] * len(batch)
        flat += zip(batch.values, stamps, strict=True)
    assert flat == records


def test_keys_are_of_the_subtasks_own_key_groups() -> None:
    for subtask in range(3):
        key_groups = KeyGroupRange.of_subtask(subtask, 3, 128)
        groups = [key_group_of(key, 128) for key in keys_of(key_groups, 128)]
        assert groups == list(range(key_groups.start, key_groups.end + 1))


def test_few_records_are_divided_among_many_subtasks() -> None:
    store = SegmentStore(None, 0)
    keys = keys_of(KeyGroupRange(0, 127), 128)
    (segment,) = write_feedback(list(range(6)), None, keys, 1, store)
    ((changes, _),) = decode_changes(store.read(segment))
    shares = Counter(subtask_of(key_group_of(key, 128), 3, 128) for key in changes.keys)
    assert shares == {0: 2, 1: 2, 2: 2}
