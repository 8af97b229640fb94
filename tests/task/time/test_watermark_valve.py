"""The watermark of several channels, some of them idle."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from firesteel.task.time.watermark_valve import WatermarkValve


class Valve:
    """Two channels, and what was passed on."""

    def __init__(self, channels: int = 2) -> None:
        self.heard: list[int | bool] = []
        self.valve = WatermarkValve(self.heard.append, self.heard.append)
        self.channels = [self.valve.add_channel() for _ in range(channels)]

    def advance(self, channel: int, watermark: int) -> None:
        self.valve.advance(self.channels[channel], watermark)

    def idle(self, channel: int, idle: bool = True) -> None:
        self.valve.set_idle(self.channels[channel], idle=idle)


def test_the_least_watermark_counts_and_never_goes_back():
    valve = Valve()
    valve.advance(0, 5)
    valve.advance(1, 3)
    valve.advance(1, 2)
    valve.advance(1, 9)
    assert valve.heard == [3, 5]


def test_a_channel_that_becomes_idle_lets_the_others_go_on():
    valve = Valve()
    valve.advance(0, 5)
    valve.idle(1)
    assert valve.heard == [5]


def test_when_all_are_idle_the_furthest_watermark_holds():
    valve = Valve()
    valve.advance(0, 5)
    valve.advance(1, 3)
    valve.idle(0)
    assert valve.heard == [3]
    valve.idle(1)
    assert valve.heard == [3, 5, True]


def test_a_channel_that_wakes_up_makes_the_output_active():
    valve = Valve()
    valve.idle(0)
    valve.idle(1)
    valve.idle(1, False)
    valve.idle(0, False)
    assert valve.heard == [True, False]


def test_a_channel_that_wakes_up_behind_counts_once_it_has_caught_up():
    valve = Valve()
    valve.advance(1, 2)
    valve.idle(1)
    valve.advance(0, 10)
    valve.idle(1, False)
    valve.advance(0, 11)
    assert valve.heard == [10, 11]
    valve.advance(1, 11)
    valve.advance(0, 20)
    assert valve.heard == [10, 11]
    valve.advance(1, 15)
    assert valve.heard == [10, 11, 15]


def test_a_watermark_wakes_its_channel():
    valve = Valve(1)
    valve.idle(0)
    valve.advance(0, 4)
    assert valve.heard == [True, False, 4]


@given(
    st.lists(
        st.tuples(st.integers(0, 2), st.one_of(st.integers(-20, 20), st.booleans())), max_size=40
    )
)
def test_it_goes_on_after_a_restore_as_if_nothing_had_happened(events):
    valve = Valve(3)
    for number, (channel, event) in enumerate(events):
        before = list(valve.heard)
        restored = Valve(3)
        for old, new in zip(valve.channels, restored.channels, strict=True):
            new.watermark, new.idle = old.watermark, old.idle
        restored.valve.restore(valve.valve.watermark, idle=valve.valve.idle)
        for each in (valve, restored):
            if isinstance(event, bool):
                each.idle(channel, event)
            else:
                each.advance(channel, event)
        assert valve.heard[len(before) :] == restored.heard, number
    watermarks = [heard for heard in valve.heard if not isinstance(heard, bool)]
    assert watermarks == sorted(set(watermarks))
