"""One record in, one record out."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from firesteel.datastream.functions.base import Function


class MapFunction(Function):
    """Turns each record into another.

    >>> class Double(MapFunction):
    ...     def map(self, value):
    ...         return value * 2
    >>> Double().map(21)
    42
    """

    @abstractmethod
    def map(self, value: Any) -> Any: ...
