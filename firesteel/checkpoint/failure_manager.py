"""How many failed checkpoints in a row a job tolerates."""

from __future__ import annotations

from firesteel.checkpoint.failure_reason import (
    CheckpointFailedError,
    TooManyFailedCheckpointsError,
)

__all__ = ["CheckpointFailureManager"]

_UNLIMITED = 2**31 - 1


class CheckpointFailureManager:
    """A checkpoint counts once, a completed one sets the count back, savepoints do not count."""

    def __init__(self, tolerable_failures: int) -> None:
        self._tolerable = tolerable_failures
        self._counted: set[int] = set()
        self._last_completed = 0

    @property
    def failures_in_a_row(self) -> int:
        return len(self._counted)

    def completed(self, checkpoint_id: int) -> None:
        if checkpoint_id > self._last_completed:
            self._last_completed = checkpoint_id
            self._counted.clear()

    def failed(
        self, checkpoint_id: int, error: CheckpointFailedError
    ) -> TooManyFailedCheckpointsError | None:
        """The error that the job must fail with, if it was one failure too many."""
        late = checkpoint_id <= self._last_completed
        if late or not error.reason.counts or self._tolerable >= _UNLIMITED:
            return None
        self._counted.add(checkpoint_id)
        failures = len(self._counted)
        if failures <= self._tolerable:
            return None
        self._counted.clear()
        return TooManyFailedCheckpointsError(failures, self._tolerable, error)
