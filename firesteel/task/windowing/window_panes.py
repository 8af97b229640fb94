"""Panes: accumulators that sliding windows share, one per key and slice.

A record is added to the accumulator of its slice. A window merges the accumulators of its slices
when it fires. Time is divided into blocks as long as a window, so each window has the end of one
block and the beginning of the next:

    slices    | a | b | c | d | e | f |
    blocks    |---------------|---------------|
    window            |---------------|          (c + d) + (e + f)

The ends of a block are merged once, when the next block begins, and its beginning grows with each
window. So a window costs at most three merges per key, regardless of the number of its slices.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Iterable, Iterator
from itertools import groupby
from typing import Any

from firesteel.state.backend import KeyedStateBackend
from firesteel.state.tables import MISSING, ValueTable, has_missing
from firesteel.task.copies import are_scalars, copies_of, copy_of
from firesteel.task.windowing.aggregators import Aggregator
from firesteel.task.windowing.slices import AccumulatorTables, SliceLayout, accumulators
from firesteel.task.windowing.window_runs import Run

Merge = Callable[[Any, Any], Any]


class WindowPanes:
    """The panes of all keys, and the merged parts of the next window that fires."""

    def __init__(
        self, backend: KeyedStateBackend, layout: SliceLayout, aggregator: Aggregator
    ) -> None:
        self._tables = AccumulatorTables(backend, "pane", aggregator.accumulator_type)
        # The slices that have tables, in the order of time. There may be many thousands.
        self._starts: list[int] = []
        self._layout = layout
        self._aggregator = aggregator
        # Accumulators that hold no other objects need no copies before they are merged.
        self._are_scalars = True
        # The end of the window that the merged parts are for. None if there are no such parts.
        self._next_end: int | None = None
        # The first slice that the merged parts do not have, and the beginning of its block.
        self._covered = 0
        self._block = 0
        # The merged ends of the previous block, by key, from each slice of the key. The slice that
        # expires first comes last.
        self._ends: dict[Any, list[Any]] = {}
        # The merged beginning of the running block.
        self._beginning: dict[Any, Any] = {}
        # Keys with a new record in a slice that is merged already.
        self._stale: set[Any] = set()

    def __bool__(self) -> bool:
        return bool(self._starts)

    # Records

    def add(self, start: int, values: list[Any], keys: list[Any]) -> bool:
        """Add records to a slice. Returns True if the slice is new."""
        is_new = self.create(start)
        self._aggregator.add_batch(self._table(start), values, keys)
        if self._next_end is not None and start < self._covered:
            self._stale.update(keys)
        return is_new

    def create(self, start: int) -> bool:
        """Create the table of a slice. Returns False if it exists."""
        if self._tables.get(start) is not None:
            return False
        self._tables.create(start)
        insort(self._starts, start)
        return True

    def by_slice(self) -> Iterator[tuple[int, ValueTable]]:
        """Yield the slices, with their tables."""
        return ((start, self._table(start)) for start in self._starts)

    def forget_merged(self) -> None:
        """Merge everything again, because tables were changed."""
        self._next_end = None
        self._ends, self._beginning = {}, {}
        self._stale.clear()
        for start in self._starts:
            self._merge(self._entries(start).values())

    def keys_after(self, start: int, keys: list[Any]) -> set[Any]:
        """Return those of the keys that have a record in a later slice."""
        found: set[Any] = set()
        for other in self._starts[bisect_right(self._starts, start) :]:
            table = self._table(other)
            # Only state in memory has panes.
            assert isinstance(table.base, dict)
            parts = table.overlay, table.base
            if not all(known.keys().isdisjoint(keys) for known in parts):
                found.update(key for key in keys if table.get(key) is not MISSING)
        return found

    def take(self, keys: Iterable[Any]) -> Iterator[tuple[Any, list[tuple[int, Any]]]]:
        """Remove keys. Yield those that have panes, with their slices and accumulators."""
        for key in keys:
            panes = []
            for start in self._starts:
                table = self._table(start)
                accumulator = table.get(key)
                if accumulator is not MISSING:
                    panes.append((start, copy_of(accumulator)))
                    table.remove(key)
            if panes:
                self._ends.pop(key, None)
                self._beginning.pop(key, None)
                self._stale.discard(key)
                yield key, panes

    def keys(self) -> list[Any]:
        return list(dict.fromkeys(key for start in self._starts for key in self._entries(start)))

    def runs(self, panes: list[tuple[int, Any]], after: int) -> list[Run]:
        """Return the windows of panes that end after ``after``, each with its own accumulator."""
        slide, size = self._layout.slide, self._layout.size
        starts = [start for start, _ in panes]
        first_end = self._layout.ends(starts[0])[-1]
        if first_end <= after:
            first_end += (after - first_end) // slide * slide + slide
        ranges: dict[int, tuple[int, int]] = {}
        begin = stop = 0
        for end in range(first_end, self._layout.last_end(starts[-1]) + 1, slide):
            while begin < len(starts) and starts[begin] < end - size:
                begin += 1
            while stop < len(starts) and starts[stop] < end:
                stop += 1
            if begin < stop:
                ranges[end] = begin, stop
        merged = self._merged_ranges([accumulator for _, accumulator in panes], ranges.values())
        held = dict(zip(ranges, copies_of(list(merged)), strict=True))
        runs: list[Run] = []
        # Windows without a gap have the same distance to their number.
        for _, group in groupby(enumerate(held), key=lambda pair: pair[1] - pair[0] * slide):
            ends = [end for _, end in group]
            runs.append((ends[0], ends, [held[end] for end in ends]))
        return runs

    def _merged_ranges(self, held: list[Any], ranges: Iterable[tuple[int, int]]) -> Iterator[Any]:
        """Merge ranges of accumulators. Neither end of a range lies before that of the previous."""
        merge = self._merge(held)
        pivot = covered = 0
        ends: dict[int, Any] = {}
        beginning: Any = MISSING
        for begin, stop in ranges:
            if begin >= pivot:
                pivot = covered = stop
                ends = {stop - 1: held[stop - 1]}
                for index in range(stop - 2, begin - 1, -1):
                    ends[index] = merge(held[index], ends[index + 1])
                beginning = MISSING
            for index in range(covered, stop):
                newer = held[index]
                beginning = newer if beginning is MISSING else merge(beginning, newer)
            covered = stop
            yield ends[begin] if beginning is MISSING else merge(ends[begin], beginning)

    # Windows

    def next_end(self, after: int) -> int | None:
        """Return the end of the first window that has panes and ends after ``after``."""
        slide, size = self._layout.slide, self._layout.size
        # The windows of earlier slices have ended by then.
        for index in range(bisect_left(self._starts, after - size), len(self._starts)):
            start = self._starts[index]
            end = self._layout.ends(start)[-1]
            if end <= after:
                end += (after - end) // slide * slide + slide
            if end <= self._layout.last_end(start):
                return end
        return None

    def fire(self, end: int) -> tuple[list[Any], list[Any]]:
        """Return the keys of a window, and accumulators that the caller may change."""
        if self._next_end != end or self._block_of(end) != self._block:
            self._begin_block(end)
        else:
            self._add_to_beginning(range(self._covered, end, self._layout.width))
            self._covered = end
        for key in self._stale:
            self._merge_again(key, end)
        self._stale.clear()
        merge, beginning = self._merge(), self._beginning
        newer_of = beginning.get
        keys = list(self._ends)
        held = []
        for key, older in self._ends.items():
            newer = newer_of(key, MISSING)
            if newer is MISSING:
                held.append(older[-1] if self._are_scalars else copy_of(older[-1]))
            else:
                held.append(merge(older[-1], newer))
        if len(self._ends) < len(beginning) or not self._ends.keys() >= beginning.keys():
            others = [key for key in beginning if key not in self._ends]
            keys += others
            held += copies_of([beginning[key] for key in others])
        self._forget(range(end - self._layout.size, end - self._layout.size + self._layout.slide))
        self._next_end = end + self._layout.slide
        return keys, held

    def _forget(self, times: range) -> None:
        """Leave slices out of the merged ends. The next window does not have them."""
        ends = self._ends
        for start in times[:: self._layout.width]:
            if start < self._block:
                for key in self._entries(start):
                    known = ends[key]
                    known.pop()
                    if not known:
                        del ends[key]

    def _begin_block(self, end: int) -> None:
        width = self._layout.width
        self._block = self._block_of(end)
        self._covered = end
        self._stale.clear()
        ends = self._ends = {}
        self._beginning = {}
        for start in range(self._block - width, end - self._layout.size - width, -width):
            found = self._entries(start)
            merge = self._merge(found.values())
            for key, accumulator in found.items():
                known = ends.get(key)
                if known is None:
                    ends[key] = [accumulator]
                else:
                    known.append(merge(accumulator, known[-1]))
        self._add_to_beginning(range(self._block, end, width))

    def _add_to_beginning(self, starts: range) -> None:
        for start in starts:
            found = self._entries(start)
            if not self._beginning:
                self._merge(found.values())
                self._beginning = dict(found)
                continue
            merge, beginning = self._merge(found.values()), self._beginning
            older_of = beginning.get
            for key, accumulator in found.items():
                older = older_of(key, MISSING)
                beginning[key] = accumulator if older is MISSING else merge(older, accumulator)

    def _merge_again(self, key: Any, end: int) -> None:
        """Replace the merged parts of one key."""
        width, merge = self._layout.width, self._merge()
        ends: list[Any] = []
        for start in range(self._block - width, end - self._layout.size - width, -width):
            accumulator = self._pane(start, key)
            if accumulator is not MISSING:
                ends.append(merge(accumulator, ends[-1]) if ends else accumulator)
        if ends:
            self._ends[key] = ends
        beginning: Any = MISSING
        for start in range(self._block, end, width):
            accumulator = self._pane(start, key)
            if accumulator is not MISSING:
                known = beginning
                beginning = accumulator if known is MISSING else merge(known, accumulator)
        if beginning is not MISSING:
            self._beginning[key] = beginning

    def _merge(self, found: Iterable[Any] = ()) -> Merge:
        """Return the function that merges accumulators, and looks at new ones before."""
        merge = self._aggregator.merge
        if self._are_scalars and not are_scalars(found):
            self._are_scalars = False
        if self._are_scalars:
            return merge
        # The function may change the accumulators that it gets.
        return lambda one, other: merge(copy_of(one), copy_of(other))

    def _block_of(self, end: int) -> int:
        """The beginning of the block that has the last slice of a window."""
        last = end - self._layout.width
        return last - (last - self._layout.offset) % self._layout.size

    # Tables

    def _table(self, start: int) -> ValueTable:
        table = self._tables.get(start)
        assert table is not None
        return table

    def _pane(self, start: int, key: Any) -> Any:
        table = self._tables.get(start)
        return MISSING if table is None else table.get(key)

    def _entries(self, start: int) -> dict[Any, Any]:
        """The accumulators of a slice. The caller must not change them."""
        table = self._tables.get(start)
        if table is None:
            return {}
        if has_missing(table.overlay):
            return dict(table.items())
        return accumulators(table)

    def drop(self, expired: Callable[[int], bool]) -> None:
        """Drop the slices whose last window has expired, given its end."""
        starts = self._starts
        while starts and expired(self._layout.last_end(starts[0])):
            self._tables.drop(starts.pop(0))

    def load(self) -> None:
        """Read the state after it was replaced."""
        self._tables.restore()
        self._starts = sorted(self._tables)
        self._are_scalars = True
        self.forget_merged()
