"""JobStatus, the states of a job."""

from __future__ import annotations

from enum import Enum

__all__ = ["JobStatus"]


class JobStatus(Enum):
    """The state of a job, from ``JobClient.get_job_status()``, in Flink's words.

    A new job is CREATED, then RUNNING. It ends as FINISHED. A job that fails closes its functions
    (FAILING), then waits for a restart (RESTARTING, then CREATED again) or ends as FAILED. A job
    that is canceled closes its functions (CANCELLING), then ends as CANCELED. A job whose program is
    terminated by SIGTERM ends as SUSPENDED and keeps its checkpoints. RECONCILING is not used.

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
        """Return True if the job is over and will not be recovered."""
        return self in (JobStatus.FAILED, JobStatus.CANCELED, JobStatus.FINISHED)

    def is_terminal_state(self) -> bool:
        """Return True if this program is done with the job. A suspended job can be recovered."""
        return self is JobStatus.SUSPENDED or self.is_globally_terminal_state()
