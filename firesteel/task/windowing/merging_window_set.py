"""The windows of one key that may merge, and the window that holds the state of each.

When windows merge, the state of one of them serves the new window. No state moves if only one of
them had any.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from firesteel.datastream.window import (
    DynamicEventTimeSessionWindows,
    DynamicProcessingTimeSessionWindows,
    EventTimeSessionWindows,
    MergingWindowAssigner,
    ProcessingTimeSessionWindows,
    TimeWindow,
)
from firesteel.state.backend import KeyedStateBackend
from firesteel.state.tables import MISSING

OnMerge = Callable[[Any, list[Any], Any, list[Any]], None]
"""Called with (new window, merged windows, window of its state, windows of the other states)."""

Find = Callable[[dict[Any, Any], Any], list[tuple[Any, list[Any]]]]
"""Finds the merges for the present windows and a new one: (window, windows merged into it)."""


class MergingWindowSets:
    """The merging window sets of all keys, in a table."""

    def __init__(
        self, backend: KeyedStateBackend, assigner: MergingWindowAssigner[Any, Any]
    ) -> None:
        self._table = backend.value_table("_merging-window-set")
        self._find = _neighbors if _are_sessions(assigner) else _asking(assigner)

    def of(self, key: Any) -> MergingWindowSet:
        known = self._table.get(key)
        return MergingWindowSet(self._find, {} if known is MISSING else known)

    def persist(self, key: Any, windows: MergingWindowSet) -> None:
        if not windows.changed:
            return
        if windows.state_windows:
            self._table.put(key, windows.state_windows)
        else:
            self._table.remove(key)


class MergingWindowSet:
    """The windows of one key. ``state_windows`` maps each window to the window of its state."""

    def __init__(self, find: Find, state_windows: dict[Any, Any]) -> None:
        self._find = find
        # The table may hold this very object, so it is copied before it is changed.
        self.state_windows = state_windows
        self.changed = False

    def _own(self) -> dict[Any, Any]:
        if not self.changed:
            self.changed = True
            self.state_windows = dict(self.state_windows)
        return self.state_windows

    def state_window(self, window: Any) -> Any:
        """The window that holds the state, or None if there is no such window."""
        return self.state_windows.get(window)

    def retire(self, window: Any) -> None:
        """Remove a window that has expired."""
        if window in self.state_windows:
            del self._own()[window]

    def add(self, new: Any, on_merge: OnMerge) -> Any:
        """Add a window, merge as needed, and return the window that contains ``new``."""
        if new in self.state_windows:
            return new
        result, merged_new = new, False
        for merge_result, to_be_merged in self._find(self.state_windows, new):
            merged = [window for window in to_be_merged if window != new]
            if len(merged) < len(to_be_merged):
                merged_new, result = True, merge_result
            # If a window contains the new one already, nothing is merged.
            if merged == [merge_result]:
                continue
            mapping = self._own()
            # The state of any merged window can serve the new window.
            kept, *others = [mapping.pop(window) for window in merged if window in mapping]
            mapping[merge_result] = kept
            on_merge(merge_result, merged, kept, others)
        if not merged_new:
            self._own()[new] = new
        return result


def _are_sessions(assigner: MergingWindowAssigner[Any, Any]) -> bool:
    return type(assigner) in (
        EventTimeSessionWindows,
        ProcessingTimeSessionWindows,
        DynamicEventTimeSessionWindows,
        DynamicProcessingTimeSessionWindows,
    )


def _neighbors(known: dict[Any, Any], new: TimeWindow) -> list[tuple[Any, list[Any]]]:
    """Find merges as TimeWindow.merge_windows does, for known windows that do not touch."""
    start, end = new
    touching = [window for window in known if window[0] <= end and window[1] >= start]
    if not touching:
        return []
    cover = new
    for window in touching:
        cover = cover.cover(window)
    return [(cover, [*touching, new])]


def _asking(assigner: MergingWindowAssigner[Any, Any]) -> Find:
    def find(known: dict[Any, Any], new: Any) -> list[tuple[Any, list[Any]]]:
        groups = _Groups()
        assigner.merge_windows([*known, new], groups)
        return groups.found

    return find


class _Groups(MergingWindowAssigner.MergeCallback[Any]):
    """Collects the merges of an assigner."""

    def __init__(self) -> None:
        self.found: list[tuple[Any, list[Any]]] = []

    def merge(self, to_be_merged: Iterable[Any], merge_result: Any) -> None:
        self.found.append((merge_result, list(to_be_merged)))
