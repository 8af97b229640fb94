"""Timestamps, generators, splits and idleness of one stream."""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firesteel.common.time import Duration
from firesteel.common.watermark_strategy import (
    TimestampAssigner,
    WatermarkGenerator,
    WatermarkStrategy,
)
from firesteel.errors import UserFunctionError
from firesteel.task.operators.base import Output
from firesteel.task.record_batch import RecordBatch
from firesteel.task.time.stream_time import BadTimestampError, StreamTime
from firesteel.testing import ManualClock

_INTERVAL = 200
_BOUNDED = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(10))


class Stream:
    """A stream's time, and everything that went on: (value, timestamp), watermarks, idleness."""

    def __init__(
        self, strategy: WatermarkStrategy, interval: int = _INTERVAL, now: int = 1_000
    ) -> None:
        self.clock = ManualClock(now)
        self.heard: list[Any] = []
        output = Output(emit=self._emit, watermark=self.heard.append, idle=self._idle)
        self.time = StreamTime(strategy, interval, "Source: clicks", self.clock, output)

    def _emit(self, batch: RecordBatch) -> None:
        stamps: Sequence[int | None] = batch.timestamps or [None] * len(batch)
        self.heard += zip(batch.values, stamps, strict=True)

    def _idle(self, idle: bool) -> None:
        self.heard.append("idle" if idle else "active")

    def process(self, *timestamps: int, split: str | None = None) -> None:
        batch = RecordBatch([f"r{t}" for t in timestamps], list(timestamps))
        self.time.process(split, batch)

    def wait(self, millis: int) -> list[Any]:
        """Let time pass in which a record could come; what was heard until then besides records."""
        self.clock.advance(millis)
        self.time.asked(millis)
        self.time.tick()
        return self.times()

    def times(self) -> list[Any]:
        return [heard for heard in self.heard if not isinstance(heard, tuple)]


def test_the_bound_and_one_millisecond_separate_watermark_and_newest_timestamp():
    stream = Stream(_BOUNDED)
    stream.process(100, 50, 70)
    assert stream.wait(_INTERVAL) == [100 - 10 - 1]


def test_ascending_timestamps_are_followed_at_one_millisecond():
    stream = Stream(WatermarkStrategy.for_monotonous_timestamps())
    stream.process(100)
    assert stream.wait(_INTERVAL) == [99]


def test_periodic_generators_are_asked_when_the_interval_has_passed_and_not_before():
    stream = Stream(_BOUNDED)
    stream.process(100)
    assert stream.wait(_INTERVAL - 1) == []
    assert stream.wait(1) == [89]
    stream.process(200)
    assert stream.wait(_INTERVAL - 1) == [89]
    assert stream.wait(1) == [89, 189]


def test_an_interval_of_0_never_asks():
    stream = Stream(_BOUNDED, interval=0)
    stream.process(100)
    stream.time.emit_periodically()
    assert stream.wait(1_000_000) == []
    assert stream.time.next_tick() is None


def test_without_watermarks_only_timestamps_flow():
    stream = Stream(WatermarkStrategy.no_watermarks())
    stream.process(100)
    assert stream.wait(_INTERVAL) == []
    assert stream.heard == [("r100", 100)]


def test_the_assigner_sees_the_timestamp_that_a_record_has():
    strategy = WatermarkStrategy.no_watermarks().with_timestamp_assigner(lambda v, t: t + len(v))
    stream = Stream(strategy)
    stream.process(100)
    assert stream.heard == [("r100", 104)]


def test_a_record_without_a_timestamp_has_the_smallest_long():
    seen = []

    class Assigner(TimestampAssigner):
        def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
            seen.append(record_timestamp)
            return 7

    stream = Stream(WatermarkStrategy.no_watermarks().with_timestamp_assigner(Assigner()))
    stream.time.process(None, RecordBatch(["a"]))
    assert (seen, stream.heard) == ([-(2**63)], [("a", 7)])


def test_records_that_get_no_timestamp_do_not_move_the_watermark():
    stream = Stream(_BOUNDED)
    stream.time.process(None, RecordBatch(["a"]))
    assert stream.wait(_INTERVAL) == []
    assert stream.heard == [("a", None)]


@pytest.mark.parametrize("wrong", [None, 1.5, "12", 2**63])
def test_an_assigner_that_gives_no_time_is_blamed_with_its_record(wrong):
    strategy = WatermarkStrategy.no_watermarks().with_timestamp_assigner(lambda value, _: wrong)
    with pytest.raises(BadTimestampError, match=r"Source: clicks.*<lambda>.*'r5'"):
        Stream(strategy).process(5)


def test_an_assigner_that_fails_is_blamed_with_its_record():
    strategy = WatermarkStrategy.no_watermarks().with_timestamp_assigner(lambda v, t: 1 // (t - 6))
    with pytest.raises(UserFunctionError) as caught:
        Stream(strategy).process(5, 6, 7)
    assert (caught.value.operator, caught.value.record) == ("Source: clicks", "'r6'")


def test_ingestion_time_is_the_clock_and_goes_on_without_records():
    stream = Stream(WatermarkStrategy.ingestion_time(), now=5_000)
    stream.process(1)
    assert stream.heard == [("r1", 5_000)]
    assert stream.time.next_tick() == 5_000 + _INTERVAL
    assert stream.wait(_INTERVAL) == [5_000 + _INTERVAL - 1]
    assert stream.wait(_INTERVAL) == [5_199, 5_399]


def test_ingestion_time_does_not_go_back_with_the_clock():
    stream = Stream(WatermarkStrategy.ingestion_time(), now=10_000)
    stream.process(1)
    stream.wait(_INTERVAL)
    behind = Stream(WatermarkStrategy.ingestion_time(), now=5_000)
    behind.time.restore(stream.time.snapshot())
    behind.process(2)
    assert behind.heard == [("r2", 10_200)]
    behind.clock.set(12_000)
    behind.process(3)
    assert behind.heard[1:] == [("r3", 12_000)]


# Generators of the user's own


class AtEvens(WatermarkGenerator):
    def on_event(self, event, event_timestamp, output):
        if event_timestamp % 2 == 0:
            output.emit_watermark(event_timestamp)

    def on_periodic_emit(self, output):
        """Punctuated only."""


class Count(WatermarkGenerator):
    def __init__(self):
        self.seen = 0

    def on_event(self, event, event_timestamp, output):
        self.seen += 1

    def on_periodic_emit(self, output):
        output.emit_watermark(self.seen)


def test_a_punctuated_watermark_stands_right_behind_its_record():
    stream = Stream(WatermarkStrategy.for_generator(AtEvens))
    stream.process(1, 2, 3, 4, 5)
    assert stream.heard == [("r1", 1), ("r2", 2), 2, ("r3", 3), ("r4", 4), 4, ("r5", 5)]


def test_a_periodic_generator_of_ones_own_keeps_its_fields():
    stream = Stream(WatermarkStrategy.for_generator(Count))
    stream.process(10, 20, 30)
    again = Stream(WatermarkStrategy.for_generator(Count))
    again.time.restore(stream.time.snapshot())
    again.process(40)
    assert again.wait(_INTERVAL) == [4]


def test_a_generator_that_cannot_be_pickled_starts_anew_but_its_watermark_stays():
    class WithLock(Count):
        def __init__(self):
            super().__init__()
            self.lock = threading.Lock()

    stream = Stream(WatermarkStrategy.for_generator(WithLock))
    stream.process(1, 2, 3)
    stream.wait(_INTERVAL)
    again = Stream(WatermarkStrategy.for_generator(WithLock))
    again.time.restore(stream.time.snapshot())
    assert again.time.watermark == 3
    again.process(4)
    assert again.wait(_INTERVAL) == []


def test_a_generator_that_fails_is_blamed_with_its_record():
    class Fails(Count):
        def on_event(self, event, event_timestamp, output):
            raise ZeroDivisionError

    with pytest.raises(UserFunctionError) as caught:
        Stream(WatermarkStrategy.for_generator(Fails)).process(5, 6)
    assert caught.value.record == "'r5'"
    assert "Fails.on_event" in caught.value.function


# Splits


def test_every_split_has_its_own_watermark_and_the_least_counts():
    stream = Stream(_BOUNDED)
    stream.process(1000, split="a")
    stream.process(500, split="b")
    assert stream.wait(_INTERVAL) == [489]
    # One generator for both would have made these late.
    stream.process(520, split="b")
    assert stream.wait(_INTERVAL) == [489, 509]
    stream.process(2000, split="b")
    assert stream.wait(_INTERVAL) == [489, 509, 989]


def test_a_split_that_has_ended_holds_nobody_up():
    stream = Stream(_BOUNDED)
    stream.process(1000, split="a")
    stream.process(500, split="b")
    stream.time.keep_only(["a"])
    assert stream.wait(_INTERVAL) == [989]


def test_a_split_that_is_expected_holds_the_others_back_until_it_is_read():
    stream = Stream(_BOUNDED)
    stream.time.expect(["a", "b"])
    stream.process(1000, split="a")
    assert stream.wait(_INTERVAL) == []
    stream.process(300, split="b")
    assert stream.wait(_INTERVAL) == [289]


def test_an_expected_split_that_turns_out_to_be_empty_holds_nobody_up():
    stream = Stream(_BOUNDED)
    stream.time.expect(["a", "b"])
    stream.process(1000, split="a")
    stream.wait(_INTERVAL)
    stream.time.keep_only(["a"])
    assert stream.times() == [989]


def test_an_expected_split_can_be_idle():
    stream = Stream(_BOUNDED.with_idleness(Duration.of_millis(500)))
    stream.time.expect(["a", "b"])
    for _ in range(3):
        stream.process(1000, split="a")
        stream.wait(_INTERVAL)
    assert stream.times() == [989]


# Idleness


def test_a_silent_split_does_not_count_until_it_speaks_again():
    stream = Stream(_BOUNDED.with_idleness(Duration.of_millis(500)))
    stream.process(1000, split="a")
    stream.process(500, split="b")
    for _ in range(3):
        stream.process(1000, split="a")
        stream.wait(_INTERVAL)
    assert stream.times() == [489, 989]
    stream.process(600, split="b")
    stream.process(2000, split="a")
    assert stream.wait(_INTERVAL) == [489, 989]


def test_the_stream_is_idle_when_all_splits_are_and_active_before_the_next_record():
    stream = Stream(_BOUNDED.with_idleness(Duration.of_millis(500)))
    stream.process(1000, split="a")
    assert stream.wait(500) == ["idle"]
    assert stream.time.next_tick() is None
    stream.process(1001, split="a")
    assert stream.heard == [("r1000", 1000), "idle", "active", ("r1001", 1001)]


@given(
    newest=st.dictionaries(st.sampled_from("abcd"), st.integers(1_000, 2_000), min_size=1),
    quiet_from=st.lists(st.integers(0, 5), min_size=4, max_size=4),
)
def test_when_all_splits_are_idle_the_furthest_watermark_holds_in_any_order(newest, quiet_from):
    stream = Stream(_BOUNDED.with_idleness(Duration.of_millis(3 * _INTERVAL)))
    stream.time.expect(newest)
    ends = dict(zip(newest, quiet_from, strict=False))
    for step in range(10):
        for split, timestamp in newest.items():
            if step <= ends[split]:
                stream.process(timestamp, split=split)
        stream.wait(_INTERVAL)
    assert stream.times()[-2:] == [max(newest.values()) - 11, "idle"]
    # A split that wakes up behind holds event time back.
    stream.heard.clear()
    behind = min(newest, key=newest.__getitem__)
    stream.process(newest[behind], split=behind)
    assert stream.times() == ["active"]
    stream.process(3_000, split=behind)
    assert stream.wait(_INTERVAL)[-1] == 2_989


def test_a_stream_that_never_had_a_record_becomes_idle_too():
    stream = Stream(_BOUNDED.with_idleness(Duration.of_millis(500)))
    assert stream.wait(500) == ["idle"]
    stream.process(9)
    assert stream.times() == ["idle", "active"]


def test_without_idleness_a_silent_stream_holds_up_the_others():
    stream = Stream(_BOUNDED)
    assert stream.wait(1_000_000) == []
    assert stream.time.next_tick() is None


def test_idleness_and_splits_survive_a_restore():
    strategy = _BOUNDED.with_idleness(Duration.of_millis(500))
    stream = Stream(strategy)
    stream.process(1000, split="a")
    stream.process(500, split="b")
    stream.wait(400)
    again = Stream(strategy, now=1_400)
    again.time.restore(stream.time.snapshot())
    again.process(1000, split="a")
    assert again.wait(200) == [989]


def test_time_in_which_nobody_asks_does_not_make_a_split_idle():
    stream = Stream(_BOUNDED.with_idleness(Duration.of_seconds(5)))
    stream.process(1000, split="a")
    stream.process(500, split="b")
    stream.clock.advance(10_000)
    stream.process(2000, split="a")
    stream.time.emit_periodically()
    assert stream.times() == [489]


def test_a_split_is_idle_if_the_input_had_nothing_twice_and_nothing_in_between():
    stream = Stream(_BOUNDED.with_idleness(Duration.of_seconds(5)))

    def ask() -> list[Any]:
        stream.time.found_nothing()
        stream.time.emit_periodically()
        return stream.times()

    stream.process(1000, split="a")
    stream.process(500, split="b")
    # The job is busy for long. That b has nothing now says nothing about how long it was silent.
    stream.clock.advance(60_000)
    assert ask() == [489]
    assert stream.time.next_tick() == stream.clock() + 5_000
    stream.clock.advance(4_000)
    stream.process(1100, split="a")
    assert ask() == [489]
    stream.clock.advance(1_000)
    assert ask() == [489, 1089]


def test_a_paused_split_does_not_become_idle():
    stream = Stream(_BOUNDED.with_idleness(Duration.of_millis(500)))
    stream.process(1000, split="a")
    stream.process(500, split="b")
    stream.time.pause_splits({"a"})
    for _ in range(4):
        stream.process(500, split="b")
        stream.time.found_nothing()
        stream.wait(_INTERVAL)
    stream.process(2000, split="b")
    assert stream.wait(_INTERVAL) == [489, 989]
    # It has had no chance to speak until now.
    stream.time.pause_splits(())
    stream.process(2000, split="b")
    assert stream.wait(_INTERVAL) == [489, 989]


def test_epochs_without_a_record_make_a_stream_idle_that_others_feed():
    stream = Stream(_BOUNDED.with_idleness(Duration.of_millis(500)))
    stream.process(1000)
    stream.time.end_epoch()
    stream.clock.advance(10_000)
    stream.time.end_epoch()
    assert stream.times() == [989]
    stream.clock.advance(500)
    stream.time.end_epoch()
    assert stream.times() == [989, "idle"]


# Timestamps from the future

_HOUR = 60 * 60 * 1000
_DAY = 24 * _HOUR


def test_a_timestamp_beyond_the_drift_keeps_its_place_but_does_not_move_the_watermark():
    stream = Stream(_BOUNDED.with_max_future_drift(Duration.of_seconds(1)), now=100_000)
    stream.process(100_000, 900_000, 101_000)
    assert stream.wait(_INTERVAL) == [101_000 - 11]
    assert [heard for heard in stream.heard if isinstance(heard, tuple)] == [
        ("r100000", 100_000),
        ("r900000", 900_000),
        ("r101000", 101_000),
    ]


def test_a_generator_of_ones_own_does_not_see_timestamps_beyond_the_drift():
    strategy = WatermarkStrategy.for_generator(AtEvens)
    stream = Stream(strategy.with_max_future_drift(Duration.of_seconds(1)), now=1_000)
    stream.process(2, 1_000_000, 3, 4)
    assert stream.times() == [2, 4]


def test_without_a_bound_the_first_odd_record_is_logged(caplog):
    stream = Stream(_BOUNDED, now=1_000)
    with caplog.at_level(logging.WARNING, logger="firesteel"):
        stream.process(900, 1_001 + _DAY, 2_000 + _DAY)
        stream.process(3_000 + _DAY)
    assert stream.wait(_INTERVAL) == [3_000 + _DAY - 11]
    (record,) = caplog.records
    assert f"'r{1_001 + _DAY}'" in record.getMessage()
    assert "with_max_future_drift" in record.getMessage()
    assert "Source: clicks" in record.getMessage()


def _warnings(
    caplog: Any, *batches: list[int], strategy: WatermarkStrategy = _BOUNDED
) -> list[str]:
    """The warnings about batches of a stream that is read years later."""
    stream = Stream(strategy, now=1_000 * _DAY)
    with caplog.at_level(logging.WARNING, logger="firesteel"):
        for batch in batches:
            stream.process(*batch)
            stream.wait(_INTERVAL)
    return [record.getMessage() for record in caplog.records]


@pytest.mark.parametrize(
    "batches",
    [
        ([_DAY, 9 * _DAY, _DAY + 1],),
        ([_DAY, 9 * _DAY], [_DAY + 1]),
        ([_DAY], [9 * _DAY], [_DAY + 1]),
        ([_DAY], [_DAY, 9 * _DAY], [_DAY + 1, 9 * _DAY, _DAY + 2]),
        ([9 * _DAY], [_DAY], [_DAY, _DAY]),
        ([9 * _DAY, _DAY, _DAY, _DAY],),
        ([_DAY], [9 * _DAY], [_DAY + 1], [20 * _DAY], [_DAY]),
    ],
)
def test_a_record_that_leaps_ahead_of_all_others_is_logged_once_also_in_old_data(caplog, batches):
    (message,) = _warnings(caplog, *batches)
    assert f"'r{9 * _DAY}'" in message
    assert "Source: clicks" in message


@pytest.mark.parametrize(
    "batches",
    [
        ([1, 2, 9 * _DAY, 9 * _DAY + 1],),
        ([1, 2], [9 * _DAY], [9 * _DAY - 5], [20 * _DAY]),
        ([1, 2, 9 * _DAY], [9 * _DAY - 5, 9 * _DAY + 1]),
        # A straggler is behind the others; they are not ahead of it.
        ([9 * _DAY, 9 * _DAY + 1], [9 * _DAY + 2, 5, 9 * _DAY + 3], [7], [9 * _DAY]),
        ([9 * _DAY, 5], [9 * _DAY + 1]),
        ([_HOUR], [4 * _HOUR], [_HOUR + 1], [4 * _HOUR + 1, 5 * _HOUR], [_HOUR]),
        # So much may be expected of disorder.
        ([_DAY], [_DAY + _HOUR], [_DAY], [_DAY], [_DAY]),
    ],
)
def test_gaps_stragglers_and_disorder_are_not_logged(caplog, batches):
    assert _warnings(caplog, *batches) == []


def test_disorder_within_the_bound_is_not_logged(caplog):
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_days(30))
    assert _warnings(caplog, [_DAY, 9 * _DAY, _DAY], [_DAY], strategy=strategy) == []


def test_a_generator_of_ones_own_that_does_not_follow_a_leap_is_not_suspected(caplog):
    batches = [_DAY, 9 * _DAY + 1, _DAY + 2], [_DAY + 4]
    assert _warnings(caplog, *batches, strategy=WatermarkStrategy.for_generator(AtEvens)) == []
    batches = [_DAY, 9 * _DAY, _DAY + 2], [_DAY + 4]
    assert len(_warnings(caplog, *batches, strategy=WatermarkStrategy.for_generator(AtEvens))) == 1
