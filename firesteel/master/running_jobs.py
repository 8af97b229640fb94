"""The jobs of this program that have not ended yet, and how they are ended all at once."""

from __future__ import annotations

import threading
from concurrent.futures import Future, wait
from typing import Protocol

__all__ = ["RunningJobs", "StoppableJob", "running_jobs"]

# Jobs end by themselves well within this time; a program must end even if one does not.
_END_SECONDS = 20.0


class StoppableJob(Protocol):
    def cancel(self) -> Future[None]:
        """Let the running epoch end, then close. The future ends with the job."""

    def give_up(self) -> None:
        """Do not wait any more for the epoch that runs."""


class RunningJobs:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._jobs: set[StoppableJob] = set()
        # The program is ended from outside (SIGTERM), as when a machine goes down. That is no wish
        # of the user's to cancel jobs: their checkpoints stay, as those of a program that is killed.
        self.suspended = False

    def add(self, job: StoppableJob) -> None:
        with self._lock:
            self._jobs.add(job)

    def discard(self, job: StoppableJob) -> None:
        with self._lock:
            self._jobs.discard(job)

    def __bool__(self) -> bool:
        # Without the lock: signal handlers ask, and may have interrupted one who holds it.
        return bool(self._jobs)

    def cancel_all(self, seconds: float = _END_SECONDS) -> None:
        """Cancel all jobs and wait for their end; those that take too long are given up."""
        with self._lock:
            jobs = list(self._jobs)
        ends = [job.cancel() for job in jobs]
        if wait(ends, seconds).not_done:
            self.give_up()
            wait(ends, seconds)

    def give_up(self) -> None:
        for job in list(self._jobs):
            job.give_up()


running_jobs = RunningJobs()
