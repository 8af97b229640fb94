"""The retention of checkpoints after the end of a job."""

from __future__ import annotations

from enum import Enum

__all__ = ["ExternalizedCheckpointRetention"]


class ExternalizedCheckpointRetention(Enum):
    """The checkpoints that stay after the end of a job. Those of a finished job are always deleted.

    - ``DELETE_ON_CANCELLATION`` keeps those of a failed job.
    - ``RETAIN_ON_CANCELLATION`` keeps those of a failed or canceled job.
    - ``NO_EXTERNALIZED_CHECKPOINTS`` keeps none. It is the default.

    >>> config = env.get_checkpoint_config().set_externalized_checkpoint_retention(
    ...     ExternalizedCheckpointRetention.RETAIN_ON_CANCELLATION
    ... )
    """

    DELETE_ON_CANCELLATION = 0
    RETAIN_ON_CANCELLATION = 1
    NO_EXTERNALIZED_CHECKPOINTS = 2
