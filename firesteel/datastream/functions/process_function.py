"""Any number of results per record, side outputs, and a context."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any

from firesteel.datastream.functions.base import Function
from firesteel.datastream.timerservice import TimerService


class ProcessFunction(Function):
    """Handles one record at a time.

    A result is a plain value; a pair of an OutputTag and a value goes to that side output.

    >>> class Halve(ProcessFunction):
    ...     def process_element(self, value, ctx):
    ...         if value % 2 == 0:
    ...             yield value // 2
    >>> list(Halve().process_element(10, None))
    [5]
    """

    class Context(ABC):
        @abstractmethod
        def timer_service(self) -> TimerService: ...

        @abstractmethod
        def timestamp(self) -> int | None:
            """The record's event time in milliseconds. None: it has none."""

    @abstractmethod
    def process_element(self, value: Any, ctx: ProcessFunction.Context) -> Iterable[Any] | None:
        """Return or yield the results. None counts as no result."""
