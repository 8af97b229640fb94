"""What ends a job, as an error of ours that names it."""

from __future__ import annotations

from firesteel.common.job_status import JobStatus
from firesteel.errors import FiresteelError, JobExecutionError, UserFunctionError

_S = JobStatus

_ALLOWED: dict[JobStatus, frozenset[JobStatus]] = {
    _S.CREATED: frozenset({_S.RUNNING, _S.FAILING, _S.FAILED, _S.CANCELLING, _S.CANCELED}),
    _S.RUNNING: frozenset({_S.FINISHED, _S.FAILING, _S.FAILED, _S.CANCELLING}),
    _S.FAILING: frozenset({_S.FAILED}),
    _S.CANCELLING: frozenset({_S.CANCELED, _S.FAILED, _S.FAILING}),
}


class IllegalStateChangeError(FiresteelError, RuntimeError):
    """A change of state that the table above does not have: a bug of ours."""


def check_change(old: JobStatus, new: JobStatus) -> JobStatus:
    if new not in _ALLOWED.get(old, frozenset()):
        raise IllegalStateChangeError(f"a job cannot change from {old.name} to {new.name}")
    return new


def explained(error: BaseException, job_id: str, job_name: str) -> FiresteelError:
    """``error`` itself if it is one of ours, else one that says what it was, with it as its cause."""
    if isinstance(error, UserFunctionError):
        error.job = error.job or job_name
    if isinstance(error, FiresteelError):
        return error
    wrapped = JobExecutionError(
        f"{type(error).__name__}: {error}", job_id=job_id, job_name=job_name
    )
    wrapped.__cause__ = error
    return wrapped
