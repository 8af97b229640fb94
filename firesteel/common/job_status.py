"""JobStatus, the states of a job."""

from __future__ import annotations

from enum import Enum

__all__ = ["JobStatus"]


class JobStatus(Enum):
    """The state of a job, from ``JobClient.get_job_status()``.

    >>> JobStatus.RUNNING.is_terminal_state(), JobStatus.FINISHED.is_terminal_state()
    (False, True)
    >>> JobStatus.SUSPENDED.is_terminal_state(), JobStatus.SUSPENDED.is_globally_terminal_state()
    (True, False)
    """

    CREATED = 0
    RUNNING = 1
    FAILING = 2
    FAILED = 3
    CANCELLING = 4
    CANCELED = 5
    FINISHED = 6
    RESTARTING = 7
    SUSPENDED = 8
    RECONCILING = 9

    def is_globally_terminal_state(self) -> bool:
        """Return True if the job has ended and no master recovers it."""
        return self in (JobStatus.FAILED, JobStatus.CANCELED, JobStatus.FINISHED)

    def is_terminal_state(self) -> bool:
        """Return True if this master has finished the job.

        A new master may recover a suspended job.
        """
        return self is JobStatus.SUSPENDED or self.is_globally_terminal_state()
