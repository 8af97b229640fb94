"""Functions of joined records: window joins, co-groups and interval joins. Not in PyFlink."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any

from firesteel.datastream.functions.basic import Function
from firesteel.stability import public_evolving


@public_evolving
class JoinFunction(Function):
    """Makes one result of each pair of records. Not in PyFlink.

    >>> class Total(JoinFunction):
    ...     def join(self, first, second):
    ...         return first[0], first[1] * second[1]
    >>> items, rates = env.from_collection([("tea", 3)]), env.from_collection([("tea", 2)])
    >>> pairs = items.join(rates).where(lambda item: item[0]).equal_to(lambda rate: rate[0])
    >>> windows = pairs.window(GlobalWindows.create_with_end_of_stream_trigger())
    >>> list(windows.apply(Total()).execute_and_collect())
    [('tea', 6)]
    """

    @abstractmethod
    def join(self, first: Any, second: Any) -> Any:
        """Return the result of a pair.

        Args:
            first: A record of the first stream.
            second: A record of the second stream.
        """


@public_evolving
class FlatJoinFunction(Function):
    """Makes any number of results of each pair of records. Not in PyFlink.

    >>> class Cheaper(FlatJoinFunction):
    ...     def join(self, first, second):
    ...         if second[1] < first[1]:
    ...             yield second
    >>> old, new = env.from_collection([("tea", 3)]), env.from_collection([("tea", 2), ("tea", 4)])
    >>> pairs = old.join(new).where(lambda item: item[0]).equal_to(lambda item: item[0])
    >>> windows = pairs.window(GlobalWindows.create_with_end_of_stream_trigger())
    >>> list(windows.apply(Cheaper()).execute_and_collect())
    [('tea', 2)]
    """

    @abstractmethod
    def join(self, first: Any, second: Any) -> Iterable[Any]:
        """Return or yield the results of a pair.

        Args:
            first: A record of the first stream.
            second: A record of the second stream.
        """


@public_evolving
class CoGroupFunction(Function):
    """Makes results of all records that two streams have for one key and window. Not in PyFlink.

    One of the sides may be empty.

    >>> class Unanswered(CoGroupFunction):
    ...     def co_group(self, first, second):
    ...         if not second:
    ...             yield from first
    >>> questions, answers = env.from_collection([1, 2]), env.from_collection([2])
    >>> pairs = questions.co_group(answers).where(lambda id: id).equal_to(lambda id: id)
    >>> windows = pairs.window(GlobalWindows.create_with_end_of_stream_trigger())
    >>> list(windows.apply(Unanswered()).execute_and_collect())
    [1]
    """

    @abstractmethod
    def co_group(self, first: Iterable[Any], second: Iterable[Any]) -> Iterable[Any]:
        """Return or yield the results.

        Args:
            first: The records of the first stream.
            second: The records of the second stream.
        """


@public_evolving
class ProcessJoinFunction(Function):
    """Makes any number of results of each pair of an interval join. Not in PyFlink.

    ``yield output_tag, value`` sends a value to a side output.

    >>> class Delay(ProcessJoinFunction):
    ...     def process_element(self, left, right, ctx):
    ...         delay = ctx.get_right_timestamp() - ctx.get_left_timestamp()
    ...         yield left, right, delay, ctx.get_timestamp()
    >>> strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(
    ...     lambda second, _: second * 1000
    ... )
    >>> left = env.from_collection([1]).assign_timestamps_and_watermarks(strategy)
    >>> right = env.from_collection([3]).assign_timestamps_and_watermarks(strategy)
    >>> join = left.key_by(lambda _: 0).interval_join(right.key_by(lambda _: 0))
    >>> delays = join.between(Time.seconds(0), Time.seconds(5)).process(Delay())
    >>> list(delays.execute_and_collect())
    [(1, 3, 2000, 3000)]
    """

    class Context(ABC):
        """The times of a pair."""

        @abstractmethod
        def get_left_timestamp(self) -> int:
            """Return the timestamp of the first stream's record."""

        @abstractmethod
        def get_right_timestamp(self) -> int:
            """Return the timestamp of the second stream's record."""

        @abstractmethod
        def get_timestamp(self) -> int:
            """Return the later of both timestamps, which the results have."""

    @abstractmethod
    def process_element(
        self, left: Any, right: Any, ctx: ProcessJoinFunction.Context
    ) -> Iterable[Any] | None:
        """Return or yield the results of a pair.

        Args:
            left: A record of the first stream.
            right: A record of the second stream.
            ctx: The times of both.
        """
