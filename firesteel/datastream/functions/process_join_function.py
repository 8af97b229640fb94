"""A function of two records that an interval join has found."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any

from firesteel.datastream.functions.base import Function


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
