"""Which operator runs a window: one that is fast where it can, else the general one."""

from __future__ import annotations

from firesteel.datastream.window import (
    DynamicEventTimeSessionWindows,
    EventTimeSessionWindows,
    EventTimeTrigger,
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
)
from firesteel.graph.operator_specs import WindowJoinSpec, WindowSpec
from firesteel.task.operators.base import OperatorContext
from firesteel.task.windowing.base_window_operator import BaseWindowOperator
from firesteel.task.windowing.evicting_window_operator import EvictingWindowOperator
from firesteel.task.windowing.session_window_operator import SessionWindowOperator
from firesteel.task.windowing.sliced_window_join_operator import SlicedWindowJoinOperator
from firesteel.task.windowing.sliced_window_operator import SlicedWindowOperator
from firesteel.task.windowing.window_join_operator import (
    EvictingWindowJoinOperator,
    WindowJoinOperator,
)
from firesteel.task.windowing.window_operator import WindowOperator


def create_window_operator(spec: WindowSpec, context: OperatorContext) -> BaseWindowOperator:
    if spec.evictor is not None:
        return EvictingWindowOperator(spec, context)
    if can_be_sliced(spec):
        return SlicedWindowOperator(spec, context)
    if are_plain_sessions(spec):
        return SessionWindowOperator(spec, context)
    return WindowOperator(spec, context)


def create_window_join_operator(
    spec: WindowJoinSpec, context: OperatorContext
) -> BaseWindowOperator:
    if spec.evictor is not None:
        return EvictingWindowJoinOperator(spec, context)
    if are_aligned(spec):
        return SlicedWindowJoinOperator(spec, context)
    return WindowJoinOperator(spec, context)


# Classes are compared exactly: a subclass may do anything.
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


def are_plain_sessions(spec: WindowSpec) -> bool:
    return (
        type(spec.assigner) in _SESSIONS
        and type(spec.trigger) is EventTimeTrigger
        and spec.contents.is_aggregate
        and spec.output_mode in (None, "append")
    )
