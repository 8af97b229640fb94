"""A function of all records of two streams that belong together."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from typing import Any

from firesteel.datastream.functions.base import Function


class CoGroupFunction(Function):
    """Gets what two streams have for one key and window; one of the sides may be empty.

    Not in PyFlink.

    >>> class Unanswered(CoGroupFunction):
    ...     def co_group(self, first, second):
    ...         if not second:
    ...             yield from first
    """

    @abstractmethod
    def co_group(self, first: Iterable[Any], second: Iterable[Any]) -> Iterable[Any]:
        """Return or yield the results."""
