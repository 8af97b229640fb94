"""Windows with an evictor."""

from __future__ import annotations

from typing import Any

import pytest

from firesteel.common.time import Time
from firesteel.datastream.functions import WindowFunction
from firesteel.datastream.window import (
    CountEvictor,
    CountTrigger,
    DeltaEvictor,
    EventTimeSessionWindows,
    Evictor,
    GlobalWindows,
    TimeEvictor,
)
from firesteel.errors import InvalidProgramError, UserFunctionError
from firesteel.testing import OperatorHarness
from tests.task.windows import Count, Values, feed, tumbling, windows

_MS = Time.milliseconds


class All(WindowFunction):
    def apply(self, key, window, inputs):
        yield [value for _, value in inputs]


def _harness(
    evictor: Any, every: int = 3, operation: Any = None, assigner: Any = None
) -> OperatorHarness:
    return OperatorHarness.of(
        windows(
            assigner or GlobalWindows.create(),
            operation or (lambda windowed: windowed.apply(All())),
            trigger=CountTrigger.of(every),
            evictor=evictor,
        )
    )


def test_the_last_records_stay():
    with _harness(CountEvictor.of(2)) as harness:
        feed(harness, *[("a", n, n) for n in range(6)])
        assert harness.output == [[1, 2], [4, 5]]


def test_what_is_evicted_after_the_function_was_seen_once():
    with _harness(CountEvictor.of(2, do_evict_after=True)) as harness:
        feed(harness, *[("a", n, n) for n in range(6)])
        assert harness.output == [[0, 1, 2], [1, 2, 3, 4, 5]]


def test_records_of_a_span_before_the_newest_stay():
    with _harness(TimeEvictor.of(_MS(10))) as harness:
        feed(harness, ("a", 1, 0), ("a", 2, 20), ("a", 3, 11))
        assert harness.output == [[2, 3]]
        feed(harness, ("a", 4, 29), ("a", 5, 30), ("a", 6, 21))
        assert harness.output[1:] == [[4, 5, 6]]


def test_records_without_timestamps_all_stay():
    with _harness(TimeEvictor.of(_MS(10))) as harness:
        harness.process_elements([("a", 1), ("a", 2), ("a", 3)])
        assert harness.output == [[1, 2, 3]]


def test_records_that_differ_too_much_from_the_last_go():
    evictor = DeltaEvictor.of(5, lambda record, last: abs(last[1] - record[1]))
    with _harness(evictor) as harness:
        feed(harness, ("a", 1, 0), ("a", 10, 1), ("a", 6, 2))
        assert harness.output == [[10, 6]]


def test_an_aggregate_is_computed_from_what_is_left():
    with _harness(CountEvictor.of(2), operation=lambda w: w.sum(1)) as harness:
        feed(harness, *[("a", n, n) for n in range(6)])
        assert harness.output == [("a", 3), ("a", 9)]
    with _harness(CountEvictor.of(2), operation=lambda w: w.aggregate(Values())) as harness:
        feed(harness, *[("a", n, n) for n in range(3)])
        assert harness.output == ["12"]


def test_an_aggregate_of_nothing_is_not_emitted():
    with _harness(CountEvictor.of(0), operation=lambda w: w.aggregate(Count())) as harness:
        feed(harness, *[("a", n, n) for n in range(3)])
        assert harness.output == []


def test_the_records_of_merged_windows_come_together():
    sessions = EventTimeSessionWindows.with_gap(_MS(5))
    with _harness(CountEvictor.of(5), assigner=sessions) as harness:
        feed(harness, ("a", 1, 0), ("a", 2, 8), ("a", 3, 4))
        assert [sorted(r) for r in harness.output] == [[1, 2, 3]]
        harness.process_watermark(100)
        assert not any(harness.keyed_state().values())


def test_records_survive_a_restore_with_their_timestamps():
    program = windows(
        GlobalWindows.create(),
        lambda windowed: windowed.apply(All()),
        trigger=CountTrigger.of(3),
        evictor=TimeEvictor.of(_MS(10)),
    )
    with OperatorHarness.of(program) as harness:
        feed(harness, ("a", 1, 0), ("a", 2, 20))
        snapshot = harness.snapshot()
    with OperatorHarness.restored(program, snapshot) as restored:
        feed(restored, ("a", 3, 25))
        assert restored.output == [[2, 3]]


class OnlyEven(Evictor):
    """An evictor of one's own."""

    def evict_before(self, elements, size, window, evictor_context):
        assert size == len(elements)
        return [e for e in elements if e.value[1] % 2 == 0]

    def evict_after(self, elements, size, window, evictor_context):
        assert evictor_context.get_current_watermark() < 0
        return elements[:1]


def test_an_evictor_of_ones_own():
    with _harness(OnlyEven()) as harness:
        feed(harness, *[("a", n, n) for n in range(6)])
        assert harness.output == [[0, 2], [0, 4]]


class Fails(Evictor):
    def evict_before(self, elements, size, window, evictor_context):
        raise ZeroDivisionError


def test_an_evictor_that_fails_is_blamed():
    with _harness(Fails()) as harness, pytest.raises(UserFunctionError) as caught:
        feed(harness, *[("a", n, n) for n in range(3)])
    assert caught.value.function == "Fails.evict_before"


def test_an_evictor_works_with_windows_of_time():
    program = windows(tumbling(), lambda w: w.apply(All()), evictor=CountEvictor.of(1))
    with OperatorHarness.of(program) as harness:
        feed(harness, ("a", 1, 0), ("a", 2, 5), ("a", 3, 12))
        harness.process_watermark(100)
        assert harness.output == [[2], [3]]
        assert not any(harness.keyed_state().values())


def test_what_makes_no_evictor_is_refused():
    with pytest.raises(InvalidProgramError):
        CountEvictor.of(-1)
    with pytest.raises(InvalidProgramError):
        DeltaEvictor.of(1, None)  # type: ignore[arg-type]  # no function
    with pytest.raises(InvalidProgramError):
        TimeEvictor.of(5)  # type: ignore[arg-type]  # no Time
