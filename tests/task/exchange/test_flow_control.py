"""Limits of what is on its way to a slow slot, with a clock that the tests advance."""

from __future__ import annotations

import pytest

from firesteel.protocol.messages import Credit
from firesteel.task.exchange.flow_control import Receipts, SendWindows
from firesteel.task.slot_activity import SlotActivity

EDGE = 7
A, B = (0, 0), (0, 1)
MEGABYTE = 1 << 20


class Work(SlotActivity):
    """The time that a slot has worked."""

    __slots__ = ("worked",)

    def __init__(self) -> None:
        super().__init__()
        self.worked = 0.0

    def seconds(self) -> tuple[float, float, float]:
        return 100.0 + self.worked, 100.0, 0.0


class Reader:
    """A slot 3 that reads from slots A and B."""

    def __init__(self, windows: SendWindows | None = None) -> None:
        self.work = Work()
        channels = {(EDGE, 0): A, (EDGE, 1): B}
        windows = windows or SendWindows([], limited=True)
        self.receipts = Receipts(3, channels, self.work, windows, seconds=1.0)
        self.receipts.begin()

    def process(self, channel: int, size: int, seconds: float) -> dict[tuple[int, int], Credit]:
        """Return the credits of slots A and B, if it is time for them."""
        self.work.worked += seconds
        if not self.receipts.processed((EDGE, channel), size):
            return {}
        found = self.receipts.credits()
        assert all(len(some) == 1 for some in found.values())
        return {place: some[0] for place, some in found.items()}


def test_a_slow_slot_gets_what_it_processes_in_the_target_time() -> None:
    told = Reader().process(0, 1000, seconds=0.1)
    # Ten thousand bytes a second, all of them from A so far.
    assert told[A] == Credit(EDGE, 3, 1000, 10_000)


def test_it_reports_again_when_it_has_processed_a_quarter() -> None:
    reader = Reader()
    reader.process(0, 1000, seconds=0.1)
    assert reader.process(0, 2400, seconds=0.24) == {}
    assert reader.process(0, 200, seconds=0.02)[A].taken == 3600


def test_channels_share_the_limit_by_their_records() -> None:
    reader = Reader()
    for _ in range(20):
        told = reader.process(0, 3000, seconds=0.3) | reader.process(1, 3000, seconds=0.3)
    assert told[A].limit == pytest.approx(5000, rel=0.25)
    assert told[B].limit == pytest.approx(5000, rel=0.25)


def test_a_fast_slot_loses_its_limit_and_reports_no_more() -> None:
    reader = Reader()
    told = reader.process(0, MEGABYTE, seconds=0.1)
    assert {place: credit.limit for place, credit in told.items()} == {A: None, B: None}
    assert [reader.process(0, MEGABYTE, seconds=0.1) for _ in range(3)] == [{}] * 3


def test_a_slot_that_becomes_slow_gets_a_limit_again() -> None:
    reader = Reader()
    reader.process(0, MEGABYTE, seconds=0.1)
    seconds = 0
    while not (told := reader.process(0, 100_000, seconds=1.0)):
        seconds += 1
        assert seconds < 10
    assert told[A].limit is not None
    for _ in range(10):
        told = reader.process(0, 100_000, seconds=1.0) or told
    assert told[A].limit == pytest.approx(100_000, rel=0.2)


def test_restored_rows_are_not_counted_for_those_that_never_sent_them() -> None:
    reader = Reader()
    reader.receipts.expect((EDGE, 0), 500)
    assert reader.process(0, 500, seconds=0.1) == {}
    assert reader.process(0, 100, seconds=0.1)[A].taken == 100
