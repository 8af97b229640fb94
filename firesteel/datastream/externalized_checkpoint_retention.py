"""What is left of a job's checkpoints when it has ended."""

from __future__ import annotations

from enum import Enum

__all__ = ["ExternalizedCheckpointRetention"]


class ExternalizedCheckpointRetention(Enum):
    """Checkpoints of a finished job are always deleted.

    DELETE_ON_CANCELLATION keeps those of a failed job, RETAIN_ON_CANCELLATION also those of a
    canceled one, NO_EXTERNALIZED_CHECKPOINTS none at all.
    """

    DELETE_ON_CANCELLATION = 0
    RETAIN_ON_CANCELLATION = 1
    NO_EXTERNALIZED_CHECKPOINTS = 2
