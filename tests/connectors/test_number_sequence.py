from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firesteel.common.typeinfo import Types
from firesteel.datastream.connectors.base import Boundedness, ReaderContext
from firesteel.datastream.connectors.number_seq import NumberSequenceSource


def test_both_ends_are_included(driver):
    assert driver.read_all(NumberSequenceSource(1, 10)) == [list(range(1, 11))]


def test_each_subtask_reads_an_even_part_in_order(driver):
    assert driver.read_all(NumberSequenceSource(1, 10), parallelism=3) == [
        [1, 2, 3, 4],
        [5, 6, 7],
        [8, 9, 10],
    ]


def test_fewer_numbers_than_subtasks(driver):
    assert driver.read_all(NumberSequenceSource(7, 8), parallelism=4) == [[7], [8], [], []]


def test_facts():
    source = NumberSequenceSource(1, 10)
    assert source.get_boundedness() is Boundedness.BOUNDED
    assert source.get_produced_type() == Types.LONG()
    assert source.replayable


def test_start_above_end_is_an_error():
    with pytest.raises(ValueError, match=r"NumberSequenceSource\(3, 2\)"):
        NumberSequenceSource(3, 2)


def test_pending_follows_the_positions():
    enumerator = NumberSequenceSource(0, 9).create_enumerator(1)
    (split,) = enumerator.discover_splits()
    assert enumerator.has_pending([split])
    assert enumerator.has_pending([split.at(9)])
    assert not enumerator.has_pending([split.at(10)])
    assert not enumerator.has_pending([])


def test_a_restored_enumerator_finds_nothing_twice():
    source = NumberSequenceSource(0, 9)
    enumerator = source.create_enumerator(2)
    assert len(enumerator.discover_splits()) == 2
    restored = source.create_enumerator(2, enumerator.snapshot_state())
    assert restored.is_complete()
    assert restored.discover_splits() == []


def test_a_reader_takes_splits_of_several_former_readers(driver):
    source = NumberSequenceSource(0, 9)
    splits = list(source.create_enumerator(2).discover_splits())
    reader = source.create_reader(ReaderContext(0, 1))
    reader.add_splits([splits[0].at(3), splits[1].at(10)])
    assert driver.drain(reader) == [3, 4]


@given(st.integers(-50, 50), st.integers(0, 80), st.integers(1, 6), st.lists(st.integers(0, 9)))
def test_restarts_neither_lose_nor_repeat(driver, start, length, parallelism, steps):
    source = NumberSequenceSource(start, start + length)
    splits = list(source.create_enumerator(parallelism).discover_splits())
    records = driver.read_with_restarts(
        lambda: source.create_reader(ReaderContext(0, 1)), splits, steps
    )
    assert records == list(range(start, start + length + 1))
