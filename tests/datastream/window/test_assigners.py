"""Window assigners: the windows of each record."""

from __future__ import annotations

import pytest

from firesteel.common.time import Duration, Time
from firesteel.datastream.window import (
    CountSlidingWindowAssigner,
    CountTrigger,
    DynamicEventTimeSessionWindows,
    DynamicProcessingTimeSessionWindows,
    EventTimeSessionWindows,
    EventTimeTrigger,
    GlobalWindow,
    GlobalWindows,
    NeverTrigger,
    NoTimestampError,
    ProcessingTimeSessionWindows,
    ProcessingTimeTrigger,
    PurgingTrigger,
    SessionWindowTimeGapExtractor,
    SlidingEventTimeWindows,
    SlidingProcessingTimeWindows,
    TumblingEventTimeWindows,
    TumblingProcessingTimeWindows,
    WindowAssigner,
    WindowStagger,
)
from firesteel.errors import InvalidProgramError

_NO_TIMESTAMP = -(2**63)
_MS = Time.milliseconds


class Context(WindowAssigner.WindowAssignerContext):
    def get_current_processing_time(self):
        return 1_003

    def get_runtime_context(self):
        raise NotImplementedError


def _windows(assigner, timestamp=_NO_TIMESTAMP, element=None):
    return [tuple(window) for window in assigner.assign_windows(element, timestamp, Context())]


@pytest.mark.parametrize(
    ("assigner", "timestamp", "expected"),
    [
        (TumblingEventTimeWindows.of(_MS(10)), 10, [(10, 20)]),
        (TumblingEventTimeWindows.of(_MS(10), _MS(5)), 10, [(5, 15)]),
        (TumblingEventTimeWindows.of(_MS(10), _MS(-5)), 4, [(-5, 5)]),
        (TumblingEventTimeWindows.of(Duration.of_seconds(1)), -1, [(-1000, 0)]),
        (SlidingEventTimeWindows.of(_MS(10), _MS(5)), 12, [(10, 20), (5, 15)]),
        (SlidingEventTimeWindows.of(_MS(10), _MS(5), _MS(1)), 10, [(6, 16), (1, 11)]),
        (SlidingEventTimeWindows.of(_MS(5), _MS(10)), 4, [(0, 5)]),
        (SlidingEventTimeWindows.of(_MS(5), _MS(10)), 7, []),
        (TumblingProcessingTimeWindows.of(_MS(10)), 5, [(1000, 1010)]),
        (SlidingProcessingTimeWindows.of(_MS(4), _MS(2)), 5, [(1002, 1006), (1000, 1004)]),
        (EventTimeSessionWindows.with_gap(_MS(7)), 3, [(3, 10)]),
        (ProcessingTimeSessionWindows.with_gap(_MS(7)), 3, [(1003, 1010)]),
        (GlobalWindows.create(), 3, [()]),
    ],
)
def test_windows_of_a_record(assigner, timestamp, expected):
    assert _windows(assigner, timestamp) == expected


class Length(SessionWindowTimeGapExtractor):
    def extract(self, element):
        return len(element)


def test_a_dynamic_gap_comes_from_the_record():
    by_event = EventTimeSessionWindows.with_dynamic_gap(Length())
    assert isinstance(by_event, DynamicEventTimeSessionWindows)
    assert _windows(by_event, 3, "four") == [(3, 7)]
    by_clock = ProcessingTimeSessionWindows.with_dynamic_gap(Length())
    assert isinstance(by_clock, DynamicProcessingTimeSessionWindows)
    assert _windows(by_clock, 3, "four") == [(1003, 1007)]
    with pytest.raises(ValueError, match="positive"):
        _windows(by_event, 3, "")


@pytest.mark.parametrize(
    "assigner",
    [
        TumblingEventTimeWindows.of(_MS(10)),
        SlidingEventTimeWindows.of(_MS(10), _MS(5)),
        EventTimeSessionWindows.with_gap(_MS(10)),
        DynamicEventTimeSessionWindows(Length()),
    ],
)
def test_event_time_needs_a_timestamp(assigner):
    with pytest.raises(NoTimestampError, match="assign_timestamps_and_watermarks"):
        _windows(assigner, element="x")


@pytest.mark.parametrize(
    ("assigner", "trigger", "event_time"),
    [
        (TumblingEventTimeWindows.of(_MS(1)), EventTimeTrigger, True),
        (SlidingEventTimeWindows.of(_MS(1), _MS(1)), EventTimeTrigger, True),
        (EventTimeSessionWindows.with_gap(_MS(1)), EventTimeTrigger, True),
        (DynamicEventTimeSessionWindows(Length()), EventTimeTrigger, True),
        (TumblingProcessingTimeWindows.of(_MS(1)), ProcessingTimeTrigger, False),
        (SlidingProcessingTimeWindows.of(_MS(1), _MS(1)), ProcessingTimeTrigger, False),
        (ProcessingTimeSessionWindows.with_gap(_MS(1)), ProcessingTimeTrigger, False),
        (DynamicProcessingTimeSessionWindows(Length()), ProcessingTimeTrigger, False),
        (GlobalWindows.create(), NeverTrigger, False),
        (CountSlidingWindowAssigner.of(3, 1), PurgingTrigger, False),
    ],
)
def test_default_triggers(assigner, trigger, event_time):
    assert type(assigner.get_default_trigger(None)) is trigger
    assert assigner.is_event_time() is event_time


@pytest.mark.parametrize(
    "create",
    [
        lambda: TumblingEventTimeWindows.of(_MS(0)),
        lambda: TumblingEventTimeWindows.of(_MS(10), _MS(10)),
        lambda: TumblingEventTimeWindows.of(10),  # type: ignore[arg-type]  # no Time
        lambda: SlidingProcessingTimeWindows.of(_MS(10), _MS(0)),
        lambda: SlidingEventTimeWindows.of(_MS(10), _MS(5), _MS(-5)),
        lambda: SlidingEventTimeWindows.of(_MS(10_000_001), _MS(1)),
        lambda: SlidingProcessingTimeWindows.of(_MS(20_000_002), _MS(2)),
        lambda: EventTimeSessionWindows.with_gap(_MS(0)),
        lambda: ProcessingTimeSessionWindows.with_dynamic_gap(len),  # type: ignore[arg-type]
        lambda: CountSlidingWindowAssigner(0, 1),
        lambda: CountTrigger(0),
        lambda: PurgingTrigger(None),  # type: ignore[arg-type]  # no trigger
    ],
)
def test_what_makes_no_window_is_refused_at_once(create):
    with pytest.raises(InvalidProgramError):
        create()


def test_the_global_window_is_always_the_same():
    assert GlobalWindow() == GlobalWindow.get()


@pytest.mark.parametrize("assigner", [TumblingEventTimeWindows, TumblingProcessingTimeWindows])
def test_a_stagger_shifts_all_windows_from_the_first_record_on(assigner):
    aligned = assigner.of(_MS(10), _MS(2), WindowStagger.ALIGNED)
    assert _windows(aligned, 1_003) == [(1_002, 1_012)]
    # Processing time is 1003, so windows begin 3 ms later.
    natural = assigner.of(_MS(10), _MS(2), WindowStagger.NATURAL)
    assert _windows(natural, 1_003) == [(995, 1_005)]
    drawn = assigner.of(_MS(10), None, WindowStagger.RANDOM)
    ((start, end),) = _windows(drawn, 1_003)
    assert start <= 1_003 < end == start + 10
    assert _windows(drawn, 1_003) == [(start, end)]


def test_a_stagger_is_a_window_stagger():
    with pytest.raises(InvalidProgramError, match=r"WindowStagger\.NATURAL"):
        TumblingEventTimeWindows.of(_MS(10), _MS(0), "natural")  # type: ignore[arg-type]  # refused


def test_ten_million_slides_are_the_most():
    assert SlidingEventTimeWindows.of(_MS(10_000_000), _MS(1)).size == 10_000_000
    with pytest.raises(InvalidProgramError, match=r"10,000,001 windows.*at most 10,000,000"):
        SlidingEventTimeWindows.of(_MS(10_000_001), _MS(1))
