"""Settings of the coordinator, read from the configuration and checked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from firesteel.common.configuration import Configuration
from firesteel.config import checkpoint_options as keys
from firesteel.config.option import Option
from firesteel.config.rest_options import WEB_CHECKPOINT_HISTORY
from firesteel.datastream.checkpointing_mode import CheckpointingMode
from firesteel.datastream.externalized_checkpoint_retention import ExternalizedCheckpointRetention
from firesteel.errors import ConfigurationError

_MINIMAL_SECONDS = 0.01
_MINIMAL = "must be at least 10 ms"


@dataclass(frozen=True, slots=True)
class CheckpointSettings:
    """Settings of checkpoints. Times are seconds. An ``interval`` of None means only on request."""

    interval: float | None = None
    min_pause: float = 0.0
    timeout: float = 600.0
    max_concurrent: int = 1
    tolerable_failures: int = 0
    retained: int = 1
    retention: ExternalizedCheckpointRetention = (
        ExternalizedCheckpointRetention.NO_EXTERNALIZED_CHECKPOINTS
    )
    mode: CheckpointingMode = CheckpointingMode.EXACTLY_ONCE
    after_tasks_finish: bool = True
    history_size: int = 10
    # Barriers may overtake records, ``aligned_timeout`` after the trigger of a checkpoint.
    unaligned: bool = False
    aligned_timeout: float = 0.0


def checkpoint_settings(configuration: Configuration) -> CheckpointSettings:
    """Read and check the settings. An invalid value raises ConfigurationError."""

    def seconds(option: Option[Any], rule: str, holds: Callable[[float], bool]) -> float:
        duration: timedelta = configuration.get(option)
        value = duration.total_seconds()
        _check(holds(value), option, rule, configuration)
        return value

    def count(option: Option[int], least: int) -> int:
        value = configuration.get(option)
        _check(value >= least, option, f"must be at least {least}", configuration)
        return value

    interval = None
    if configuration.get(keys.CHECKPOINTING_INTERVAL) is not None:
        interval = seconds(keys.CHECKPOINTING_INTERVAL, _MINIMAL, _is_long_enough)
    mode = CheckpointingMode[configuration.get(keys.CHECKPOINTING_MODE)]
    return CheckpointSettings(
        interval=interval,
        min_pause=seconds(
            keys.CHECKPOINTING_MIN_PAUSE, "must not be negative", lambda value: value >= 0
        ),
        timeout=seconds(keys.CHECKPOINTING_TIMEOUT, _MINIMAL, _is_long_enough),
        max_concurrent=count(keys.MAX_CONCURRENT_CHECKPOINTS, 1),
        tolerable_failures=count(keys.TOLERABLE_FAILED_CHECKPOINTS, 0),
        retained=count(keys.RETAINED_CHECKPOINTS, 1),
        retention=ExternalizedCheckpointRetention[configuration.get(keys.EXTERNALIZED_RETENTION)],
        mode=mode,
        after_tasks_finish=configuration.get(keys.CHECKPOINTS_AFTER_FINISH),
        history_size=count(WEB_CHECKPOINT_HISTORY, 0),
        # As in Flink, the setting has no effect with AT_LEAST_ONCE, which never aligns.
        unaligned=configuration.get(keys.UNALIGNED_CHECKPOINTS)
        and mode is CheckpointingMode.EXACTLY_ONCE,
        aligned_timeout=seconds(
            keys.ALIGNED_TIMEOUT, "must not be negative", lambda value: value >= 0
        ),
    )


def _is_long_enough(value: float) -> bool:
    return value >= _MINIMAL_SECONDS


def _check(holds: bool, option: Option[Any], rule: str, configuration: Configuration) -> None:
    if not holds:
        given = configuration.to_dict().get(option.key, option.default_text())
        raise ConfigurationError(f"{option.key} {rule}, got {given}.", key=option.key)
