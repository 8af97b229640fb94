"""Joins in the API: valid programs, and the errors for invalid ones."""

import pytest

from firesteel.common import Types
from firesteel.common.time import Time
from firesteel.datastream.data_stream.joins import CrossJoinError
from firesteel.datastream.window import (
    EventTimeSessionWindows,
    NeverTrigger,
    TumblingEventTimeWindows,
)
from firesteel.errors import InvalidProgramError

_TUMBLING = TumblingEventTimeWindows.of(Time.seconds(1))
_SESSIONS = EventTimeSessionWindows.with_gap(Time.seconds(1))


def _pair(first, second):
    return first, second


def test_a_join_without_a_condition_is_refused(env):
    numbers = env.from_sequence(1, 9)
    with pytest.raises(CrossJoinError, match=r"where\(...\).equal_to\(...\) is missing"):
        numbers.join(numbers).window(_TUMBLING)
    with pytest.raises(CrossJoinError, match=r"co_group: apply\(\) .* equal_to\(...\) is missing"):
        numbers.co_group(numbers).where(abs).apply(_pair)
    with pytest.raises(InvalidProgramError, match="cross join"):
        numbers.join(numbers).apply(_pair)


def test_a_trigger_that_cannot_merge_is_refused(env):
    pair = env.from_sequence(1, 9).join(env.from_sequence(1, 9)).where(abs).equal_to(abs)

    class Stubborn(NeverTrigger):
        def can_merge(self):
            return False

    with pytest.raises(InvalidProgramError, match="merges windows"):
        pair.window(_SESSIONS).trigger(Stubborn()).apply(_pair)


def test_keys_of_different_types_are_refused(env):
    numbers = env.from_sequence(1, 9)
    with pytest.raises(InvalidProgramError, match="different types"):
        numbers.join(numbers).where(abs, Types.LONG()).equal_to(str, Types.STRING())


def test_a_join_of_something_else_is_refused(env):
    with pytest.raises(InvalidProgramError, match="join expects a DataStream"):
        env.from_sequence(1, 9).join([1, 2])


def test_an_interval_join_needs_a_key_on_both_sides(env):
    numbers = env.from_sequence(1, 9)
    with pytest.raises(InvalidProgramError, match="two keyed streams"):
        numbers.key_by(abs).interval_join(numbers)
    with pytest.raises(AttributeError):
        numbers.interval_join(numbers)


def test_an_interval_join_needs_an_interval_in_event_time(env):
    numbers = env.from_sequence(1, 9).key_by(abs)
    join = numbers.interval_join(numbers)
    with pytest.raises(InvalidProgramError, match="1000 ms > -1000 ms"):
        join.between(Time.seconds(1), Time.seconds(-1))
    with pytest.raises(InvalidProgramError, match="only event time"):
        join.in_processing_time()
    with pytest.raises(InvalidProgramError, match="ProcessJoinFunction"):
        join.between(Time.seconds(0), Time.seconds(1)).process(_pair)


def test_a_join_without_a_window_needs_a_key_condition(env):
    numbers = env.from_sequence(1, 9)
    with pytest.raises(CrossJoinError, match="join_on: apply"):
        numbers.join_on(numbers).apply()
    with pytest.raises(CrossJoinError, match="join_on: filter"):
        numbers.join_on(numbers).where(abs).filter(lambda left, right: left < right)
    with pytest.raises(InvalidProgramError, match="cross join cannot be distributed"):
        numbers.join_on(numbers, "cross")


def test_a_join_without_a_window_says_what_it_expects(env):
    numbers = env.from_sequence(1, 9)
    with pytest.raises(InvalidProgramError, match="inner, left, right, full"):
        numbers.join_on(numbers, "outer")
    keyed = numbers.join_on(numbers).where(abs).equal_to(abs)
    with pytest.raises(InvalidProgramError, match="with_ttl"):
        keyed.with_ttl(5)
    with pytest.raises(InvalidProgramError, match="filter of a join"):
        keyed.filter("x")
    with pytest.raises(InvalidProgramError, match="apply of a join"):
        keyed.apply("x")
