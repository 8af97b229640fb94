from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firesteel.connectors.datagen import (
    DataGeneratorSource,
    RateLimiterStrategy,
    TokenBucket,
)
from firesteel.datastream.connectors.base import Boundedness, ReaderContext


def test_indexes_become_records(driver):
    source = DataGeneratorSource(lambda index: index * index, 5)
    assert driver.read_all(source) == [[0, 1, 4, 9, 16]]
    assert driver.read_all(source, parallelism=2) == [[0, 1, 4], [9, 16]]
    assert source.get_boundedness() is Boundedness.BOUNDED


def test_no_op_is_unlimited(driver):
    source = DataGeneratorSource(str, 20_000, RateLimiterStrategy.no_op())
    assert driver.read_all(source, limit=8192) == [[str(i) for i in range(20_000)]]


@pytest.mark.parametrize(
    ("arguments", "error"),
    [(("not a function", 1), TypeError), ((str, -1), ValueError)],
)
def test_wrong_arguments(arguments, error):
    with pytest.raises(error, match="DataGeneratorSource"):
        DataGeneratorSource(*arguments)


@pytest.mark.parametrize("rate", [0, -1, float("nan")])
def test_a_rate_is_positive(rate):
    with pytest.raises(ValueError, match="rate"):
        RateLimiterStrategy.per_second(rate)


def test_the_bucket_grants_what_has_accrued(clock):
    bucket = TokenBucket(10, clock)
    assert bucket.acquire(100) == 1
    assert bucket.acquire(100) == 0
    assert bucket.delay() == pytest.approx(0.1)
    clock.now += 0.5
    assert bucket.acquire(3) == 3
    assert bucket.acquire(100) == 2
    clock.now += 3600
    assert bucket.acquire(100) == 10, "a long pause is not caught up"
    clock.now -= 50
    assert bucket.acquire(100) == 0, "a clock that steps back grants nothing"


@given(
    st.floats(0.5, 50), st.integers(1, 4), st.lists(st.tuples(st.floats(0, 2), st.integers(0, 40)))
)
def test_never_more_than_the_rate_over_all_subtasks(rate, parallelism, steps):
    now = [0.0]
    buckets = [TokenBucket(rate / parallelism, lambda: now[0]) for _ in range(parallelism)]
    granted = 0
    for pause, wanted in steps:
        now[0] += pause
        granted += sum(bucket.acquire(wanted) for bucket in buckets)
    assert granted <= parallelism + rate * now[0] + 1e-6


def test_the_rate_is_divided_among_subtasks_and_the_delay_leads_to_the_next_record():
    source = DataGeneratorSource(lambda index: index, 1000, RateLimiterStrategy.per_second(100))
    enumerator = source.create_enumerator(2)
    splits = enumerator.discover_splits()
    reader = source.create_reader(ReaderContext(0, 2))
    assert reader.next_read_delay() > 0
    reader.add_splits(splits[:1])
    began = time.monotonic()
    records: list[Any] = []
    while len(records) < 6:
        batch = reader.read(100)
        records += batch
        if not batch:
            delay = reader.next_read_delay()
            assert 0 <= delay <= 0.02 + 1e-6
            time.sleep(delay)
    assert time.monotonic() - began >= 5 / 50 - 0.001
    assert records == list(range(len(records)))
    assert reader.snapshot_splits() == [splits[0].at(len(records))]
    assert enumerator.has_pending(reader.snapshot_splits()) is None
    assert enumerator.has_pending([]) is False


def test_a_restart_goes_on_at_the_next_index_without_a_burst():
    source = DataGeneratorSource(lambda index: index, 1000, RateLimiterStrategy.per_second(1))
    reader = source.create_reader(ReaderContext(0, 1))
    reader.add_splits([split.at(500) for split in source.create_enumerator(1).discover_splits()])
    assert reader.read(100) == [500]
    assert reader.read(100) == []
