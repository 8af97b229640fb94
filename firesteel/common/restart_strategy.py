"""What to do when a job fails: the configuration only."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from datetime import timedelta

__all__ = ["RestartStrategies", "RestartStrategyConfiguration"]


class RestartStrategyConfiguration(ABC):
    """Base of the restart strategies."""

    @abstractmethod
    def get_description(self) -> str:
        """The text that the dashboard shows."""

    @abstractmethod
    def to_settings(self) -> dict[str, str]:
        """The same thing as Flink's configuration keys."""


def _interval(value: object, name: str) -> timedelta:
    if isinstance(value, timedelta):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return timedelta(milliseconds=value)
    raise TypeError(f"{name} is an int of milliseconds or a timedelta, not {value!r}.")


def _millis(value: timedelta) -> str:
    return f"{value // timedelta(milliseconds=1)} ms"


class RestartStrategies:
    """Makes restart strategies.

    >>> RestartStrategies.fixed_delay_restart(3, 1000).get_restart_attempts()
    3
    """

    @dataclass(frozen=True)
    class NoRestartStrategyConfiguration(RestartStrategyConfiguration):
        """A failure is final."""

        def get_description(self) -> str:
            return "Restart deactivated."

        def to_settings(self) -> dict[str, str]:
            return {"restart-strategy.type": "none"}

    @dataclass(frozen=True)
    class FallbackRestartStrategyConfiguration(RestartStrategyConfiguration):
        """What the cluster's configuration says."""

        def get_description(self) -> str:
            return "Cluster level default restart strategy"

        def to_settings(self) -> dict[str, str]:
            return {}

    @dataclass(frozen=True, init=False)
    class FixedDelayRestartStrategyConfiguration(RestartStrategyConfiguration):
        """A number of attempts with a pause between them."""

        restart_attempts: int
        delay_between_attempts: timedelta

        def __init__(
            self, restart_attempts: int, delay_between_attempts_interval: timedelta | int
        ) -> None:
            delay = _interval(delay_between_attempts_interval, "delay_between_attempts_interval")
            object.__setattr__(self, "restart_attempts", restart_attempts)
            object.__setattr__(self, "delay_between_attempts", delay)

        def get_restart_attempts(self) -> int:
            return self.restart_attempts

        def get_delay_between_attempts_interval(self) -> timedelta:
            return self.delay_between_attempts

        def get_description(self) -> str:
            return (
                f"Restart with fixed delay ({_millis(self.delay_between_attempts)}). "
                f"#{self.restart_attempts} restart attempts."
            )

        def to_settings(self) -> dict[str, str]:
            return {
                "restart-strategy.type": "fixed-delay",
                "restart-strategy.fixed-delay.attempts": str(self.restart_attempts),
                "restart-strategy.fixed-delay.delay": _millis(self.delay_between_attempts),
            }

    @dataclass(frozen=True, init=False)
    class FailureRateRestartStrategyConfiguration(RestartStrategyConfiguration):
        """Restart as long as failures are not too frequent."""

        max_failure_rate: int
        failure_interval: timedelta
        delay_between_attempts: timedelta

        def __init__(
            self,
            max_failure_rate: int,
            failure_interval: timedelta | int,
            delay_between_attempts_interval: timedelta | int,
        ) -> None:
            interval = _interval(failure_interval, "failure_interval")
            delay = _interval(delay_between_attempts_interval, "delay_between_attempts_interval")
            object.__setattr__(self, "max_failure_rate", max_failure_rate)
            object.__setattr__(self, "failure_interval", interval)
            object.__setattr__(self, "delay_between_attempts", delay)

        def get_max_failure_rate(self) -> int:
            return self.max_failure_rate

        def get_failure_interval(self) -> timedelta:
            return self.failure_interval

        def get_delay_between_attempts_interval(self) -> timedelta:
            return self.delay_between_attempts

        def get_description(self) -> str:
            return (
                f"Failure rate restart with maximum of {self.max_failure_rate} failures within "
                f"interval {_millis(self.failure_interval)} and fixed delay "
                f"{_millis(self.delay_between_attempts)}."
            )

        def to_settings(self) -> dict[str, str]:
            prefix = "restart-strategy.failure-rate."
            return {
                "restart-strategy.type": "failure-rate",
                f"{prefix}max-failures-per-interval": str(self.max_failure_rate),
                f"{prefix}failure-rate-interval": _millis(self.failure_interval),
                f"{prefix}delay": _millis(self.delay_between_attempts),
            }

    @dataclass(frozen=True)
    class ExponentialDelayRestartStrategyConfiguration(RestartStrategyConfiguration):
        """Pauses that grow with every failure (beyond PyFlink)."""

        initial_backoff: timedelta
        max_backoff: timedelta
        backoff_multiplier: float
        reset_backoff_threshold: timedelta
        jitter_factor: float
        attempts_before_reset_backoff: int | None = None

        def get_description(self) -> str:
            return (
                f"Restart with exponential delay: starting at {_millis(self.initial_backoff)}, "
                f"increasing by {self.backoff_multiplier}, with maximum "
                f"{_millis(self.max_backoff)}. Delay resets after "
                f"{_millis(self.reset_backoff_threshold)} with jitter {self.jitter_factor}."
            )

        def to_settings(self) -> dict[str, str]:
            prefix = "restart-strategy.exponential-delay."
            settings = {
                "restart-strategy.type": "exponential-delay",
                f"{prefix}initial-backoff": _millis(self.initial_backoff),
                f"{prefix}max-backoff": _millis(self.max_backoff),
                f"{prefix}backoff-multiplier": str(self.backoff_multiplier),
                f"{prefix}reset-backoff-threshold": _millis(self.reset_backoff_threshold),
                f"{prefix}jitter-factor": str(self.jitter_factor),
            }
            if self.attempts_before_reset_backoff is not None:
                attempts = str(self.attempts_before_reset_backoff)
                settings[f"{prefix}attempts-before-reset-backoff"] = attempts
            return settings

    @staticmethod
    def no_restart() -> NoRestartStrategyConfiguration:
        return RestartStrategies.NoRestartStrategyConfiguration()

    @staticmethod
    def fall_back_restart() -> FallbackRestartStrategyConfiguration:
        return RestartStrategies.FallbackRestartStrategyConfiguration()

    @staticmethod
    def fixed_delay_restart(
        restart_attempts: int, delay_between_attempts: timedelta | int
    ) -> FixedDelayRestartStrategyConfiguration:
        """Delays are ints of milliseconds or timedeltas."""
        return RestartStrategies.FixedDelayRestartStrategyConfiguration(
            restart_attempts, delay_between_attempts
        )

    @staticmethod
    def failure_rate_restart(
        failure_rate: int, failure_interval: timedelta | int, delay_interval: timedelta | int
    ) -> FailureRateRestartStrategyConfiguration:
        """Fail for good after more than ``failure_rate`` failures within the interval."""
        return RestartStrategies.FailureRateRestartStrategyConfiguration(
            failure_rate, failure_interval, delay_interval
        )

    @staticmethod
    def exponential_delay_restart(
        initial_backoff: timedelta | int = 1000,
        max_backoff: timedelta | int = 60_000,
        backoff_multiplier: float = 1.5,
        reset_backoff_threshold: timedelta | int = 3_600_000,
        jitter_factor: float = 0.1,
        attempts_before_reset_backoff: int | None = None,
    ) -> ExponentialDelayRestartStrategyConfiguration:
        """Delays are ints of milliseconds or timedeltas (beyond PyFlink)."""
        return RestartStrategies.ExponentialDelayRestartStrategyConfiguration(
            _interval(initial_backoff, "initial_backoff"),
            _interval(max_backoff, "max_backoff"),
            backoff_multiplier,
            _interval(reset_backoff_threshold, "reset_backoff_threshold"),
            jitter_factor,
            attempts_before_reset_backoff,
        )
