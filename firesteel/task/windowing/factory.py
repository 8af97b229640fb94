"""Chooses the operator of a window: a fast one for common windows, else the general one.

The fast operators gain by windows that many keys share. A batch job has one key at a time.
"""

from __future__ import annotations

from firesteel.datastream.window import (
    DynamicEventTimeSessionWindows,
    EventTimeSessionWindows,
    EventTimeTrigger,
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
)
from firesteel.graph.operator_specs import AllRecords, WindowJoinSpec, WindowSpec
from firesteel.task.operators.base import OperatorContext
from firesteel.task.windowing.base_window_operator import BaseWindowOperator
from firesteel.task.windowing.session_window_operator import SessionWindowOperator
from firesteel.task.windowing.sliced_records_operator import SlicedRecordsOperator
from firesteel.task.windowing.sliding_window_operator import SlidingWindowOperator
from firesteel.task.windowing.tumbling_window_operator import TumblingWindowOperator
from firesteel.task.windowing.window_joins import (
    EvictingWindowJoinOperator,
    SlicedWindowJoinOperator,
    WindowJoinOperator,
)
from firesteel.task.windowing.window_operator import EvictingWindowOperator, WindowOperator


def create_window_operator(spec: WindowSpec, context: OperatorContext) -> BaseWindowOperator:
    if spec.evictor is not None:
        return EvictingWindowOperator(spec, context)
    if context.subtask.batch:
        return WindowOperator(spec, context)
    if can_be_sliced(spec):
        if spec.assigner.slide == spec.assigner.size:
            return TumblingWindowOperator(spec, context)
        return SlidingWindowOperator(spec, context)
    if can_share_records(spec):
        return SlicedRecordsOperator(spec, context)
    if are_plain_sessions(spec):
        return SessionWindowOperator(spec, context)
    return WindowOperator(spec, context)


def create_window_join_operator(
    spec: WindowJoinSpec, context: OperatorContext
) -> BaseWindowOperator:
    if spec.evictor is not None:
        return EvictingWindowJoinOperator(spec, context)
    if are_aligned(spec) and not context.subtask.batch:
        return SlicedWindowJoinOperator(spec, context)
    return WindowJoinOperator(spec, context)


# Classes are compared exactly, because a subclass may do anything.
_ALIGNED = (TumblingEventTimeWindows, SlidingEventTimeWindows)
_SESSIONS = (EventTimeSessionWindows, DynamicEventTimeSessionWindows)


def are_aligned(spec: WindowSpec) -> bool:
    return (
        type(spec.assigner) in _ALIGNED
        and spec.assigner.slide <= spec.assigner.size
        and type(spec.trigger) is EventTimeTrigger
        and not spec.assigner.is_staggered
    )


def can_be_sliced(spec: WindowSpec) -> bool:
    return are_aligned(spec) and spec.contents.is_aggregate and spec.output_mode != "complete"


def can_share_records(spec: WindowSpec) -> bool:
    return (
        are_aligned(spec)
        and spec.assigner.slide < spec.assigner.size
        and isinstance(spec.contents, AllRecords)
    )


def are_plain_sessions(spec: WindowSpec) -> bool:
    return (
        type(spec.assigner) in _SESSIONS
        and type(spec.trigger) is EventTimeTrigger
        and spec.contents.is_aggregate
        and spec.output_mode in (None, "append")
    )
