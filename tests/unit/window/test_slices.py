"""How windows share slices, and how their accumulators are put together."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from firesteel.task.windowing.slice_combiner import SliceCombiner
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
    assert layout.first_end(start) == min(windows)
    assert all(start in layout.slices(end) for end in windows)


@given(
    _layouts(),
    st.dictionaries(st.integers(0, 40), st.dictionaries(st.sampled_from("abc"), st.integers(1, 9))),
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 40)), max_size=60),
)
def test_the_combiner_adds_up_each_window(layout, content, steps):
    """Windows fire in order, some are left out, and slices change in between."""
    slices = {layout.offset + n * layout.width: dict(entries) for n, entries in content.items()}
    combiner = SliceCombiner(layout, lambda a, b: a + b, slices.get)
    end = layout.offset + layout.size - 2 * layout.slide
    for skipped, changed in steps:
        end += layout.slide * (1 + skipped)
        expected: Counter[str] = Counter()
        for start in layout.slices(end):
            expected.update(slices.get(start, {}))
        assert combiner.contents(end) == expected
        if changed % 5 == 0:
            start = layout.offset + changed * layout.width
            slices.setdefault(start, {})["a"] = slices.get(start, {}).get("a", 0) + 1
            combiner.changed(start)
