"""Says which subtask a record goes to."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from firesteel.datastream.functions.base import Function


class Partitioner(Function):
    """Chooses the subtask for ``partition_custom``.

    >>> class ByParity(Partitioner):
    ...     def partition(self, key, num_partitions):
    ...         return key % 2 % num_partitions
    >>> ByParity().partition(7, 4)
    1
    """

    @abstractmethod
    def partition(self, key: Any, num_partitions: int) -> int:
        """Return a number from 0 to ``num_partitions`` - 1."""
