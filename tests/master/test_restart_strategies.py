"""Restart strategies: Flink's rules and defaults for restarts and their delays."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firesteel.common import Configuration, RestartStrategies
from firesteel.errors import ConfigurationError
from firesteel.master.restart_strategies import (
    ExponentialDelayRestartStrategy,
    FailureRateRestartStrategy,
    FixedDelayRestartStrategy,
    NoRestartStrategy,
    restart_strategy,
)


def _configured(**settings: Any) -> Any:
    keys = {key.replace("__", ".").replace("_", "-"): value for key, value in settings.items()}
    return restart_strategy(Configuration.from_dict(keys), uniform=lambda low, high: 0.0)


def test_without_a_strategy_a_failure_is_final() -> None:
    decision = NoRestartStrategy().failed(0.0)
    assert (decision.restart, decision.reason) == (False, "no restart strategy is set")


def test_fixed_delay_restarts_as_often_as_it_says() -> None:
    strategy = FixedDelayRestartStrategy(attempts=2, delay=3.0)
    decisions = [strategy.failed(now) for now in (0.0, 1000.0, 2000.0)]
    assert [(d.restart, d.delay, d.attempt) for d in decisions] == [
        (True, 3.0, 1),
        (True, 3.0, 2),
        (False, 0.0, 2),
    ]
    assert "all 2 restarts" in decisions[-1].reason


def test_failure_rate_counts_failures_within_the_interval() -> None:
    strategy = FailureRateRestartStrategy(max_failures=2, interval=60.0, delay=1.0)
    assert [strategy.failed(now).restart for now in (0, 30, 61, 91)] == [True] * 4
    assert not strategy.failed(100).restart


@given(st.lists(st.floats(0, 50), min_size=1, max_size=30), st.integers(1, 4))
def test_failure_rate_stops_exactly_when_the_rate_is_exceeded(
    pauses: list[float], max_failures: int
) -> None:
    strategy = FailureRateRestartStrategy(max_failures, interval=60.0, delay=0.0)
    now, failures = 0.0, []
    for pause in pauses:
        now += pause
        failures.append(now)
        within = [failure for failure in failures if now - failure <= 60.0]
        assert strategy.failed(now).restart == (len(within) <= max_failures)


class TestExponentialDelay:
    def test_the_pause_grows_up_to_its_limit_without_end(self) -> None:
        strategy = ExponentialDelayRestartStrategy(jitter=0)
        now, delays = 0.0, []
        for _ in range(2000):
            decision = strategy.failed(now)
            assert decision.restart
            delays.append(decision.delay)
            now += decision.delay + 1
        assert delays[:4] == pytest.approx([1.0, 1.5, 2.25, 3.375])
        assert delays[-1] == pytest.approx(60.0)
        assert delays == sorted(delays) or max(delays) == pytest.approx(60.0)

    def test_after_a_good_time_it_starts_over(self) -> None:
        strategy = ExponentialDelayRestartStrategy(jitter=0)
        first = strategy.failed(0.0)
        second = strategy.failed(first.delay + 1)
        restarted_at = first.delay + 1 + second.delay
        assert strategy.failed(restarted_at + 3599).delay == pytest.approx(2.25)
        assert strategy.failed(10_000_000).delay == pytest.approx(1.0)

    def test_failures_while_waiting_belong_to_the_same_restart(self) -> None:
        strategy = ExponentialDelayRestartStrategy(initial=10, jitter=0)
        assert strategy.failed(100.0).delay == pytest.approx(10.0)
        again = strategy.failed(104.0)
        assert again.delay == pytest.approx(6.0)
        assert again.attempt == 1

    def test_attempts_count_until_it_starts_over(self) -> None:
        strategy = ExponentialDelayRestartStrategy(attempts=2, jitter=0)
        assert [strategy.failed(now).restart for now in (0, 100, 200)] == [True, True, False]
        strategy = ExponentialDelayRestartStrategy(attempts=2, jitter=0)
        assert [strategy.failed(now).restart for now in (0, 100, 9000, 9100)] == [True] * 4

    @given(st.floats(-1, 1), st.integers(0, 20))
    def test_jitter_moves_the_pause_by_its_part(self, position: float, failures: int) -> None:
        strategy = ExponentialDelayRestartStrategy(
            jitter=0.1, uniform=lambda low, high: (low + high) / 2 + position * (high - low) / 2
        )
        now = 0.0
        for _ in range(failures):
            now += strategy.failed(now).delay + 1
        exact = 1.5**failures
        delay = strategy.failed(now).delay
        assert 1.0 <= delay <= 60.000001
        if 1.2 < exact < 50:
            assert delay == pytest.approx(exact * (1 + 0.1 * position))


class TestChoice:
    def test_the_default_depends_on_checkpoints(self) -> None:
        assert _configured() == NoRestartStrategy()
        strategy = _configured(execution__checkpointing__interval="10 s")
        assert isinstance(strategy, ExponentialDelayRestartStrategy)
        assert (strategy.initial, strategy.maximum, strategy.multiplier) == (1.0, 60.0, 1.5)
        assert (strategy.reset_threshold, strategy.jitter) == (3600.0, 0.1)
        assert strategy.attempts == 2**31 - 1

    @pytest.mark.parametrize("name", ["none", "off", "disable"])
    def test_none_counts_even_with_checkpoints(self, name: str) -> None:
        settings = {"restart-strategy.type": name, "execution.checkpointing.interval": "10 s"}
        assert restart_strategy(Configuration.from_dict(settings)) == NoRestartStrategy()

    def test_from_keys(self) -> None:
        fixed = {"restart-strategy": "fixed-delay", "restart-strategy.fixed-delay.attempts": "5"}
        assert restart_strategy(Configuration.from_dict(fixed)) == FixedDelayRestartStrategy(5, 1.0)
        rate = {
            "restart-strategy.type": "failure-rate",
            "restart-strategy.failure-rate.max-failures-per-interval": "3",
            "restart-strategy.failure-rate.failure-rate-interval": "5 min",
            "restart-strategy.failure-rate.delay": "10 s",
        }
        assert restart_strategy(Configuration.from_dict(rate)) == FailureRateRestartStrategy(
            3, 300.0, 10.0
        )

    def test_what_the_program_says_counts_more(self) -> None:
        settings = Configuration.from_dict({"restart-strategy.type": "none"})
        given = RestartStrategies.fixed_delay_restart(4, timedelta(seconds=2))
        assert restart_strategy(settings, given) == FixedDelayRestartStrategy(4, 2.0)
        fallback = RestartStrategies.fall_back_restart()
        assert restart_strategy(settings, fallback) == NoRestartStrategy()
        exponential = RestartStrategies.exponential_delay_restart(
            500, attempts_before_reset_backoff=7
        )
        strategy = restart_strategy(settings, exponential)
        assert isinstance(strategy, ExponentialDelayRestartStrategy)
        assert (strategy.initial, strategy.attempts) == (0.5, 7)

    @pytest.mark.parametrize(
        ("kind", "key", "value"),
        [
            ("fixed-delay", "attempts", "-1"),
            ("failure-rate", "max-failures-per-interval", "0"),
            ("failure-rate", "failure-rate-interval", "0 ms"),
            ("exponential-delay", "initial-backoff", "2 min"),
            ("exponential-delay", "backoff-multiplier", "1.0"),
            ("exponential-delay", "jitter-factor", "1.5"),
            ("exponential-delay", "attempts-before-reset-backoff", "0"),
        ],
    )
    def test_impossible_settings_are_named(self, kind: str, key: str, value: str) -> None:
        settings = {"restart-strategy.type": kind, f"restart-strategy.{kind}.{key}": value}
        with pytest.raises(ConfigurationError, match=f"restart-strategy.{kind}"):
            restart_strategy(Configuration.from_dict(settings))
