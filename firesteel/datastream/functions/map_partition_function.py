"""All records of a partition in, any number out."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable
from typing import Any

from firesteel.datastream.functions.base import Function


class MapPartitionFunction(Function):
    """Turns the records of a partition into any number of results. Flink's Java class, not in PyFlink.

    >>> class Count(MapPartitionFunction):
    ...     def map_partition(self, values):
    ...         yield sum(1 for _ in values)
    >>> list(Count().map_partition(["a", "b"]))
    [2]
    """

    @abstractmethod
    def map_partition(self, values: Iterable[Any]) -> Iterable[Any] | None:
        """Return or yield the results. None counts as no result."""

    @property
    def called(self) -> Callable[..., Any]:
        """What an error is blamed on."""
        return self.map_partition
