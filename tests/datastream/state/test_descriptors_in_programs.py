"""State descriptors and times to live that cannot work are refused where they are written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from firesteel.common import Duration, Time, Types
from firesteel.datastream.functions import KeyedProcessFunction
from firesteel.datastream.state import (
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    StateTtlConfig,
    ValueStateDescriptor,
)
from firesteel.errors import UserFunctionError
from firesteel.testing import OperatorHarness


@pytest.mark.parametrize(
    "make",
    [
        lambda wrong: ValueStateDescriptor("s", wrong),
        lambda wrong: ListStateDescriptor("s", wrong),
        lambda wrong: MapStateDescriptor("s", Types.INT(), wrong),
        lambda wrong: MapStateDescriptor("s", wrong, Types.INT()),
        lambda wrong: ReducingStateDescriptor("s", max, wrong),
    ],
    ids=["value", "list", "map value", "map key", "reducing"],
)
@pytest.mark.parametrize("wrong", [Types.INT, "INT", int], ids=["uncalled", "text", "class"])
def test_a_type_must_be_one(make: Callable[[Any], Any], wrong: Any) -> None:
    with pytest.raises(TypeError, match=r"type of the state 's' must be a TypeInformation"):
        make(wrong)


@pytest.mark.parametrize("ttl", [Time.seconds(0), Time.seconds(-1), Duration.of_nanos(1)])
def test_a_time_to_live_is_positive(ttl: Any) -> None:
    with pytest.raises(ValueError, match="at least one millisecond"):
        StateTtlConfig.new_builder(ttl)


def test_a_time_to_live_may_be_a_duration_but_no_number() -> None:
    config = StateTtlConfig.new_builder(Duration.of_seconds(2)).build()  # type: ignore[arg-type]
    assert config.get_ttl() == Time.seconds(2)
    with pytest.raises(TypeError, match=r"Time.hours\(1\)"):
        StateTtlConfig.new_builder(1000)  # type: ignore[arg-type]


@pytest.mark.parametrize("size", [-3, 1.5, None])
def test_cleaning_up_needs_a_number_of_entries(size: Any) -> None:
    with pytest.raises(ValueError, match="an int of at least 0"):
        StateTtlConfig.new_builder(Time.seconds(1)).cleanup_incrementally(size, True)


def _asks_for(*getters: Callable[[Any], Any]) -> OperatorHarness:
    class Asks(KeyedProcessFunction):
        def open(self, runtime_context: Any) -> None:
            self.states = [getter(runtime_context) for getter in getters]

        def process_element(self, value: Any, ctx: Any) -> Any:
            yield len({id(state) for state in self.states})

    return OperatorHarness.of(lambda s: s.key_by(lambda v: v).process(Asks()))


def _value(type_info: Any) -> Callable[[Any], Any]:
    return lambda context: context.get_state(ValueStateDescriptor("s", type_info))


@pytest.mark.parametrize(
    ("second", "named"),
    [
        (_value(Types.STRING()), "ValueStateDescriptor('s', String)"),
        (
            lambda context: context.get_list_state(ListStateDescriptor("s", Types.LONG())),
            "ListStateDescriptor",
        ),
        (
            lambda context: context.get_reducing_state(
                ReducingStateDescriptor("s", max, Types.LONG())
            ),
            "ReducingStateDescriptor",
        ),
    ],
    ids=["other type", "other kind", "other kind of the same table"],
)
def test_one_name_is_one_state(second: Any, named: str) -> None:
    with pytest.raises(UserFunctionError) as caught:
        _asks_for(_value(Types.LONG()), second).process_element(1)
    assert "ValueStateDescriptor('s', Long)" in str(caught.value)
    assert named in str(caught.value)


def test_asking_again_gives_the_same_state() -> None:
    with _asks_for(_value(Types.LONG()), _value(Types.LONG())) as harness:
        harness.process_element(1)
        assert harness.output == [1]
