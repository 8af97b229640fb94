"""Process functions: they handle records and timers, with a context for time, state and outputs."""

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
from firesteel.stability import public_evolving


class TimestampContext(ABC):
    """The time of the record or timer at hand."""

    @abstractmethod
    def timestamp(self) -> int | None:
        """Return the time of the record or timer in milliseconds, or None if it has none."""


class RecordContext(TimestampContext):
    """The time of a record, and a timer service."""

    @abstractmethod
    def timer_service(self) -> TimerService:
        """Return the clock, the watermark, and the timers of the current key.

        Only functions on keyed streams may register timers.
        """


class KeyContext(RecordContext):
    """The key of a record, its time, and a timer service."""

    @abstractmethod
    def get_current_key(self) -> Any:
        """Return the key of the record or timer."""


class TimerContext(KeyContext):
    """The context of a timer."""

    @abstractmethod
    def time_domain(self) -> TimeDomain:
        """Return the clock that the timer follows: event time or processing time."""


class ProcessFunction(Function):
    """Handles one record at a time.

    A result is any value. A pair of an OutputTag and a value goes to that side output.

    >>> odd = OutputTag("odd")
    >>> class Halve(ProcessFunction):
    ...     def process_element(self, value, ctx):
    ...         if value % 2 == 0:
    ...             yield value // 2, ctx.timestamp(), ctx.timer_service().current_watermark() < 0
    ...         else:
    ...             yield odd, value
    >>> halves = env.from_collection([10, 7]).process(Halve())
    >>> list(halves.execute_and_collect())
    [(5, None, True)]
    """

    class Context(RecordContext):
        """The time of the record, and the clocks."""

    @abstractmethod
    def process_element(self, value: Any, ctx: ProcessFunction.Context) -> Iterable[Any] | None:
        """Return or yield the results of a record. None counts as no result.

        Args:
            value: The record.
            ctx: Its time, and the clocks.
        """


class KeyedProcessFunction(Function):
    """Handles the records of a keyed stream, with state and timers of the key.

    Results are as for ProcessFunction.

    >>> class Remind(KeyedProcessFunction):
    ...     def open(self, runtime_context):
    ...         self.last = runtime_context.get_state(ValueStateDescriptor("last", Types.STRING()))
    ...     def process_element(self, value, ctx):
    ...         self.last.update(value[1])
    ...         due = ctx.timer_service().current_processing_time() + 5_000
    ...         ctx.timer_service().register_processing_time_timer(due)
    ...     def on_timer(self, timestamp, ctx):
    ...         yield ctx.get_current_key(), self.last.value(), ctx.time_domain().name
    >>> from firesteel.testing import Pause, ScriptedSource
    >>> source = ScriptedSource([("ann", "cart"), Pause(10), ("ann", "home")])
    >>> clicks = env.from_source(source, None, "clicks").key_by(lambda click: click[0])
    >>> list(clicks.process(Remind()).execute_and_collect())
    [('ann', 'cart', 'PROCESSING_TIME')]
    """

    class Context(KeyContext):
        """The key and the time of the record, and the clocks and timers."""

    class OnTimerContext(TimerContext, Context):
        """The key and the time of the timer, and the clocks and timers."""

    @abstractmethod
    def process_element(
        self, value: Any, ctx: KeyedProcessFunction.Context
    ) -> Iterable[Any] | None:
        """Return or yield the results of a record. None counts as no result.

        Args:
            value: The record.
            ctx: Its key and time, and the clocks and timers.
        """

    def on_timer(
        self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext
    ) -> Iterable[Any] | None:
        """Return or yield results when a timer of the current key is due.

        Args:
            timestamp: The time that the timer was registered for.
            ctx: The key, the clocks and timers, and the kind of the timer.
        """
        return None


class CoProcessFunction(Function):
    """Handles the records of two connected streams.

    Results are as for ProcessFunction.

    >>> class Label(CoProcessFunction):
    ...     def process_element1(self, value, ctx):
    ...         yield "first", value
    ...     def process_element2(self, value, ctx):
    ...         yield "second", value, ctx.timestamp()
    >>> first, second = env.from_collection([1]), env.from_collection([2])
    >>> sorted(first.connect(second).process(Label()).execute_and_collect())
    [('first', 1), ('second', 2, None)]
    """

    class Context(RecordContext):
        """The time of the record, and the clocks."""

    @abstractmethod
    def process_element1(self, value: Any, ctx: CoProcessFunction.Context) -> Iterable[Any] | None:
        """Return or yield the results of a record of the first stream.

        Args:
            value: The record.
            ctx: Its time, and the clocks.
        """

    @abstractmethod
    def process_element2(self, value: Any, ctx: CoProcessFunction.Context) -> Iterable[Any] | None:
        """Return or yield the results of a record of the second stream.

        Args:
            value: The record.
            ctx: Its time, and the clocks.
        """


class KeyedCoProcessFunction(Function):
    """Handles the records of two connected keyed streams, with state and timers of the key.

    Equal keys of both streams meet in the same subtask. Results are as for ProcessFunction.

    >>> class Match(KeyedCoProcessFunction):
    ...     def open(self, runtime_context):
    ...         self.name = runtime_context.get_state(ValueStateDescriptor("name", Types.STRING()))
    ...     def process_element1(self, value, ctx):
    ...         self.name.update(value[1])
    ...         ctx.timer_service().register_event_time_timer(10_000)
    ...     def process_element2(self, value, ctx):
    ...         yield self.name.value(), value[1]
    ...     def on_timer(self, timestamp, ctx):
    ...         yield "end of", ctx.get_current_key(), ctx.time_domain().name
    >>> users = env.from_collection([(1, "ann")])
    >>> clicks = env.from_collection([(1, "home")])
    >>> keyed = users.connect(clicks).key_by(lambda user: user[0], lambda click: click[0])
    >>> list(keyed.process(Match()).execute_and_collect())
    [('ann', 'home'), ('end of', 1, 'EVENT_TIME')]
    """

    class Context(KeyContext):
        """The key and the time of the record, and the clocks and timers."""

    class OnTimerContext(TimerContext, Context):
        """The key and the time of the timer, and the clocks and timers."""

    @abstractmethod
    def process_element1(
        self, value: Any, ctx: KeyedCoProcessFunction.Context
    ) -> Iterable[Any] | None:
        """Return or yield the results of a record of the first stream.

        Args:
            value: The record.
            ctx: Its key and time, and the clocks and timers.
        """

    @abstractmethod
    def process_element2(
        self, value: Any, ctx: KeyedCoProcessFunction.Context
    ) -> Iterable[Any] | None:
        """Return or yield the results of a record of the second stream.

        Args:
            value: The record.
            ctx: Its key and time, and the clocks and timers.
        """

    def on_timer(
        self, timestamp: int, ctx: KeyedCoProcessFunction.OnTimerContext
    ) -> Iterable[Any] | None:
        """Return or yield results when a timer of the current key is due.

        Args:
            timestamp: The time that the timer was registered for.
            ctx: The key, the clocks and timers, and the kind of the timer.
        """
        return None


class BaseBroadcastProcessFunction(Function):
    """Base of functions with broadcast state: one stream writes it, the other reads it.

    >>> issubclass(BroadcastProcessFunction, BaseBroadcastProcessFunction)
    True
    """

    class BaseContext(TimestampContext):
        """The time of the record or timer, and the clocks."""

        @abstractmethod
        def current_processing_time(self) -> int:
            """Return the clock of the subtask, in milliseconds since 1970.

            >>> class Stamp(BroadcastProcessFunction):
            ...     def process_element(self, value, ctx):
            ...         yield value, ctx.current_processing_time(), ctx.current_watermark()
            ...     def process_broadcast_element(self, value, ctx):
            ...         return None
            """

        @abstractmethod
        def current_watermark(self) -> int:
            """Return the watermark in milliseconds, or the smallest long before the first one.

            >>> class Late(BroadcastProcessFunction):
            ...     def process_element(self, value, ctx):
            ...         yield value, ctx.timestamp() <= ctx.current_watermark()
            ...     def process_broadcast_element(self, value, ctx):
            ...         return None
            """

    class Context(BaseContext):
        """The context of the broadcast side, which writes the state."""

        @abstractmethod
        def get_broadcast_state(
            self, state_descriptor: MapStateDescriptor
        ) -> BroadcastState[Any, Any]:
            """Return a broadcast state.

            Args:
                state_descriptor: One of the descriptors that were passed to ``broadcast()``.
            """

    class ReadOnlyContext(BaseContext):
        """The context of the other side, which reads the state."""

        @abstractmethod
        def get_broadcast_state(
            self, state_descriptor: MapStateDescriptor
        ) -> ReadOnlyBroadcastState[Any, Any]:
            """Return a broadcast state, to read it.

            Args:
                state_descriptor: One of the descriptors that were passed to ``broadcast()``.
            """


class BroadcastProcessFunction(BaseBroadcastProcessFunction):
    """Handles the records of a non-keyed stream, with broadcast state.

    Results are as for ProcessFunction.

    >>> allowed = MapStateDescriptor("allowed", Types.STRING(), Types.BOOLEAN())
    >>> class Allowed(BroadcastProcessFunction):
    ...     def process_element(self, value, ctx):
    ...         if ctx.get_broadcast_state(allowed).contains(value):
    ...             yield value, ctx.timestamp()
    ...     def process_broadcast_element(self, value, ctx):
    ...         ctx.get_broadcast_state(allowed).put(value, True)
    >>> from firesteel.testing import Pause, ScriptedSource
    >>> letters = env.from_source(ScriptedSource([Pause(), "a", "b"]), None, "letters")
    >>> rules = env.from_collection(["b"]).broadcast(allowed)
    >>> list(letters.connect(rules).process(Allowed()).execute_and_collect())
    [('b', None)]
    """

    class Context(BaseBroadcastProcessFunction.Context):
        """The context of the broadcast side, which writes the state."""

    class ReadOnlyContext(BaseBroadcastProcessFunction.ReadOnlyContext):
        """The context of the other side, which reads the state."""

    @abstractmethod
    def process_element(
        self, value: Any, ctx: BroadcastProcessFunction.ReadOnlyContext
    ) -> Iterable[Any] | None:
        """Return or yield the results of a record of the stream that is not broadcast.

        Args:
            value: The record.
            ctx: Its time, the clocks, and the broadcast state to read.
        """

    @abstractmethod
    def process_broadcast_element(
        self, value: Any, ctx: BroadcastProcessFunction.Context
    ) -> Iterable[Any] | None:
        """Return or yield the results of a broadcast record. Every subtask gets it.

        Args:
            value: The record.
            ctx: Its time, the clocks, and the broadcast state. Change it in the same way in
                every subtask.
        """


class KeyedBroadcastProcessFunction(BaseBroadcastProcessFunction):
    """Handles the records of a keyed stream, with broadcast state, and state and timers of the key.

    Results are as for ProcessFunction.

    >>> rules = MapStateDescriptor("rules", Types.STRING(), Types.INT())
    >>> seen = ValueStateDescriptor("seen", Types.INT())
    >>> class Limit(KeyedBroadcastProcessFunction):
    ...     def open(self, runtime_context):
    ...         self.seen = runtime_context.get_state(seen)
    ...     def process_element(self, value, ctx):
    ...         self.seen.update((self.seen.value() or 0) + 1)
    ...         if self.seen.value() > ctx.get_broadcast_state(rules).get("limit"):
    ...             yield ctx.get_current_key(), "too many"
    ...             ctx.timer_service().register_event_time_timer(1_000)
    ...     def process_broadcast_element(self, value, ctx):
    ...         ctx.get_broadcast_state(rules).put("limit", value)
    ...         ctx.apply_to_keyed_state(seen, lambda key, state: state.clear())
    ...     def on_timer(self, timestamp, ctx):
    ...         yield ctx.get_current_key(), ctx.time_domain().name
    >>> from firesteel.testing import Pause, ScriptedSource
    >>> letters = env.from_source(ScriptedSource([Pause(), "a", "b", "a"]), None, "letters")
    >>> limits = env.from_collection([1]).broadcast(rules)
    >>> connected = letters.key_by(lambda letter: letter).connect(limits)
    >>> list(connected.process(Limit()).execute_and_collect())
    [('a', 'too many'), ('a', 'EVENT_TIME')]
    """

    class Context(BaseBroadcastProcessFunction.Context):
        """The context of the broadcast side, which has no key."""

        @abstractmethod
        @public_evolving
        def apply_to_keyed_state(
            self, state_descriptor: StateDescriptor, function: Callable[[Any, State], None]
        ) -> None:
            """Call a function for each key of this subtask that has a state. Not in PyFlink.

            Args:
                state_descriptor: The descriptor of a keyed state.
                function: Called with a key and its state.
            """

    class ReadOnlyContext(BaseBroadcastProcessFunction.ReadOnlyContext):
        """The context of the keyed side."""

        @abstractmethod
        def timer_service(self) -> TimerService:
            """Return the clock, the watermark, and the timers of the current key."""

        @abstractmethod
        def get_current_key(self) -> Any:
            """Return the key of the record or timer."""

    class OnTimerContext(ReadOnlyContext):
        """The context of a timer."""

        @abstractmethod
        def time_domain(self) -> TimeDomain:
            """Return the clock that the timer follows: event time or processing time."""

    @abstractmethod
    def process_element(
        self, value: Any, ctx: KeyedBroadcastProcessFunction.ReadOnlyContext
    ) -> Iterable[Any] | None:
        """Return or yield the results of a record of the keyed stream.

        Args:
            value: The record.
            ctx: Its key and time, the clocks and timers, and the broadcast state to read.
        """

    @abstractmethod
    def process_broadcast_element(
        self, value: Any, ctx: KeyedBroadcastProcessFunction.Context
    ) -> Iterable[Any] | None:
        """Return or yield the results of a broadcast record. Every subtask gets it.

        Args:
            value: The record.
            ctx: Its time, the clocks, and the broadcast state. Change it in the same way in
                every subtask.
        """

    def on_timer(
        self, timestamp: int, ctx: KeyedBroadcastProcessFunction.OnTimerContext
    ) -> Iterable[Any] | None:
        """Return or yield results when a timer of the current key is due.

        Args:
            timestamp: The time that the timer was registered for.
            ctx: The key, the clocks and timers, and the kind of the timer.
        """
        return None
