"""The interface to the entries about checkpoints that a master leaves for the next one."""

from __future__ import annotations

from collections.abc import Collection
from typing import Protocol


class CheckpointLedger(Protocol):
    """Entries about the checkpoints of a job. A checkpoint is complete once it is entered.

    Every method raises LeadershipLostError once a different master leads.
    """

    def begin(self, checkpoint_id: int) -> None:
        """Reserve an id, before anything is written under it."""

    def complete(self, checkpoint_id: int, location: str, epoch: int) -> None:
        """Enter a checkpoint whose files are written."""

    def keep_only(self, locations: Collection[str]) -> None:
        """Remove the entries of all checkpoints except these, before their files are deleted."""

    def forget(self, location: str) -> None:
        """Remove the entry of a checkpoint, before its files are deleted."""

    def discard(self, checkpoint_id: int) -> None:
        """Make sure that no later master restores a checkpoint, before its work is undone."""

    def check(self) -> None:
        """Do nothing, as long as this master leads."""
