"""Checkpoint storage: the settings for the place where checkpoints go."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Final

from firesteel.config import checkpoint_options, options
from firesteel.gaps import gap_importer
from firesteel.stability import public_evolving

__all__ = ["CheckpointStorage", "FileSystemCheckpointStorage", "JobManagerCheckpointStorage"]

_DEFAULT_WRITE_BUFFER = 4096


class CheckpointStorage(ABC):
    """Base of the kinds of storage.

    >>> issubclass(FileSystemCheckpointStorage, CheckpointStorage)
    True
    """

    @abstractmethod
    @public_evolving
    def to_settings(self) -> dict[str, Any]:
        """Return the storage as configuration keys. Not in PyFlink.

        >>> JobManagerCheckpointStorage().to_settings()["execution.checkpointing.storage"]
        'jobmanager'
        """


class JobManagerCheckpointStorage(CheckpointStorage):
    """Keeps checkpoints in the memory of the driver. For small state and for experiments.

    Args:
        checkpoint_path: With a path, metadata is written there, so that it outlives the driver.
        max_state_size: The largest state of a subtask, in bytes.

    >>> storage = JobManagerCheckpointStorage()
    >>> storage.get_max_state_size(), storage.get_checkpoint_path(), storage.get_savepoint_path()
    (5242880, None, None)
    """

    DEFAULT_MAX_STATE_SIZE: Final = checkpoint_options.MAX_STATE_SIZE.default

    def __init__(
        self, checkpoint_path: str | None = None, max_state_size: int | None = None
    ) -> None:
        if max_state_size is not None and max_state_size <= 0:
            raise ValueError(f"max_state_size must be greater than 0, got {max_state_size}.")
        self._checkpoint_path = checkpoint_path
        self._max_state_size = (
            self.DEFAULT_MAX_STATE_SIZE if max_state_size is None else max_state_size
        )

    def get_checkpoint_path(self) -> str | None:
        """Return the path for metadata, or None."""
        return self._checkpoint_path

    def get_max_state_size(self) -> int:
        """Return the largest state of a subtask, in bytes."""
        return self._max_state_size

    def get_savepoint_path(self) -> str | None:
        """Return None: ``execution.checkpointing.savepoint-dir`` sets the directory of savepoints."""
        return None

    def to_settings(self) -> dict[str, Any]:
        return {
            checkpoint_options.CHECKPOINT_STORAGE.key: "jobmanager",
            checkpoint_options.CHECKPOINT_DIR.key: self._checkpoint_path,
            checkpoint_options.MAX_STATE_SIZE.key: self._max_state_size,
        }

    def __str__(self) -> str:
        return (
            f"JobManagerCheckpointStorage (checkpoints to {self._checkpoint_path}, "
            f"maxStateSize: {self._max_state_size})"
        )


class FileSystemCheckpointStorage(CheckpointStorage):
    """Writes checkpoints to files in a directory that the driver and all tasks see, or an object store.

    Args:
        checkpoint_path: The directory or the path of the object store.
        file_state_size_threshold: State up to this many bytes goes into the metadata file. None or
            -1 takes the configured value.
        write_buffer_size: Accepted without effect.

    >>> storage = FileSystemCheckpointStorage("file:///tmp/checkpoints")
    >>> storage.get_checkpoint_path(), storage.get_savepoint_path()
    ('file:///tmp/checkpoints', None)
    >>> storage.get_min_file_size_threshold(), storage.get_write_buffer_size()
    (65536, 4096)
    """

    #: The most that may be kept inside the metadata instead of in a file.
    MAX_FILE_STATE_THRESHOLD: Final = 1024 * 1024

    def __init__(
        self,
        checkpoint_path: str | None = None,
        file_state_size_threshold: int | None = None,
        write_buffer_size: int = -1,
    ) -> None:
        """State up to ``file_state_size_threshold`` bytes is kept inside the metadata.

        ``write_buffer_size`` is accepted for compatibility: files are written in one piece.
        """
        if checkpoint_path is None:
            raise ValueError("checkpoint_path must not be None")
        threshold = -1 if file_state_size_threshold is None else file_state_size_threshold
        if not -1 <= threshold <= self.MAX_FILE_STATE_THRESHOLD:
            raise ValueError(
                f"file_state_size_threshold must be between 0 and {self.MAX_FILE_STATE_THRESHOLD}, "
                f"or -1 for the configured value, got {threshold}."
            )
        if write_buffer_size < -1:
            raise ValueError(f"write_buffer_size must be at least -1, got {write_buffer_size}.")
        self._checkpoint_path = checkpoint_path
        self._threshold = threshold
        self._write_buffer_size = write_buffer_size

    def get_checkpoint_path(self) -> str:
        """Return the directory."""
        return self._checkpoint_path

    def get_savepoint_path(self) -> str | None:
        """Return None: ``execution.checkpointing.savepoint-dir`` sets the directory of savepoints."""
        return None

    def get_min_file_size_threshold(self) -> int:
        """Return the size up to which state goes into the metadata file, in bytes."""
        return options.STATE_INLINE_THRESHOLD.default if self._threshold < 0 else self._threshold

    def get_write_buffer_size(self) -> int:
        """Return the size of the write buffer in bytes. It has no effect."""
        return _DEFAULT_WRITE_BUFFER if self._write_buffer_size < 0 else self._write_buffer_size

    def to_settings(self) -> dict[str, Any]:
        settings: dict[str, Any] = {
            checkpoint_options.CHECKPOINT_STORAGE.key: "filesystem",
            checkpoint_options.CHECKPOINT_DIR.key: self._checkpoint_path,
        }
        if self._threshold >= 0:
            settings[options.STATE_INLINE_THRESHOLD.key] = self._threshold
        return settings

    def __str__(self) -> str:
        return (
            f"FileSystemCheckpointStorage (checkpoints to {self._checkpoint_path}, "
            f"fileStateThreshold: {self.get_min_file_size_threshold()})"
        )


if not TYPE_CHECKING:  # type checkers see only what exists
    __getattr__ = gap_importer(__name__)
