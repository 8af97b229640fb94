"""Job states in Flink's words, and the changes between them."""

from __future__ import annotations

import time
from collections.abc import Callable

from firesteel.common.job_status import JobStatus
from firesteel.errors import FiresteelError

_S = JobStatus

# All changes. A job that fails closes its slots first (FAILING); then the restart strategy decides
# between RESTARTING and FAILED. A job that is canceled or suspended closes its slots in CANCELLING.
# A job that is rescaled is RESTARTING once its slots are closed.
# RECONCILING is for masters that take over a running job. Here the next leader starts it again.
_CHANGES: dict[JobStatus, frozenset[JobStatus]] = {
    _S.CREATED: frozenset({_S.RUNNING, _S.FAILING, _S.CANCELLING}),
    _S.RUNNING: frozenset({_S.FINISHED, _S.FAILING, _S.CANCELLING, _S.RESTARTING}),
    _S.FAILING: frozenset({_S.RESTARTING, _S.FAILED, _S.CANCELLING}),
    _S.RESTARTING: frozenset({_S.CREATED, _S.FAILING, _S.CANCELLING}),
    _S.CANCELLING: frozenset({_S.CANCELED, _S.SUSPENDED}),
    _S.FAILED: frozenset(),
    _S.CANCELED: frozenset(),
    _S.FINISHED: frozenset(),
    _S.SUSPENDED: frozenset(),
    _S.RECONCILING: frozenset(),
}


class IllegalStateChangeError(FiresteelError, RuntimeError):
    """A change of state that the table does not contain. It is a bug in Firesteel."""


class JobState:
    """The status of one job through all its attempts.

    ``timestamps`` has the time of the last change to each status, in seconds of ``clock``, and
    ``began_at`` that of the job's submission.
    """

    __slots__ = ("_canceled_to", "_clock", "began_at", "status", "timestamps")

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self.status = JobStatus.CREATED
        self.began_at = clock()
        self.timestamps = {JobStatus.CREATED: self.began_at}
        # The status after CANCELLING.
        self._canceled_to = JobStatus.CANCELED

    def change(self, status: JobStatus) -> None:
        if status not in _CHANGES[self.status]:
            raise IllegalStateChangeError(
                f"a job cannot change from {self.status.name} to {status.name}"
            )
        self.status = status
        self.timestamps[status] = self._clock()

    def cancel(self, to: JobStatus = JobStatus.CANCELED) -> bool:
        """Begin to end the job as CANCELED or SUSPENDED; False if it is too late for that."""
        if JobStatus.CANCELLING not in _CHANGES[self.status]:
            return False
        self.change(JobStatus.CANCELLING)
        self._canceled_to = to
        return True

    def canceled(self) -> None:
        """The slots of a job that is being canceled are closed."""
        self.change(self._canceled_to)

    def fail(self) -> None:
        """A job that is failing, being canceled or over stays as it is, as in Flink."""
        if JobStatus.FAILING in _CHANGES[self.status]:
            self.change(JobStatus.FAILING)

    @property
    def is_over(self) -> bool:
        return self.status.is_terminal_state()
