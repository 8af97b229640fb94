"""Runs of consecutive windows of a key, and what they hold. Pure functions on lists.

Windows with the same records hold the same value. They are a group until one of them gets a record
that the others do not get.

    windows      1 2 3 4 5 6 7
    records      a a a a             groups   1..2: a,  3..4: ab,  5..6: b
                     b b b b
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from typing import Any

from firesteel.state.tables import MISSING
from firesteel.task.copies import copy_of

Run = tuple[int, list[int], list[Any]]
"""The end of the first window, the end of the last window of each group, and the held values.

The windows of a run follow each other without a gap. There is a gap between two runs.
"""


class WindowRuns:
    """Works on lists of runs, ordered by time. Windows are identified by their ends."""

    def __init__(self, slide: int) -> None:
        self._slide = slide

    def make_room(self, runs: list[Run], first: int, last: int) -> tuple[list[Run], Run, int, int]:
        """Give these windows groups of their own in one run. New windows hold MISSING.

        Returns the runs, that run, and the range of its groups. The given lists are changed.
        """
        slide = self._slide
        if runs and runs[-1][0] <= first <= runs[-1][1][-1] + slide:
            run = runs[-1]
        else:
            runs, run = self._joined(runs, first, last)
        run_first, ends, held = run
        if last > ends[-1]:
            ends.append(last)
            held.append(MISSING)
        if first > run_first:
            _split(ends, held, first - slide)
        _split(ends, held, last)
        return runs, run, bisect_left(ends, first), bisect_left(ends, last) + 1

    def _joined(self, runs: list[Run], first: int, last: int) -> tuple[list[Run], Run]:
        """Join all runs that the windows touch into one, with MISSING in the gaps."""
        slide = self._slide
        touching = [run for run in runs if run[0] <= last + slide and first <= run[1][-1] + slide]
        start = min(first, touching[0][0]) if touching else first
        ends: list[int] = []
        held: list[Any] = []
        position = start
        for run_first, run_ends, run_held in touching:
            if run_first > position:
                ends.append(run_first - slide)
                held.append(MISSING)
            ends += run_ends
            held += run_held
            position = ends[-1] + slide
        if last >= position:
            ends.append(last)
            held.append(MISSING)
        joined = (start, ends, held)
        apart = [run for run in runs if run[1][-1] < start or run[0] > ends[-1]]
        return sorted([*apart, joined], key=_first), joined

    def find(self, runs: Iterable[Run], end: int) -> Any:
        """Return the value of a window, or MISSING."""
        for first, ends, held in runs:
            if first <= end <= ends[-1] and not (end - first) % self._slide:
                return held[bisect_left(ends, end)]
        return MISSING

    def find_own(self, runs: Iterable[Run], end: int) -> Any:
        """Return a value that the window does not share, so that it may be changed, or MISSING."""
        for first, ends, held in runs:
            if first <= end <= ends[-1] and not (end - first) % self._slide:
                index = bisect_left(ends, end)
                begin = ends[index - 1] + self._slide if index else first
                return held[index] if begin == ends[index] else copy_of(held[index])
        return MISSING

    def after(self, runs: Iterable[Run], end: int) -> list[Run]:
        """Return new lists of the windows that end later."""
        later = []
        for run in runs:
            _, ends, held = run
            if end < ends[-1]:
                over = bisect_right(ends, end)
                later.append((self._next_in(run, end), ends[over:], held[over:]))
        return later

    def next_end(self, runs: Iterable[Run], end: int) -> int | None:
        """Return the end of the first window that ends later."""
        for run in runs:
            if end < run[1][-1]:
                return self._next_in(run, end)
        return None

    def _next_in(self, run: Run, end: int) -> int:
        first = run[0]
        return first if end < first else first + ((end - first) // self._slide + 1) * self._slide


def _split(ends: list[int], held: list[Any], last: int) -> None:
    """Split a group after the window that ends at ``last``."""
    index = bisect_left(ends, last)
    if ends[index] != last:
        ends.insert(index, last)
        kept = held[index]
        held.insert(index, kept if kept is MISSING else copy_of(kept))


def last_end(runs: list[Run]) -> int:
    return runs[-1][1][-1]


def _first(run: Run) -> int:
    return run[0]
