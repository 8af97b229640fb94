"""Helpers for the tests of windows: both operators, and short names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from firesteel.common.time import Time
from firesteel.datastream import OutputTag
from firesteel.datastream.functions import AggregateFunction, ProcessWindowFunction
from firesteel.datastream.window import (
    EventTimeTrigger,
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
)
from firesteel.task.operators.late_records import LATE_RECORDS_DROPPED
from firesteel.testing import OperatorHarness

LATE = OutputTag("late")


class GeneralEventTimeTrigger(EventTimeTrigger):
    """Does what its base does, but the operator for slices does not know that."""


def tumbling(size: int = 10, offset: int = 0) -> TumblingEventTimeWindows:
    return TumblingEventTimeWindows.of(Time.milliseconds(size), Time.milliseconds(offset))


def sliding(size: int = 10, slide: int = 5, offset: int = 0) -> SlidingEventTimeWindows:
    return SlidingEventTimeWindows.of(
        Time.milliseconds(size), Time.milliseconds(slide), Time.milliseconds(offset)
    )


class Values(AggregateFunction):
    """The values in the order in which they were added, as a string."""

    def create_accumulator(self):
        return ()

    def add(self, value, accumulator):
        return (*accumulator, value[1])

    def get_result(self, accumulator):
        return "".join(map(str, accumulator))

    def merge(self, acc_a, acc_b):
        return acc_a + acc_b


class Count(AggregateFunction):
    def create_accumulator(self):
        return 0

    def add(self, value, accumulator):
        return accumulator + 1

    def get_result(self, accumulator):
        return accumulator

    def merge(self, acc_a, acc_b):
        return acc_a + acc_b


class Tell(ProcessWindowFunction):
    """(key, start, end, contents)."""

    def process(self, key, context, elements):
        window = context.window()
        yield key, window.start, window.end, *elements


def windows(
    assigner: Any,
    operation: Callable[[Any], Any],
    *,
    trigger: Any = None,
    lateness: int = 0,
    late_tag: Any = None,
    evictor: Any = None,
    mode: str | None = None,
) -> Callable[[Any], Any]:
    """A program: records are (key, value)."""

    def program(stream: Any) -> Any:
        windowed = stream.key_by(lambda record: record[0]).window(assigner)
        if trigger is not None:
            windowed.trigger(trigger)
        if late_tag is not None:
            windowed.side_output_late_data(late_tag)
        if evictor is not None:
            windowed.evictor(evictor)
        if mode is not None:
            windowed.output_mode(mode)
        return operation(windowed.allowed_lateness(lateness))

    return program


def values(windowed: Any) -> Any:
    """Per key and window: the values in their order, with the window."""
    return windowed.aggregate(Values(), Tell())


def dropped(harness: OperatorHarness) -> int:
    (counter,) = [
        metric["count"]
        for name, metric in harness.metrics().items()
        if name.endswith(LATE_RECORDS_DROPPED)
    ]
    return int(counter)


def feed(harness: OperatorHarness, *records: tuple[str, Any, int]) -> None:
    """Records (key, value, timestamp), as one batch."""
    harness.process_elements([r[:2] for r in records], [r[2] for r in records])
