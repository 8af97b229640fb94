"""The watermark of several channels and inputs, some of them idle."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from firesteel.task.time.watermark_valve import GateTime


class Valve:
    """Two channels of one input, and what was passed on."""

    inputs = (0,) * 3

    def __init__(self, channels: int = 2) -> None:
        self.heard: list[int | bool] = []
        self.time = GateTime(self.heard.append, self.heard.append)
        self.channels = [self.time.add_channel(index) for index in self.inputs[:channels]]

    def advance(self, channel: int, watermark: int) -> None:
        self.channels[channel].advance(watermark)

    def idle(self, channel: int, idle: bool = True) -> None:
        self.channels[channel].set_idle(idle)


class Inputs(Valve):
    """A channel of the first input, and two of the second."""

    inputs = (0, 1, 1)


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


def test_an_input_that_wakes_up_behind_holds_time_back():
    inputs = Inputs()
    inputs.advance(0, 1)
    inputs.idle(1)
    inputs.advance(0, 3)
    inputs.idle(1, False)
    inputs.advance(0, 4)
    assert inputs.heard == [1, 3]
    inputs.advance(1, 2)
    assert inputs.heard == [1, 3]
    inputs.advance(1, 9)
    assert inputs.heard == [1, 3, 4]


def test_when_all_inputs_are_idle_the_furthest_watermark_holds():
    inputs = Inputs()
    inputs.advance(0, 5)
    inputs.advance(1, 4)
    inputs.idle(0)
    inputs.idle(1)
    assert inputs.heard == [4, 5, True]


_events = st.lists(
    st.tuples(st.integers(0, 2), st.one_of(st.integers(-20, 20), st.booleans())), max_size=40
)


@given(kind=st.sampled_from([Valve, Inputs]), events=_events)
def test_it_goes_on_after_a_restore_as_if_nothing_had_happened(kind, events):
    gate = kind(3)
    for number, (channel, event) in enumerate(events):
        before = list(gate.heard)
        restored = kind(3)
        for old, new in zip(gate.channels, restored.channels, strict=True):
            new.watermark, new.idle = old.watermark, old.idle
        time = gate.time
        restored.time.restore(time.watermark, idle=time.idle, inputs=time.snapshot())
        for each in (gate, restored):
            if isinstance(event, bool):
                each.idle(channel, event)
            else:
                each.advance(channel, event)
        assert gate.heard[len(before) :] == restored.heard, number
    watermarks = [heard for heard in gate.heard if not isinstance(heard, bool)]
    assert watermarks == sorted(set(watermarks))


@given(events=_events)
def test_two_inputs_pass_on_what_the_rule_of_flink_gives(events):
    """Each input is a valve of its own, and the active inputs give the minimum, idle or not behind."""
    both, singles = Inputs(3), (Valve(1), Valve(2))
    expected: list[int | bool] = []
    newest, idle = -(2**63), False
    for channel, event in events:
        single, own = singles[channel > 0], max(0, channel - 1)
        for gate, index in ((both, channel), (single, own)):
            if isinstance(event, bool):
                gate.idle(index, event)
            else:
                gate.advance(index, event)
        times = [one.time for one in singles]
        active = [time.watermark for time in times if not time.idle]
        watermark = min(active) if active else max(time.watermark for time in times)
        expected += [False] if idle and active else []
        expected += [watermark] if watermark > newest else []
        expected += [True] if not idle and not active else []
        newest, idle = max(newest, watermark), not active
    # A watermark that wakes its channel comes in two steps.
    assert _settled(both.heard) == _settled(expected)


def _settled(heard: list[int | bool]) -> list[int | bool]:
    return [one for one in heard if not isinstance(one, bool)] + [
        one for one in heard if isinstance(one, bool)
    ]
