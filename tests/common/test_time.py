"""Duration, Instant and Time."""

import pickle
from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from firesteel.common import Duration, Instant, Time


def test_durations_of_different_units_compare():
    assert Duration.of_days(1) == Duration.of_hours(24) == Duration.of_minutes(1440)
    assert Duration.of_seconds(1) == Duration.of_millis(1000) == Duration.of_nanos(10**9)
    assert Duration.of_seconds(1) < Duration.of_minutes(1)
    assert Duration.of_timedelta(timedelta(seconds=2)).to_millis() == 2000
    assert Duration.of_seconds(2).to_timedelta() == timedelta(seconds=2)


@given(st.integers(-(10**15), 10**15))
def test_instants_keep_milliseconds(millis):
    instant = Instant.of_epoch_milli(millis)
    assert instant.to_epoch_milli() == millis
    assert 0 <= instant.nanos < 10**9
    assert pickle.loads(pickle.dumps(instant)) == instant


def test_an_instant_before_1970():
    assert Instant.of_epoch_milli(-1) == Instant(-1, 999_000_000)


def test_times():
    assert Time.days(1) == Time.hours(24) == Time.minutes(1440) == Time.seconds(86400)
    assert Time.milliseconds(5).to_milliseconds() == 5
    assert str(Time.seconds(1)) == "1000 ms"
    assert len({Time.seconds(1), Time.milliseconds(1000)}) == 1
