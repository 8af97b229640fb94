"""The settings of a program's checkpoints, as methods."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from firesteel.common.configuration import Configuration
from firesteel.common.time import Duration
from firesteel.config import checkpoint_options as keys
from firesteel.config.option import Option
from firesteel.datastream.checkpoint_storage import (
    CheckpointStorage,
    FileSystemCheckpointStorage,
    JobManagerCheckpointStorage,
)
from firesteel.datastream.checkpointing_mode import CheckpointingMode
from firesteel.datastream.externalized_checkpoint_retention import ExternalizedCheckpointRetention
from firesteel.errors import ConfigurationError, shorten

__all__ = ["CheckpointConfig"]

_MILLISECOND = timedelta(milliseconds=1)
#: Flink's least interval and timeout, in milliseconds.
MINIMAL_CHECKPOINT_TIME = 10
_UNLIMITED = 2**31 - 1


class CheckpointConfig:
    """A view of a Configuration: what is set here can be read there, and the other way round.

    >>> config = CheckpointConfig()
    >>> config.set_checkpoint_interval(1000).set_min_pause_between_checkpoints(500)
    CheckpointConfig({'execution.checkpointing.interval': '1 s', 'execution.checkpointing.min-pause': '500 ms'})
    >>> config.is_checkpointing_enabled()
    True
    """

    def __init__(self, configuration: Configuration | None = None) -> None:
        self._configuration = Configuration() if configuration is None else configuration

    def is_checkpointing_enabled(self) -> bool:
        return self.get_checkpoint_interval() > 0

    def get_checkpointing_mode(self) -> CheckpointingMode:
        return CheckpointingMode[self._configuration.get(keys.CHECKPOINTING_MODE)]

    def set_checkpointing_mode(self, checkpointing_mode: CheckpointingMode) -> CheckpointConfig:
        _require(checkpointing_mode, CheckpointingMode, "set_checkpointing_mode")
        return self._set(keys.CHECKPOINTING_MODE, checkpointing_mode.name)

    def get_checkpoint_interval(self) -> int:
        """Milliseconds; -1 where there are no checkpoints."""
        interval = self._configuration.get(keys.CHECKPOINTING_INTERVAL)
        return -1 if interval is None else interval // _MILLISECOND

    def set_checkpoint_interval(self, checkpoint_interval: int) -> CheckpointConfig:
        """Start a checkpoint every so many milliseconds, if pause and concurrency allow."""
        _at_least_minimal("checkpoint interval", checkpoint_interval)
        return self._set(keys.CHECKPOINTING_INTERVAL, _millis(checkpoint_interval))

    def get_checkpoint_timeout(self) -> int:
        return self._configuration.get(keys.CHECKPOINTING_TIMEOUT) // _MILLISECOND

    def set_checkpoint_timeout(self, checkpoint_timeout: int) -> CheckpointConfig:
        """Give up a checkpoint that is not complete after so many milliseconds."""
        _at_least_minimal("checkpoint timeout", checkpoint_timeout)
        return self._set(keys.CHECKPOINTING_TIMEOUT, _millis(checkpoint_timeout))

    def get_min_pause_between_checkpoints(self) -> int:
        return self._configuration.get(keys.CHECKPOINTING_MIN_PAUSE) // _MILLISECOND

    def set_min_pause_between_checkpoints(
        self, min_pause_between_checkpoints: int
    ) -> CheckpointConfig:
        """Milliseconds between the end of a checkpoint and the start of the next."""
        if min_pause_between_checkpoints < 0:
            raise ValueError(
                f"The pause between checkpoints must not be negative, got "
                f"{min_pause_between_checkpoints} ms."
            )
        return self._set(keys.CHECKPOINTING_MIN_PAUSE, _millis(min_pause_between_checkpoints))

    def get_max_concurrent_checkpoints(self) -> int:
        return self._configuration.get(keys.MAX_CONCURRENT_CHECKPOINTS)

    def set_max_concurrent_checkpoints(self, max_concurrent_checkpoints: int) -> CheckpointConfig:
        if max_concurrent_checkpoints < 1:
            raise ValueError(
                "The maximum number of concurrent checkpoints must be at least 1, got "
                f"{max_concurrent_checkpoints}."
            )
        return self._set(keys.MAX_CONCURRENT_CHECKPOINTS, max_concurrent_checkpoints)

    def get_tolerable_checkpoint_failure_number(self) -> int:
        return self._configuration.get(keys.TOLERABLE_FAILED_CHECKPOINTS)

    def set_tolerable_checkpoint_failure_number(
        self, tolerable_checkpoint_failure_number: int
    ) -> CheckpointConfig:
        """Let so many checkpoints in a row fail before the job does."""
        if tolerable_checkpoint_failure_number < 0:
            raise ValueError(
                "The number of tolerable checkpoint failures must not be negative, got "
                f"{tolerable_checkpoint_failure_number}."
            )
        return self._set(keys.TOLERABLE_FAILED_CHECKPOINTS, tolerable_checkpoint_failure_number)

    def is_fail_on_checkpointing_errors(self) -> bool:
        return self.get_tolerable_checkpoint_failure_number() == 0

    def set_fail_on_checkpointing_errors(
        self, fail_on_checkpointing_errors: bool
    ) -> CheckpointConfig:
        """True tolerates no failed checkpoint, False any number of them."""
        tolerable = 0 if fail_on_checkpointing_errors else _UNLIMITED
        return self.set_tolerable_checkpoint_failure_number(tolerable)

    def get_externalized_checkpoint_retention(self) -> ExternalizedCheckpointRetention:
        return ExternalizedCheckpointRetention[self._configuration.get(keys.EXTERNALIZED_RETENTION)]

    def set_externalized_checkpoint_retention(
        self, retention_mode: ExternalizedCheckpointRetention
    ) -> CheckpointConfig:
        """Say what is left of the checkpoints when the job has failed or was canceled."""
        _require(
            retention_mode, ExternalizedCheckpointRetention, "set_externalized_checkpoint_retention"
        )
        return self._set(keys.EXTERNALIZED_RETENTION, retention_mode.name)

    def is_externalized_checkpoints_enabled(self) -> bool:
        return (
            self.get_externalized_checkpoint_retention()
            is not ExternalizedCheckpointRetention.NO_EXTERNALIZED_CHECKPOINTS
        )

    # Unaligned checkpoints: accepted. At the end of an epoch all channels are empty, so there is
    # nothing that a barrier could overtake.

    def enable_unaligned_checkpoints(self, enabled: bool = True) -> CheckpointConfig:
        return self._set(keys.UNALIGNED_CHECKPOINTS, enabled)

    def disable_unaligned_checkpoints(self) -> CheckpointConfig:
        return self.enable_unaligned_checkpoints(False)

    def is_unaligned_checkpoints_enabled(self) -> bool:
        """As in Flink only with EXACTLY_ONCE."""
        return (
            self._configuration.get(keys.UNALIGNED_CHECKPOINTS)
            and self.get_checkpointing_mode() is CheckpointingMode.EXACTLY_ONCE
        )

    def set_force_unaligned_checkpoints(
        self, force_unaligned_checkpoints: bool = True
    ) -> CheckpointConfig:
        return self._set(keys.FORCE_UNALIGNED, force_unaligned_checkpoints)

    def is_force_unaligned_checkpoints(self) -> bool:
        return self._configuration.get(keys.FORCE_UNALIGNED)

    def set_aligned_checkpoint_timeout(self, alignment_timeout: Duration) -> CheckpointConfig:
        _require(alignment_timeout, Duration, "set_aligned_checkpoint_timeout")
        return self._set(keys.ALIGNED_TIMEOUT, alignment_timeout.to_timedelta())

    def get_aligned_checkpoint_timeout(self) -> Duration:
        return Duration.of_timedelta(self._configuration.get(keys.ALIGNED_TIMEOUT))

    def set_alignment_timeout(self, alignment_timeout: Duration) -> CheckpointConfig:
        """The older name of set_aligned_checkpoint_timeout."""
        return self.set_aligned_checkpoint_timeout(alignment_timeout)

    def get_alignment_timeout(self) -> Duration:
        return self.get_aligned_checkpoint_timeout()

    # Storage: PyFlink 1 has these methods, PyFlink 2 the configuration keys only.

    def set_checkpoint_storage(self, storage: CheckpointStorage) -> CheckpointConfig:
        """Say where checkpoints go (beyond PyFlink 2)."""
        _require(storage, CheckpointStorage, "set_checkpoint_storage")
        for option in (keys.CHECKPOINT_STORAGE, keys.CHECKPOINT_DIR):
            # An older key in a file must not count beside what the program says.
            for key in (option.key, *option.deprecated_keys):
                self._configuration.remove_config(key)
        given = {key: value for key, value in storage.to_settings().items() if value is not None}
        self._configuration.add_all(Configuration.from_dict(given))
        return self

    def set_checkpoint_storage_dir(self, checkpoint_path: str) -> CheckpointConfig:
        """Write checkpoints to files below a directory or in an object store (beyond PyFlink 2)."""
        return self.set_checkpoint_storage(FileSystemCheckpointStorage(checkpoint_path))

    def get_checkpoint_storage(self) -> FileSystemCheckpointStorage | JobManagerCheckpointStorage:
        """What the settings come to (beyond PyFlink 2)."""
        directory = self._configuration.get(keys.CHECKPOINT_DIR)
        kind = self._configuration.get(keys.CHECKPOINT_STORAGE)
        if kind == "filesystem" and directory is None:
            raise ConfigurationError(
                f"{keys.CHECKPOINT_STORAGE.key} is filesystem, but {keys.CHECKPOINT_DIR.key} is not "
                "set. Set it to a directory that driver and tasks see, or to s3://bucket/path.",
                key=keys.CHECKPOINT_DIR.key,
            )
        if directory is not None and kind != "jobmanager":
            return FileSystemCheckpointStorage(directory)
        return JobManagerCheckpointStorage(directory, self._configuration.get(keys.MAX_STATE_SIZE))

    def _set(self, option: Option[Any], value: Any) -> CheckpointConfig:
        self._configuration.set(option, value)
        return self

    def __repr__(self) -> str:
        settings = self._configuration.to_dict()
        shown = {key: settings[key] for key in sorted(settings) if ".checkpointing." in key}
        return f"CheckpointConfig({shown!r})"


def _millis(value: int) -> timedelta:
    return timedelta(milliseconds=value)


def _at_least_minimal(what: str, millis: int) -> None:
    if not isinstance(millis, int):
        raise TypeError(
            f"The {what} is a number of milliseconds, for example 1000, but got {millis!r}."
        )
    if millis < MINIMAL_CHECKPOINT_TIME:
        raise ValueError(
            f"The {what} must be at least {MINIMAL_CHECKPOINT_TIME} ms, got {millis} ms."
        )


def _require(value: object, kind: type, method: str) -> None:
    if not isinstance(value, kind):
        raise TypeError(f"{method} expects a {kind.__name__}, not {shorten(value)}.")
