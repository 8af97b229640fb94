"""Functions of one or two streams: map, filter, reduce, aggregate, key and partition."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from operator import itemgetter
from typing import Any, ClassVar

from firesteel.common.types import Row
from firesteel.datastream.functions.runtime_context import RuntimeContext
from firesteel.stability import public_evolving


class Function(ABC):  # noqa: B024 - the kinds of functions have the abstract methods
    """Base of all user functions.

    The object is pickled in the driver and lives in one slot as long as the job runs. ``open`` may put
    connections, buffers and metrics into ``self``, where every record finds them.

    >>> class Prefix(MapFunction):
    ...     def open(self, runtime_context):
    ...         self.prefix = runtime_context.get_job_parameter("prefix", "word")
    ...     def map(self, value):
    ...         return f"{self.prefix} {value}"
    ...     def close(self):
    ...         print("closed")
    >>> list(env.from_collection(["a", "b"]).map(Prefix()).execute_and_collect())
    closed
    ['word a', 'word b']
    """

    def open(self, runtime_context: RuntimeContext) -> None:  # noqa: B027 - optional to override
        """Called once per subtask, before the first record.

        Args:
            runtime_context: The subtask, its metrics, and on a keyed stream its state.
        """

    def close(self) -> None:  # noqa: B027 - optional to override
        """Called once per subtask: after the last record, on cancellation, and on failure."""

    def __setstate__(self, state: Any) -> None:
        """Set the attributes one by one, which makes them fast.

        Pickle fills the ``__dict__`` of an object as a whole. CPython keeps the attributes of such an
        object outside of it, and a method that counts up ``self.count`` takes twice as long.
        """
        attributes, slots = state if isinstance(state, tuple) else (state, None)
        for name, value in {**(attributes or {}), **(slots or {})}.items():
            object.__setattr__(self, name, value)


class MapFunction(Function):
    """Turns each record into one result.

    >>> class Double(MapFunction):
    ...     def map(self, value):
    ...         return value * 2
    >>> list(env.from_collection([1, 2]).map(Double()).execute_and_collect())
    [2, 4]
    """

    @abstractmethod
    def map(self, value: Any) -> Any:
        """Return the result of a record.

        Args:
            value: The record.
        """


class FlatMapFunction(Function):
    """Turns each record into any number of results.

    >>> class Words(FlatMapFunction):
    ...     def flat_map(self, value):
    ...         yield from value.split()
    >>> list(env.from_collection(["to be"]).flat_map(Words()).execute_and_collect())
    ['to', 'be']
    """

    @abstractmethod
    def flat_map(self, value: Any) -> Iterable[Any] | None:
        """Return or yield the results of a record. None counts as no result.

        Args:
            value: The record.
        """


class FilterFunction(Function):
    """Keeps the records for which ``filter`` returns true.

    >>> class Even(FilterFunction):
    ...     def filter(self, value):
    ...         return value % 2 == 0
    >>> list(env.from_collection([1, 2]).filter(Even()).execute_and_collect())
    [2]
    """

    @abstractmethod
    def filter(self, value: Any) -> bool:
        """Return True to keep a record.

        Args:
            value: The record.
        """


class ReduceFunction(Function):
    """Combines the records of a key or window, two at a time.

    >>> class Longest(ReduceFunction):
    ...     def reduce(self, value1, value2):
    ...         return max(value1, value2, key=len)
    >>> words = env.from_collection(["fire", "steel", "on"]).key_by(lambda _: 0)
    >>> list(words.reduce(Longest()).execute_and_collect())
    ['fire', 'steel', 'steel']
    """

    commutative: ClassVar[bool] = False
    """True promises that a result does not depend on the order of its records. Not in PyFlink.

    It makes sliding windows faster, because they share the results of parts of their records.
    """

    @abstractmethod
    def reduce(self, value1: Any, value2: Any) -> Any:
        """Return the new result.

        Args:
            value1: The result so far.
            value2: The new record.
        """


@public_evolving
class FoldFunction(Function):
    """Adds each record of a key to a value that may be of a different type. Not in PyFlink.

    >>> class Join(FoldFunction):
    ...     def fold(self, accumulator, value):
    ...         return f"{accumulator}-{value}"
    >>> numbers = env.from_collection([1, 2]).key_by(lambda _: 0)
    >>> list(numbers.fold("start", Join()).execute_and_collect())
    ['start-1', 'start-1-2']
    """

    @abstractmethod
    def fold(self, accumulator: Any, value: Any) -> Any:
        """Return the new value.

        Args:
            accumulator: The value so far; for the first record of a key, the initial value.
            value: The record.
        """


class AggregateFunction(Function):
    """Adds values to an accumulator and computes a result from it.

    >>> class Mean(AggregateFunction):
    ...     def create_accumulator(self):
    ...         return 0, 0
    ...     def add(self, value, accumulator):
    ...         return accumulator[0] + value, accumulator[1] + 1
    ...     def get_result(self, accumulator):
    ...         return accumulator[0] / accumulator[1]
    ...     def merge(self, acc_a, acc_b):
    ...         return acc_a[0] + acc_b[0], acc_a[1] + acc_b[1]
    >>> numbers = env.from_collection([1, 2, 3, 6]).key_by(lambda _: 0)
    >>> list(numbers.count_window(2).aggregate(Mean()).execute_and_collect())
    [1.5, 4.5]
    """

    commutative: ClassVar[bool] = False
    """True promises that a result does not depend on the order of its records. Not in PyFlink.

    It makes sliding windows faster, because they share accumulators and ``merge`` them.
    """

    @abstractmethod
    def create_accumulator(self) -> Any:
        """Return an empty accumulator."""

    @abstractmethod
    def add(self, value: Any, accumulator: Any) -> Any:
        """Return the accumulator with a value in it. It may be the same object, changed.

        Args:
            value: The value.
            accumulator: The accumulator so far.
        """

    @abstractmethod
    def get_result(self, accumulator: Any) -> Any:
        """Return the result of an accumulator.

        Args:
            accumulator: The accumulator.
        """

    @abstractmethod
    def merge(self, acc_a: Any, acc_b: Any) -> Any:
        """Return one accumulator for two. Windows that merge need it.

        Args:
            acc_a: An accumulator, which is not used afterwards.
            acc_b: An accumulator, which is not used afterwards.
        """


class KeySelector(Function):
    """Returns the key of a record.

    A key must hash alike in every process: numbers, text, bytes, dates and times, None, and tuples and
    rows of these.

    >>> class First(KeySelector):
    ...     def get_key(self, value):
    ...         return value[0]
    >>> pairs = env.from_collection([("a", 1), ("a", 2)]).key_by(First())
    >>> list(pairs.sum(1).execute_and_collect())
    [('a', 1), ('a', 3)]
    """

    @abstractmethod
    def get_key(self, value: Any) -> Any:
        """Return the key of a record.

        Args:
            value: The record.
        """


class Partitioner(Function):
    """Chooses the subtask for ``partition_custom``.

    >>> class ByParity(Partitioner):
    ...     def partition(self, key, num_partitions):
    ...         return key % 2 % num_partitions
    >>> numbers = env.from_collection([1, 2])
    >>> parted = numbers.partition_custom(ByParity(), lambda number: number).map(str)
    >>> list(parted.execute_and_collect())
    ['1', '2']
    """

    @abstractmethod
    def partition(self, key: Any, num_partitions: int) -> int:
        """Return a number from 0 to ``num_partitions`` - 1.

        Args:
            key: The key of the record.
            num_partitions: The number of subtasks of the next operator.
        """


@public_evolving
class OutputSelector(Function):
    """Names the outputs of ``DataStream.split`` that a record goes to. Not in PyFlink.

    >>> class Parity(OutputSelector):
    ...     def select(self, value):
    ...         return ["even" if value % 2 == 0 else "odd"]
    >>> split = env.from_collection([1, 2, 3]).split(Parity())
    >>> list(split.select("odd").execute_and_collect())
    [1, 3]
    """

    @abstractmethod
    def select(self, value: Any) -> Iterable[str] | str:
        """Return the names of the outputs: none, one or several. A plain text is one name.

        Args:
            value: The record.
        """


@public_evolving
class MapPartitionFunction(Function):
    """Turns all records of a partition into any number of results. Not in PyFlink.

    >>> class Count(MapPartitionFunction):
    ...     def map_partition(self, values):
    ...         yield sum(1 for _ in values)
    >>> partition = env.from_collection(["a", "b"]).full_window_partition()
    >>> list(partition.map_partition(Count()).execute_and_collect())
    [2]
    """

    @abstractmethod
    def map_partition(self, values: Iterable[Any]) -> Iterable[Any] | None:
        """Return or yield the results. None counts as no result.

        Args:
            values: All records of the partition.
        """

    @property
    def called(self) -> Callable[..., Any]:
        """The function that an error is blamed on."""
        return self.map_partition


class SortPartition(MapPartitionFunction):
    """Sorts a partition. ``functions`` are the user's objects that ``select`` calls.

    Equal records keep their order.
    """

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
    """Return a function that reads a field by its position or name.

    A value without fields is its own field 0.
    """
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
    """Turns each record of either connected stream into one result. None counts as no result.

    >>> class Label(CoMapFunction):
    ...     def map1(self, value):
    ...         return f"first {value}"
    ...     def map2(self, value):
    ...         return f"second {value}"
    >>> first, second = env.from_collection([1]), env.from_collection([2])
    >>> sorted(first.connect(second).map(Label()).execute_and_collect())
    ['first 1', 'second 2']
    """

    @abstractmethod
    def map1(self, value: Any) -> Any:
        """Return the result of a record of the first stream.

        Args:
            value: The record.
        """

    @abstractmethod
    def map2(self, value: Any) -> Any:
        """Return the result of a record of the second stream.

        Args:
            value: The record.
        """


class CoFlatMapFunction(Function):
    """Turns each record of either connected stream into any number of results.

    >>> class Words(CoFlatMapFunction):
    ...     def flat_map1(self, value):
    ...         yield from value.split()
    ...     def flat_map2(self, value):
    ...         return [str(value)]
    >>> lines, numbers = env.from_collection(["to be"]), env.from_collection([1])
    >>> sorted(lines.connect(numbers).flat_map(Words()).execute_and_collect())
    ['1', 'be', 'to']
    """

    @abstractmethod
    def flat_map1(self, value: Any) -> Iterable[Any] | None:
        """Return or yield the results of a record of the first stream.

        Args:
            value: The record.
        """

    @abstractmethod
    def flat_map2(self, value: Any) -> Iterable[Any] | None:
        """Return or yield the results of a record of the second stream.

        Args:
            value: The record.
        """
