"""Session windows of processing time whose gap depends on the record."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

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


class DynamicProcessingTimeSessionWindows(MergingWindowAssigner[Any, TimeWindow]):
    def __init__(self, session_window_time_gap_extractor: SessionWindowTimeGapExtractor) -> None:
        if not isinstance(session_window_time_gap_extractor, SessionWindowTimeGapExtractor):
            raise InvalidProgramError("A dynamic gap needs a SessionWindowTimeGapExtractor.")
        self.extractor = session_window_time_gap_extractor

    @staticmethod
    def with_dynamic_gap(
        extractor: SessionWindowTimeGapExtractor,
    ) -> DynamicProcessingTimeSessionWindows:
        return DynamicProcessingTimeSessionWindows(extractor)

    def assign_windows(
        self, element: Any, timestamp: int, context: WindowAssigner.WindowAssignerContext
    ) -> Collection[TimeWindow]:
        gap = self.extractor.extract(element)
        if gap <= 0:
            raise ValueError(f"the gap of a session must be positive, but the extractor said {gap}")
        time = context.get_current_processing_time()
        return [TimeWindow(time, time + gap)]

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
        return f"{type(self).__name__}({type(self.extractor).__name__})"
