"""Restart strategies: the configuration of a job's reaction to failures."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from datetime import timedelta

from firesteel.stability import public_evolving

__all__ = ["RestartStrategies", "RestartStrategyConfiguration"]


class RestartStrategyConfiguration(ABC):
    """Base class of the restart strategies.

    >>> RestartStrategies.no_restart().get_description()
    'Restart deactivated.'
    >>> RestartStrategies.no_restart().to_settings()
    {'restart-strategy.type': 'none'}
    """

    @abstractmethod
    def get_description(self) -> str:
        """Return the text that the dashboard shows."""

    @abstractmethod
    @public_evolving
    def to_settings(self) -> dict[str, str]:
        """Return the strategy as Flink's configuration keys. Not in PyFlink."""


def _interval(value: object, name: str) -> timedelta:
    if isinstance(value, timedelta):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return timedelta(milliseconds=value)
    raise TypeError(f"{name} must be an int of milliseconds or a timedelta, got {value!r}.")


def _millis(value: timedelta) -> str:
    return f"{value // timedelta(milliseconds=1)} ms"


class RestartStrategies:
    """Creates restart strategies for ``env.set_restart_strategy()``.

    Delays and intervals are timedeltas, or ints of milliseconds.

    >>> from firesteel.testing import Crash, ScriptedSource
    >>> env = env.set_restart_strategy(RestartStrategies.fixed_delay_restart(3, 1000))
    >>> env = env.enable_checkpointing(1000)
    >>> numbers = ScriptedSource([1, 2, Crash(), 3])
    >>> stream = env.from_source(numbers, WatermarkStrategy.no_watermarks(), "numbers")
    >>> list(stream.execute_and_collect())
    [1, 2, 3]
    """

    @dataclass(frozen=True)
    class NoRestartStrategyConfiguration(RestartStrategyConfiguration):
        """Fails the job with its first failure.

        >>> RestartStrategies.no_restart() == RestartStrategies.NoRestartStrategyConfiguration()
        True
        """

        def get_description(self) -> str:
            return "Restart deactivated."

        def to_settings(self) -> dict[str, str]:
            return {"restart-strategy.type": "none"}

    @dataclass(frozen=True)
    class FallbackRestartStrategyConfiguration(RestartStrategyConfiguration):
        """Takes the strategy from the configuration.

        >>> RestartStrategies.fall_back_restart().get_description()
        'Cluster level default restart strategy'
        """

        def get_description(self) -> str:
            return "Cluster level default restart strategy"

        def to_settings(self) -> dict[str, str]:
            return {}

    @dataclass(frozen=True, init=False)
    class FixedDelayRestartStrategyConfiguration(RestartStrategyConfiguration):
        """Restarts a limited number of times, with the same delay before each attempt.

        >>> strategy = RestartStrategies.fixed_delay_restart(3, 1000)
        >>> strategy.get_restart_attempts(), strategy.get_delay_between_attempts_interval()
        (3, datetime.timedelta(seconds=1))
        """

        restart_attempts: int
        delay_between_attempts: timedelta

        def __init__(
            self, restart_attempts: int, delay_between_attempts_interval: timedelta | int
        ) -> None:
            delay = _interval(delay_between_attempts_interval, "delay_between_attempts_interval")
            object.__setattr__(self, "restart_attempts", restart_attempts)
            object.__setattr__(self, "delay_between_attempts", delay)

        def get_restart_attempts(self) -> int:
            """Return the number of restarts before the job fails."""
            return self.restart_attempts

        def get_delay_between_attempts_interval(self) -> timedelta:
            """Return the delay before each restart."""
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
        """Restarts while the number of failures in an interval stays below a limit.

        >>> strategy = RestartStrategies.failure_rate_restart(5, 60_000, 1000)
        >>> strategy.get_max_failure_rate(), strategy.get_failure_interval()
        (5, datetime.timedelta(seconds=60))
        >>> strategy.get_delay_between_attempts_interval()
        datetime.timedelta(seconds=1)
        """

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
            """Return the number of failures that an interval may have."""
            return self.max_failure_rate

        def get_failure_interval(self) -> timedelta:
            """Return the interval in which failures count."""
            return self.failure_interval

        def get_delay_between_attempts_interval(self) -> timedelta:
            """Return the delay before each restart."""
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

    @public_evolving
    @dataclass(frozen=True)
    class ExponentialDelayRestartStrategyConfiguration(RestartStrategyConfiguration):
        """Restarts with delays that grow with each failure. Not in PyFlink.

        >>> RestartStrategies.exponential_delay_restart(1000, 60_000, 2.0).get_description()
        'Restart with exponential delay: starting at 1000 ms, increasing by 2.0, ...'
        """

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
        """Fail the job with its first failure.

        >>> RestartStrategies.no_restart().to_settings()
        {'restart-strategy.type': 'none'}
        """
        return RestartStrategies.NoRestartStrategyConfiguration()

    @staticmethod
    def fall_back_restart() -> FallbackRestartStrategyConfiguration:
        """Take the strategy from the configuration, for example from the configuration file.

        >>> RestartStrategies.fall_back_restart().to_settings()
        {}
        """
        return RestartStrategies.FallbackRestartStrategyConfiguration()

    @staticmethod
    def fixed_delay_restart(
        restart_attempts: int, delay_between_attempts: timedelta | int
    ) -> FixedDelayRestartStrategyConfiguration:
        """Restart a limited number of times, with the same delay before each attempt.

        Args:
            restart_attempts: The number of restarts before the job fails.
            delay_between_attempts: The delay before each restart.

        >>> RestartStrategies.fixed_delay_restart(3, 1000).get_description()
        'Restart with fixed delay (1000 ms). #3 restart attempts.'
        """
        return RestartStrategies.FixedDelayRestartStrategyConfiguration(
            restart_attempts, delay_between_attempts
        )

    @staticmethod
    def failure_rate_restart(
        failure_rate: int, failure_interval: timedelta | int, delay_interval: timedelta | int
    ) -> FailureRateRestartStrategyConfiguration:
        """Restart while failures are rare.

        Args:
            failure_rate: The number of failures that an interval may have. One more fails the job.
            failure_interval: The interval in which failures count.
            delay_interval: The delay before each restart.

        >>> from datetime import timedelta
        >>> strategy = RestartStrategies.failure_rate_restart(5, timedelta(minutes=1), 1000)
        >>> strategy.to_settings()["restart-strategy.failure-rate.failure-rate-interval"]
        '60000 ms'
        """
        return RestartStrategies.FailureRateRestartStrategyConfiguration(
            failure_rate, failure_interval, delay_interval
        )

    @staticmethod
    @public_evolving
    def exponential_delay_restart(
        initial_backoff: timedelta | int = 1000,
        max_backoff: timedelta | int = 60_000,
        backoff_multiplier: float = 1.5,
        reset_backoff_threshold: timedelta | int = 3_600_000,
        jitter_factor: float = 0.1,
        attempts_before_reset_backoff: int | None = None,
    ) -> ExponentialDelayRestartStrategyConfiguration:
        """Restart with delays that grow with each failure. Not in PyFlink.

        Args:
            initial_backoff: The first delay.
            max_backoff: The longest delay.
            backoff_multiplier: The factor between two delays.
            reset_backoff_threshold: The time without a failure after which the delay is the first
                one again.
            jitter_factor: The largest random change of a delay, as a part of it.
            attempts_before_reset_backoff: The number of restarts before the job fails. None is no
                limit.

        >>> strategy = RestartStrategies.exponential_delay_restart(initial_backoff=500)
        >>> strategy.initial_backoff, strategy.max_backoff
        (datetime.timedelta(microseconds=500000), datetime.timedelta(seconds=60))
        """
        return RestartStrategies.ExponentialDelayRestartStrategyConfiguration(
            _interval(initial_backoff, "initial_backoff"),
            _interval(max_backoff, "max_backoff"),
            backoff_multiplier,
            _interval(reset_backoff_threshold, "reset_backoff_threshold"),
            jitter_factor,
            attempts_before_reset_backoff,
        )
