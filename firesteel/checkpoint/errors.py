"""What can go wrong with checkpoints, beyond what the job itself does."""

from __future__ import annotations

from firesteel.errors import FiresteelError

__all__ = [
    "CheckpointNotFoundError",
    "CorruptCheckpointError",
    "CorruptFileError",
    "StateSizeError",
    "StorageError",
]


class StorageError(FiresteelError, OSError):
    """A file system refused; the message says what was tried, and where.

    ``missing``: because there is no such file.
    """

    def __init__(
        self, action: str, location: str, reason: object, *, missing: bool = False
    ) -> None:
        super().__init__(f"cannot {action} {location}: {reason}")
        self.action = action
        self.location = location
        self.reason = str(reason)
        self.missing = missing


class CorruptFileError(FiresteelError, RuntimeError):
    """A file is not what was written."""

    def __init__(self, location: str, reason: str) -> None:
        super().__init__(f"{location} is damaged: {reason}")
        self.location = location
        self.reason = reason


class CorruptCheckpointError(CorruptFileError):
    """A checkpoint or savepoint cannot be used."""


class CheckpointNotFoundError(FiresteelError, FileNotFoundError):
    """There is no checkpoint where one was expected."""

    def __init__(self, location: str, reason: str) -> None:
        super().__init__(f"no checkpoint or savepoint at {location}: {reason}")
        self.location = location
        self.reason = reason


class StateSizeError(FiresteelError, RuntimeError):
    """State is too large for the memory of the driver."""

    def __init__(self, operator: str, subtask: int, size: int, limit: int) -> None:
        super().__init__(
            f"the state of '{operator}', subtask {subtask}, has {size:,} bytes, but "
            f"JobManagerCheckpointStorage keeps at most {limit:,} for each. Set "
            "execution.checkpointing.dir to a directory or an object store, so that checkpoints go "
            "to files, or raise max_state_size"
        )
        self.operator = operator
        self.subtask = subtask
        self.size = size
        self.limit = limit
