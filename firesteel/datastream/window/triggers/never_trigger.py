"""Never fires: what GlobalWindows have unless the program says better."""

from __future__ import annotations

from typing import Any

from firesteel.datastream.window.trigger import Trigger, TriggerResult
from firesteel.datastream.window.windows import GlobalWindow


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
