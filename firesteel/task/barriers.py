"""Barriers of an input gate: which channels have sent theirs, and what has to wait behind it.

EXACTLY_ONCE holds back what a channel sends after its barrier until all channels have sent theirs;
AT_LEAST_ONCE processes it at once, so a recovery may process it again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable
from typing import Any

from firesteel.errors import JobExecutionError


class BarrierTracker:
    """``on_aligned`` is called with the checkpoint's number once the last barrier has come."""

    def __init__(self, on_aligned: Callable[[int], None], *, exactly_once: bool = True) -> None:
        self._on_aligned = on_aligned
        self._exactly_once = exactly_once
        self._arrived: set[Hashable] = set()
        self._checkpoint_id: int | None = None
        # When the first barrier of this epoch came.
        self.first_at: float | None = None
        self._held: list[Any] = []
        # Seconds from the first barrier to the last.
        self.alignment_seconds = 0.0
        # The checkpoint whose barriers have all come in this epoch.
        self.aligned: int | None = None

    def begin_epoch(self) -> None:
        """Start afresh: an attempt that broke off may have left something behind."""
        self._arrived.clear()
        self._held.clear()
        self._checkpoint_id = None
        self.first_at = None
        self.aligned = None
        self.alignment_seconds = 0.0

    def must_wait(self, channel: Hashable) -> bool:
        """Whether what comes from this channel now is behind its barrier and has to wait."""
        return self._exactly_once and channel in self._arrived

    def hold(self, row: Any) -> None:
        self._held.append(row)

    def arrived(self, channel: Hashable, checkpoint_id: int, channels: int) -> list[Any]:
        """A barrier has come from one of so many channels; what was held back if it was the last."""
        if self._checkpoint_id is None:
            self._checkpoint_id = checkpoint_id
            self.first_at = time.perf_counter()
        if checkpoint_id != self._checkpoint_id or channel in self._arrived:
            raise JobExecutionError(
                f"barrier {checkpoint_id} came where barrier {self._checkpoint_id} was expected"
            )
        self._arrived.add(channel)
        if len(self._arrived) < channels:
            return []
        assert self.first_at is not None
        self.alignment_seconds = time.perf_counter() - self.first_at
        self.aligned = checkpoint_id
        self._arrived.clear()
        self._checkpoint_id = None
        self._on_aligned(checkpoint_id)
        released, self._held = self._held, []
        return released
