"""Slices that windows share."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from firesteel.task.windowing.slices import SliceLayout


@st.composite
def _layouts(draw):
    size = draw(st.integers(1, 60))
    slide = draw(st.integers(1, size))
    return SliceLayout(size, slide, draw(st.integers(1 - slide, slide - 1)))


@given(_layouts(), st.integers(-200, 200))
def test_a_slice_lies_within_the_windows_of_each_of_its_moments(layout, timestamp):
    start = layout.slice_of(timestamp)
    assert start <= timestamp < start + layout.width
    windows = {
        end
        for end in range(timestamp - 2 * layout.size, timestamp + 2 * layout.size)
        if (end - layout.size - layout.offset) % layout.slide == 0
        and end - layout.size <= timestamp < end
    }
    assert set(layout.ends(start)) == windows
    assert layout.last_end(start) == max(windows)
    assert all(start in layout.slices(end) for end in windows)
