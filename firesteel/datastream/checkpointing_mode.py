"""Exactly once or at least once."""

from __future__ import annotations

from enum import Enum

__all__ = ["CheckpointingMode"]


class CheckpointingMode(Enum):
    """What a record counts for in the state after a recovery.

    EXACTLY_ONCE: once. AT_LEAST_ONCE: once or more often, where a subtask has several inputs.
    """

    EXACTLY_ONCE = 0
    AT_LEAST_ONCE = 1
