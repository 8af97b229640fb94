"""A job in its thread, with a runner that ends when the test says so."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError
from typing import Any

import pytest

from firesteel.common.configuration import Configuration
from firesteel.common.job_client import JobClient
from firesteel.common.job_id import JobID
from firesteel.common.job_status import JobStatus
from firesteel.datastream import StreamExecutionEnvironment
from firesteel.errors import FiresteelError, JobCancelledError, JobExecutionError
from firesteel.master.running_jobs import RunningJob, running_jobs

_SECONDS = 10.0


class Metrics:
    def user_counters(self) -> dict[str, int]:
        return {"Map.seen": 3}


class Master:
    def __init__(self) -> None:
        self.metrics = Metrics()


class Runner:
    """Stands in for JobRunner."""

    def __init__(self) -> None:
        self.master = Master()
        self.status = JobStatus.RUNNING
        self.failure: FiresteelError | None = None
        self.end: Callable[[], None] = lambda: None
        self._may_end = threading.Event()

    def run(self) -> None:
        assert self._may_end.wait(_SECONDS)
        self.end()

    def cancel(self, to: JobStatus) -> None:
        self.status = JobStatus.CANCELLING

    def let_end(self, status: JobStatus = JobStatus.FINISHED) -> None:
        self.status = status
        self._may_end.set()


@pytest.fixture(name="thread_errors")
def _thread_errors(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Any]]:
    """Exceptions of threads that would be printed on stderr."""
    errors: list[Any] = []
    monkeypatch.setattr(threading, "excepthook", errors.append)
    yield errors
    assert errors == []


@pytest.fixture(name="runner")
def _runner(thread_errors: list[Any]) -> Runner:
    return Runner()


@pytest.fixture(name="client")
def _client(runner: Runner) -> Iterator[JobClient]:
    env = StreamExecutionEnvironment(Configuration())
    env.from_collection([1]).print()
    settings = env._compile("job").settings
    yield JobClient(RunningJob(JobID.generate(), settings, runner))  # type: ignore[arg-type]
    runner.let_end(runner.status)


def _raise(*_: Any) -> Any:
    raise ValueError("something is wrong")


def test_a_finished_job_has_its_counters_as_accumulators(runner: Runner, client: JobClient) -> None:
    runner.let_end()
    result = client.get_job_execution_result().result(_SECONDS)
    assert result.get_all_accumulator_results() == {"Map.seen": 3}


@pytest.mark.parametrize("what_fails", ["run", "the report"])
def test_whatever_fails_at_the_end_of_a_job_reaches_those_who_wait(
    runner: Runner, client: JobClient, what_fails: str
) -> None:
    if what_fails == "the report":
        runner.master.metrics.user_counters = _raise  # type: ignore[method-assign]
    else:
        runner.end = _raise
    result, end = client.get_job_execution_result(), client.cancel()
    runner.let_end()
    with pytest.raises(JobExecutionError, match="ValueError: something is wrong"):
        result.result(_SECONDS)
    end.result(_SECONDS)
    job = client._control
    assert isinstance(job, RunningJob)
    job._thread.join(_SECONDS)
    assert job not in running_jobs._jobs


def test_who_gives_up_waiting_for_a_job_neither_ends_it_nor_breaks_its_future(
    runner: Runner, client: JobClient
) -> None:
    given_up, other = client.get_job_execution_result(), client.get_job_execution_result()
    assert given_up.cancel()
    assert given_up.done()
    assert not other.done()

    canceled, not_waited_for = client.cancel(), client.cancel()
    assert not_waited_for.cancel()
    assert not canceled.done()
    runner.let_end(JobStatus.CANCELED)
    canceled.result(_SECONDS)
    with pytest.raises(JobCancelledError):
        other.result(_SECONDS)
    with pytest.raises(CancelledError):
        given_up.result(_SECONDS)
    assert not other.cancel()
