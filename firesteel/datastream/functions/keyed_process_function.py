"""A process function on a keyed stream: it knows the key, and has timers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any

from firesteel.datastream.functions.base import Function
from firesteel.datastream.time_domain import TimeDomain
from firesteel.datastream.timerservice import TimerService


class KeyedProcessFunction(Function):
    """Handles one record of a keyed stream at a time.

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
    def process_element(
        self, value: Any, ctx: KeyedProcessFunction.Context
    ) -> Iterable[Any] | None:
        """Return or yield the results. None counts as no result."""

    def on_timer(
        self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext
    ) -> Iterable[Any] | None:
        """Called when a timer of the current key is due. Results as in ``process_element``."""
        return None
