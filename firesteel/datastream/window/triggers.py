"""Triggers: they decide when a window emits its results, and when it drops its contents."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from enum import Enum
from operator import add
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar

from firesteel.common.time import Duration, Time
from firesteel.common.typeinfo import TypeInformation, Types
from firesteel.datastream.state import (
    ReducingState,
    ReducingStateDescriptor,
    State,
    StateDescriptor,
    ValueStateDescriptor,
)
from firesteel.datastream.window.windows import GlobalWindow, TimeWindow, check_count, to_millis
from firesteel.errors import InvalidProgramError, shorten
from firesteel.stability import public_evolving

if TYPE_CHECKING:
    from firesteel.metrics import MetricGroup

T = TypeVar("T")
W = TypeVar("W")


class TriggerResult(Enum):
    """The decision of a trigger: a pair of "emit the results" and "drop the contents".

    - ``CONTINUE`` does nothing.
    - ``FIRE`` emits the results and keeps the contents.
    - ``PURGE`` drops the contents.
    - ``FIRE_AND_PURGE`` does both.

    >>> [result.name for result in TriggerResult if result.is_fire()]
    ['FIRE_AND_PURGE', 'FIRE']
    >>> [result.name for result in TriggerResult if result.is_purge()]
    ['FIRE_AND_PURGE', 'PURGE']
    """

    CONTINUE = (False, False)
    FIRE_AND_PURGE = (True, True)
    FIRE = (True, False)
    PURGE = (False, True)

    def is_fire(self) -> bool:
        """Return True if the window emits its results."""
        return self.value[0]

    def is_purge(self) -> bool:
        """Return True if the window drops its contents."""
        return self.value[1]


class Trigger(ABC, Generic[T, W]):
    """Decides for each key and window when it fires. Derive from it for a trigger of your own.

    One object serves all keys and windows of a subtask, so a trigger keeps nothing in its fields. State
    comes from ``ctx.get_partitioned_state``, for the key and window at hand.

    >>> class AtNegative(Trigger):
    ...     def on_element(self, element, timestamp, window, ctx):
    ...         return TriggerResult.FIRE_AND_PURGE if element < 0 else TriggerResult.CONTINUE
    ...     def on_processing_time(self, time, window, ctx):
    ...         return TriggerResult.CONTINUE
    ...     def on_event_time(self, time, window, ctx):
    ...         return TriggerResult.CONTINUE
    ...     def can_merge(self):
    ...         return True
    ...     def on_merge(self, window, ctx):
    ...         pass
    ...     def clear(self, window, ctx):
    ...         pass
    >>> numbers = env.from_collection([1, 2, -1, 5, -2])
    >>> windows = numbers.window_all(GlobalWindows.create()).trigger(AtNegative())
    >>> list(windows.reduce(lambda a, b: a + b).execute_and_collect())
    [2, 3]
    """

    class TriggerContext(ABC):
        """Times, timers and state of the key and window at hand.

        >>> class Debounce(Trigger):
        ...     def on_element(self, element, timestamp, window, ctx):
        ...         now = ctx.get_current_processing_time()
        ...         due = ctx.get_partitioned_state(ValueStateDescriptor("due", Types.LONG()))
        ...         if due.value() is not None:
        ...             ctx.delete_processing_time_timer(due.value())
        ...         due.update(now + 1000)
        ...         ctx.register_processing_time_timer(now + 1000)
        ...         ctx.get_metric_group().counter("records").inc()
        ...         return TriggerResult.CONTINUE
        ...     def on_processing_time(self, time, window, ctx):
        ...         return TriggerResult.FIRE_AND_PURGE
        ...     def on_event_time(self, time, window, ctx):
        ...         return TriggerResult.CONTINUE
        ...     def on_merge(self, window, ctx):
        ...         pass
        ...     def clear(self, window, ctx):
        ...         ctx.get_partitioned_state(ValueStateDescriptor("due", Types.LONG())).clear()
        >>> from firesteel.testing import Pause, ScriptedSource
        >>> letters = env.from_source(ScriptedSource(["a", "b", Pause(5), "c"]), None, "letters")
        >>> windows = letters.window_all(GlobalWindows.create()).trigger(Debounce())
        >>> list(windows.reduce(lambda a, b: a + b).execute_and_collect())
        ['ab']
        """

        @abstractmethod
        def get_current_processing_time(self) -> int:
            """Return the clock of the subtask, in milliseconds since 1970."""

        @abstractmethod
        def get_metric_group(self) -> MetricGroup:
            """Return the metric group of the operator."""

        @abstractmethod
        def get_current_watermark(self) -> int:
            """Return the watermark in milliseconds, or the smallest long before the first one.

            >>> class WhenLate(Trigger):
            ...     def on_element(self, element, timestamp, window, ctx):
            ...         late = timestamp <= ctx.get_current_watermark()
            ...         return TriggerResult.FIRE if late else TriggerResult.CONTINUE
            """

        @abstractmethod
        def register_processing_time_timer(self, time: int) -> None:
            """Have ``on_processing_time`` called when the clock reaches a time.

            Args:
                time: Milliseconds since 1970.
            """

        @abstractmethod
        def register_event_time_timer(self, time: int) -> None:
            """Have ``on_event_time`` called when the watermark reaches a time.

            Args:
                time: Event time in milliseconds.

            >>> class AtEnd(Trigger):
            ...     def on_element(self, element, timestamp, window, ctx):
            ...         ctx.register_event_time_timer(window.max_timestamp())
            ...         return TriggerResult.CONTINUE
            ...     def clear(self, window, ctx):
            ...         ctx.delete_event_time_timer(window.max_timestamp())
            """

        @abstractmethod
        def delete_processing_time_timer(self, time: int) -> None:
            """Delete a processing-time timer of this window, if there is one.

            Args:
                time: The time that it was registered for.
            """

        @abstractmethod
        def delete_event_time_timer(self, time: int) -> None:
            """Delete an event-time timer of this window, if there is one.

            Args:
                time: The time that it was registered for.

            >>> class AtEnd(Trigger):
            ...     def clear(self, window, ctx):
            ...         ctx.delete_event_time_timer(window.max_timestamp())
            """

        @abstractmethod
        def get_partitioned_state(self, state_descriptor: StateDescriptor) -> State:
            """Return state of the trigger for this key and window.

            Args:
                state_descriptor: Names the state and its type.
            """

    class OnMergeContext(TriggerContext):
        """The context of ``on_merge``, which can merge the trigger's state of several windows.

        >>> class Count(Trigger):
        ...     SEEN = ReducingStateDescriptor("seen", lambda a, b: a + b, Types.LONG())
        ...     def can_merge(self):
        ...         return True
        ...     def on_merge(self, window, ctx):
        ...         ctx.merge_partitioned_state(self.SEEN)
        """

        @abstractmethod
        def merge_partitioned_state(self, state_descriptor: StateDescriptor) -> None:
            """Merge the state of the windows that became one into the state of the new window.

            Args:
                state_descriptor: A reducing, aggregating or list state.
            """

    @abstractmethod
    def on_element(
        self, element: T, timestamp: int, window: W, ctx: Trigger.TriggerContext
    ) -> TriggerResult:
        """Called for each record that is added to a window.

        Args:
            element: The record.
            timestamp: Its timestamp in milliseconds, or the smallest long if it has none.
            window: The window.
            ctx: Times, timers and state of the key and window.
        """

    @abstractmethod
    def on_processing_time(
        self, time: int, window: W, ctx: Trigger.TriggerContext
    ) -> TriggerResult:
        """Called when a processing-time timer of the window is due.

        Args:
            time: The time of the timer.
            window: The window.
            ctx: Times, timers and state of the key and window.
        """

    @abstractmethod
    def on_event_time(self, time: int, window: W, ctx: Trigger.TriggerContext) -> TriggerResult:
        """Called when an event-time timer of the window is due.

        Args:
            time: The time of the timer.
            window: The window.
            ctx: Times, timers and state of the key and window.
        """

    def can_merge(self) -> bool:
        """Return True if ``on_merge`` is implemented. Windows that merge, such as sessions, need it."""
        return False

    @abstractmethod
    def on_merge(self, window: W, ctx: Trigger.OnMergeContext) -> None:
        """Called when several windows have become one.

        Args:
            window: The new window.
            ctx: Merges the trigger's state of the old windows.
        """

    @abstractmethod
    def clear(self, window: W, ctx: Trigger.TriggerContext) -> None:
        """Called when the window is dropped. Delete its timers and state here.

        Args:
            window: The window.
            ctx: Times, timers and state of the key and window.
        """


class SilentTrigger(Trigger[T, W]):
    """Base of triggers that ignore timers and cannot merge, unless they override it."""

    def on_processing_time(
        self, time: int, window: W, ctx: Trigger.TriggerContext
    ) -> TriggerResult:
        return TriggerResult.CONTINUE

    def on_event_time(self, time: int, window: W, ctx: Trigger.TriggerContext) -> TriggerResult:
        return TriggerResult.CONTINUE

    def on_merge(self, window: W, ctx: Trigger.OnMergeContext) -> None:
        raise NotImplementedError(f"{self} cannot merge windows: its can_merge() is False")

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class EventTimeTrigger(SilentTrigger[Any, TimeWindow]):
    """Fires when the watermark passes the end of the window. The default of event-time windows.

    Within the allowed lateness it fires again for each late record.

    >>> strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(
    ...     lambda second, _: second * 1000
    ... )
    >>> seconds = env.from_collection([1, 2, 6]).assign_timestamps_and_watermarks(strategy)
    >>> windows = seconds.window_all(TumblingEventTimeWindows.of(Time.seconds(5)))
    >>> fired = windows.trigger(EventTimeTrigger.create()).reduce(lambda a, b: a + b)
    >>> list(fired.execute_and_collect())
    [3, 6]
    """

    @staticmethod
    def create() -> EventTimeTrigger:
        """Make a trigger."""
        return EventTimeTrigger()

    def on_element(
        self, element: Any, timestamp: int, window: TimeWindow, ctx: Trigger.TriggerContext
    ) -> TriggerResult:
        if window.max_timestamp() <= ctx.get_current_watermark():
            return TriggerResult.FIRE
        ctx.register_event_time_timer(window.max_timestamp())
        return TriggerResult.CONTINUE

    def on_event_time(
        self, time: int, window: TimeWindow, ctx: Trigger.TriggerContext
    ) -> TriggerResult:
        return TriggerResult.FIRE if time == window.max_timestamp() else TriggerResult.CONTINUE

    def can_merge(self) -> bool:
        return True

    def on_merge(self, window: TimeWindow, ctx: Trigger.OnMergeContext) -> None:
        # If the watermark is past the end already, the record that caused the merge fires.
        if window.max_timestamp() > ctx.get_current_watermark():
            ctx.register_event_time_timer(window.max_timestamp())

    def clear(self, window: TimeWindow, ctx: Trigger.TriggerContext) -> None:
        ctx.delete_event_time_timer(window.max_timestamp())


class ProcessingTimeTrigger(SilentTrigger[Any, TimeWindow]):
    """Fires when the clock passes the end of the window. The default of processing-time windows.

    >>> from firesteel.testing import Pause, ScriptedSource
    >>> source = ScriptedSource(["a", "b", Pause(10), "c", Pause(10), "d"])
    >>> letters = env.from_source(source, None, "letters")
    >>> windows = letters.window_all(TumblingProcessingTimeWindows.of(Time.seconds(5)))
    >>> fired = windows.trigger(ProcessingTimeTrigger.create()).reduce(lambda a, b: a + b)
    >>> list(fired.execute_and_collect())
    ['ab', 'c']
    """

    @staticmethod
    def create() -> ProcessingTimeTrigger:
        """Make a trigger."""
        return ProcessingTimeTrigger()

    def on_element(
        self, element: Any, timestamp: int, window: TimeWindow, ctx: Trigger.TriggerContext
    ) -> TriggerResult:
        ctx.register_processing_time_timer(window.max_timestamp())
        return TriggerResult.CONTINUE

    def on_processing_time(
        self, time: int, window: TimeWindow, ctx: Trigger.TriggerContext
    ) -> TriggerResult:
        return TriggerResult.FIRE

    def can_merge(self) -> bool:
        return True

    def on_merge(self, window: TimeWindow, ctx: Trigger.OnMergeContext) -> None:
        if window.max_timestamp() > ctx.get_current_processing_time():
            ctx.register_processing_time_timer(window.max_timestamp())

    def clear(self, window: TimeWindow, ctx: Trigger.TriggerContext) -> None:
        ctx.delete_processing_time_timer(window.max_timestamp())


class CountTrigger(SilentTrigger[Any, Any]):
    """Fires when a window has a number of new records.

    Args:
        window_size: The number of records after which the window fires.

    >>> numbers = env.from_collection([1, 2, 3, 4, 5])
    >>> windows = numbers.window_all(GlobalWindows.create()).trigger(CountTrigger.of(2))
    >>> list(windows.reduce(lambda a, b: a + b).execute_and_collect())
    [3, 10]
    """

    def __init__(self, window_size: int) -> None:
        check_count(window_size, 1, "The size of a CountTrigger")
        self._window_size = window_size
        self._count_state_descriptor = ReducingStateDescriptor("count", add, Types.LONG())

    @staticmethod
    def of(window_size: int) -> CountTrigger:
        """Make a trigger.

        Args:
            window_size: The number of records after which the window fires.
        """
        return CountTrigger(window_size)

    def on_element(
        self, element: Any, timestamp: int, window: Any, ctx: Trigger.TriggerContext
    ) -> TriggerResult:
        count: Any = ctx.get_partitioned_state(self._count_state_descriptor)
        count.add(1)
        if count.get() < self._window_size:
            return TriggerResult.CONTINUE
        count.clear()
        return TriggerResult.FIRE

    def can_merge(self) -> bool:
        return True

    def on_merge(self, window: Any, ctx: Trigger.OnMergeContext) -> None:
        ctx.merge_partitioned_state(self._count_state_descriptor)

    def clear(self, window: Any, ctx: Trigger.TriggerContext) -> None:
        ctx.get_partitioned_state(self._count_state_descriptor).clear()

    def __repr__(self) -> str:
        return f"CountTrigger({self._window_size})"


class ContinuousTrigger(SilentTrigger[Any, TimeWindow]):
    """Base of triggers that fire at regular times. Subclasses choose the clock."""

    def __init__(self, interval: int) -> None:
        self.interval = interval
        self.state_desc = ReducingStateDescriptor("fire-time", min, Types.LONG())

    @classmethod
    def of(cls, interval: Time | Duration) -> Self:
        """Make a trigger.

        Args:
            interval: The time between two results of a window.

        >>> ContinuousEventTimeTrigger.of(Time.seconds(10))
        ContinuousEventTimeTrigger(10000)
        """
        return cls(to_millis(interval, "The interval"))

    @abstractmethod
    def _register(self, time: int, ctx: Trigger.TriggerContext) -> None: ...

    @abstractmethod
    def _delete(self, time: int, ctx: Trigger.TriggerContext) -> None: ...

    def can_merge(self) -> bool:
        return True

    def on_merge(self, window: TimeWindow, ctx: Trigger.OnMergeContext) -> None:
        ctx.merge_partitioned_state(self.state_desc)
        fire_time: Any = ctx.get_partitioned_state(self.state_desc)
        next_time = fire_time.get()
        if next_time is not None:
            self._register(next_time, ctx)

    def clear(self, window: TimeWindow, ctx: Trigger.TriggerContext) -> None:
        fire_time: Any = ctx.get_partitioned_state(self.state_desc)
        next_time = fire_time.get()
        if next_time is not None:
            self._delete(next_time, ctx)
            fire_time.clear()

    def register_next_fire_timestamp(
        self,
        time: int,
        window: TimeWindow,
        ctx: Trigger.TriggerContext,
        fire_timestamp_state: ReducingState[int],
    ) -> None:
        """Register the timer for the next result.

        Args:
            time: The time of the last result.
            window: The window; no result comes after its end.
            ctx: The context of the trigger.
            fire_timestamp_state: The state that holds the next time.
        """
        next_time = min(time + self.interval, window.max_timestamp())
        fire_timestamp_state.add(next_time)
        self._register(next_time, ctx)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.interval})"


class ContinuousEventTimeTrigger(ContinuousTrigger):
    """Fires at each multiple of an interval of event time, and at the end of the window.

    Args:
        interval: The time between two results of a window, in milliseconds.

    >>> from firesteel.testing import OperatorHarness
    >>> def sums(stream):
    ...     windows = stream.key_by(lambda _: 0).window(
    ...         TumblingEventTimeWindows.of(Time.seconds(60)))
    ...     every = ContinuousEventTimeTrigger.of(Time.seconds(10))
    ...     return windows.trigger(every).reduce(lambda a, b: a + b)
    >>> harness = OperatorHarness(sums)
    >>> harness.process_element(1, timestamp=1_000)
    >>> harness.process_watermark(10_000)
    >>> harness.process_element(2, timestamp=11_000)
    >>> harness.process_watermark(20_000)
    >>> harness.output
    [1, 3]
    """

    def on_element(
        self, element: Any, timestamp: int, window: TimeWindow, ctx: Trigger.TriggerContext
    ) -> TriggerResult:
        if window.max_timestamp() <= ctx.get_current_watermark():
            return TriggerResult.FIRE
        ctx.register_event_time_timer(window.max_timestamp())
        fire_time: Any = ctx.get_partitioned_state(self.state_desc)
        if fire_time.get() is None:
            start = timestamp - timestamp % self.interval
            self.register_next_fire_timestamp(start, window, ctx, fire_time)
        return TriggerResult.CONTINUE

    def on_event_time(
        self, time: int, window: TimeWindow, ctx: Trigger.TriggerContext
    ) -> TriggerResult:
        if time == window.max_timestamp():
            return TriggerResult.FIRE
        fire_time: Any = ctx.get_partitioned_state(self.state_desc)
        if fire_time.get() != time:
            return TriggerResult.CONTINUE
        fire_time.clear()
        self.register_next_fire_timestamp(time, window, ctx, fire_time)
        return TriggerResult.FIRE

    def _register(self, time: int, ctx: Trigger.TriggerContext) -> None:
        ctx.register_event_time_timer(time)

    def _delete(self, time: int, ctx: Trigger.TriggerContext) -> None:
        ctx.delete_event_time_timer(time)


class ContinuousProcessingTimeTrigger(ContinuousTrigger):
    """Fires at each multiple of an interval of processing time, and at the end of the window.

    Args:
        interval: The time between two results of a window, in milliseconds.

    >>> from firesteel.testing import OperatorHarness
    >>> def sums(stream):
    ...     windows = stream.key_by(lambda _: 0).window(
    ...         TumblingProcessingTimeWindows.of(Time.seconds(60)))
    ...     every = ContinuousProcessingTimeTrigger.of(Time.seconds(10))
    ...     return windows.trigger(every).reduce(lambda a, b: a + b)
    >>> harness = OperatorHarness(sums)
    >>> harness.process_element(1)
    >>> harness.set_processing_time(10_000)
    >>> harness.process_element(2)
    >>> harness.set_processing_time(20_000)
    >>> harness.output
    [1, 3]
    """

    def on_element(
        self, element: Any, timestamp: int, window: TimeWindow, ctx: Trigger.TriggerContext
    ) -> TriggerResult:
        fire_time: Any = ctx.get_partitioned_state(self.state_desc)
        if fire_time.get() is None:
            now = ctx.get_current_processing_time()
            self.register_next_fire_timestamp(now - now % self.interval, window, ctx, fire_time)
        return TriggerResult.CONTINUE

    def on_processing_time(
        self, time: int, window: TimeWindow, ctx: Trigger.TriggerContext
    ) -> TriggerResult:
        fire_time: Any = ctx.get_partitioned_state(self.state_desc)
        if fire_time.get() != time:
            return TriggerResult.CONTINUE
        fire_time.clear()
        if time < window.max_timestamp():
            # A timer at the end of the window would fire again at once.
            self.register_next_fire_timestamp(time, window, ctx, fire_time)
        return TriggerResult.FIRE

    def _register(self, time: int, ctx: Trigger.TriggerContext) -> None:
        ctx.register_processing_time_timer(time)

    def _delete(self, time: int, ctx: Trigger.TriggerContext) -> None:
        ctx.delete_processing_time_timer(time)


@public_evolving
class DeltaTrigger(SilentTrigger[Any, Any]):
    """Fires when a record differs enough from the one that fired last. Not in PyFlink.

    It cannot be used with windows that merge.

    Args:
        threshold: The window fires if the difference is greater.
        delta_function: Called with the last record that fired and the new one; returns the
            difference.
        type_info: The type of the record that is kept.

    >>> numbers = env.from_collection([1, 2, 7, 8, 20])
    >>> trigger = DeltaTrigger.of(5.0, lambda last, new: new - last)
    >>> windows = numbers.window_all(GlobalWindows.create()).trigger(PurgingTrigger.of(trigger))
    >>> list(windows.reduce(lambda a, b: f"{a} {b}").execute_and_collect())
    ['1 2 7', '8 20']
    """

    def __init__(
        self,
        threshold: float,
        delta_function: Callable[[Any, Any], float],
        type_info: TypeInformation | None = None,
    ) -> None:
        if not callable(delta_function):
            raise InvalidProgramError(
                f"The delta function must be callable, but it is {shorten(delta_function)}."
            )
        self._threshold = threshold
        self._delta = delta_function
        self._last_descriptor = ValueStateDescriptor(
            "last-element", type_info or Types.PICKLED_BYTE_ARRAY()
        )

    @staticmethod
    def of(
        threshold: float,
        delta_function: Callable[[Any, Any], float],
        type_info: TypeInformation | None = None,
    ) -> DeltaTrigger:
        """Make a trigger.

        Args:
            threshold: The window fires if the difference is greater.
            delta_function: Called with the last record that fired and the new one; returns the
                difference.
            type_info: The type of the record that is kept.
        """
        return DeltaTrigger(threshold, delta_function, type_info)

    def on_element(
        self, element: Any, timestamp: int, window: Any, ctx: Trigger.TriggerContext
    ) -> TriggerResult:
        state: Any = ctx.get_partitioned_state(self._last_descriptor)
        last = state.value()
        if last is None:
            state.update(element)
            return TriggerResult.CONTINUE
        if self._delta(last, element) > self._threshold:
            state.update(element)
            return TriggerResult.FIRE
        return TriggerResult.CONTINUE

    def clear(self, window: Any, ctx: Trigger.TriggerContext) -> None:
        ctx.get_partitioned_state(self._last_descriptor).clear()

    def __repr__(self) -> str:
        return f"DeltaTrigger({self._threshold})"


@public_evolving
class EndOfStreamTrigger(SilentTrigger[Any, GlobalWindow]):
    """Fires a global window when the input has ended. Not in PyFlink.

    >>> numbers = env.from_collection([1, 2, 3])
    >>> windows = numbers.window_all(GlobalWindows.create()).trigger(EndOfStreamTrigger())
    >>> list(windows.reduce(lambda a, b: a + b).execute_and_collect())
    [6]
    """

    def on_element(
        self, element: Any, timestamp: int, window: GlobalWindow, ctx: Trigger.TriggerContext
    ) -> TriggerResult:
        # The end of the input is the largest watermark.
        ctx.register_event_time_timer(window.max_timestamp())
        return TriggerResult.CONTINUE

    def on_event_time(
        self, time: int, window: GlobalWindow, ctx: Trigger.TriggerContext
    ) -> TriggerResult:
        return TriggerResult.FIRE if time == window.max_timestamp() else TriggerResult.CONTINUE

    def clear(self, window: GlobalWindow, ctx: Trigger.TriggerContext) -> None:
        """Keep the timer: nothing comes after it."""


class NeverTrigger(SilentTrigger[Any, GlobalWindow]):
    """Never fires. The default of ``GlobalWindows.create()``.

    >>> windows = env.from_collection([1, 2]).window_all(GlobalWindows.create())
    >>> list(windows.trigger(NeverTrigger()).reduce(max).execute_and_collect())
    []
    """

    def on_element(
        self, element: Any, timestamp: int, window: GlobalWindow, ctx: Trigger.TriggerContext
    ) -> TriggerResult:
        return TriggerResult.CONTINUE

    def clear(self, window: GlobalWindow, ctx: Trigger.TriggerContext) -> None:
        """Do nothing: there is neither a timer nor state."""


@public_evolving
class ProcessingTimeoutTrigger(SilentTrigger[Any, Any]):
    """Fires when a nested trigger does, or a time after the first record. Not in PyFlink.

    It cannot be used with windows that merge.

    Args:
        nested_trigger: The trigger that may fire earlier.
        interval: The timeout in milliseconds.
        reset_timer_on_new_record: Count the timeout from the last record, not from the first.
        should_clear_on_timeout: Clear the state of the nested trigger, such as a count, on a
            timeout.

    >>> from firesteel.testing import Pause, ScriptedSource
    >>> letters = env.from_source(ScriptedSource(["a", Pause(10), "b", "c", "d"]), None, "letters")
    >>> trigger = ProcessingTimeoutTrigger.of(CountTrigger.of(2), Time.seconds(5))
    >>> windows = letters.window_all(GlobalWindows.create()).trigger(PurgingTrigger.of(trigger))
    >>> list(windows.reduce(lambda a, b: a + b).execute_and_collect())
    ['a', 'bc']
    """

    def __init__(
        self,
        nested_trigger: Trigger[Any, Any],
        interval: int,
        reset_timer_on_new_record: bool,
        should_clear_on_timeout: bool,
    ) -> None:
        if interval < 0:
            raise InvalidProgramError(
                f"The timeout of a ProcessingTimeoutTrigger must not be negative: {interval} ms."
            )
        self.nested_trigger = _checked(nested_trigger, "ProcessingTimeoutTrigger")
        self.interval = interval
        self._resets = reset_timer_on_new_record
        self._clears = should_clear_on_timeout
        self._timeout_descriptor = ValueStateDescriptor("timeout", Types.LONG())

    @staticmethod
    def of(
        nested_trigger: Trigger[Any, Any],
        timeout: Time | Duration,
        reset_timer_on_new_record: bool = False,
        should_clear_on_timeout: bool = True,
    ) -> ProcessingTimeoutTrigger:
        """Make a trigger.

        Args:
            nested_trigger: The trigger that may fire earlier.
            timeout: The time after which the window fires in any case.
            reset_timer_on_new_record: Count the timeout from the last record, not from the first.
            should_clear_on_timeout: Clear the state of the nested trigger, such as a count, on a
                timeout.
        """
        return ProcessingTimeoutTrigger(
            nested_trigger,
            to_millis(timeout, "The timeout"),
            reset_timer_on_new_record,
            should_clear_on_timeout,
        )

    def on_element(
        self, element: Any, timestamp: int, window: Any, ctx: Trigger.TriggerContext
    ) -> TriggerResult:
        result = self.nested_trigger.on_element(element, timestamp, window, ctx)
        if result.is_fire():
            self.clear(window, ctx)
            return result
        timeout: Any = ctx.get_partitioned_state(self._timeout_descriptor)
        due = timeout.value()
        if due is not None:
            if not self._resets:
                return result
            ctx.delete_processing_time_timer(due)
        due = ctx.get_current_processing_time() + self.interval
        timeout.update(due)
        ctx.register_processing_time_timer(due)
        return result

    def on_processing_time(
        self, time: int, window: Any, ctx: Trigger.TriggerContext
    ) -> TriggerResult:
        return self._on_time(self.nested_trigger.on_processing_time(time, window, ctx), window, ctx)

    def on_event_time(self, time: int, window: Any, ctx: Trigger.TriggerContext) -> TriggerResult:
        return self._on_time(self.nested_trigger.on_event_time(time, window, ctx), window, ctx)

    def _on_time(
        self, result: TriggerResult, window: Any, ctx: Trigger.TriggerContext
    ) -> TriggerResult:
        """Fire on each timer of the window, also on one of the nested trigger, as Flink does."""
        if self._clears:
            self.clear(window, ctx)
        return TriggerResult.FIRE_AND_PURGE if result.is_purge() else TriggerResult.FIRE

    def clear(self, window: Any, ctx: Trigger.TriggerContext) -> None:
        timeout: Any = ctx.get_partitioned_state(self._timeout_descriptor)
        due = timeout.value()
        if due is not None:
            ctx.delete_processing_time_timer(due)
            timeout.clear()
        self.nested_trigger.clear(window, ctx)

    def __repr__(self) -> str:
        return f"ProcessingTimeoutTrigger({self.nested_trigger!r}, {self.interval})"


class PurgingTrigger(Trigger[Any, Any]):
    """Drops the contents of a window whenever a nested trigger fires.

    Args:
        nested_trigger: The trigger that fires.

    >>> numbers = env.from_collection([1, 2, 3, 4, 5])
    >>> trigger = PurgingTrigger.of(CountTrigger.of(2))
    >>> windows = numbers.window_all(GlobalWindows.create()).trigger(trigger)
    >>> list(windows.reduce(lambda a, b: a + b).execute_and_collect())
    [3, 7]
    """

    def __init__(self, nested_trigger: Trigger[Any, Any]) -> None:
        self.nested_trigger = _checked(nested_trigger, "PurgingTrigger")

    @staticmethod
    def of(nested_trigger: Trigger[Any, Any]) -> PurgingTrigger:
        """Make a trigger.

        Args:
            nested_trigger: The trigger that fires.
        """
        return PurgingTrigger(nested_trigger)

    def on_element(
        self, element: Any, timestamp: int, window: Any, ctx: Trigger.TriggerContext
    ) -> TriggerResult:
        return _purging(self.nested_trigger.on_element(element, timestamp, window, ctx))

    def on_processing_time(
        self, time: int, window: Any, ctx: Trigger.TriggerContext
    ) -> TriggerResult:
        return _purging(self.nested_trigger.on_processing_time(time, window, ctx))

    def on_event_time(self, time: int, window: Any, ctx: Trigger.TriggerContext) -> TriggerResult:
        return _purging(self.nested_trigger.on_event_time(time, window, ctx))

    def can_merge(self) -> bool:
        return self.nested_trigger.can_merge()

    def on_merge(self, window: Any, ctx: Trigger.OnMergeContext) -> None:
        self.nested_trigger.on_merge(window, ctx)

    def clear(self, window: Any, ctx: Trigger.TriggerContext) -> None:
        self.nested_trigger.clear(window, ctx)

    def __repr__(self) -> str:
        return f"PurgingTrigger({self.nested_trigger!r})"


def _checked(nested_trigger: object, wrapper: str) -> Trigger[Any, Any]:
    if isinstance(nested_trigger, Trigger):
        return nested_trigger
    raise InvalidProgramError(f"A {wrapper} needs a Trigger, but got {shorten(nested_trigger)}.")


def _purging(result: TriggerResult) -> TriggerResult:
    return TriggerResult.FIRE_AND_PURGE if result.is_fire() else result
