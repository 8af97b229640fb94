"""Windows: assigners, triggers and evictors, under PyFlink's import path."""

from firesteel.datastream.window.assigners.count_windows import (
    CountSlidingWindowAssigner,
    CountTumblingWindowAssigner,
)
from firesteel.datastream.window.assigners.dynamic_event_time_session_windows import (
    DynamicEventTimeSessionWindows,
)
from firesteel.datastream.window.assigners.dynamic_processing_time_session_windows import (
    DynamicProcessingTimeSessionWindows,
)
from firesteel.datastream.window.assigners.event_time_session_windows import EventTimeSessionWindows
from firesteel.datastream.window.assigners.global_windows import GlobalWindows
from firesteel.datastream.window.assigners.processing_time_session_windows import (
    ProcessingTimeSessionWindows,
)
from firesteel.datastream.window.assigners.sliding_event_time_windows import SlidingEventTimeWindows
from firesteel.datastream.window.assigners.sliding_processing_time_windows import (
    SlidingProcessingTimeWindows,
)
from firesteel.datastream.window.assigners.tumbling_event_time_windows import (
    TumblingEventTimeWindows,
)
from firesteel.datastream.window.assigners.tumbling_processing_time_windows import (
    TumblingProcessingTimeWindows,
)
from firesteel.datastream.window.evictor import Evictor, TimestampedValue
from firesteel.datastream.window.evictors.count_evictor import CountEvictor
from firesteel.datastream.window.evictors.delta_evictor import DeltaEvictor
from firesteel.datastream.window.evictors.time_evictor import TimeEvictor
from firesteel.datastream.window.merging_window_assigner import MergingWindowAssigner
from firesteel.datastream.window.serializers import (
    CountWindowSerializer,
    GlobalWindowSerializer,
    TimeWindowSerializer,
)
from firesteel.datastream.window.session_window_time_gap_extractor import (
    SessionWindowTimeGapExtractor,
)
from firesteel.datastream.window.tagged_union import TaggedUnion
from firesteel.datastream.window.trigger import Trigger, TriggerResult
from firesteel.datastream.window.triggers.continuous_event_time_trigger import (
    ContinuousEventTimeTrigger,
)
from firesteel.datastream.window.triggers.continuous_processing_time_trigger import (
    ContinuousProcessingTimeTrigger,
)
from firesteel.datastream.window.triggers.count_trigger import CountTrigger
from firesteel.datastream.window.triggers.delta_trigger import DeltaTrigger
from firesteel.datastream.window.triggers.end_of_stream_trigger import EndOfStreamTrigger
from firesteel.datastream.window.triggers.event_time_trigger import EventTimeTrigger
from firesteel.datastream.window.triggers.never_trigger import NeverTrigger
from firesteel.datastream.window.triggers.processing_time_trigger import ProcessingTimeTrigger
from firesteel.datastream.window.triggers.processing_timeout_trigger import (
    ProcessingTimeoutTrigger,
)
from firesteel.datastream.window.triggers.purging_trigger import PurgingTrigger
from firesteel.datastream.window.window_assigner import NoTimestampError, WindowAssigner
from firesteel.datastream.window.window_stagger import WindowStagger
from firesteel.datastream.window.windows import CountWindow, GlobalWindow, TimeWindow, Window

__all__ = [
    "ContinuousEventTimeTrigger",
    "ContinuousProcessingTimeTrigger",
    "CountEvictor",
    "CountSlidingWindowAssigner",
    "CountTrigger",
    "CountTumblingWindowAssigner",
    "CountWindow",
    "CountWindowSerializer",
    "DeltaEvictor",
    "DeltaTrigger",
    "DynamicEventTimeSessionWindows",
    "DynamicProcessingTimeSessionWindows",
    "EndOfStreamTrigger",
    "EventTimeSessionWindows",
    "EventTimeTrigger",
    "Evictor",
    "GlobalWindow",
    "GlobalWindowSerializer",
    "GlobalWindows",
    "MergingWindowAssigner",
    "NeverTrigger",
    "NoTimestampError",
    "ProcessingTimeSessionWindows",
    "ProcessingTimeTrigger",
    "ProcessingTimeoutTrigger",
    "PurgingTrigger",
    "SessionWindowTimeGapExtractor",
    "SlidingEventTimeWindows",
    "SlidingProcessingTimeWindows",
    "TaggedUnion",
    "TimeEvictor",
    "TimeWindow",
    "TimeWindowSerializer",
    "TimestampedValue",
    "Trigger",
    "TriggerResult",
    "TumblingEventTimeWindows",
    "TumblingProcessingTimeWindows",
    "Window",
    "WindowAssigner",
    "WindowStagger",
]
