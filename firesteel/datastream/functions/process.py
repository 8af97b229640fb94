"""A keyed stream meets a broadcast one: state of the key, timers, and broadcast state."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import Any

from firesteel.datastream.functions.basic import Function
from firesteel.datastream.state import (
    BroadcastState,
    MapStateDescriptor,
    ReadOnlyBroadcastState,
    State,
    StateDescriptor,
)
from firesteel.datastream.time_domain import TimeDomain
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


class BaseBroadcastProcessFunction(Function):
    """Its contexts: one side writes the broadcast state, the other reads it."""

    class BaseContext(ABC):
        @abstractmethod
        def timestamp(self) -> int | None:
            """The record's (or timer's) time in milliseconds. None: it has none."""

        @abstractmethod
        def current_processing_time(self) -> int: ...

        @abstractmethod
        def current_watermark(self) -> int: ...

    class Context(BaseContext):
        """For the broadcast side."""

        @abstractmethod
        def get_broadcast_state(
            self, state_descriptor: MapStateDescriptor
        ) -> BroadcastState[Any, Any]:
            """One of the states that were named in ``broadcast()``."""

    class ReadOnlyContext(BaseContext):
        """For the other side."""

        @abstractmethod
        def get_broadcast_state(
            self, state_descriptor: MapStateDescriptor
        ) -> ReadOnlyBroadcastState[Any, Any]:
            """One of the states that were named in ``broadcast()``, to be read."""


class BroadcastProcessFunction(BaseBroadcastProcessFunction):
    """Handles the records of a stream without a key, with broadcast state at hand.

    Results as in ProcessFunction.

    >>> class Allowed(BroadcastProcessFunction):
    ...     def process_element(self, value, ctx):
    ...         if ctx.get_broadcast_state(ALLOWED).contains(value):
    ...             yield value
    ...     def process_broadcast_element(self, value, ctx):
    ...         ctx.get_broadcast_state(ALLOWED).put(value, True)
    """

    class Context(BaseBroadcastProcessFunction.Context):
        """For the broadcast side."""

    class ReadOnlyContext(BaseBroadcastProcessFunction.ReadOnlyContext):
        """For the other side."""

    @abstractmethod
    def process_element(
        self, value: Any, ctx: BroadcastProcessFunction.ReadOnlyContext
    ) -> Iterable[Any] | None:
        """A record of the stream that is not broadcast."""

    @abstractmethod
    def process_broadcast_element(
        self, value: Any, ctx: BroadcastProcessFunction.Context
    ) -> Iterable[Any] | None:
        """A record of the broadcast stream; it comes to every subtask."""


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
