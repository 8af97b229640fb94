"""Restart strategies: decide whether a failed job starts again, and after which pause.

They are pure: the caller tells them the time.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Protocol

from firesteel.common.configuration import Configuration
from firesteel.common.restart_strategy import RestartStrategyConfiguration
from firesteel.config import checkpoint_options
from firesteel.config import restart_options as keys
from firesteel.errors import ConfigurationError

__all__ = [
    "ExponentialDelayRestartStrategy",
    "FailureRateRestartStrategy",
    "FixedDelayRestartStrategy",
    "NoRestartStrategy",
    "RestartDecision",
    "RestartStrategy",
    "restart_strategy",
]

_UNLIMITED = 2**31 - 1


@dataclass(frozen=True, slots=True)
class RestartDecision:
    """``delay`` is in seconds from now. ``attempt`` counts restarts from 1.

    ``reason`` goes into the log.
    """

    restart: bool
    delay: float
    attempt: int
    reason: str


class RestartStrategy(Protocol):
    def failed(self, now: float) -> RestartDecision:
        """Decide about a failure at ``now``, in seconds of a clock that only goes forward."""


@dataclass(slots=True)
class NoRestartStrategy:
    """A failure is final."""

    def failed(self, now: float) -> RestartDecision:
        return RestartDecision(False, 0.0, 0, "no restart strategy is set")


@dataclass(slots=True)
class FixedDelayRestartStrategy:
    """``attempts`` restarts, each after the same pause."""

    attempts: int
    delay: float
    _used: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        _check(self.attempts >= 0, keys.FIXED_DELAY_ATTEMPTS.key, "must not be negative")
        _check(self.delay >= 0, keys.FIXED_DELAY_DELAY.key, "must not be negative")

    def failed(self, now: float) -> RestartDecision:
        self._used += 1
        if self._used > self.attempts:
            return RestartDecision(
                False, 0.0, self.attempts, f"all {self.attempts} restarts (fixed-delay) are used up"
            )
        return RestartDecision(
            True, self.delay, self._used, f"restart {self._used} of {self.attempts} (fixed-delay)"
        )


@dataclass(slots=True)
class FailureRateRestartStrategy:
    """Restarts while there are at most ``max_failures`` failures within ``interval`` seconds."""

    max_failures: int
    interval: float
    delay: float
    _failures: deque[float] = field(default_factory=deque, init=False)
    _attempts: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        _check(self.max_failures > 0, keys.FAILURE_RATE_MAX.key, "must be greater than 0")
        _check(self.interval > 0, keys.FAILURE_RATE_INTERVAL.key, "must be greater than 0")
        _check(self.delay >= 0, keys.FAILURE_RATE_DELAY.key, "must not be negative")

    def failed(self, now: float) -> RestartDecision:
        self._failures.append(now)
        if len(self._failures) > self.max_failures + 1:
            self._failures.popleft()
        if len(self._failures) > self.max_failures and now - self._failures[0] <= self.interval:
            return RestartDecision(
                False,
                0.0,
                self._attempts,
                f"more than {self.max_failures} failures within {self.interval:g} s (failure-rate)",
            )
        self._attempts += 1
        return RestartDecision(
            True, self.delay, self._attempts, f"restart {self._attempts} (failure-rate)"
        )


@dataclass(slots=True)
class ExponentialDelayRestartStrategy:
    """Pauses grow by a factor up to a limit, and start over after a time without failure.

    ``jitter`` is the share of a pause by which it is moved at random, so that many jobs that failed
    together do not come back together. ``uniform(low, high)`` draws it. Failures before the pause is
    over belong to the failure that caused it.
    """

    initial: float = 1.0
    maximum: float = 60.0
    multiplier: float = 1.5
    reset_threshold: float = 3600.0
    jitter: float = 0.1
    attempts: int = _UNLIMITED
    uniform: Callable[[float, float], float] = random.uniform
    _attempt: int = field(default=0, init=False)
    _restart_at: float = field(default=float("-inf"), init=False)

    def __post_init__(self) -> None:
        _check(self.initial > 0, keys.EXPONENTIAL_INITIAL.key, "must be greater than 0")
        _check(
            self.maximum >= self.initial,
            keys.EXPONENTIAL_MAX.key,
            f"must not be less than {keys.EXPONENTIAL_INITIAL.key}",
        )
        _check(self.multiplier > 1, keys.EXPONENTIAL_MULTIPLIER.key, "must be greater than 1")
        _check(self.reset_threshold > 0, keys.EXPONENTIAL_RESET.key, "must be greater than 0")
        _check(0 <= self.jitter <= 1, keys.EXPONENTIAL_JITTER.key, "must be between 0 and 1")
        _check(self.attempts >= 1, keys.EXPONENTIAL_ATTEMPTS.key, "must be at least 1")

    def failed(self, now: float) -> RestartDecision:
        if now > self._restart_at:
            if now - self._restart_at >= self.reset_threshold:
                self._attempt = 0
            self._restart_at = now + self._pause()
            self._attempt += 1
        if self._attempt > self.attempts:
            return RestartDecision(
                False,
                0.0,
                self.attempts,
                f"all {self.attempts} restarts (exponential-delay) are used up, and there was no "
                f"period of {self.reset_threshold:g} s without a failure",
            )
        delay = self._restart_at - now
        return RestartDecision(
            True, delay, self._attempt, f"restart {self._attempt} (exponential-delay)"
        )

    def _pause(self) -> float:
        try:
            pause = self.initial * self.multiplier**self._attempt
        except OverflowError:
            return self.maximum
        if self.jitter:
            pause += self.uniform(-pause * self.jitter, pause * self.jitter)
        return max(self.initial, min(pause, self.maximum))


def restart_strategy(
    configuration: Configuration,
    given: RestartStrategyConfiguration | None = None,
    uniform: Callable[[float, float], float] = random.uniform,
) -> RestartStrategy:
    """Return the strategy that the program (``given``) or else the configuration asks for.

    With neither, it is exponential delay if there are checkpoints, else no restart.
    """
    if given is not None:
        configuration = Configuration(configuration)
        configuration.add_all(Configuration.from_dict(given.to_settings()))
    kind = configuration.get(keys.RESTART_STRATEGY)
    if kind is None:
        if configuration.get(checkpoint_options.CHECKPOINTING_INTERVAL) is None:
            return NoRestartStrategy()
        return ExponentialDelayRestartStrategy(uniform=uniform)
    if kind == "fixed-delay":
        return FixedDelayRestartStrategy(
            configuration.get(keys.FIXED_DELAY_ATTEMPTS),
            _seconds(configuration.get(keys.FIXED_DELAY_DELAY)),
        )
    if kind == "failure-rate":
        return FailureRateRestartStrategy(
            configuration.get(keys.FAILURE_RATE_MAX),
            _seconds(configuration.get(keys.FAILURE_RATE_INTERVAL)),
            _seconds(configuration.get(keys.FAILURE_RATE_DELAY)),
        )
    if kind == "exponential-delay":
        return ExponentialDelayRestartStrategy(
            initial=_seconds(configuration.get(keys.EXPONENTIAL_INITIAL)),
            maximum=_seconds(configuration.get(keys.EXPONENTIAL_MAX)),
            multiplier=configuration.get(keys.EXPONENTIAL_MULTIPLIER),
            reset_threshold=_seconds(configuration.get(keys.EXPONENTIAL_RESET)),
            jitter=configuration.get(keys.EXPONENTIAL_JITTER),
            attempts=configuration.get(keys.EXPONENTIAL_ATTEMPTS),
            uniform=uniform,
        )
    return NoRestartStrategy()


def _seconds(duration: timedelta) -> float:
    return duration.total_seconds()


def _check(holds: bool, key: str, rule: str) -> None:
    if not holds:
        raise ConfigurationError(f"{key} {rule}.", key=key)
