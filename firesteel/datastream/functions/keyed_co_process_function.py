"""A process function over two connected streams that are keyed alike."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any

from firesteel.datastream.functions.base import Function
from firesteel.datastream.time_domain import TimeDomain
from firesteel.datastream.timerservice import TimerService


class KeyedCoProcessFunction(Function):
    """Handles the records of two keyed streams: equal keys meet in the same subtask.

    Results as in ProcessFunction.
    """

    class Context(ABC):
        @abstractmethod
        def get_current_key(self) -> Any: ...

        @abstractmethod
        def timer_service(self) -> TimerService: ...

        @abstractmethod
        def timestamp(self) -> int | None:
            """The record's (or timer's) time in milliseconds. None: it has none."""

    class OnTimerContext(Context):
        @abstractmethod
        def time_domain(self) -> TimeDomain:
            """Whether the timer that fires counts event time or processing time."""

    @abstractmethod
    def process_element1(
        self, value: Any, ctx: KeyedCoProcessFunction.Context
    ) -> Iterable[Any] | None:
        """A record of the first stream."""

    @abstractmethod
    def process_element2(
        self, value: Any, ctx: KeyedCoProcessFunction.Context
    ) -> Iterable[Any] | None:
        """A record of the second stream."""

    def on_timer(
        self, timestamp: int, ctx: KeyedCoProcessFunction.OnTimerContext
    ) -> Iterable[Any] | None:
        """Called when a timer of the current key is due. Results as in ``process_element1``."""
        return None
