"""Reasons for failures of checkpoints, and their errors."""

from __future__ import annotations

from enum import Enum

from firesteel.errors import FiresteelError

__all__ = ["CheckpointFailedError", "CheckpointFailureReason", "TooManyFailedCheckpointsError"]


class CheckpointFailureReason(Enum):
    """A reason. Its value is the text for users."""

    CHECKPOINT_EXPIRED = "it was not complete in time"
    IO_EXCEPTION = "it could not be written to checkpoint storage"
    CHECKPOINT_SUBSUMED = "a newer checkpoint was completed before it"
    NOT_ALL_REQUIRED_TASKS_RUNNING = "some tasks have finished, and execution.checkpointing.checkpoints-after-tasks-finish is off"
    JOB_FAILURE = "the job has failed"
    CHECKPOINT_COORDINATOR_SHUTDOWN = "the job has ended"

    @property
    def counts(self) -> bool:
        """True if the failure counts for execution.checkpointing.tolerable-failed-checkpoints."""
        return self in _COUNTED


_COUNTED = frozenset(
    {
        CheckpointFailureReason.CHECKPOINT_EXPIRED,
        CheckpointFailureReason.IO_EXCEPTION,
    }
)


class CheckpointFailedError(FiresteelError, RuntimeError):
    """A checkpoint or savepoint failed. It is the answer to a request."""

    def __init__(
        self, what: str, reason: CheckpointFailureReason, details: str | None = None
    ) -> None:
        super().__init__(f"{what} failed: {reason.value}" + (f" ({details})" if details else ""))
        self.what = what
        self.reason = reason
        self.details = details


class StopWithSavepointStoppingError(FiresteelError, RuntimeError):
    """The savepoint of a job that stops is complete, but the job did not end well after it."""

    def __init__(
        self, job_name: str, savepoint: str | None, failure: FiresteelError | None = None
    ) -> None:
        happened = "was canceled" if failure is None else "failed"
        super().__init__(
            f"Job '{job_name}' {happened} while it stopped with a savepoint. The savepoint "
            f"{savepoint} is complete, but some output in it may not be committed. Start the job "
            "from this savepoint to commit the rest; older checkpoints of the job are deleted."
            + (f" The failure: {failure}" if failure is not None else "")
        )
        self.savepoint = savepoint
        self.__cause__ = failure


class TooManyFailedCheckpointsError(FiresteelError, RuntimeError):
    """The job fails because too many checkpoints failed."""

    def __init__(self, failures: int, tolerable: int, last: CheckpointFailedError) -> None:
        in_a_row = (
            "1 checkpoint has failed" if failures == 1 else f"{failures} checkpoints in a row"
        )
        verb = "" if failures == 1 else " have failed"
        super().__init__(
            f"{in_a_row}{verb}, and execution.checkpointing.tolerable-failed-checkpoints is "
            f"{tolerable}. The last failure: {last}"
        )
        self.failures = failures
        self.tolerable = tolerable
