"""A program whose jobs outlive it: ``firesteel run --ha``.

The program stands for election, and runs when it leads. Its jobs have the same ids in every run, so
they continue from the newest checkpoint that an earlier run has completed.
"""

from __future__ import annotations

import hashlib
import logging
import threading
from concurrent.futures import Future
from typing import Any

from firesteel.common.job_execution_result import JobExecutionResult
from firesteel.common.job_id import JobID
from firesteel.common.job_status import JobStatus
from firesteel.errors import JobExecutionError
from firesteel.leader.job_ledger import JobLedger
from firesteel.leader.services import Listener, Member
from firesteel.leader.settings import LeaderSettings
from firesteel.master.running_jobs import running_jobs
from firesteel.protocol.error_json import decode_error

_log = logging.getLogger("firesteel")


class LedApplication:
    """The leadership of a program.

    Args:
        settings: The settings of the group. Its name is that of the application.
    """

    def __init__(self, settings: LeaderSettings) -> None:
        self._settings = settings
        self._services = settings.open()
        self._granted = threading.Event()
        self._term = 0
        self._launched = 0
        self._election = self._services.contend(
            Member(), Listener(self._has_been_granted, self._has_been_revoked)
        )

    def wait(self, seconds: float | None = None) -> bool:
        """Wait until this program leads. Return False if that takes longer."""
        return self._granted.wait(seconds)

    def next_job(self, name: str) -> tuple[JobID, JobLedger]:
        """Return the id and the ledger of the next job that the program starts."""
        seed = f"{self._settings.group}/{self._launched}/{name}"
        self._launched += 1
        job_id = hashlib.sha256(seed.encode()).hexdigest()[:32]
        return JobID(job_id), self._settings.ledger(self._services, self._term, job_id)

    def _has_been_granted(self, term: int) -> None:
        if self._granted.is_set():
            # The jobs of the first term have ended, and with them the program soon does.
            return
        self._term = term
        self._granted.set()

    def _has_been_revoked(self, term: int, reason: str) -> None:
        self._end_jobs(f"it no longer leads: {reason}")

    def spark_has_ended(self) -> None:
        """End the program, so that a supervisor starts it again, with a new JVM."""
        if running_jobs:
            self._end_jobs("Spark's JVM has ended by itself")

    @staticmethod
    def _end_jobs(reason: str) -> None:
        _log.error("the jobs of this program end, because %s", reason)
        running_jobs.suspended = True
        running_jobs.cancel_all()

    def close(self) -> None:
        self._election.close()
        self._services.close()


class EndedJob:
    """A job that an earlier run of the program has brought to its end."""

    def __init__(self, job_id: JobID, name: str, end: dict[str, Any]) -> None:
        self.job_id = job_id
        self._status = JobStatus[end["status"]]
        self._result: Future[JobExecutionResult] = Future()
        if self._status is JobStatus.FINISHED:
            self._result.set_result(JobExecutionResult(job_id, 0, {}, name))
        elif end["error"] is not None:
            self._result.set_exception(decode_error(end["error"]))
        else:
            self._result.set_exception(
                JobExecutionError(
                    f"{name} has ended as {end['status']} in an earlier run. To start it again, "
                    "change high-availability.cluster-id"
                )
            )
        _log.warning("%s has ended as %s in an earlier run", name, end["status"])

    def status(self) -> JobStatus:
        return self._status

    def result(self) -> Future[JobExecutionResult]:
        return self._result

    def cancel(self) -> Future[None]:
        done: Future[None] = Future()
        done.set_result(None)
        return done

    def cancel_and_wait(self) -> None:
        """Do nothing: the job has ended."""

    def interrupt(self) -> None:
        """Do nothing: the job has ended."""

    def accumulators(self) -> dict[str, Any]:
        return {}

    def metrics(self) -> dict[str, Any]:
        return {}

    def overview(self) -> dict[str, Any]:
        return {"status": self._status.name, "vertices": []}

    def checkpoints(self) -> dict[str, Any]:
        return {}

    def checkpoint_details(self, checkpoint_id: int) -> dict[str, Any] | None:
        return None

    def savepoint(
        self, directory: str | None, stop: str | None, native: bool = False
    ) -> Future[str]:
        return self.checkpoint()

    def checkpoint(self) -> Future[str]:
        refused: Future[str] = Future()
        refused.set_exception(JobExecutionError("the job is not running"))
        return refused
