"""Fires once the input has ended: the trigger of GlobalWindows for bounded streams."""

from __future__ import annotations

from typing import Any

from firesteel.datastream.window.trigger import Trigger, TriggerResult
from firesteel.datastream.window.windows import GlobalWindow


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
