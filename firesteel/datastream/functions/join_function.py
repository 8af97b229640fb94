"""Functions of two records that belong together."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from typing import Any

from firesteel.datastream.functions.base import Function


class JoinFunction(Function):
    """Makes one result of each pair. Not in PyFlink.

    >>> class Total(JoinFunction):
    ...     def join(self, first, second):
    ...         return first["order"], first["price"] * second["rate"]
    """

    @abstractmethod
    def join(self, first: Any, second: Any) -> Any: ...


class FlatJoinFunction(Function):
    """Makes any number of results of each pair. Not in PyFlink.

    >>> class Cheaper(FlatJoinFunction):
    ...     def join(self, first, second):
    ...         if second["price"] < first["price"]:
    ...             yield second
    """

    @abstractmethod
    def join(self, first: Any, second: Any) -> Iterable[Any]:
        """Return or yield the results."""
