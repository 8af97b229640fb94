"""Settings of restart strategies."""

from __future__ import annotations

from datetime import timedelta

from firesteel.config.option import Option
from firesteel.config.values import DOUBLE, DURATION, INT, choice

_INFINITE = 2**31 - 1

_RS = "restart-strategy."
RESTART_STRATEGY: Option[str | None] = Option(
    _RS + "type",
    choice("none", "disable", "off", "fixed-delay", "failure-rate", "exponential-delay"),
    None,
    "The restart strategy. The default is exponential-delay with checkpoints, else none.",
    deprecated_keys=("restart-strategy",),
)
FIXED_DELAY_ATTEMPTS: Option[int] = Option(
    _RS + "fixed-delay.attempts", INT, 1, "The number of restarts before the job fails."
)
FIXED_DELAY_DELAY: Option[timedelta] = Option(
    _RS + "fixed-delay.delay", DURATION, timedelta(seconds=1), "The pause before a restart."
)
FAILURE_RATE_MAX: Option[int] = Option(
    _RS + "failure-rate.max-failures-per-interval",
    INT,
    1,
    "The maximum number of failures per interval before the job fails.",
)
FAILURE_RATE_INTERVAL: Option[timedelta] = Option(
    _RS + "failure-rate.failure-rate-interval",
    DURATION,
    timedelta(minutes=1),
    "The interval in which failures are counted.",
)
FAILURE_RATE_DELAY: Option[timedelta] = Option(
    _RS + "failure-rate.delay", DURATION, timedelta(seconds=1), "The pause before a restart."
)
EXPONENTIAL_INITIAL: Option[timedelta] = Option(
    _RS + "exponential-delay.initial-backoff",
    DURATION,
    timedelta(seconds=1),
    "The pause before the first restart.",
)
EXPONENTIAL_MAX: Option[timedelta] = Option(
    _RS + "exponential-delay.max-backoff",
    DURATION,
    timedelta(minutes=1),
    "The longest pause before a restart.",
)
EXPONENTIAL_MULTIPLIER: Option[float] = Option(
    _RS + "exponential-delay.backoff-multiplier",
    DOUBLE,
    1.5,
    "The factor by which the pause grows with every failure.",
)
EXPONENTIAL_JITTER: Option[float] = Option(
    _RS + "exponential-delay.jitter-factor",
    DOUBLE,
    0.1,
    "The maximum random change of the pause, as a fraction of it.",
)
EXPONENTIAL_RESET: Option[timedelta] = Option(
    _RS + "exponential-delay.reset-backoff-threshold",
    DURATION,
    timedelta(hours=1),
    "The time without failures after which the pause is reset to its initial value.",
)
EXPONENTIAL_ATTEMPTS: Option[int] = Option(
    _RS + "exponential-delay.attempts-before-reset-backoff",
    INT,
    _INFINITE,
    "The job fails after this many restarts without a reset of the pause.",
)
