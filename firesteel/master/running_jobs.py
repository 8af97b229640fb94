"""Registry of the program's jobs that have not ended, to end all of them at once."""

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

    def suspend(self) -> Future[None]:
        """Like ``cancel``, but the job keeps its checkpoints, to be recovered later."""

    def give_up(self) -> None:
        """Wait for the running epoch no longer."""


class RunningJobs:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._jobs: set[StoppableJob] = set()
        # The program is ended from outside (SIGTERM), as when a machine goes down. The user has not
        # canceled the jobs, so their checkpoints stay, as those of a program that is killed.
        self.suspended = False

    def add(self, job: StoppableJob) -> None:
        with self._lock:
            self._jobs.add(job)

    def discard(self, job: StoppableJob) -> None:
        with self._lock:
            self._jobs.discard(job)

    def __bool__(self) -> bool:
        # Without the lock: signal handlers ask, and may have interrupted a thread that holds it.
        return bool(self._jobs)

    def cancel_all(self, seconds: float = _END_SECONDS) -> None:
        """Cancel or suspend all jobs and wait for their end; give up those that take too long."""
        with self._lock:
            jobs = list(self._jobs)
        ends = [job.suspend() if self.suspended else job.cancel() for job in jobs]
        if wait(ends, seconds).not_done:
            self.give_up()
            wait(ends, seconds)

    def give_up(self) -> None:
        for job in list(self._jobs):
            job.give_up()


running_jobs = RunningJobs()
