"""Fires again and again as the clock goes on, as long as the window exists."""

from __future__ import annotations

from typing import Any

from firesteel.common.time import Duration, Time
from firesteel.common.typeinfo import Types
from firesteel.datastream.state import ReducingState, ReducingStateDescriptor
from firesteel.datastream.window.arguments import to_millis
from firesteel.datastream.window.trigger import Trigger, TriggerResult
from firesteel.datastream.window.windows import TimeWindow


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
