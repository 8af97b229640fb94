"""Windows of a key that merge, and the location of their state."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from firesteel.common.time import Time
from firesteel.datastream.window import EventTimeSessionWindows, TimeWindow
from firesteel.state.hashmap.backend import HashMapKeyedStateBackend
from firesteel.task.windowing.merging_window_set import MergingWindowSets


class CustomSessions(EventTimeSessionWindows):
    """The same, but the set has to ask it which windows to merge."""


class Sets:
    def __init__(self, assigner: EventTimeSessionWindows) -> None:
        self.sets = MergingWindowSets(HashMapKeyedStateBackend(), assigner)
        self.windows = self.sets.of("key")
        self.merges: list[tuple] = []

    def add(self, start: int, end: int) -> TimeWindow:
        new = TimeWindow(start, end)
        window = self.windows.add(new, lambda *merge: self.merges.append(merge))
        assert isinstance(window, TimeWindow)
        return window


def _sets() -> Sets:
    return Sets(EventTimeSessionWindows.with_gap(Time.milliseconds(3)))


def test_a_window_on_its_own_has_its_own_state():
    sets = _sets()
    assert sets.add(0, 3) == (0, 3)
    assert sets.add(10, 13) == (10, 13)
    assert sets.windows.state_windows == {(0, 3): (0, 3), (10, 13): (10, 13)}
    assert sets.merges == []


def test_a_window_that_grows_keeps_its_state_where_it_is():
    sets = _sets()
    sets.add(0, 3)
    assert sets.add(2, 5) == (0, 5)
    assert sets.windows.state_windows == {(0, 5): (0, 3)}
    assert sets.merges == [((0, 5), [(0, 3)], (0, 3), [])]


def test_a_window_between_two_makes_one_of_them():
    sets = _sets()
    sets.add(0, 3)
    sets.add(5, 8)
    assert sets.add(3, 6) == (0, 8)
    ((result, merged, kept, others),) = sets.merges
    assert result == (0, 8)
    assert sorted(merged) == [(0, 3), (5, 8)]
    assert sorted([kept, *others]) == [(0, 3), (5, 8)]
    assert sets.windows.state_windows == {(0, 8): kept}


def test_a_window_that_takes_the_new_one_in_is_not_merged():
    sets = _sets()
    sets.add(0, 3)
    sets.add(2, 5)
    sets.merges.clear()
    assert sets.add(1, 4) == (0, 5)
    assert sets.add(0, 5) == (0, 5)
    assert sets.merges == []
    assert sets.windows.state_windows == {(0, 5): (0, 3)}


def test_a_window_that_is_over_is_forgotten():
    sets = _sets()
    sets.add(0, 3)
    sets.windows.retire(TimeWindow(0, 3))
    sets.sets.persist("key", sets.windows)
    assert sets.windows.state_window(TimeWindow(0, 3)) is None
    assert sets.sets.of("key").state_windows == {}


@given(st.lists(st.integers(0, 40), max_size=25), st.integers(1, 6))
def test_sessions_are_found_without_asking_the_assigner(times, gap):
    ours = Sets(EventTimeSessionWindows(gap))
    asking = Sets(CustomSessions(gap))
    for time in times:
        assert ours.add(time, time + gap) == asking.add(time, time + gap)
        assert set(ours.windows.state_windows) == set(asking.windows.state_windows)
        assert len(ours.merges) == len(asking.merges)
