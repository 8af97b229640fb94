"""Resource requirements and rescaling over REST."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from firesteel.datastream import StreamExecutionEnvironment
from firesteel.dispatcher.dispatcher import Dispatcher
from firesteel.master.running_jobs import RunningJob
from tests.rest.client import Client
from tests.rest.conftest import numbers
from tests.rest.flink_schema import FACTS, problems
from tests.rest.jobs import checkpointed, ended, start
from tests.waiting import wait_until


@pytest.fixture
def job(dispatcher: Dispatcher, tmp_path: Path) -> Iterator[RunningJob]:
    job = start(dispatcher, numbers, "rescaled", **checkpointed(tmp_path))
    with ended(job):
        wait_until(lambda: job.status().name == "RUNNING")
        yield job


def parallelism(client: Client, job: RunningJob) -> dict[str, int]:
    vertices = client.get(f"/jobs/{job.job_id}").json()["vertices"]
    return {vertex["id"]: vertex["parallelism"] for vertex in vertices}


def test_the_requirements_are_those_of_the_program_at_first(
    client: Client, job: RunningJob
) -> None:
    found = client.get(f"/jobs/{job.job_id}/resource-requirements").json()
    assert problems(found, FACTS["paths"]["/jobs/{jobid}/resource-requirements"]) == []
    assert found == {
        vertex: {"parallelism": {"lowerBound": 1, "upperBound": count}}
        for vertex, count in parallelism(client, job).items()
    }


def test_new_requirements_change_the_parallelism(client: Client, job: RunningJob) -> None:
    path = f"/jobs/{job.job_id}/resource-requirements"
    wanted = client.get(path).json()
    last = job.description().vertices[-1].id
    wanted[last]["parallelism"]["upperBound"] = 3
    assert client.call("PUT", path, wanted).status == 200
    wait_until(lambda: parallelism(client, job)[last] == 3)
    wait_until(lambda: client.get(f"/jobs/{job.job_id}").json()["state"] == "RUNNING")
    assert client.get(path).json() == wanted
    # All subtasks work, and the figures of the vertex are there.
    wait_until(
        lambda: all(
            subtask["status"] == "RUNNING"
            for subtask in client.get(f"/jobs/{job.job_id}/vertices/{last}").json()["subtasks"]
        )
    )
    assert len(client.get(f"/jobs/{job.job_id}/vertices/{last}").json()["subtasks"]) == 3
    restored = client.get(f"/jobs/{job.job_id}/checkpoints").json()["latest"]["restored"]
    assert restored is not None


def test_the_same_requirements_restart_nothing(client: Client, job: RunningJob) -> None:
    path = f"/jobs/{job.job_id}/resource-requirements"
    assert client.call("PUT", path, client.get(path).json()).status == 200
    assert client.get(f"/jobs/{job.job_id}/checkpoints").json()["latest"]["restored"] is None


def test_rescaling_all_vertices(client: Client, job: RunningJob) -> None:
    path = f"/jobs/{job.job_id}/rescaling"
    reply = client.call("PATCH", f"{path}?parallelism=4", {})
    assert reply.status == 202
    trigger = f"{path}/{reply.json()['request-id']}"
    wait_until(lambda: client.get(trigger).json()["status"]["id"] == "COMPLETED")
    assert (
        problems(client.get(trigger).json(), FACTS["paths"]["/jobs/{jobid}/rescaling/{triggerid}"])
        == []
    )
    assert max(parallelism(client, job).values()) == 4


@pytest.mark.parametrize("count", ["0", "-1", "x", "40000", ""])
def test_a_wrong_parallelism(client: Client, job: RunningJob, count: str) -> None:
    assert client.call("PATCH", f"/jobs/{job.job_id}/rescaling?parallelism={count}").status == 400


@pytest.mark.parametrize(
    "change",
    [
        lambda body: body.popitem(),
        lambda body: body.update({"f" * 32: {"parallelism": {"lowerBound": 1, "upperBound": 1}}}),
        lambda body: body.update({key: {} for key in body}),
        lambda body: body.update({key: {"parallelism": {"upperBound": 0}} for key in body}),
        lambda body: body.update(
            {key: {"parallelism": {"lowerBound": 3, "upperBound": 2}} for key in body}
        ),
        lambda body: body.update({key: {"parallelism": {"upperBound": 9999}} for key in body}),
    ],
    ids=["missing", "unknown", "empty", "zero", "crossed", "beyond the maximum"],
)
def test_wrong_requirements(client: Client, job: RunningJob, change: Any) -> None:
    path = f"/jobs/{job.job_id}/resource-requirements"
    body = client.get(path).json()
    change(body)
    reply = client.call("PUT", path, body)
    assert reply.status == 400
    assert reply.json()["errors"]


def test_a_job_that_has_ended_is_not_rescaled(dispatcher: Dispatcher, client: Client) -> None:
    def few(env: StreamExecutionEnvironment) -> None:
        env.from_collection([1]).print()

    job = start(dispatcher, few, "ended")
    job.result().result(30)
    assert client.call("PATCH", f"/jobs/{job.job_id}/rescaling?parallelism=2").status == 409
