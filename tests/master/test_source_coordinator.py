"""A source in the driver: the assignment of splits, discovery, and the end of the source."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firesteel.checkpoint.payload import Payload
from firesteel.datastream.connectors.base import (
    Boundedness,
    Source,
    SourceSplit,
    SplitEnumerator,
)
from firesteel.master.decisions import AskPending, DiscoverSplits
from firesteel.master.source_coordinator import EnumeratorReport, SourceCoordinator
from firesteel.master.split_enumerators import EnumeratorOfSource
from firesteel.protocol.messages import SourceStatus
from firesteel.testing import JobHarness
from tests.late_source import LateSource


class Enumerator(SplitEnumerator):
    """Finds what the test puts into ``found``."""

    def __init__(self) -> None:
        self.found: list[SourceSplit] = []
        self.complete = False
        self.pending: bool | None = None
        self.pending_ids: set[str] = set()
        self.unread: list[list[str]] = []
        self.calls = 0
        self.closed = False

    def discover_splits(self) -> list[SourceSplit]:
        self.calls += 1
        found, self.found = self.found, []
        return found

    def is_complete(self) -> bool:
        return self.complete

    def has_pending(self, splits: Any) -> bool | None:
        if self.pending_ids:
            return any(split.split_id in self.pending_ids for split in splits)
        return self.pending

    def checkpoint_complete(self, splits: Any) -> None:
        self.unread.append([split.split_id for split in splits])

    def next_discovery_delay(self) -> float:
        return 2.0

    def snapshot_state(self) -> Any:
        return {"calls": self.calls}

    def close(self) -> None:
        self.closed = True


class FakeSource(Source):
    def __init__(self, boundedness: Boundedness) -> None:
        self.boundedness = boundedness
        self.enumerator = Enumerator()

    def get_boundedness(self) -> Boundedness:
        return self.boundedness

    def create_enumerator(self, parallelism: int, state: Any = None) -> SplitEnumerator:
        return self.enumerator

    def create_reader(self, context: Any) -> Any:
        raise NotImplementedError


def _splits(*names: str) -> list[SourceSplit]:
    return [SourceSplit(name) for name in names]


class Coordinator(SourceCoordinator):
    """Carries its own decisions out."""

    def __init__(self, source: FakeSource, parallelism: int) -> None:
        self.enumerator = EnumeratorOfSource("numbers", "job", source, parallelism)
        super().__init__(1, source, parallelism, self.enumerator.create(None))

    def discover(self, now: float) -> None:
        for decision in self.decide(now):
            if isinstance(decision, DiscoverSplits):
                self.discovered(self.enumerator.discover(), now)
            elif isinstance(decision, AskPending):
                splits = decision.splits
                self.pending_known(splits, self.enumerator.has_pending(splits))


def _coordinator(
    parallelism: int = 2,
    boundedness: Boundedness = Boundedness.BOUNDED,
    *,
    side_by_side: bool | None = None,
) -> tuple[Coordinator, Enumerator]:
    source = FakeSource(boundedness)
    source.side_by_side = side_by_side
    return Coordinator(source, parallelism), source.enumerator


def _names(assignment: dict[int, tuple[SourceSplit, ...]]) -> dict[int, list[str]]:
    return {subtask: [s.split_id for s in splits] for subtask, splits in assignment.items()}


def _status(
    *splits: str,
    available: bool = False,
    delay: float = 0.1,
    finished: bool = False,
    wanted: int = 0,
) -> SourceStatus:
    return SourceStatus(tuple(_splits(*splits)), available, delay, finished, wanted=wanted)


def test_splits_go_to_the_reader_with_the_fewest():
    coordinator, enumerator = _coordinator(side_by_side=True)
    enumerator.found = _splits("a", "b", "c")
    coordinator.discover(0.0)
    assert _names(coordinator.assign()) == {0: ["a", "c"], 1: ["b"]}
    coordinator.update(0, _status("c"))
    coordinator.update(1, _status())
    enumerator.found = _splits("d", "e")
    coordinator.discover(2.0)
    assert _names(coordinator.assign()) == {1: ["d"], 0: ["e"]}


@pytest.mark.parametrize(
    ("boundedness", "side_by_side"),
    [
        (Boundedness.BOUNDED, None),
        (Boundedness.BOUNDED, False),
        (Boundedness.CONTINUOUS_UNBOUNDED, False),
    ],
)
def test_a_reader_gets_a_split_when_it_asks(boundedness, side_by_side):
    """Flink: StaticFileSplitEnumerator and ContinuousFileSplitEnumerator, handleSplitRequest."""
    coordinator, enumerator = _coordinator(boundedness=boundedness, side_by_side=side_by_side)
    enumerator.found = _splits(*"abcd")
    coordinator.discover(0.0)
    assert _names(coordinator.assign()) == {0: ["a"], 1: ["b"]}
    coordinator.update(0, _status("a"))
    coordinator.update(1, _status("b"))
    assert coordinator.assign() == {}
    coordinator.update(1, _status(wanted=1))
    assert _names(coordinator.assign()) == {1: ["c"]}
    assert coordinator.assign() == {}


def test_a_reader_that_asks_for_many_gets_at_most_half_of_its_fair_share():
    coordinator, enumerator = _coordinator()
    enumerator.found = _splits(*"abcdefghij")
    coordinator.discover(0.0)
    coordinator.update(0, _status(wanted=100))
    coordinator.update(1, _status("z"))
    assert _names(coordinator.assign()) == {0: list("abc")}
    coordinator.update(1, _status(wanted=1))
    assert _names(coordinator.assign()) == {1: ["d"]}


def test_time_waits_for_splits_that_no_reader_has():
    coordinator, enumerator = _coordinator(1)
    assert not coordinator.holds_time()
    enumerator.found = _splits("a", "b")
    coordinator.discover(0.0)
    held = []
    for _ in range(2):
        coordinator.assign()
        held.append(coordinator.holds_time())
        coordinator.update(0, _status(wanted=1))
    assert held == [True, False]


def test_time_waits_for_no_split_if_splits_are_found_in_its_order():
    source = FakeSource(Boundedness.BOUNDED)
    source.in_time_order = True
    coordinator = Coordinator(source, 1)
    source.enumerator.found = _splits("a", "b")
    coordinator.discover(0.0)
    coordinator.assign()
    assert not coordinator.holds_time()


def test_an_unbounded_source_hands_out_everything():
    # Its splits may never end: what is kept back would never be read.
    coordinator, enumerator = _coordinator(1, Boundedness.CONTINUOUS_UNBOUNDED)
    enumerator.found = _splits(*"abcdefghij")
    coordinator.discover(0.0)
    assert _names(coordinator.assign()) == {0: list("abcdefghij")}


def test_a_batch_hands_out_everything():
    coordinator, enumerator = _coordinator()
    enumerator.found = _splits(*"abcdefghij")
    coordinator.discover(0.0)
    assert _names(coordinator.assign(everything=True)) == {0: list("acegi"), 1: list("bdfhj")}


def test_discovery_goes_at_the_enumerators_pace():
    coordinator, enumerator = _coordinator()
    for now in (0.0, 1.0, 1.9, 2.0, 3.0):
        coordinator.discover(now)
    assert enumerator.calls == 2
    enumerator.complete = True
    coordinator.discover(100.0)
    coordinator.discover(200.0)
    assert enumerator.calls == 3


def test_a_discovery_that_is_under_way_is_not_started_twice():
    coordinator, _ = _coordinator()
    assert coordinator.decide(0.0) == [DiscoverSplits(1)]
    assert coordinator.decide(100.0) == []
    assert coordinator.until_discovery(100.0) is None
    coordinator.discovered(EnumeratorReport(complete=False, next_discovery=2.0), 100.0)
    assert coordinator.until_discovery(101.0) == 1.0
    assert coordinator.decide(102.0) == [DiscoverSplits(1)]


def test_the_first_epoch_waits_a_little_for_the_first_splits():
    coordinator, _ = _coordinator()
    assert coordinator.until_first_answer(0.0) == 0.0
    coordinator.decide(5.0)
    assert coordinator.until_first_answer(5.25) == 0.75
    assert coordinator.until_first_answer(100.0) == 0.0
    coordinator.discovered(EnumeratorReport(), 5.5)
    assert coordinator.until_first_answer(5.5) == 0.0


def test_an_enumerator_that_finds_nothing_and_never_waits_is_asked_now_and_then():
    coordinator, _ = _coordinator()
    coordinator.decide(0.0)
    coordinator.discovered(EnumeratorReport(complete=False, next_discovery=0.0), 0.0)
    assert coordinator.decide(0.05) == []
    assert coordinator.decide(0.1) == [DiscoverSplits(1)]
    found = EnumeratorReport(tuple(_splits("a")), complete=False, next_discovery=0.0)
    coordinator.discovered(found, 0.1)
    assert coordinator.decide(0.1) == [DiscoverSplits(1)]


def test_readers_have_reached_the_end_once_all_splits_are_known_and_assigned():
    coordinator, enumerator = _coordinator(1)
    enumerator.complete = True
    assert not coordinator.is_complete()
    enumerator.found = _splits("a")
    coordinator.discover(0.0)
    assert not coordinator.is_complete()
    coordinator.assign()
    assert coordinator.is_complete()


def test_a_source_has_finished_when_all_readers_have():
    coordinator, _ = _coordinator()
    coordinator.update(0, _status(finished=True))
    finished = [coordinator.finished]
    coordinator.update(1, _status(finished=True))
    finished.append(coordinator.finished)
    assert finished == [False, True]
    assert coordinator.delay() is None


def test_the_first_epoch_is_due_at_once():
    coordinator, _ = _coordinator()
    assert coordinator.delay() == 0.0


def test_more_to_read_is_due_at_once():
    coordinator, _ = _coordinator()
    coordinator.update(0, _status("a", available=True))
    coordinator.update(1, _status("b", delay=5.0))
    assert coordinator.delay() == 0.0


def test_idle_readers_say_when_to_ask_again():
    coordinator, _ = _coordinator()
    coordinator.update(0, _status("a", delay=3.0))
    coordinator.update(1, _status("b", delay=0.5))
    assert coordinator.delay() == 0.5
    coordinator.update(1, _status(finished=True, delay=0.0))
    assert coordinator.delay() == 3.0


def test_an_enumerator_that_sees_pending_data_is_heard():
    coordinator, enumerator = _coordinator(1)
    coordinator.discover(0.0)
    coordinator.update(0, _status("a", delay=3.0))
    enumerator.pending = True
    assert coordinator.delay() == 3.0
    coordinator.discover(0.0)
    assert coordinator.delay() == 0.0


def test_pending_data_is_asked_for_once_an_epoch_and_late_answers_do_not_count():
    coordinator, _ = _coordinator(1)
    coordinator.discover(0.0)
    coordinator.update(0, _status("a", delay=3.0))
    question = AskPending(1, tuple(_splits("a")))
    assert coordinator.decide(0.5) == [question]
    assert coordinator.decide(0.5) == []
    coordinator.update(0, _status("b", delay=3.0))
    coordinator.pending_known(question.splits, True)
    assert coordinator.delay() == 3.0


def test_splits_that_are_paused_wait_for_their_group_whatever_they_have_pending():
    coordinator, enumerator = _coordinator(1)
    enumerator.pending_ids = {"b"}
    coordinator.discover(0.0)
    paused = SourceStatus(tuple(_splits("a", "b")), False, 3.0, False, paused=frozenset("b"))
    coordinator.update(0, paused)
    coordinator.discover(0.0)
    assert coordinator.delay(until_aligned=0.6) == 0.6
    coordinator.update(0, _status("a", "b", delay=3.0))
    coordinator.discover(0.0)
    assert coordinator.delay(until_aligned=0.6) == 0.0


def test_readers_without_splits_must_be_told_that_none_will_come():
    coordinator, enumerator = _coordinator(1)
    coordinator.discover(0.0)
    coordinator.update(0, _status(delay=3.0))
    assert coordinator.delay() == 5.0
    enumerator.complete = True
    coordinator.discover(2.0)
    assert coordinator.delay() == 0.0


def test_unassigned_splits_do_not_spin_while_no_reader_asks():
    coordinator, enumerator = _coordinator(1)
    enumerator.found = _splits(*"abcdef")
    coordinator.discover(0.0)
    coordinator.assign()
    coordinator.update(0, _status("a", delay=0.7))
    assert coordinator.delay() == 0.7
    coordinator.update(0, _status(delay=0.7, wanted=1))
    assert coordinator.delay() == 0.0


def test_a_snapshot_has_what_only_the_driver_knows():
    coordinator, enumerator = _coordinator(1)
    enumerator.found = _splits(*"abcdef")
    coordinator.discover(0.0)
    coordinator.assign()
    kept = coordinator.checkpoint(1)
    assert kept.json["enumerator"] == {"calls": 1}
    assert [split["split_id"] for split in kept.json["unassigned"]] == [*"bcdef"]


def test_splits_that_are_read_side_by_side_are_handed_out_at_once():
    source = FakeSource(Boundedness.BOUNDED)
    source.side_by_side = True
    coordinator = Coordinator(source, 1)
    source.enumerator.found = _splits(*"abcdefgh")
    coordinator.discover(0.0)
    assert [split.split_id for split in coordinator.assign()[0]] == [*"abcdefgh"]


def test_a_snapshot_agrees_with_the_splits_that_have_been_reported():
    """A discovery that is under way may have changed the enumerator already."""
    coordinator, enumerator = _coordinator(1)
    enumerator.found = _splits("a")
    coordinator.discover(0.0)
    coordinator.decide(2.0)
    enumerator.discover_splits()
    assert coordinator.checkpoint(1).json["enumerator"] == {"calls": 1}


def test_a_restored_source_begins_with_the_splits_that_were_not_assigned():
    coordinator, enumerator = _coordinator(1)
    enumerator.found = _splits(*"abc")
    coordinator.discover(0.0)
    coordinator.assign()
    kept = Payload(json=coordinator.checkpoint(1).json)
    restored = SourceCoordinator(
        1, FakeSource(Boundedness.BOUNDED), 2, EnumeratorReport(), kept, (1, 0)
    )
    # The reader that still has the first split does not ask.
    assert _names(restored.assign()) == {1: ["b"]}


@given(
    st.integers(1, 5), st.lists(st.lists(st.integers(0, 40), min_size=5, max_size=5), max_size=9)
)
def test_every_split_is_assigned_once(parallelism, histories):
    """However often, in whatever order and for however many splits the readers ask."""
    coordinator, enumerator = _coordinator(parallelism)
    names = [f"split {number}" for number in range(23)]
    enumerator.found = _splits(*names)
    coordinator.discover(0.0)
    assigned: list[str] = []
    for wanted in [*histories, *[[1] * 5] * 23]:
        for splits in coordinator.assign().values():
            assigned += [split.split_id for split in splits]
        for subtask in range(parallelism):
            coordinator.update(subtask, _status(wanted=wanted[subtask]))
    assert sorted(assigned) == sorted(names)


def test_a_completed_checkpoint_knows_the_splits_it_left_unread():
    """As of its epoch, in spite of later reads. Failed checkpoints know nothing."""
    coordinator, enumerator = _coordinator(1)
    enumerator.found = _splits(*"abcdef")
    coordinator.discover(0.0)
    coordinator.assign()
    coordinator.checkpoint(1)
    coordinator.update(0, _status(wanted=2))
    coordinator.assign()
    coordinator.update(0, _status(*"bc"))
    coordinator.checkpoint(2)
    coordinator.update(0, _status("c"))
    coordinator.checkpoint(3)
    coordinator.checkpoint_aborted(2)
    assert coordinator.checkpoint_complete(2) is None
    assert coordinator.checkpoint_complete(3) == tuple(_splits(*"cdef"))


def test_checkpoints_that_complete_while_others_are_under_way_are_told_apart():
    coordinator, _ = _coordinator(1)
    coordinator.update(0, _status("a", "b"))
    coordinator.checkpoint(1)
    coordinator.update(0, _status("b"))
    coordinator.checkpoint(2)
    assert coordinator.checkpoint_complete(1) == tuple(_splits("a", "b"))
    assert coordinator.checkpoint_complete(2) == tuple(_splits("b"))


def test_readers_without_splits_wait_for_the_enumerator_and_not_for_themselves():
    coordinator, enumerator = _coordinator(boundedness=Boundedness.CONTINUOUS_UNBOUNDED)
    coordinator.discover(0.0)
    for subtask in range(2):
        coordinator.update(subtask, _status(delay=0.1))
    # An epoch now and then, for the sake of hosts and sinks.
    assert coordinator.delay() == 5.0
    assert coordinator.until_discovery(0.5) == 1.5
    assert (coordinator.until_discovery(9.0) or 0.0) > 0.0
    # Who has splits is asked as often as it says.
    coordinator.update(0, _status("a", delay=0.1))
    assert coordinator.delay() == 0.1
    enumerator.complete = True
    coordinator.discover(2.0)
    assert coordinator.until_discovery(2.5) is None


def test_an_idle_source_has_few_epochs_but_reads_what_is_found_when_it_is_found():
    def program(env):
        return env.from_source(LateSource(splits=3, delay=12.0), None, "late")

    harness = JobHarness(program, parallelism=2)
    found: list[tuple[int, int]] = []
    while harness.run_epoch():
        found += [(harness.now_millis() // 1000, v) for v in harness.collected[len(found) :]]
    assert found == [(0, 1), (12, 2), (24, 3)]
    assert harness.epoch < 20
