"""The checkpointing mode: exactly once or at least once."""

from __future__ import annotations

from enum import Enum

__all__ = ["CheckpointingMode"]


class CheckpointingMode(Enum):
    """The effect of a record on state after a recovery.

    - ``EXACTLY_ONCE``: each record counts once. It is the default.
    - ``AT_LEAST_ONCE``: a record may count twice where a subtask has several inputs, as in Flink.
      In micro-batches it counts once, because a barrier is the last row of an epoch.

    >>> _ = env.enable_checkpointing(10_000, CheckpointingMode.EXACTLY_ONCE)
    """

    EXACTLY_ONCE = 0
    AT_LEAST_ONCE = 1
