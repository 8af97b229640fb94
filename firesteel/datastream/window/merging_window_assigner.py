"""MergingWindowAssigner: windows that become one when they meet."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Generic, TypeVar

from firesteel.datastream.window.window_assigner import WindowAssigner

T = TypeVar("T")
W = TypeVar("W")
W2 = TypeVar("W2")


class MergingWindowAssigner(WindowAssigner[T, W]):
    """Session windows are made this way: a window for every record, merged with its neighbors."""

    class MergeCallback(ABC, Generic[W2]):
        @abstractmethod
        def merge(self, to_be_merged: Iterable[W2], merge_result: W2) -> None:
            """Say that some windows become one."""

    @abstractmethod
    def merge_windows(
        self, windows: Iterable[W], callback: MergingWindowAssigner.MergeCallback[W]
    ) -> None:
        """Find out which of the windows are to be merged, and report each group."""
