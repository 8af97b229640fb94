"""A flat map over two connected streams."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from operator import itemgetter
from typing import Any

from firesteel.common.types import Row
from firesteel.datastream.functions.runtime_context import RuntimeContext


class Function(ABC):  # noqa: B024 - the kinds of functions have the abstract methods
    """Base of all user functions.

    The object is pickled on the driver and lives in one slot for as long as the job runs, so what
    ``open`` puts into ``self`` (connections, buffers, metrics) is there for every record.
    """

    def open(self, runtime_context: RuntimeContext) -> None:  # noqa: B027 - optional to override
        """Called once per subtask, before the first record."""

    def close(self) -> None:  # noqa: B027 - optional to override
        """Called once per subtask, after the last record, on cancellation and on failure."""

    def __setstate__(self, state: Any) -> None:
        """Arrive in a task with attributes as fast as they were where the function was made.

        Pickle fills an object's ``__dict__`` as a whole. CPython keeps the attributes of such an
        object outside of it, and a method that counts up ``self.count`` takes twice as long.
        """
        attributes, slots = state if isinstance(state, tuple) else (state, None)
        for name, value in {**(attributes or {}), **(slots or {})}.items():
            object.__setattr__(self, name, value)


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


class FlatMapFunction(Function):
    """Turns each record into zero, one or more.

    >>> class Words(FlatMapFunction):
    ...     def flat_map(self, value):
    ...         yield from value.split()
    >>> list(Words().flat_map("to be"))
    ['to', 'be']
    """

    @abstractmethod
    def flat_map(self, value: Any) -> Iterable[Any] | None:
        """Return or yield the results. None counts as no result."""


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


class KeySelector(Function):
    """Takes the key from a record.

    A key must hash alike in every process: numbers, text, bytes, dates and times, None, and tuples
    and rows of these.

    >>> class First(KeySelector):
    ...     def get_key(self, value):
    ...         return value[0]
    >>> First().get_key(("a", 1))
    'a'
    """

    @abstractmethod
    def get_key(self, value: Any) -> Any: ...


class Partitioner(Function):
    """Chooses the subtask for ``partition_custom``.

    >>> class ByParity(Partitioner):
    ...     def partition(self, key, num_partitions):
    ...         return key % 2 % num_partitions
    >>> ByParity().partition(7, 4)
    1
    """

    @abstractmethod
    def partition(self, key: Any, num_partitions: int) -> int:
        """Return a number from 0 to ``num_partitions`` - 1."""


class OutputSelector(Function):
    """Names the outputs of ``DataStream.split`` for each record: none, one or several.

    A plain text is the name of one output.

    >>> class Parity(OutputSelector):
    ...     def select(self, value):
    ...         return ["even" if value % 2 == 0 else "odd"]
    >>> Parity().select(4)
    ['even']
    """

    @abstractmethod
    def select(self, value: Any) -> Iterable[str] | str: ...


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


class CoMapFunction(Function):
    """Turns each record of either stream into one of the common output.

    A result of None is no result.
    """

    @abstractmethod
    def map1(self, value: Any) -> Any:
        """A record of the first stream."""

    @abstractmethod
    def map2(self, value: Any) -> Any:
        """A record of the second stream."""


class CoFlatMapFunction(Function):
    """Turns each record of either stream into any number of the common output."""

    @abstractmethod
    def flat_map1(self, value: Any) -> Iterable[Any] | None:
        """A record of the first stream."""

    @abstractmethod
    def flat_map2(self, value: Any) -> Iterable[Any] | None:
        """A record of the second stream."""
