"""JobClient over REST: a client in a different process controls a job with the same calls."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from firesteel.client.remote_job import RemoteJob
from firesteel.client.rest_client import RestClient, RestClientError
from firesteel.common import JobClient, JobStatus
from firesteel.common.configuration import Configuration
from firesteel.common.job_id import JobID
from firesteel.dispatcher.dispatcher import Dispatcher
from firesteel.errors import JobCancelledError, UserFunctionError
from firesteel.master.running_jobs import RunningJob
from firesteel.rest.server import RestServer
from firesteel.rest.submission import session_endpoints
from tests.rest.conftest import numbers
from tests.rest.jobs import checkpointed, ended, start
from tests.waiting import wait_until


@pytest.fixture(scope="module")
def dispatcher() -> Dispatcher:
    return Dispatcher(Configuration.from_dict({"rest.port": "0", "web.history": "10"}))


@pytest.fixture(scope="module")
def server(dispatcher: Dispatcher) -> Iterator[RestClient]:
    # A session has these endpoints beside Flink's. No test here submits a job.
    endpoints = session_endpoints(dispatcher, "secret")  # type: ignore[arg-type]
    with RestServer(dispatcher, more=endpoints) as server:
        yield RestClient(server.url, "secret")


@pytest.fixture
def job(dispatcher: Dispatcher, tmp_path: Path) -> Iterator[RunningJob]:
    job = start(dispatcher, numbers, "numbers", **checkpointed(tmp_path))
    with ended(job):
        wait_until(lambda: job.accumulators().get("count <&> ship.seen") == 20)
        yield job


def test_a_running_job_is_watched_saved_and_stopped(
    server: RestClient, job: RunningJob, tmp_path: Path
) -> None:
    client = JobClient(RemoteJob(job.job_id, server))
    assert client.get_job_id() == job.job_id
    assert client.get_job_status().result() is JobStatus.RUNNING
    assert client.get_accumulators().result() == {"count <&> ship.seen": 20}
    assert client.get_metrics()["count <&> ship.depth"]["values"] == [3, 3]
    assert client.get_overview()["status"] == "RUNNING"
    path = client.trigger_checkpoint().result(30)
    number = int(path.rpartition("chk-")[2])
    details = client.get_checkpoint_details(number)
    assert details is not None
    assert details["status"] == "COMPLETED"
    assert client.get_checkpoint_details(10**9) is None
    savepoint = client.trigger_savepoint(str(tmp_path / "own")).result(30)
    assert Path(savepoint.removeprefix("file:"), "_metadata").exists()

    result = client.get_job_execution_result()
    assert not result.done()
    stopped = client.stop_with_savepoint(False, str(tmp_path / "stopped")).result(30)
    assert "/stopped/savepoint-" in stopped
    assert result.result(30).get_accumulator_result("count <&> ship.seen") == 20
    assert client.get_job_status().result() is JobStatus.FINISHED


def test_a_canceled_job(server: RestClient, job: RunningJob) -> None:
    client = JobClient(RemoteJob(job.job_id, server))
    client.cancel().result(30)
    assert client.get_job_status().result() is JobStatus.CANCELED
    with pytest.raises(JobCancelledError):
        client.get_job_execution_result().result(30)
    # It is canceled already.
    client.cancel().result(30)


def test_the_error_of_a_function_is_that_of_the_result(
    server: RestClient, dispatcher: Dispatcher
) -> None:
    job = start(
        dispatcher,
        lambda env: (
            env.from_collection([1, 0]).map(lambda value: 1 // value).name("divide").print()
        ),
        restart_strategy__type="none",
    )
    with pytest.raises(UserFunctionError, match=r"operator 'divide'"):
        RemoteJob(job.job_id, server).result().result(30)


def test_a_job_that_the_session_does_not_know(server: RestClient) -> None:
    with pytest.raises(RestClientError, match="not found"):
        RemoteJob(JobID.generate(), server).status()
