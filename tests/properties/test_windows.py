"""Whatever the order of records and watermarks, the batches, restarts and parallelism: both window
operators do what the model does."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from firesteel.common.time import Time
from firesteel.datastream.window import EventTimeSessionWindows
from firesteel.state.key_groups import key_group_of, subtask_of
from firesteel.task.watermarks import MAX_WATERMARK
from firesteel.testing import OperatorHarness
from tests.operators.windows import (
    LATE,
    Count,
    GeneralEventTimeTrigger,
    Tell,
    Values,
    dropped,
    sliding,
    tumbling,
    windows,
)
from tests.properties.window_model import MIN_WATERMARK, WindowModel, aligned, sessions

_MAX_PARALLELISM = 8


class Subtasks:
    """All subtasks of the operator; records go where their key belongs."""

    def __init__(self, program: Callable[[Any], Any], parallelism: int) -> None:
        self._program = program
        self._harnesses = [
            OperatorHarness.of(program, parallelism, index, _MAX_PARALLELISM).open()
            for index in range(parallelism)
        ]
        self._watermark = MIN_WATERMARK

    def add(self, batch: list[tuple[str, int, int]]) -> None:
        parallelism = len(self._harnesses)
        for index, harness in enumerate(self._harnesses):
            mine = [
                record
                for record in batch
                if subtask_of(key_group_of(record[0], _MAX_PARALLELISM), parallelism, 8) == index
            ]
            harness.process_elements([r[:2] for r in mine], [r[2] for r in mine])

    def advance(self, watermark: int) -> None:
        self._watermark = watermark
        for harness in self._harnesses:
            harness.process_watermark(watermark)

    def end_epoch(self) -> None:
        for harness in self._harnesses:
            harness.snapshot()

    def restart(self, parallelism: int) -> None:
        snapshots = [harness.snapshot() for harness in self._harnesses]
        late = self.late()
        self._harnesses = [
            OperatorHarness.restored(self._program, snapshots, parallelism, index)
            for index in range(parallelism)
        ]
        self._harnesses[0]._recorder.sides[LATE.tag_id] = late
        if self._watermark > MIN_WATERMARK:
            # A job remembers the watermarks of its channels.
            self.advance(self._watermark)

    def take(self) -> list[tuple[Any, int]]:
        output = [pair for h in self._harnesses for pair in h.output_with_timestamps]
        for harness in self._harnesses:
            harness.extract_output()
        return output

    def late(self) -> list[Any]:
        return [record for h in self._harnesses for record in h.side_output(LATE)]

    def dropped(self) -> int:
        return sum(map(dropped, self._harnesses))

    def state_entries(self) -> int:
        return sum(len(t) for h in self._harnesses for t in h.keyed_state().values())


_records = st.lists(
    st.tuples(st.sampled_from("abc"), st.integers(1, 9), st.integers(-20, 60)),
    min_size=1,
    max_size=8,
)
_events = st.lists(
    st.one_of(
        _records.map(lambda records: ("records", records)),
        st.integers(0, 15).map(lambda by: ("advance", by)),
        st.integers(1, 3).map(lambda parallelism: ("restart", parallelism)),
        st.just(("end of epoch", 0)),
    ),
    max_size=12,
)
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
        else:
            for operator in operators:
                operator.end_epoch() if kind == "end of epoch" else operator.restart(argument)
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
    events=_events,
    shape=_shapes,
    lateness=st.sampled_from([0, 0, 5, 30]),
    parallelism=st.integers(1, 3),
    tag=st.booleans(),
)
@settings(max_examples=150, deadline=None)
def test_aligned_windows(events, shape, lateness, parallelism, tag):
    size, slide, offset = shape
    if slide is None:
        offset = max(1 - size, min(size - 1, offset))
        assigner, assign = tumbling(size, offset), aligned(size, size, offset)
        # In tumbling windows even the order of the records is that of their arrival.
        function, compute = Values(), lambda values: "".join(map(str, values))
    else:
        slide = min(slide, size)
        offset = max(1 - slide, min(slide - 1, offset))
        assigner, assign = sliding(size, slide, offset), aligned(size, slide, offset)
        function, compute = Count(), len
    operators = [
        Subtasks(_program(assigner, lateness, function, general=general, tag=tag), parallelism)
        for general in (False, True)
    ]
    _check(events, operators, WindowModel(assign, lateness, compute), tag)


@given(
    events=_events,
    gap=st.integers(1, 15),
    lateness=st.sampled_from([0, 5, 30]),
    parallelism=st.integers(1, 3),
    tag=st.booleans(),
)
@settings(max_examples=150, deadline=None)
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
@settings(max_examples=80, deadline=None)
def test_where_batches_are_cut_does_not_matter(lateness, times, cuts, slide):
    """With a watermark in the middle, so that some records are late."""
    records = [("a", number % 10, time) for number, time in enumerate(times)]

    def run(edges: list[int]) -> list[Any]:
        program = _program(sliding(10, slide), lateness, Count(), general=False, tag=True)
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
