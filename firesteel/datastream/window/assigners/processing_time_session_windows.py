"""Session windows of processing time: they end when nothing comes for the length of a gap."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

from firesteel.common.time import Duration, Time
from firesteel.datastream.window.arguments import to_millis
from firesteel.datastream.window.assigners.dynamic_processing_time_session_windows import (
    DynamicProcessingTimeSessionWindows,
)
from firesteel.datastream.window.merging_window_assigner import MergingWindowAssigner
from firesteel.datastream.window.serializers import TimeWindowSerializer
from firesteel.datastream.window.session_window_time_gap_extractor import (
    SessionWindowTimeGapExtractor,
)
from firesteel.datastream.window.trigger import Trigger
from firesteel.datastream.window.triggers.processing_time_trigger import ProcessingTimeTrigger
from firesteel.datastream.window.window_assigner import WindowAssigner
from firesteel.datastream.window.windows import TimeWindow
from firesteel.errors import InvalidProgramError


class ProcessingTimeSessionWindows(MergingWindowAssigner[Any, TimeWindow]):
    def __init__(self, session_gap: int) -> None:
        if session_gap <= 0:
            raise InvalidProgramError(
                f"The gap of sessions must be positive, not {session_gap} ms."
            )
        self.session_gap = session_gap

    @staticmethod
    def with_gap(size: Time | Duration) -> ProcessingTimeSessionWindows:
        """Sessions that end after a silence of ``size``."""
        return ProcessingTimeSessionWindows(to_millis(size, "The gap"))

    @staticmethod
    def with_dynamic_gap(
        extractor: SessionWindowTimeGapExtractor,
    ) -> DynamicProcessingTimeSessionWindows:
        """Sessions whose gap each record says itself."""
        return DynamicProcessingTimeSessionWindows(extractor)

    def assign_windows(
        self, element: Any, timestamp: int, context: WindowAssigner.WindowAssignerContext
    ) -> Collection[TimeWindow]:
        time = context.get_current_processing_time()
        return [TimeWindow(time, time + self.session_gap)]

    def merge_windows(
        self,
        windows: Iterable[TimeWindow],
        callback: MergingWindowAssigner.MergeCallback[TimeWindow],
    ) -> None:
        TimeWindow.merge_windows(windows, callback)

    def get_default_trigger(self, env: Any) -> Trigger[Any, TimeWindow]:
        return ProcessingTimeTrigger()

    def get_window_serializer(self) -> TimeWindowSerializer:
        return TimeWindowSerializer()

    def is_event_time(self) -> bool:
        return False

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.session_gap})"
