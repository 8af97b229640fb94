"""A keyed stream meets a broadcast one: state of the key, timers, and broadcast state."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable
from typing import Any

from firesteel.datastream.functions.base_broadcast_process_function import (
    BaseBroadcastProcessFunction,
)
from firesteel.datastream.state import State, StateDescriptor
from firesteel.datastream.time_domain import TimeDomain
from firesteel.datastream.timerservice import TimerService


class KeyedBroadcastProcessFunction(BaseBroadcastProcessFunction):
    """Handles the records of a keyed stream, with broadcast state at hand.

    Results as in ProcessFunction.
    """

    class Context(BaseBroadcastProcessFunction.Context):
        """For the broadcast side, which has no key."""

        @abstractmethod
        def apply_to_keyed_state(
            self, state_descriptor: StateDescriptor, function: Callable[[Any, State], None]
        ) -> None:
            """Call ``function(key, state)`` for every key of this subtask that has the state.

            PyFlink lacks it.
            """

    class ReadOnlyContext(BaseBroadcastProcessFunction.ReadOnlyContext):
        """For the keyed side."""

        @abstractmethod
        def timer_service(self) -> TimerService: ...

        @abstractmethod
        def get_current_key(self) -> Any: ...

    class OnTimerContext(ReadOnlyContext):
        @abstractmethod
        def time_domain(self) -> TimeDomain:
            """Whether the timer that fires counts event time or processing time."""

    @abstractmethod
    def process_element(
        self, value: Any, ctx: KeyedBroadcastProcessFunction.ReadOnlyContext
    ) -> Iterable[Any] | None:
        """A record of the keyed stream."""

    @abstractmethod
    def process_broadcast_element(
        self, value: Any, ctx: KeyedBroadcastProcessFunction.Context
    ) -> Iterable[Any] | None:
        """A record of the broadcast stream; it comes to every subtask."""

    def on_timer(
        self, timestamp: int, ctx: KeyedBroadcastProcessFunction.OnTimerContext
    ) -> Iterable[Any] | None:
        """Called when a timer of the current key is due. Results as in ``process_element``."""
        return None
