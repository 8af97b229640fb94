"""Keeps a record or drops it."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from firesteel.datastream.functions.base import Function


class FilterFunction(Function):
    """Keeps the records for which ``filter`` is true.

    >>> class Even(FilterFunction):
    ...     def filter(self, value):
    ...         return value % 2 == 0
    >>> Even().filter(3)
    False
    """

    @abstractmethod
    def filter(self, value: Any) -> bool: ...
