"""The windows of one key that may merge, and where the state of each lies.

When windows become one, the state of one of them serves the new window, so that no state has to move if
only one of them had any.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from firesteel.datastream.window import MergingWindowAssigner
from firesteel.state.backend import KeyedStateBackend
from firesteel.state.missing import MISSING

OnMerge = Callable[[Any, list[Any], Any, list[Any]], None]
"""(new window, the windows that became it, its state's window, the other states' windows)"""


class MergingWindowSets:
    """The sets of all keys, kept in a table."""

    def __init__(
        self, backend: KeyedStateBackend, assigner: MergingWindowAssigner[Any, Any]
    ) -> None:
        self._table = backend.value_table("merging-window-set")
        self._assigner = assigner

    def of(self, key: Any) -> MergingWindowSet:
        known = self._table.get(key)
        return MergingWindowSet(self._assigner, {} if known is MISSING else dict(known))

    def persist(self, key: Any, windows: MergingWindowSet) -> None:
        if not windows.changed:
            return
        if windows.state_windows:
            self._table.put(key, windows.state_windows)
        else:
            self._table.remove(key)


class MergingWindowSet:
    """``state_windows`` says for each window in flight which window its state is filed under."""

    def __init__(
        self, assigner: MergingWindowAssigner[Any, Any], state_windows: dict[Any, Any]
    ) -> None:
        self._assigner = assigner
        self.state_windows = state_windows
        self.changed = False

    def state_window(self, window: Any) -> Any:
        """None if there is no such window any more."""
        return self.state_windows.get(window)

    def retire(self, window: Any) -> None:
        """The window is over."""
        if self.state_windows.pop(window, None) is not None:
            self.changed = True

    def add(self, new: Any, on_merge: OnMerge) -> Any:
        """Add a window, merge what then has to be merged, and return the window that holds ``new``."""
        mapping = self.state_windows
        if new in mapping:
            return new
        groups = _Groups()
        self._assigner.merge_windows([*mapping, new], groups)
        result, merged_new = new, False
        for merge_result, to_be_merged in groups.found:
            merged = [window for window in to_be_merged if window != new]
            if len(merged) < len(to_be_merged):
                merged_new, result = True, merge_result
            states = [mapping.pop(window) for window in merged if window in mapping]
            self.changed = True
            # Any of the merged windows' states will do for the new window.
            kept, *others = states
            mapping[merge_result] = kept
            # A window that takes the new one in without growing is not merged with anything.
            if merged != [merge_result]:
                on_merge(merge_result, merged, kept, others)
        if not merged_new:
            mapping[new] = new
            self.changed = True
        return result


class _Groups(MergingWindowAssigner.MergeCallback[Any]):
    """Listens to what an assigner wants to merge."""

    def __init__(self) -> None:
        self.found: list[tuple[Any, list[Any]]] = []

    def merge(self, to_be_merged: Iterable[Any], merge_result: Any) -> None:
        self.found.append((merge_result, list(to_be_merged)))
