"""The two clocks a timer can follow."""

from __future__ import annotations

from enum import Enum

__all__ = ["TimeDomain"]


class TimeDomain(Enum):
    EVENT_TIME = 0
    PROCESSING_TIME = 1
