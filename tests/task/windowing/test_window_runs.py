"""The windows of a key and their contents."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from firesteel.state.tables import MISSING
from firesteel.task.windowing.window_runs import Run, WindowRuns

_ranges = st.lists(
    st.tuples(st.integers(0, 60), st.integers(1, 8), st.integers(-1, 60)), max_size=20
)


@given(_ranges, st.integers(1, 5))
def test_each_window_holds_the_records_that_it_was_given(ranges, slide):
    """Records go to some windows in a row; in between, windows that are over are dropped."""
    tool = WindowRuns(slide)
    runs: list[Run] = []
    expected: dict[int, list[int]] = {}
    for record, (number, count, over) in enumerate(ranges):
        first, last = number * slide, (number + count - 1) * slide
        runs, (_, _, held), begin, stop = tool.make_room(runs, first, last)
        held[begin:stop] = [
            [record] if kept is MISSING else [*kept, record] for kept in held[begin:stop]
        ]
        for end in range(first, last + 1, slide):
            expected.setdefault(end, []).append(record)
        assert {
            end: kept for end in range(70 * slide) if (kept := tool.find(runs, end)) is not MISSING
        } == expected
        later = [end for end in expected if end > over * slide]
        assert tool.next_end(runs, over * slide) == min(later, default=None)
        if over % 3 == 0:
            runs = tool.after(runs, over * slide)
            expected = {end: expected[end] for end in later}


def test_windows_with_the_same_records_are_one_group():
    tool = WindowRuns(1)
    runs, (_, _, held), begin, stop = tool.make_room([], 1, 60)
    held[begin:stop] = ["a"]
    runs, (_, _, held), begin, stop = tool.make_room(runs, 31, 90)
    held[begin:stop] = ["ab", "b"]
    assert runs == [(1, [30, 60, 90], ["a", "ab", "b"])]


def test_what_a_window_may_change_is_its_own():
    tool = WindowRuns(1)
    shared, alone = [1], [2]
    runs: list[Run] = [(1, [2, 3], [shared, alone])]
    assert tool.find_own(runs, 1) == [1]
    assert tool.find_own(runs, 1) is not shared
    assert tool.find_own(runs, 3) is alone
