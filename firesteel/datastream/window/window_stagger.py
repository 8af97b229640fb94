"""WindowStagger: whether the windows of all subtasks end at the same moment."""

from __future__ import annotations

from enum import Enum
from random import random


class WindowStagger(Enum):
    """How far a subtask shifts its windows, so that not all of them fire at once. Not in PyFlink.

    >>> WindowStagger.NATURAL.get_stagger_offset(1_003, 10)
    3
    """

    ALIGNED = "aligned"
    """Not at all."""

    RANDOM = "random"
    """By a random part of the size."""

    NATURAL = "natural"
    """So that a window begins at the processing time of the subtask's first record."""

    def get_stagger_offset(self, current_processing_time: int, size: int) -> int:
        """The shift in milliseconds, when the first record comes."""
        if self is WindowStagger.RANDOM:
            return int(random() * size)
        if self is WindowStagger.NATURAL:
            return current_processing_time % size
        return 0
