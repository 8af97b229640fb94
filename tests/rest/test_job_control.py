"""Savepoints, stops, checkpoints, cancellation and disposal over REST."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from firesteel.dispatcher.dispatcher import Dispatcher
from firesteel.master.running_jobs import RunningJob
from tests.rest.client import Client
from tests.rest.conftest import numbers
from tests.rest.flink_schema import FACTS, problems
from tests.rest.jobs import checkpointed, ended, start
from tests.waiting import wait_until

UNKNOWN = "0123456789abcdef" * 2


@pytest.fixture
def own_job(dispatcher: Dispatcher, tmp_path: Path) -> Iterator[RunningJob]:
    job = start(dispatcher, numbers, "controlled", **checkpointed(tmp_path))
    with ended(job):
        wait_until(lambda: job.status().name == "RUNNING")
        yield job


def completed(client: Client, path: str) -> Any:
    wait_until(lambda: client.get(path).json()["status"]["id"] == "COMPLETED")
    return client.get(path).json()


def test_a_savepoint(client: Client, own_job: RunningJob, tmp_path: Path) -> None:
    path = f"/v1/jobs/{own_job.job_id}/savepoints"
    body = {"target-directory": str(tmp_path), "cancel-job": False, "triggerId": None}
    reply = client.call("POST", path, {**body, "formatType": "CANONICAL"})
    assert reply.status == 202
    state = completed(client, f"{path}/{reply.json()['request-id']}")
    assert problems(state, FACTS["paths"]["/jobs/{jobid}/savepoints/{triggerid}"]) == []
    location = state["operation"]["location"].removeprefix("file:")
    assert Path(location).is_dir()
    assert own_job.status().name == "RUNNING"


@pytest.mark.parametrize("call", ["savepoints", "stop"])
def test_a_native_savepoint(client: Client, own_job: RunningJob, tmp_path: Path, call: str) -> None:
    job = f"/jobs/{own_job.job_id}"
    field = "target-directory" if call == "savepoints" else "targetDirectory"
    body = {field: str(tmp_path), "formatType": "NATIVE"}
    trigger = client.call("POST", f"{job}/{call}", body).json()["request-id"]
    completed(client, f"{job}/savepoints/{trigger}")
    (found,) = [
        one for one in client.get(f"{job}/checkpoints").json()["history"] if one["is_savepoint"]
    ]
    assert found["savepointFormat"] == "NATIVE"
    refused = client.call("POST", f"{job}/{call}", {**body, "formatType": "OTHER"})
    assert refused.status in (400, 409)


def test_a_trigger_id_of_the_client_begins_one_operation(
    client: Client, own_job: RunningJob, tmp_path: Path
) -> None:
    path = f"/jobs/{own_job.job_id}/savepoints"
    body = {"target-directory": str(tmp_path / "s"), "triggerId": UNKNOWN}
    replies = [client.call("POST", path, body).json() for _ in range(2)]
    assert replies == [{"request-id": UNKNOWN}] * 2
    completed(client, f"{path}/{UNKNOWN}")
    assert len(list((tmp_path / "s").iterdir())) == 1


def test_stop_ends_the_job_with_a_savepoint(
    client: Client, own_job: RunningJob, tmp_path: Path
) -> None:
    body = {"targetDirectory": str(tmp_path), "drain": False, "triggerId": None}
    reply = client.call("POST", f"/jobs/{own_job.job_id}/stop", body)
    assert reply.status == 202
    # Flink's client asks for the result under the name of savepoints.
    path = f"/jobs/{own_job.job_id}/savepoints/{reply.json()['request-id']}"
    assert completed(client, path)["operation"]["location"]
    wait_until(lambda: own_job.status().name == "FINISHED")
    again = client.call("POST", f"/jobs/{own_job.job_id}/stop", body)
    assert again.status == 409


def test_a_checkpoint(client: Client, own_job: RunningJob) -> None:
    path = f"/jobs/{own_job.job_id}/checkpoints"
    reply = client.call("POST", path, {"checkpointType": "FULL", "triggerId": None})
    assert reply.status == 202
    state = completed(client, f"{path}/{reply.json()['request-id']}")
    number = state["operation"]["checkpointId"]
    assert client.get(f"{path}/details/{number}").status == 200


def test_a_checkpoint_of_a_job_without_a_checkpoint_directory(
    client: Client, dispatcher: Dispatcher
) -> None:
    job = start(dispatcher, numbers, "in memory")
    with ended(job):
        wait_until(lambda: job.status().name == "RUNNING")
        path = f"/jobs/{job.job_id}/checkpoints"
        reply = client.call("POST", path, {"checkpointType": "CONFIGURED"})
        state = completed(client, f"{path}/{reply.json()['request-id']}")
        assert state["operation"] == {"checkpointId": 1}


def test_a_savepoint_that_fails_says_why(client: Client, own_job: RunningJob) -> None:
    path = f"/jobs/{own_job.job_id}/savepoints"
    reply = client.call("POST", path, {"target-directory": "/proc/nowhere"})
    operation = f"{path}/{reply.json()['request-id']}"
    wait_until(lambda: client.get(operation).status != 200)
    failed = client.get(operation)
    assert failed.status == 500
    assert "/proc/nowhere" in failed.json()["errors"][0]


def test_disposal(client: Client, own_job: RunningJob, tmp_path: Path) -> None:
    location = own_job.savepoint(str(tmp_path), None).result(30)
    reply = client.call("POST", "/savepoint-disposal", {"savepoint-path": location})
    assert reply.status == 200
    state = completed(client, f"/savepoint-disposal/{reply.json()['request-id']}")
    assert state["operation"] == {}
    assert not Path(location.removeprefix("file:")).exists()


def test_disposal_of_a_savepoint_that_is_not_there(client: Client, tmp_path: Path) -> None:
    reply = client.call("POST", "/savepoint-disposal", {"savepoint-path": str(tmp_path / "no")})
    path = f"/savepoint-disposal/{reply.json()['request-id']}"
    wait_until(lambda: client.get(path).status == 500)
    assert "no" in client.get(path).json()["errors"][0]


@pytest.mark.parametrize("how", ["PATCH", "GET"])
def test_cancel(client: Client, own_job: RunningJob, how: str) -> None:
    job = f"/jobs/{own_job.job_id}"
    path = f"{job}?mode=cancel" if how == "PATCH" else f"{job}/yarn-cancel"
    reply = client.call(how, path)
    assert (reply.status, reply.json()) == (202, {})
    wait_until(lambda: own_job.status().name == "CANCELED")
    assert client.call("PATCH", f"{job}?mode=cancel").status == 202
    overview = client.get("/jobs/overview").json()["jobs"]
    (found,) = [one for one in overview if one["jid"] == str(own_job.job_id)]
    assert found["state"] == "CANCELED"
    assert found["end-time"] > 0


def test_a_finished_job_cannot_be_canceled(client: Client, dispatcher: Dispatcher) -> None:
    job = start(dispatcher, lambda env: env.from_collection([1]).print(), "short")
    job.result().result(30)
    reply = client.call("PATCH", f"/jobs/{job.job_id}?mode=cancel")
    assert reply.status == 409
    result = client.get(f"/jobs/{job.job_id}/execution-result").json()
    assert result["status"] == {"id": "COMPLETED"}
    assert result["job-execution-result"]["success"]


def test_a_page_from_elsewhere_cannot_cancel(client: Client, own_job: RunningJob) -> None:
    for headers in ({"origin": "http://evil.example"}, {"sec-fetch-site": "cross-site"}):
        job = f"/jobs/{own_job.job_id}"
        assert client.call("PATCH", job, headers=headers).status == 403
        assert client.call("GET", f"{job}/yarn-cancel", headers=headers).status == 403
    assert own_job.status().name == "RUNNING"


def test_a_job_that_fails_shows_the_exception(client: Client, dispatcher: Dispatcher) -> None:
    def build(env) -> None:
        env.from_collection([1, 0]).map(lambda value: 1 // value).name("divide").print()

    job = start(dispatcher, build, "fails", restart_strategy__type="none")
    # The result follows the state.
    wait_until(lambda: job.result().done())
    history = client.get(f"/jobs/{job.job_id}/exceptions", maxExceptions="10").json()
    (entry,) = history["exceptionHistory"]["entries"]
    assert entry["exceptionName"].endswith("ZeroDivisionError")
    assert entry["taskName"] == "divide"
    assert entry["record"] == "0"
    assert entry["concurrentExceptions"] == []
    state = client.get(f"/jobs/{job.job_id}").json()
    assert state["state"] == "FAILED"
    outcome = client.get(f"/jobs/{job.job_id}/execution-result").json()["job-execution-result"]
    assert outcome["application-status"] == "FAILED"
    assert "ZeroDivisionError" in outcome["failure-cause"]["stack-trace"]
