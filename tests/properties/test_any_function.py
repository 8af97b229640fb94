"""Sliding windows of any function equal the record-by-record result and the general operator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from firesteel.common.constants import MAX_WATERMARK
from firesteel.common.typeinfo import Types
from firesteel.datastream.functions import AggregateFunction, ProcessWindowFunction
from firesteel.datastream.state import ValueStateDescriptor
from tests.properties.window_subtasks import Subtasks, events_of_windows
from tests.task.windows import LATE, GeneralEventTimeTrigger, Tell, sliding, windows
from tests.thoroughness import examples


class Sorted(AggregateFunction):
    """Changes its accumulator in place, even when it is asked for the result; its merge is of no use."""

    def create_accumulator(self):
        return []

    def add(self, value, accumulator):
        accumulator.append(value[1])
        return accumulator

    def get_result(self, accumulator):
        accumulator.sort()
        return accumulator

    def merge(self, acc_a, acc_b):
        return acc_a


class Records(ProcessWindowFunction):
    """All records in their order, and how often the window has fired."""

    count = ValueStateDescriptor("count", Types.LONG())

    def process(self, key, context, elements):
        window, count = context.window(), context.window_state().get_state(self.count)
        count.update((count.value() or 0) + 1)
        yield key, window.start, context.current_watermark(), count.value(), list(elements)

    def clear(self, context):
        context.window_state().get_state(self.count).clear()


_FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "keep last": lambda w: w.reduce(lambda a, b: b),
    "keep first": lambda w: w.reduce(lambda a, b: a, Tell()),
    "float sum": lambda w: w.reduce(lambda a, b: (a[0], a[1] + b[1] / 10), Tell()),
    "string": lambda w: w.reduce(lambda a, b: (a[0], f"{a[1]}{b[1]}")),
    "count": lambda w: w.reduce(lambda a, b: (a[0], a[1] + 1)),
    "in place": lambda w: w.aggregate(Sorted(), Tell()),
    "sum": lambda w: w.sum(1),
    "max_by": lambda w: w.max_by(1),
    "all records": lambda w: w.process(Records()),
    "state": lambda w: w.reduce(lambda a, b: b, Records()),
}


@pytest.mark.parametrize("function", _FUNCTIONS)
@given(
    events=events_of_windows,
    size=st.integers(2, 20),
    slide=st.integers(1, 10),
    lateness=st.sampled_from([0, 5, 30]),
    mode=st.sampled_from([None, "append"]),
)
@settings(max_examples=examples(8), deadline=None)
def test_sliding_windows_with(function, events, size, slide, lateness, mode):
    fast, general = (
        Subtasks(
            windows(
                sliding(size, min(slide, size - 1)),
                _FUNCTIONS[function],
                trigger=trigger,
                lateness=lateness,
                late_tag=LATE,
                mode=mode,
            ),
            1,
        )
        for trigger in (None, GeneralEventTimeTrigger())
    )
    watermark = 0
    for kind, argument in [*events, ("end", 0)]:
        if kind == "savepoint":
            watermark = 0
        if kind in ("advance", "end"):
            watermark = MAX_WATERMARK if kind == "end" else watermark + argument
        for operator in (fast, general):
            if kind == "records":
                operator.add(argument)
            elif kind in ("advance", "end"):
                operator.advance(watermark)
            elif kind == "end of epoch":
                operator.end_epoch()
            else:
                operator.restart(argument, forgets_time=kind == "savepoint")
        assert sorted(map(repr, fast.take())) == sorted(map(repr, general.take()))
    assert fast.late() == general.late()
    for operator in (fast, general):
        operator.end_epoch()
        assert operator.state_entries() == 0
