"""Capabilities of operators beyond processing. A subtask looks for them once, when it is built."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any


class Scheduled(ABC):
    """Needs an epoch at certain times, even if no record comes."""

    @abstractmethod
    def next_tick(self) -> int | None:
        """The processing time in milliseconds of the next epoch it needs, or None."""


class Ticking(Scheduled):
    """Works between batches as time passes, for example on watermarks."""

    @abstractmethod
    def tick(self) -> None:
        """Called often, between two batches."""


class Committing(ABC):
    """Writes in two phases: it prepares in a slot, and commits when the driver says so."""

    @abstractmethod
    def prepare_commit(self, *, finished: bool) -> Sequence[Any]:
        """Return the committables of what was written since the last call."""

    @abstractmethod
    def commit(self, committables: Sequence[Any]) -> None:
        """Make visible what an earlier epoch prepared."""


class Rescalable(ABC):
    """Keeps state as a whole, and can take over that of several subtasks."""

    @abstractmethod
    def restore_several(self, wholes: Sequence[Any]) -> None:
        """Restore what several subtasks returned from ``snapshot``."""
