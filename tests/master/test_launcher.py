"""A job in its thread, with an engine that ends when the test tells it to."""

from __future__ import annotations

import sys
import threading
import types
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError
from typing import Any

import pytest

from firesteel.common.configuration import Configuration
from firesteel.common.job_client import JobClient
from firesteel.common.job_status import JobStatus
from firesteel.datastream import StreamExecutionEnvironment
from firesteel.errors import FiresteelError, JobCancelledError, JobExecutionError
from firesteel.master.launcher import RunningJob, launch
from firesteel.master.running_jobs import running_jobs

_SECONDS = 10.0


class Metrics:
    def user_counters(self) -> dict[str, int]:
        return {"Map.seen": 3}


class Master:
    failure: FiresteelError | None = None

    def __init__(self) -> None:
        self.metrics = Metrics()

    def fail(self, error: FiresteelError) -> None:
        self.failure = error

    def abandon(self) -> None:
        """Do nothing: this engine has no slots to close."""


class Engine:
    """Stands in for SparkEngine."""

    def __init__(self) -> None:
        self.master = Master()
        self.status = JobStatus.RUNNING
        self.end: Callable[[], None] = lambda: None
        self._may_end = threading.Event()

    def run(self) -> None:
        assert self._may_end.wait(_SECONDS)
        self.end()

    def cancel(self) -> None:
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


@pytest.fixture(name="engine")
def _engine(monkeypatch: pytest.MonkeyPatch, thread_errors: list[Any]) -> Engine:
    engine = Engine()
    module = types.ModuleType("firesteel.spark.engine")
    module.SparkEngine = lambda *_: engine  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "firesteel.spark.engine", module)
    return engine


@pytest.fixture(name="client")
def _client(engine: Engine) -> Iterator[JobClient]:
    env = StreamExecutionEnvironment(Configuration())
    env.from_collection([1]).print()
    job = env._compile("job")
    yield launch(job.stream_graph, job.levels, job.settings)
    engine.let_end(engine.status)


def _raise(*_: Any) -> Any:
    raise ValueError("something is wrong")


def test_a_finished_job_has_its_counters_as_accumulators(engine: Engine, client: JobClient) -> None:
    engine.let_end()
    result = client.get_job_execution_result().result(_SECONDS)
    assert result.get_all_accumulator_results() == {"Map.seen": 3}


@pytest.mark.parametrize("what_fails", ["run", "run and its cleanup", "the report"])
def test_whatever_fails_at_the_end_of_a_job_reaches_those_who_wait(
    engine: Engine, client: JobClient, what_fails: str
) -> None:
    if what_fails == "the report":
        engine.master.metrics.user_counters = _raise  # type: ignore[method-assign]
    else:
        engine.end = _raise
    if what_fails == "run and its cleanup":
        engine.master.abandon = _raise  # type: ignore[method-assign]
    result, end = client.get_job_execution_result(), client.cancel()
    engine.let_end()
    with pytest.raises(JobExecutionError, match="ValueError: something is wrong"):
        result.result(_SECONDS)
    end.result(_SECONDS)
    job = client._control
    assert isinstance(job, RunningJob)
    job._thread.join(_SECONDS)
    assert job not in running_jobs._jobs


def test_who_gives_up_waiting_for_a_job_neither_ends_it_nor_breaks_its_future(
    engine: Engine, client: JobClient
) -> None:
    given_up, other = client.get_job_execution_result(), client.get_job_execution_result()
    assert given_up.cancel()
    assert given_up.done()
    assert not other.done()

    canceled, not_waited_for = client.cancel(), client.cancel()
    assert not_waited_for.cancel()
    assert not canceled.done()
    engine.let_end(JobStatus.CANCELED)
    canceled.result(_SECONDS)
    with pytest.raises(JobCancelledError):
        other.result(_SECONDS)
    with pytest.raises(CancelledError):
        given_up.result(_SECONDS)
    assert not other.cancel()
