"""TimeWindow, CountWindow and GlobalWindow."""

from __future__ import annotations

import pickle
from io import BytesIO

import pytest

from firesteel.datastream.window import (
    CountWindow,
    CountWindowSerializer,
    GlobalWindow,
    GlobalWindowSerializer,
    MergingWindowAssigner,
    TimeWindow,
    TimeWindowSerializer,
)


class Merges(MergingWindowAssigner.MergeCallback):
    def __init__(self):
        self.found = []

    def merge(self, to_be_merged, merge_result):
        self.found.append((sorted(to_be_merged), merge_result))


def test_the_last_moment_of_a_window_is_a_millisecond_before_its_end():
    assert TimeWindow(0, 10).max_timestamp() == 9
    assert GlobalWindow.get().max_timestamp() == CountWindow(3).max_timestamp() == 2**63 - 1


def test_windows_that_touch_intersect():
    assert TimeWindow(0, 10).intersects(TimeWindow(10, 20))
    assert not TimeWindow(0, 10).intersects(TimeWindow(11, 20))
    assert TimeWindow(0, 10).cover(TimeWindow(15, 20)) == TimeWindow(0, 20)


@pytest.mark.parametrize(
    ("timestamp", "offset", "start"),
    [(0, 0, 0), (9, 0, 0), (10, 0, 10), (-1, 0, -10), (2, 3, -7), (3, 3, 3), (3, -8, 2)],
)
def test_the_start_of_a_window(timestamp, offset, start):
    assert TimeWindow.get_window_start_with_offset(timestamp, offset, 10) == start


def test_merging_reports_each_group_of_neighbors():
    merges = Merges()
    windows = [TimeWindow(*w) for w in [(20, 25), (0, 5), (4, 9), (9, 12), (30, 31), (25, 26)]]
    TimeWindow.merge_windows(windows, merges)
    assert merges.found == [
        ([(0, 5), (4, 9), (9, 12)], TimeWindow(0, 12)),
        ([(20, 25), (25, 26)], TimeWindow(20, 26)),
    ]


@pytest.mark.parametrize("window", [TimeWindow(-5, 7), CountWindow(3), GlobalWindow()])
def test_windows_survive_pickling_and_are_keys(window):
    copy = pickle.loads(pickle.dumps(window))
    assert type(copy) is type(window)
    assert {window: 1}[copy] == 1


@pytest.mark.parametrize(
    ("window", "serializer"),
    [
        (TimeWindow(-5, 7), TimeWindowSerializer()),
        (CountWindow(3), CountWindowSerializer()),
        (GlobalWindow(), GlobalWindowSerializer()),
    ],
)
def test_serializers(window, serializer):
    stream = BytesIO()
    serializer.serialize(window, stream)
    serializer.serialize(window, stream)
    stream.seek(0)
    assert [serializer.deserialize(stream) for _ in range(2)] == [window, window]
    assert stream.read() == b""
