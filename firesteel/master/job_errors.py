"""What ends a job, as an error of ours that names it."""

from __future__ import annotations

from firesteel.errors import FiresteelError, JobExecutionError, UserFunctionError


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
