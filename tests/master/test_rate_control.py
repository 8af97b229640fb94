"""The read budget follows the target duration."""

import pytest

from firesteel.master.rate_control import RateControl, target_duration


def _budget(rate):
    return rate.budget().records


def test_an_epoch_that_is_too_short_grows_the_budget():
    rate = RateControl(target_seconds=1.0)
    first = _budget(rate)
    rate.epoch_took(0.5, first)
    assert _budget(rate) == 2 * first


def test_growth_is_bounded():
    rate = RateControl(target_seconds=1.0)
    first = _budget(rate)
    rate.epoch_took(0.000001, first)
    assert _budget(rate) == 8 * first


def test_slow_records_shrink_the_budget_at_once():
    # 1 ms a record, and a budget of 100,000: the epoch was cut off by its time.
    rate = RateControl(target_seconds=1.0, _records=100_000)
    rate.epoch_took(2.0, 2_000)
    assert _budget(rate) == 1_000


def test_shrinking_is_bounded_and_has_a_floor():
    rate = RateControl(target_seconds=1.0, _records=10_000)
    rate.epoch_took(1_000.0, 10_000)
    assert _budget(rate) == 1_000
    for _ in range(10):
        rate.epoch_took(1_000.0, 1)
    assert _budget(rate) == 100


def test_an_epoch_that_found_little_says_nothing():
    rate = RateControl(target_seconds=1.0)
    first = _budget(rate)
    rate.epoch_took(0.1, first // 2)
    assert _budget(rate) == first


def test_there_is_a_ceiling():
    rate = RateControl(target_seconds=1.0)
    for _ in range(50):
        rate.epoch_took(0.001, _budget(rate))
    assert _budget(rate) == 50_000_000


def test_a_configured_maximum_holds():
    rate = RateControl(target_seconds=1.0, max_records=10)
    assert _budget(rate) == 10
    rate.epoch_took(0.001, 10)
    assert _budget(rate) == 10


@pytest.mark.parametrize("cost", [1e-3, 1e-4, 1e-5, 1e-6])
def test_it_settles_near_the_target(cost):
    rate = RateControl(target_seconds=1.0)
    durations = []
    for _ in range(30):
        budget = rate.budget()
        # A source stops reading when its time is up.
        records = min(budget.records, int(budget.seconds / cost))
        durations.append(0.05 + records * cost)
        rate.epoch_took(durations[-1], records)
    assert all(0.8 < seconds < 1.2 for seconds in durations[-10:])
    assert max(durations) < 1.2


def test_the_time_of_a_budget_is_the_target():
    assert RateControl(target_seconds=0.7).budget().seconds == 0.7


def test_the_buffer_timeout_decides_the_target():
    assert target_duration(0) < target_duration(100) < target_duration(-1)
    assert target_duration(100) == pytest.approx(5.0)
    assert target_duration(10**9) == target_duration(-1)


def test_what_every_epoch_costs_is_not_put_down_to_its_records():
    rate = RateControl(target_seconds=4.3, _records=100_000)
    rate.epoch_took(0.3, 1_000)
    rate.epoch_took(1.3, 100_000)
    assert _budget(rate) == pytest.approx(400_000, rel=0.01)
