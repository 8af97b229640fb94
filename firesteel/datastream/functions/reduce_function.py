"""Two values become one of the same type."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from firesteel.datastream.functions.base import Function


class ReduceFunction(Function):
    """Combines the records of a key, two at a time.

    >>> class Longest(ReduceFunction):
    ...     def reduce(self, value1, value2):
    ...         return max(value1, value2, key=len)
    >>> Longest().reduce("fire", "steel")
    'steel'
    """

    @abstractmethod
    def reduce(self, value1: Any, value2: Any) -> Any:
        """``value1`` is the result so far, ``value2`` the new record."""
