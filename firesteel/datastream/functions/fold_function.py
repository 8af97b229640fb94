"""A running value that takes up one record after the other. Not in PyFlink."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from firesteel.datastream.functions.base import Function


class FoldFunction(Function):
    """Adds each record of a key to a value that may be of another type.

    >>> class Join(FoldFunction):
    ...     def fold(self, accumulator, value):
    ...         return f"{accumulator}-{value}"
    >>> Join().fold("start", 1)
    'start-1'
    """

    @abstractmethod
    def fold(self, accumulator: Any, value: Any) -> Any:
        """Return the new value; the first call of a key gets the initial one."""
