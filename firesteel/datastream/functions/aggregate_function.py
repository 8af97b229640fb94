"""An aggregation with an accumulator of its own type."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from firesteel.datastream.functions.base import Function


class AggregateFunction(Function):
    """Values are added to an accumulator, from which a result can be taken at any time.

    >>> class Mean(AggregateFunction):
    ...     def create_accumulator(self):
    ...         return 0, 0
    ...     def add(self, value, accumulator):
    ...         return accumulator[0] + value, accumulator[1] + 1
    ...     def get_result(self, accumulator):
    ...         return accumulator[0] / accumulator[1]
    ...     def merge(self, acc_a, acc_b):
    ...         return acc_a[0] + acc_b[0], acc_a[1] + acc_b[1]
    >>> mean = Mean()
    >>> mean.get_result(mean.merge((3, 1), mean.add(5, mean.create_accumulator())))
    4.0
    """

    @abstractmethod
    def create_accumulator(self) -> Any: ...

    @abstractmethod
    def add(self, value: Any, accumulator: Any) -> Any:
        """Return the accumulator with ``value`` in it. It may be the same object, changed."""

    @abstractmethod
    def get_result(self, accumulator: Any) -> Any: ...

    @abstractmethod
    def merge(self, acc_a: Any, acc_b: Any) -> Any:
        """Return one accumulator that stands for both; they are not used afterwards."""
