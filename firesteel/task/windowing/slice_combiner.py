"""Puts the slices of sliding windows together, window after window, without starting over each time.

Two windows in a row share almost all of their slices. What is behind a pivot is kept merged from several
points up to the pivot, what is in front of it grows with each window:

    slices    |  |  |  |  |  |  |  |  |  |  |  |
    window          [--------------------)
    rest            [-)                           merged each time, up to the next point
    behind            [-----------)               one dictionary for each point
    in front                      [------)        one dictionary, growing
                                pivot

When a window begins behind the pivot, the pivot moves to its end. So a slice is merged about three times
in all, however many windows it is in. All of this can be computed anew from the slices: it is no state.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from firesteel.state.missing import MISSING
from firesteel.task.windowing.slices import SliceLayout

Accumulators = dict[Any, Any]

# There is a point after so many slices. More points need more memory, fewer more merging.
_POINT_SLICES = 4
# With fewer slices in a window it is not worth it.
_FEW_SLICES = 4


class SliceCombiner:
    """``merge`` must leave its arguments alone. ``slice_of(start)`` is None where nothing is."""

    def __init__(
        self,
        layout: SliceLayout,
        merge: Callable[[Any, Any], Any],
        slice_of: Callable[[int], Accumulators | None],
    ) -> None:
        self._layout = layout
        self._merge = merge
        self._slice_of = slice_of
        self._reuses = layout.size // layout.width > _FEW_SLICES
        self._pivot: int | None = None
        # From a point up to the pivot.
        self._behind: dict[int, Accumulators] = {}
        self._in_front: Accumulators = {}
        self._front_end = 0

    def contents(self, end: int) -> Accumulators:
        """The accumulators of the window; not to be changed."""
        start = end - self._layout.size
        if not self._reuses:
            return self._merged({}, start, end)
        if self._pivot is None or not start < self._pivot < end or end < self._front_end:
            return self._move_pivot(start, end)
        width = self._layout.width
        self._in_front = self._merged(self._in_front, self._front_end, end)
        self._front_end = end
        point = start
        while point < self._pivot and point not in self._behind:
            point += width
        combined = dict(self._behind.get(point, {}))
        self._merge_into(combined, self._in_front)
        return self._merged(combined, start, point)

    def changed(self, start: int) -> None:
        """A slice has changed: what was made of it is wrong now."""
        if self._pivot is not None and start < self._front_end:
            self._pivot = None
            self._behind = {}
            self._in_front = {}

    def _move_pivot(self, start: int, end: int) -> Accumulators:
        self._pivot = self._front_end = end
        self._behind, self._in_front = {}, {}
        combined: Accumulators = {}
        width = self._layout.width
        for number, slice_start in enumerate(range(end - width, start - 1, -width), start=1):
            self._merge_into(combined, self._slice_of(slice_start))
            if number % _POINT_SLICES == 0 and slice_start > start:
                self._behind[slice_start] = dict(combined)
        return combined

    def _merged(self, target: Accumulators, start: int, end: int) -> Accumulators:
        for slice_start in range(start, end, self._layout.width):
            self._merge_into(target, self._slice_of(slice_start))
        return target

    def _merge_into(self, target: Accumulators, added: Accumulators | None) -> None:
        if not added:
            return
        if not target:
            target.update(added)
            return
        merge, missing, kept = self._merge, MISSING, target.get
        for key, accumulator in added.items():
            so_far = kept(key, missing)
            target[key] = accumulator if so_far is missing else merge(so_far, accumulator)
