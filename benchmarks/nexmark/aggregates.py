"""Aggregate functions that several queries share."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from firesteel.datastream import AggregateFunction, ProcessWindowFunction


class Count(AggregateFunction):
    """Counts records."""

    commutative = True

    def create_accumulator(self) -> int:
        return 0

    def add(self, value: Any, accumulator: int) -> int:
        return accumulator + 1

    def get_result(self, accumulator: int) -> int:
        return accumulator

    def merge(self, acc_a: int, acc_b: int) -> int:
        return acc_a + acc_b


class WithWindow(ProcessWindowFunction[Any, Any, Any, Any]):
    """Adds the key, the start and the end of the window to an aggregate."""

    def process(self, key: Any, context: Any, elements: Iterable[Any]) -> Iterator[tuple[Any, ...]]:
        window = context.window()
        for element in elements:
            yield key, element, window.start, window.end


class Highest(AggregateFunction):
    """Collects the records with the highest value of a field. There may be several.

    An accumulator and a result are a pair of the value and the records.
    """

    def __init__(self, field: Any) -> None:
        self._field = field

    def create_accumulator(self) -> tuple[int, tuple[Any, ...]]:
        return -1, ()

    def add(
        self, value: Any, accumulator: tuple[int, tuple[Any, ...]]
    ) -> tuple[int, tuple[Any, ...]]:
        number = value[self._field]
        if number < accumulator[0]:
            return accumulator
        if number == accumulator[0]:
            return number, (*accumulator[1], value)
        return number, (value,)

    def get_result(self, accumulator: tuple[int, tuple[Any, ...]]) -> tuple[Any, ...]:
        return accumulator[1]

    def merge(
        self, acc_a: tuple[int, tuple[Any, ...]], acc_b: tuple[int, tuple[Any, ...]]
    ) -> tuple[int, tuple[Any, ...]]:
        if acc_a[0] == acc_b[0]:
            return acc_a[0], acc_a[1] + acc_b[1]
        return max(acc_a, acc_b, key=lambda pair: pair[0])
