"""Makes any trigger drop the window's contents when it fires."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from enum import Enum
from operator import add
from typing import TYPE_CHECKING, Any, Generic, TypeVar

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

if TYPE_CHECKING:
    from firesteel.metrics import MetricGroup

T = TypeVar("T")
W = TypeVar("W")


class TriggerResult(Enum):
    """What a trigger wants: (compute and emit the results, drop the contents)."""

    CONTINUE = (False, False)
    FIRE_AND_PURGE = (True, True)
    FIRE = (True, False)
    PURGE = (False, True)

    def is_fire(self) -> bool:
        return self.value[0]

    def is_purge(self) -> bool:
        return self.value[1]


class Trigger(ABC, Generic[T, W]):
    """Decides for each key and window when it fires.

    One object serves all keys and windows, so a trigger keeps nothing in its fields: state comes
    from ``ctx.get_partitioned_state``, for the key and window at hand.
    """

    class TriggerContext(ABC):
        """Times, timers and state of the key and window at hand."""

        @abstractmethod
        def get_current_processing_time(self) -> int: ...

        @abstractmethod
        def get_metric_group(self) -> MetricGroup: ...

        @abstractmethod
        def get_current_watermark(self) -> int: ...

        @abstractmethod
        def register_processing_time_timer(self, time: int) -> None:
            """Have ``on_processing_time`` called at ``time``."""

        @abstractmethod
        def register_event_time_timer(self, time: int) -> None:
            """Have ``on_event_time`` called when the watermark reaches ``time``."""

        @abstractmethod
        def delete_processing_time_timer(self, time: int) -> None: ...

        @abstractmethod
        def delete_event_time_timer(self, time: int) -> None: ...

        @abstractmethod
        def get_partitioned_state(self, state_descriptor: StateDescriptor) -> State:
            """State of the trigger's own for this key and window."""

    class OnMergeContext(TriggerContext):
        """What ``on_merge`` gets besides: the state of the windows that became one."""

        @abstractmethod
        def merge_partitioned_state(self, state_descriptor: StateDescriptor) -> None:
            """Make one state, of the new window, of those that the merged windows had."""

    @abstractmethod
    def on_element(
        self, element: T, timestamp: int, window: W, ctx: Trigger.TriggerContext
    ) -> TriggerResult:
        """A record was added to the window. ``timestamp`` is the smallest long if it has none."""

    @abstractmethod
    def on_processing_time(
        self, time: int, window: W, ctx: Trigger.TriggerContext
    ) -> TriggerResult:
        """A processing-time timer of this window is due."""

    @abstractmethod
    def on_event_time(self, time: int, window: W, ctx: Trigger.TriggerContext) -> TriggerResult:
        """An event-time timer of this window is due."""

    def can_merge(self) -> bool:
        """Whether ``on_merge`` is implemented, as windows that merge need it."""
        return False

    @abstractmethod
    def on_merge(self, window: W, ctx: Trigger.OnMergeContext) -> None:
        """Several windows have become ``window``."""

    @abstractmethod
    def clear(self, window: W, ctx: Trigger.TriggerContext) -> None:
        """The window is gone: delete its timers and state."""


class EventTimeTrigger(Trigger[Any, TimeWindow]):
    @staticmethod
    def create() -> EventTimeTrigger:
        return EventTimeTrigger()

    def on_element(
        self, element: Any, timestamp: int, window: TimeWindow, ctx: Trigger.TriggerContext
    ) -> TriggerResult:
        if window.max_timestamp() <= ctx.get_current_watermark():
            return TriggerResult.FIRE
        ctx.register_event_time_timer(window.max_timestamp())
        return TriggerResult.CONTINUE

    def on_processing_time(
        self, time: int, window: TimeWindow, ctx: Trigger.TriggerContext
    ) -> TriggerResult:
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

    def __repr__(self) -> str:
        return "EventTimeTrigger()"


class ProcessingTimeTrigger(Trigger[Any, TimeWindow]):
    @staticmethod
    def create() -> ProcessingTimeTrigger:
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

    def on_event_time(
        self, time: int, window: TimeWindow, ctx: Trigger.TriggerContext
    ) -> TriggerResult:
        return TriggerResult.CONTINUE

    def can_merge(self) -> bool:
        return True

    def on_merge(self, window: TimeWindow, ctx: Trigger.OnMergeContext) -> None:
        if window.max_timestamp() > ctx.get_current_processing_time():
            ctx.register_processing_time_timer(window.max_timestamp())

    def clear(self, window: TimeWindow, ctx: Trigger.TriggerContext) -> None:
        ctx.delete_processing_time_timer(window.max_timestamp())

    def __repr__(self) -> str:
        return "ProcessingTimeTrigger()"


class CountTrigger(Trigger[Any, Any]):
    def __init__(self, window_size: int) -> None:
        check_count(window_size, 1, "The size of a CountTrigger")
        self._window_size = window_size
        self._count_state_descriptor = ReducingStateDescriptor("count", add, Types.LONG())

    @staticmethod
    def of(window_size: int) -> CountTrigger:
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

    def on_processing_time(
        self, time: int, window: Any, ctx: Trigger.TriggerContext
    ) -> TriggerResult:
        return TriggerResult.CONTINUE

    def on_event_time(self, time: int, window: Any, ctx: Trigger.TriggerContext) -> TriggerResult:
        return TriggerResult.CONTINUE

    def can_merge(self) -> bool:
        return True

    def on_merge(self, window: Any, ctx: Trigger.OnMergeContext) -> None:
        ctx.merge_partitioned_state(self._count_state_descriptor)

    def clear(self, window: Any, ctx: Trigger.TriggerContext) -> None:
        ctx.get_partitioned_state(self._count_state_descriptor).clear()

    def __repr__(self) -> str:
        return f"CountTrigger({self._window_size})"


class ContinuousEventTimeTrigger(Trigger[Any, TimeWindow]):
    """At every multiple of ``interval`` (milliseconds) that is later than the first record's time."""

    def __init__(self, interval: int) -> None:
        self.interval = interval
        self.state_desc = ReducingStateDescriptor("fire-time", min, Types.LONG())

    @staticmethod
    def of(interval: Time | Duration) -> ContinuousEventTimeTrigger:
        return ContinuousEventTimeTrigger(to_millis(interval, "The interval"))

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

    def on_processing_time(
        self, time: int, window: TimeWindow, ctx: Trigger.TriggerContext
    ) -> TriggerResult:
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

    def can_merge(self) -> bool:
        return True

    def on_merge(self, window: TimeWindow, ctx: Trigger.OnMergeContext) -> None:
        ctx.merge_partitioned_state(self.state_desc)
        fire_time: Any = ctx.get_partitioned_state(self.state_desc)
        next_time = fire_time.get()
        if next_time is not None:
            ctx.register_event_time_timer(next_time)

    def clear(self, window: TimeWindow, ctx: Trigger.TriggerContext) -> None:
        fire_time: Any = ctx.get_partitioned_state(self.state_desc)
        next_time = fire_time.get()
        if next_time is not None:
            ctx.delete_event_time_timer(next_time)
            fire_time.clear()

    def register_next_fire_timestamp(
        self,
        time: int,
        window: TimeWindow,
        ctx: Trigger.TriggerContext,
        fire_timestamp_state: ReducingState[int],
    ) -> None:
        next_time = min(time + self.interval, window.max_timestamp())
        fire_timestamp_state.add(next_time)
        ctx.register_event_time_timer(next_time)

    def __repr__(self) -> str:
        return f"ContinuousEventTimeTrigger({self.interval})"


class ContinuousProcessingTimeTrigger(Trigger[Any, TimeWindow]):
    """At every multiple of ``interval`` (milliseconds) that is later than the first record."""

    def __init__(self, interval: int) -> None:
        self.interval = interval
        self.state_desc = ReducingStateDescriptor("fire-time", min, Types.LONG())

    @staticmethod
    def of(interval: Time | Duration) -> ContinuousProcessingTimeTrigger:
        return ContinuousProcessingTimeTrigger(to_millis(interval, "The interval"))

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
            # After its last moment a window has no next one: the timer would fire at once again.
            self.register_next_fire_timestamp(time, window, ctx, fire_time)
        return TriggerResult.FIRE

    def on_event_time(
        self, time: int, window: TimeWindow, ctx: Trigger.TriggerContext
    ) -> TriggerResult:
        return TriggerResult.CONTINUE

    def can_merge(self) -> bool:
        return True

    def on_merge(self, window: TimeWindow, ctx: Trigger.OnMergeContext) -> None:
        ctx.merge_partitioned_state(self.state_desc)
        fire_time: Any = ctx.get_partitioned_state(self.state_desc)
        next_time = fire_time.get()
        if next_time is not None:
            ctx.register_processing_time_timer(next_time)

    def clear(self, window: TimeWindow, ctx: Trigger.TriggerContext) -> None:
        fire_time: Any = ctx.get_partitioned_state(self.state_desc)
        next_time = fire_time.get()
        if next_time is not None:
            ctx.delete_processing_time_timer(next_time)
            fire_time.clear()

    def register_next_fire_timestamp(
        self,
        time: int,
        window: TimeWindow,
        ctx: Trigger.TriggerContext,
        fire_timestamp_state: ReducingState[int],
    ) -> None:
        next_time = min(time + self.interval, window.max_timestamp())
        fire_timestamp_state.add(next_time)
        ctx.register_processing_time_timer(next_time)

    def __repr__(self) -> str:
        return f"ContinuousProcessingTimeTrigger({self.interval})"


class DeltaTrigger(Trigger[Any, Any]):
    """``delta_function(last, new)`` says how much two records differ. Not in PyFlink.

    >>> DeltaTrigger.of(5.0, lambda last, new: new - last)
    DeltaTrigger(5.0)
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

    def on_processing_time(
        self, time: int, window: Any, ctx: Trigger.TriggerContext
    ) -> TriggerResult:
        return TriggerResult.CONTINUE

    def on_event_time(self, time: int, window: Any, ctx: Trigger.TriggerContext) -> TriggerResult:
        return TriggerResult.CONTINUE

    def on_merge(self, window: Any, ctx: Trigger.OnMergeContext) -> None:
        raise NotImplementedError("two last records cannot become one: can_merge() says so")

    def clear(self, window: Any, ctx: Trigger.TriggerContext) -> None:
        ctx.get_partitioned_state(self._last_descriptor).clear()

    def __repr__(self) -> str:
        return f"DeltaTrigger({self._threshold})"


class EndOfStreamTrigger(Trigger[Any, GlobalWindow]):
    """The end of the input is the last watermark of all. Not in PyFlink."""

    def on_element(
        self, element: Any, timestamp: int, window: GlobalWindow, ctx: Trigger.TriggerContext
    ) -> TriggerResult:
        ctx.register_event_time_timer(window.max_timestamp())
        return TriggerResult.CONTINUE

    def on_processing_time(
        self, time: int, window: GlobalWindow, ctx: Trigger.TriggerContext
    ) -> TriggerResult:
        return TriggerResult.CONTINUE

    def on_event_time(
        self, time: int, window: GlobalWindow, ctx: Trigger.TriggerContext
    ) -> TriggerResult:
        return TriggerResult.FIRE if time == window.max_timestamp() else TriggerResult.CONTINUE

    def on_merge(self, window: GlobalWindow, ctx: Trigger.OnMergeContext) -> None:
        """There is nothing to merge."""

    def clear(self, window: GlobalWindow, ctx: Trigger.TriggerContext) -> None:
        """The timer is the last thing that happens."""

    def __repr__(self) -> str:
        return "EndOfStreamTrigger()"


class NeverTrigger(Trigger[Any, GlobalWindow]):
    def on_element(
        self, element: Any, timestamp: int, window: GlobalWindow, ctx: Trigger.TriggerContext
    ) -> TriggerResult:
        return TriggerResult.CONTINUE

    def on_processing_time(
        self, time: int, window: GlobalWindow, ctx: Trigger.TriggerContext
    ) -> TriggerResult:
        return TriggerResult.CONTINUE

    def on_event_time(
        self, time: int, window: GlobalWindow, ctx: Trigger.TriggerContext
    ) -> TriggerResult:
        return TriggerResult.CONTINUE

    def on_merge(self, window: GlobalWindow, ctx: Trigger.OnMergeContext) -> None:
        """There is nothing to merge."""

    def clear(self, window: GlobalWindow, ctx: Trigger.TriggerContext) -> None:
        """There is nothing to clear."""

    def __repr__(self) -> str:
        return "NeverTrigger()"


class ProcessingTimeoutTrigger(Trigger[Any, Any]):
    """Fires when the nested trigger does, or so long after the first record since it last fired.

    Not in PyFlink. It cannot be used with windows that merge.

    >>> from firesteel.datastream.window import CountTrigger
    >>> ProcessingTimeoutTrigger.of(CountTrigger.of(100), Time.seconds(5))
    ProcessingTimeoutTrigger(CountTrigger(100), 5000)
    """

    def __init__(
        self,
        nested_trigger: Trigger[Any, Any],
        interval: int,
        reset_timer_on_new_record: bool,
        should_clear_on_timeout: bool,
    ) -> None:
        if not isinstance(nested_trigger, Trigger):
            raise InvalidProgramError(
                f"A ProcessingTimeoutTrigger needs a Trigger, but got {shorten(nested_trigger)}."
            )
        if interval < 0:
            raise InvalidProgramError(
                f"The timeout of a ProcessingTimeoutTrigger must not be negative: {interval} ms."
            )
        self.nested_trigger = nested_trigger
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
        """The timeout counts from the first record, or from the last one if each new one resets it.

        ``should_clear_on_timeout``: the nested trigger forgets then what it knew, such as a count.
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
        """As in Flink, every timer of the window fires it, also one of the nested trigger."""
        if self._clears:
            self.clear(window, ctx)
        return TriggerResult.FIRE_AND_PURGE if result.is_purge() else TriggerResult.FIRE

    def on_merge(self, window: Any, ctx: Trigger.OnMergeContext) -> None:
        raise NotImplementedError("timeouts do not merge: can_merge() says so")

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
    def __init__(self, nested_trigger: Trigger[Any, Any]) -> None:
        if not isinstance(nested_trigger, Trigger):
            raise InvalidProgramError(
                f"A PurgingTrigger needs a Trigger, but got {shorten(nested_trigger)}."
            )
        self.nested_trigger = nested_trigger

    @staticmethod
    def of(nested_trigger: Trigger[Any, Any]) -> PurgingTrigger:
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


def _purging(result: TriggerResult) -> TriggerResult:
    return TriggerResult.FIRE_AND_PURGE if result.is_fire() else result
