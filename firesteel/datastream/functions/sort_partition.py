"""Sorting as a function of a partition."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from operator import itemgetter
from typing import Any

from firesteel.common.types import Row
from firesteel.datastream.functions.base import Function
from firesteel.datastream.functions.map_partition_function import MapPartitionFunction
from firesteel.datastream.functions.runtime_context import RuntimeContext


class SortPartition(MapPartitionFunction):
    """``functions`` are the user's objects behind ``select``. Equal records keep their order."""

    def __init__(
        self,
        select: Callable[[Any], Any],
        functions: Sequence[Function] = (),
        *,
        descending: bool = False,
    ) -> None:
        self._select = select
        self._functions = functions
        self._descending = descending

    def open(self, runtime_context: RuntimeContext) -> None:
        for function in self._functions:
            function.open(runtime_context)

    def close(self) -> None:
        for function in self._functions:
            function.close()

    def map_partition(self, values: Iterable[Any]) -> Iterable[Any]:
        return sorted(values, key=self._select, reverse=self._descending)

    @property
    def called(self) -> Callable[..., Any]:
        return self._select


def field_of(position: int | str) -> Callable[[Any], Any]:
    """A field by its position or name; a value without fields is its own field 0."""
    if isinstance(position, str):

        def named(value: Any) -> Any:
            return value[position] if isinstance(value, Row | dict) else getattr(value, position)

        return named
    indexed = itemgetter(position)

    def numbered(value: Any) -> Any:
        if position == 0 and not isinstance(value, tuple | list | Row):
            return value
        return indexed(value)

    return numbered
