"""Which operator runs a window: the one for slices where it can, else the general one."""

from __future__ import annotations

from firesteel.datastream.window import (
    EventTimeTrigger,
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
)
from firesteel.graph.operator_specs import WindowSpec
from firesteel.task.operators.base import OperatorContext
from firesteel.task.windowing.base_window_operator import BaseWindowOperator
from firesteel.task.windowing.evicting_window_operator import EvictingWindowOperator
from firesteel.task.windowing.sliced_window_operator import SlicedWindowOperator
from firesteel.task.windowing.window_operator import WindowOperator


def create_window_operator(spec: WindowSpec, context: OperatorContext) -> BaseWindowOperator:
    if spec.evictor is not None:
        return EvictingWindowOperator(spec, context)
    if can_be_sliced(spec):
        return SlicedWindowOperator(spec, context)
    return WindowOperator(spec, context)


def can_be_sliced(spec: WindowSpec) -> bool:
    """Classes are compared exactly: a subclass may do anything."""
    assigner = spec.assigner
    return (
        type(assigner) in (TumblingEventTimeWindows, SlidingEventTimeWindows)
        and assigner.slide <= assigner.size
        and type(spec.trigger) is EventTimeTrigger
        and spec.contents.is_aggregate
        and spec.output_mode != "complete"
    )
