"""A process function over two connected streams."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any

from firesteel.datastream.functions.base import Function
from firesteel.datastream.timerservice import TimerService


class CoProcessFunction(Function):
    """Handles the records of two streams that share this function.

    Results as in ProcessFunction.
    """

    class Context(ABC):
        @abstractmethod
        def timer_service(self) -> TimerService: ...

        @abstractmethod
        def timestamp(self) -> int | None:
            """The record's event time in milliseconds. None: it has none."""

    @abstractmethod
    def process_element1(self, value: Any, ctx: CoProcessFunction.Context) -> Iterable[Any] | None:
        """A record of the first stream."""

    @abstractmethod
    def process_element2(self, value: Any, ctx: CoProcessFunction.Context) -> Iterable[Any] | None:
        """A record of the second stream."""
