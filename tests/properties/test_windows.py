"""Both window operators equal the model for any order, batches, restarts and parallelism."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from firesteel.common.constants import MAX_WATERMARK
from firesteel.common.time import Time
from firesteel.datastream.functions import AggregateFunction
from firesteel.datastream.window import EventTimeSessionWindows, WindowAssigner
from tests.properties.window_model import MIN_WATERMARK, WindowModel, aligned, sessions
from tests.properties.window_subtasks import Subtasks, events_of_windows
from tests.task.windows import (
    LATE,
    Count,
    GeneralEventTimeTrigger,
    Tell,
    Values,
    sliding,
    tumbling,
    windows,
)
from tests.thoroughness import examples

_shapes = st.one_of(
    st.tuples(st.integers(1, 20), st.none(), st.integers(-3, 3)),
    st.tuples(st.integers(1, 20), st.integers(1, 20), st.integers(-3, 3)),
)


def _check(events: list[Any], operators: list[Subtasks], model: WindowModel, tag: bool) -> None:
    watermark = 0
    for kind, argument in [*events, ("end", 0)]:
        if kind == "records":
            for record in argument:
                model.add(record)
            for operator in operators:
                operator.add(argument)
        elif kind in ("advance", "end"):
            watermark = MAX_WATERMARK if kind == "end" else watermark + argument
            model.advance(watermark)
            for operator in operators:
                operator.advance(watermark)
        elif kind == "end of epoch":
            for operator in operators:
                operator.end_epoch()
        else:
            forgets_time = kind == "savepoint"
            if forgets_time:
                watermark, model.watermark = 0, MIN_WATERMARK
            for operator in operators:
                operator.restart(argument, forgets_time=forgets_time)
        expected = sorted(model.take())
        for operator in operators:
            assert sorted(operator.take()) == expected
    for operator in operators:
        if tag:
            assert Counter(operator.late()) == Counter(model.late)
            assert operator.dropped() == 0
        else:
            assert operator.dropped() == len(model.late)
        operator.end_epoch()
        assert operator.state_entries() == 0
    fates = Counter(model.fates)
    assert sum(fates.values()) == fates["on time"] + fates["accepted late"] + len(model.late)


def _program(
    assigner: Any, lateness: int, function: Any, *, general: bool, tag: bool
) -> Callable[[Any], Any]:
    return windows(
        assigner,
        lambda windowed: windowed.aggregate(function, Tell()),
        trigger=GeneralEventTimeTrigger() if general else None,
        lateness=lateness,
        late_tag=LATE if tag else None,
    )


@given(
    events=events_of_windows,
    shape=_shapes,
    lateness=st.sampled_from([0, 0, 5, 30]),
    parallelism=st.integers(1, 3),
    tag=st.booleans(),
)
@settings(max_examples=examples(150), deadline=None)
def test_aligned_windows(events, shape, lateness, parallelism, tag):
    size, slide, offset = shape
    assigner: WindowAssigner
    if slide is None:
        offset = max(1 - size, min(size - 1, offset))
        assigner, assign = tumbling(size, offset), aligned(size, size, offset)
    else:
        slide = min(slide, size)
        offset = max(1 - slide, min(slide - 1, offset))
        assigner, assign = sliding(size, slide, offset), aligned(size, slide, offset)
    operators = [
        Subtasks(_program(assigner, lateness, Values(), general=general, tag=tag), parallelism)
        for general in (False, True)
    ]
    # Even the order of the records is that of their arrival.
    model = WindowModel(assign, lateness, lambda values: "".join(map(str, values)))
    _check(events, operators, model, tag)


class Bag(AggregateFunction):
    """The values in order. Adding and merging change the accumulators that they get."""

    def create_accumulator(self):
        return []

    def add(self, value, accumulator):
        accumulator.append(value[1])
        return accumulator

    def get_result(self, accumulator):
        return "".join(map(str, accumulator))

    def merge(self, acc_a, acc_b):
        acc_a += acc_b
        acc_b.clear()
        return acc_a


class SortedBag(Bag):
    commutative = True

    def get_result(self, accumulator):
        accumulator.sort()
        return super().get_result(accumulator)


class Total(AggregateFunction):
    commutative = True

    def create_accumulator(self):
        return 0

    def add(self, value, accumulator):
        return accumulator + value[1]

    def get_result(self, accumulator):
        return accumulator

    def merge(self, acc_a, acc_b):
        return acc_a + acc_b


class TotalWithoutMerge(Total):
    """As many functions for Flink's sliding windows, which never merge."""

    commutative = False

    def merge(self, acc_a, acc_b):
        return acc_a


def _joined(values: list[int]) -> str:
    return "".join(map(str, values))


_FUNCTIONS: list[tuple[AggregateFunction, Callable[[list[int]], Any]]] = [
    (Values(), _joined),
    (Bag(), _joined),
    (SortedBag(), lambda values: _joined(sorted(values))),
    (Total(), sum),
    (TotalWithoutMerge(), sum),
]


def _in_order(events: list[Any], jitter: int) -> list[Any]:
    """Let the timestamps of records grow, up to a jitter."""
    time, found = 0, []
    for kind, argument in events:
        if kind == "records":
            records = []
            for key, value, stamp in argument:
                time += abs(stamp) % 4
                records.append((key, value, time - stamp % (jitter + 1)))
            argument = records
        found.append((kind, argument))
    return found


@given(
    events=events_of_windows,
    jitter=st.sampled_from([0, 1, 8]),
    size=st.integers(2, 20),
    slide=st.integers(1, 10),
    lateness=st.sampled_from([0, 0, 5, 30]),
    parallelism=st.integers(1, 3),
    function=st.sampled_from(_FUNCTIONS),
)
@settings(max_examples=examples(200), deadline=None)
def test_sliding_windows_of_records_almost_in_order(
    events, jitter, size, slide, lateness, parallelism, function
):
    slide = min(slide, size)
    aggregate, result = function
    operators = [
        Subtasks(
            _program(sliding(size, slide), lateness, aggregate, general=False, tag=False),
            parallelism,
        )
    ]
    model = WindowModel(aligned(size, slide, 0), lateness, result)
    _check(_in_order(events, jitter), operators, model, tag=False)


@given(
    events=events_of_windows,
    gap=st.integers(1, 15),
    lateness=st.sampled_from([0, 5, 30]),
    parallelism=st.integers(1, 3),
    tag=st.booleans(),
)
@settings(max_examples=examples(150), deadline=None)
def test_session_windows(events, gap, lateness, parallelism, tag):
    assigner = EventTimeSessionWindows.with_gap(Time.milliseconds(gap))
    operators = [
        Subtasks(_program(assigner, lateness, Count(), general=general, tag=tag), parallelism)
        for general in (False, True)
    ]
    model = WindowModel(sessions(gap), lateness, len, merges=True)
    _check(events, operators, model, tag)


@given(
    times=st.lists(st.integers(0, 40), min_size=1, max_size=30),
    cuts=st.lists(st.integers(0, 30), max_size=6),
    slide=st.integers(1, 10),
)
@pytest.mark.parametrize("lateness", [0, 20])
@settings(max_examples=examples(80), deadline=None)
def test_where_batches_are_cut_does_not_matter(lateness, times, cuts, slide):
    """With a watermark in the middle, so that some records are late."""
    records = [("a", number % 10, time) for number, time in enumerate(times)]

    def run(edges: list[int]) -> list[Any]:
        program = _program(sliding(10, slide), lateness, Values(), general=False, tag=True)
        operator = Subtasks(program, 1)
        middle = len(records) // 2
        results = []
        for part in (records[:middle], records[middle:]):
            bounds = [0, *sorted({edge for edge in edges if 0 < edge < len(part)}), len(part)]
            for start, stop in pairwise(bounds):
                operator.add(part[start:stop])
            results.append(sorted(operator.take()))
            operator.advance(20)
        operator.advance(MAX_WATERMARK)
        return [*results, sorted(operator.take()), operator.late()]

    assert run(cuts) == run([])
