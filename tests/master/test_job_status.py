"""The status of a job changes only as Flink's table says."""

from __future__ import annotations

import pytest

from firesteel.common.job_status import JobStatus
from firesteel.master.job_status import IllegalStateChangeError, JobState

_S = JobStatus


def _state(*changes: JobStatus) -> JobState:
    state = JobState()
    for status in changes:
        state.change(status)
    return state


@pytest.mark.parametrize(
    "life",
    [
        (_S.RUNNING, _S.FINISHED),
        (_S.RUNNING, _S.FAILING, _S.FAILED),
        (_S.RUNNING, _S.FAILING, _S.RESTARTING, _S.CREATED, _S.RUNNING, _S.FINISHED),
        (_S.FAILING, _S.RESTARTING, _S.FAILING, _S.FAILED),
        (_S.CANCELLING, _S.CANCELED),
        (_S.RUNNING, _S.CANCELLING, _S.SUSPENDED),
        (_S.RUNNING, _S.FAILING, _S.CANCELLING, _S.CANCELED),
        (_S.RUNNING, _S.FAILING, _S.RESTARTING, _S.CANCELLING, _S.CANCELED),
    ],
    ids=lambda life: "-".join(status.name for status in life),
)
def test_lives_of_jobs(life: tuple[JobStatus, ...]) -> None:
    state = _state(*life)
    assert state.status is life[-1]
    assert state.is_over


@pytest.mark.parametrize("end", [_S.FINISHED, _S.FAILED, _S.CANCELED, _S.SUSPENDED])
@pytest.mark.parametrize("status", list(JobStatus))
def test_nothing_follows_the_end_of_a_job(end: JobStatus, status: JobStatus) -> None:
    before = {
        _S.FINISHED: (_S.RUNNING,),
        _S.FAILED: (_S.FAILING,),
        _S.CANCELED: (_S.CANCELLING,),
        _S.SUSPENDED: (_S.CANCELLING,),
    }
    state = _state(*before[end], end)
    with pytest.raises(IllegalStateChangeError, match=f"{end.name} to {status.name}"):
        state.change(status)


@pytest.mark.parametrize(
    ("life", "wrong"),
    [
        ((), _S.FINISHED),
        ((), _S.FAILED),
        ((), _S.RESTARTING),
        ((_S.RUNNING,), _S.FAILED),
        ((_S.RUNNING,), _S.CANCELED),
        ((_S.CANCELLING,), _S.FAILING),
        ((_S.FAILING, _S.RESTARTING), _S.RUNNING),
    ],
)
def test_no_step_is_left_out(life: tuple[JobStatus, ...], wrong: JobStatus) -> None:
    with pytest.raises(IllegalStateChangeError):
        _state(*life).change(wrong)


def test_a_failure_while_a_job_is_canceled_does_not_change_its_end() -> None:
    state = _state(_S.RUNNING)
    assert state.cancel(_S.SUSPENDED)
    state.fail()
    state.canceled()
    assert state.status is _S.SUSPENDED


def test_canceling_comes_too_late_once_a_job_is_over_or_being_canceled() -> None:
    state = _state(_S.RUNNING)
    assert state.cancel()
    assert not state.cancel(_S.SUSPENDED)
    state.canceled()
    assert state.status is _S.CANCELED
    assert not state.cancel()
