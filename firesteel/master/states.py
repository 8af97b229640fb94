"""The states of a job and the changes that are allowed between them."""

from __future__ import annotations

from firesteel.common.job_status import JobStatus
from firesteel.errors import FiresteelError

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
