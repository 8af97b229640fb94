"""A function of two records that an interval join has found."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any

from firesteel.datastream.functions.basic import Function


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


class ProcessJoinFunction(Function):
    """Makes any number of results of each pair. Not in PyFlink.

    ``yield output_tag, value`` sends to a side output.

    >>> class Delay(ProcessJoinFunction):
    ...     def process_element(self, left, right, ctx):
    ...         yield left, right, ctx.get_right_timestamp() - ctx.get_left_timestamp()
    """

    class Context(ABC):
        @abstractmethod
        def get_left_timestamp(self) -> int: ...

        @abstractmethod
        def get_right_timestamp(self) -> int: ...

        @abstractmethod
        def get_timestamp(self) -> int:
            """The later one: that of the results."""

    @abstractmethod
    def process_element(
        self, left: Any, right: Any, ctx: ProcessJoinFunction.Context
    ) -> Iterable[Any] | None:
        """Return or yield the results."""
