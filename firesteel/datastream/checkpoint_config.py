"""The settings of a job's checkpoints, as methods."""

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
    """The checkpoint settings of an environment: the result of ``env.get_checkpoint_config()``.

    It is a view of the environment's Configuration. A setting has the same value in both. Each setter
    returns the object.

    Args:
        configuration: The configuration; without it, an empty one.

    >>> config = env.get_checkpoint_config()
    >>> config.set_checkpoint_interval(1000).set_min_pause_between_checkpoints(500)
    CheckpointConfig({'execution.checkpointing.interval': '1 s', 'execution.checkpointing.min-pause': '500 ms'})
    >>> config.is_checkpointing_enabled(), config.get_checkpoint_interval()
    (True, 1000)
    >>> config.get_min_pause_between_checkpoints()
    500
    """

    def __init__(self, configuration: Configuration | None = None) -> None:
        self._configuration = Configuration() if configuration is None else configuration

    def is_checkpointing_enabled(self) -> bool:
        """Return True if there is a checkpoint interval."""
        return self.get_checkpoint_interval() > 0

    def get_checkpointing_mode(self) -> CheckpointingMode:
        """Return the mode. The default is EXACTLY_ONCE.

        >>> env.get_checkpoint_config().get_checkpointing_mode().name
        'EXACTLY_ONCE'
        """
        return CheckpointingMode[self._configuration.get(keys.CHECKPOINTING_MODE)]

    def set_checkpointing_mode(self, checkpointing_mode: CheckpointingMode) -> CheckpointConfig:
        """Set the mode.

        Args:
            checkpointing_mode: EXACTLY_ONCE or AT_LEAST_ONCE.

        >>> config = env.get_checkpoint_config()
        >>> config.set_checkpointing_mode(CheckpointingMode.AT_LEAST_ONCE).get_checkpointing_mode().name
        'AT_LEAST_ONCE'
        """
        _require(checkpointing_mode, CheckpointingMode, "set_checkpointing_mode")
        return self._set(keys.CHECKPOINTING_MODE, checkpointing_mode.name)

    def get_checkpoint_interval(self) -> int:
        """Return the interval in milliseconds, or -1 if there are no checkpoints."""
        interval = self._configuration.get(keys.CHECKPOINTING_INTERVAL)
        return -1 if interval is None else interval // _MILLISECOND

    def set_checkpoint_interval(self, checkpoint_interval: int) -> CheckpointConfig:
        """Start a checkpoint at an interval, if pause and concurrency allow it.

        Args:
            checkpoint_interval: Milliseconds, at least 10.
        """
        _at_least_minimal("checkpoint interval", checkpoint_interval)
        return self._set(keys.CHECKPOINTING_INTERVAL, _millis(checkpoint_interval))

    def get_checkpoint_timeout(self) -> int:
        """Return the timeout in milliseconds. The default is 10 minutes.

        >>> env.get_checkpoint_config().get_checkpoint_timeout()
        600000
        """
        return self._configuration.get(keys.CHECKPOINTING_TIMEOUT) // _MILLISECOND

    def set_checkpoint_timeout(self, checkpoint_timeout: int) -> CheckpointConfig:
        """Abort a checkpoint that is not complete after a time.

        Args:
            checkpoint_timeout: Milliseconds, at least 10.

        >>> env.get_checkpoint_config().set_checkpoint_timeout(60_000).get_checkpoint_timeout()
        60000
        """
        _at_least_minimal("checkpoint timeout", checkpoint_timeout)
        return self._set(keys.CHECKPOINTING_TIMEOUT, _millis(checkpoint_timeout))

    def get_min_pause_between_checkpoints(self) -> int:
        """Return the pause in milliseconds."""
        return self._configuration.get(keys.CHECKPOINTING_MIN_PAUSE) // _MILLISECOND

    def set_min_pause_between_checkpoints(
        self, min_pause_between_checkpoints: int
    ) -> CheckpointConfig:
        """Set the time between the end of a checkpoint and the start of the next.

        Args:
            min_pause_between_checkpoints: Milliseconds.
        """
        if min_pause_between_checkpoints < 0:
            raise ValueError(
                f"The pause between checkpoints must not be negative, got "
                f"{min_pause_between_checkpoints} ms."
            )
        return self._set(keys.CHECKPOINTING_MIN_PAUSE, _millis(min_pause_between_checkpoints))

    def get_max_concurrent_checkpoints(self) -> int:
        """Return the number of checkpoints that may be under way at once. The default is 1.

        >>> env.get_checkpoint_config().get_max_concurrent_checkpoints()
        1
        """
        return self._configuration.get(keys.MAX_CONCURRENT_CHECKPOINTS)

    def set_max_concurrent_checkpoints(self, max_concurrent_checkpoints: int) -> CheckpointConfig:
        """Set the number of checkpoints that may be under way at once.

        Args:
            max_concurrent_checkpoints: At least 1.

        >>> config = env.get_checkpoint_config().set_max_concurrent_checkpoints(2)
        """
        if max_concurrent_checkpoints < 1:
            raise ValueError(
                "The maximum number of concurrent checkpoints must be at least 1, got "
                f"{max_concurrent_checkpoints}."
            )
        return self._set(keys.MAX_CONCURRENT_CHECKPOINTS, max_concurrent_checkpoints)

    def get_tolerable_checkpoint_failure_number(self) -> int:
        """Return the number of checkpoints in a row that may fail before the job fails.

        >>> env.get_checkpoint_config().get_tolerable_checkpoint_failure_number()
        0
        """
        return self._configuration.get(keys.TOLERABLE_FAILED_CHECKPOINTS)

    def set_tolerable_checkpoint_failure_number(
        self, tolerable_checkpoint_failure_number: int
    ) -> CheckpointConfig:
        """Set the number of checkpoints in a row that may fail before the job fails.

        Args:
            tolerable_checkpoint_failure_number: At least 0.

        >>> config = env.get_checkpoint_config().set_tolerable_checkpoint_failure_number(3)
        >>> config.is_fail_on_checkpointing_errors()
        False
        """
        if tolerable_checkpoint_failure_number < 0:
            raise ValueError(
                "The number of tolerable checkpoint failures must not be negative, got "
                f"{tolerable_checkpoint_failure_number}."
            )
        return self._set(keys.TOLERABLE_FAILED_CHECKPOINTS, tolerable_checkpoint_failure_number)

    def is_fail_on_checkpointing_errors(self) -> bool:
        """Return True if no checkpoint may fail.

        >>> env.get_checkpoint_config().is_fail_on_checkpointing_errors()
        True
        """
        return self.get_tolerable_checkpoint_failure_number() == 0

    def set_fail_on_checkpointing_errors(
        self, fail_on_checkpointing_errors: bool
    ) -> CheckpointConfig:
        """Let no checkpoint fail, or any number of them.

        Args:
            fail_on_checkpointing_errors: False tolerates any number of failed checkpoints.

        >>> config = env.get_checkpoint_config().set_fail_on_checkpointing_errors(False)
        >>> config.get_tolerable_checkpoint_failure_number()
        2147483647
        """
        tolerable = 0 if fail_on_checkpointing_errors else _UNLIMITED
        return self.set_tolerable_checkpoint_failure_number(tolerable)

    def get_externalized_checkpoint_retention(self) -> ExternalizedCheckpointRetention:
        """Return the retention of checkpoints after the end of the job.

        >>> env.get_checkpoint_config().get_externalized_checkpoint_retention().name
        'NO_EXTERNALIZED_CHECKPOINTS'
        """
        return ExternalizedCheckpointRetention[self._configuration.get(keys.EXTERNALIZED_RETENTION)]

    def set_externalized_checkpoint_retention(
        self, retention_mode: ExternalizedCheckpointRetention
    ) -> CheckpointConfig:
        """Set which checkpoints stay when the job has failed or was canceled.

        Args:
            retention_mode: The retention.

        >>> retention = ExternalizedCheckpointRetention.RETAIN_ON_CANCELLATION
        >>> config = env.get_checkpoint_config().set_externalized_checkpoint_retention(retention)
        >>> config.is_externalized_checkpoints_enabled()
        True
        """
        _require(
            retention_mode, ExternalizedCheckpointRetention, "set_externalized_checkpoint_retention"
        )
        return self._set(keys.EXTERNALIZED_RETENTION, retention_mode.name)

    def is_externalized_checkpoints_enabled(self) -> bool:
        """Return True if some checkpoints stay after the end of the job.

        >>> env.get_checkpoint_config().is_externalized_checkpoints_enabled()
        False
        """
        return (
            self.get_externalized_checkpoint_retention()
            is not ExternalizedCheckpointRetention.NO_EXTERNALIZED_CHECKPOINTS
        )

    # Unaligned checkpoints

    def enable_unaligned_checkpoints(self, enabled: bool = True) -> CheckpointConfig:
        """Let the barriers of checkpoints overtake records that wait under back pressure.

        The records become part of the checkpoint. The setting is for EXACTLY_ONCE and real-time
        execution.

        Args:
            enabled: False turns the setting off.

        >>> config = env.get_checkpoint_config().enable_unaligned_checkpoints()
        >>> config.is_unaligned_checkpoints_enabled()
        True
        """
        return self._set(keys.UNALIGNED_CHECKPOINTS, enabled)

    def disable_unaligned_checkpoints(self) -> CheckpointConfig:
        """Let all checkpoints align, which is the default.

        >>> config = env.get_checkpoint_config().disable_unaligned_checkpoints()
        >>> config.is_unaligned_checkpoints_enabled()
        False
        """
        return self.enable_unaligned_checkpoints(False)

    def is_unaligned_checkpoints_enabled(self) -> bool:
        """Return True if unaligned checkpoints are on and the mode is EXACTLY_ONCE, as in Flink.

        >>> env.get_checkpoint_config().is_unaligned_checkpoints_enabled()
        False
        """
        return (
            self._configuration.get(keys.UNALIGNED_CHECKPOINTS)
            and self.get_checkpointing_mode() is CheckpointingMode.EXACTLY_ONCE
        )

    def set_force_unaligned_checkpoints(
        self, force_unaligned_checkpoints: bool = True
    ) -> CheckpointConfig:
        """Accepted without effect. In Flink it is for jobs with iterations, which align here.

        Args:
            force_unaligned_checkpoints: False turns the setting off.

        >>> config = env.get_checkpoint_config().set_force_unaligned_checkpoints()
        >>> config.is_force_unaligned_checkpoints()
        True
        """
        return self._set(keys.FORCE_UNALIGNED, force_unaligned_checkpoints)

    def is_force_unaligned_checkpoints(self) -> bool:
        """Return the setting for forced unaligned checkpoints.

        >>> env.get_checkpoint_config().is_force_unaligned_checkpoints()
        False
        """
        return self._configuration.get(keys.FORCE_UNALIGNED)

    def set_aligned_checkpoint_timeout(self, alignment_timeout: Duration) -> CheckpointConfig:
        """Let unaligned checkpoints begin aligned, until barriers are missing for this long.

        Args:
            alignment_timeout: The time after which an aligned checkpoint becomes unaligned.

        >>> config = env.get_checkpoint_config()
        >>> config.set_aligned_checkpoint_timeout(Duration.of_seconds(1)).get_aligned_checkpoint_timeout()
        Duration.of_millis(1000)
        """
        _require(alignment_timeout, Duration, "set_aligned_checkpoint_timeout")
        return self._set(keys.ALIGNED_TIMEOUT, alignment_timeout.to_timedelta())

    def get_aligned_checkpoint_timeout(self) -> Duration:
        """Return the time after which an aligned checkpoint becomes unaligned.

        >>> env.get_checkpoint_config().get_aligned_checkpoint_timeout()
        Duration.of_millis(0)
        """
        return Duration.of_timedelta(self._configuration.get(keys.ALIGNED_TIMEOUT))

    def set_alignment_timeout(self, alignment_timeout: Duration) -> CheckpointConfig:
        """The older name of ``set_aligned_checkpoint_timeout``.

        Args:
            alignment_timeout: The time after which an aligned checkpoint becomes unaligned.

        >>> config = env.get_checkpoint_config().set_alignment_timeout(Duration.of_seconds(1))
        """
        return self.set_aligned_checkpoint_timeout(alignment_timeout)

    def get_alignment_timeout(self) -> Duration:
        """The older name of ``get_aligned_checkpoint_timeout``.

        >>> env.get_checkpoint_config().get_alignment_timeout()
        Duration.of_millis(0)
        """
        return self.get_aligned_checkpoint_timeout()

    # Storage: PyFlink 1 has these methods, PyFlink 2 the configuration keys only.

    def set_checkpoint_storage(self, storage: CheckpointStorage) -> CheckpointConfig:
        """Set where checkpoints go. PyFlink 1 has this method; PyFlink 2 has the configuration keys only.

        Args:
            storage: The storage.

        >>> storage = FileSystemCheckpointStorage("file:///tmp/checkpoints")
        >>> config = env.get_checkpoint_config().set_checkpoint_storage(storage)
        >>> config.get_checkpoint_storage().get_checkpoint_path()
        'file:///tmp/checkpoints'
        """
        _require(storage, CheckpointStorage, "set_checkpoint_storage")
        for option in (keys.CHECKPOINT_STORAGE, keys.CHECKPOINT_DIR):
            # An older key in a file must not override the program.
            for key in (option.key, *option.deprecated_keys):
                self._configuration.remove_config(key)
        given = {key: value for key, value in storage.to_settings().items() if value is not None}
        self._configuration.add_all(Configuration.from_dict(given))
        return self

    def set_checkpoint_storage_dir(self, checkpoint_path: str) -> CheckpointConfig:
        """Write checkpoints to files. PyFlink 1 has this method; PyFlink 2 has the configuration keys only.

        Args:
            checkpoint_path: A directory that the driver and all tasks see, or a path of an object store.

        >>> config = env.get_checkpoint_config().set_checkpoint_storage_dir("s3://bucket/checkpoints")
        """
        return self.set_checkpoint_storage(FileSystemCheckpointStorage(checkpoint_path))

    def get_checkpoint_storage(self) -> FileSystemCheckpointStorage | JobManagerCheckpointStorage:
        """Return the storage that the settings describe. PyFlink 2 has the configuration keys only.

        Raises:
            ConfigurationError: The storage is ``filesystem``, but there is no directory.

        >>> str(env.get_checkpoint_config().get_checkpoint_storage())
        'JobManagerCheckpointStorage (checkpoints to None, maxStateSize: 5242880)'
        """
        directory = self._configuration.get(keys.CHECKPOINT_DIR)
        kind = self._configuration.get(keys.CHECKPOINT_STORAGE)
        if kind == "filesystem" and directory is None:
            raise ConfigurationError(
                f"{keys.CHECKPOINT_STORAGE.key} is filesystem, but {keys.CHECKPOINT_DIR.key} is "
                "not set. Set it to a directory that driver and tasks share, or to "
                "s3://bucket/path.",
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
            f"The {what} must be a number of milliseconds, for example 1000, but got {millis!r}."
        )
    if millis < MINIMAL_CHECKPOINT_TIME:
        raise ValueError(
            f"The {what} must be at least {MINIMAL_CHECKPOINT_TIME} ms, got {millis} ms."
        )


def _require(value: object, kind: type, method: str) -> None:
    if not isinstance(value, kind):
        raise TypeError(f"{method} expects a {kind.__name__}, not {shorten(value)}.")
