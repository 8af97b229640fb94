"""Whether a program runs as a stream or as a batch."""

from __future__ import annotations

from enum import Enum

__all__ = ["RuntimeExecutionMode"]


class RuntimeExecutionMode(Enum):
    """STREAMING runs epoch after epoch, BATCH runs one Spark job over bounded sources.

    AUTOMATIC is BATCH where all sources are bounded, else STREAMING.
    """

    STREAMING = 0
    BATCH = 1
    AUTOMATIC = 2
