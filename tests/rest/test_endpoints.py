"""Every GET of Flink's API answers with the fields and types of Flink's OpenAPI file."""

from __future__ import annotations

import re

import pytest

from firesteel.master.running_jobs import RunningJob
from firesteel.rest.endpoints import ENDPOINTS
from tests.rest.client import Client
from tests.rest.flink_schema import FACTS, problems

# Calls of Flink that Firesteel does not answer, with the reason.
ABSENT = {
    "/datasets": "cached results live in Spark",
    "/datasets/delete/{triggerid}": "cached results live in Spark",
    "/jars/{jarid}/plan": "programs are Python files of the command line",
    "/jobs/{jobid}/jobmanager/log-url": "no external log viewer",
    "/jobs/{jobid}/taskmanagers/{taskmanagerid}/log-url": "no external log viewer",
    "/applications/{applicationid}/jobmanager/config": "same as that of the job",
    "/jobs/{jobid}/rescales/config": "belongs to Flink's adaptive scheduler",
    "/jobs/{jobid}/rescales/details/{rescaleuuid}": "belongs to Flink's adaptive scheduler",
    "/jobs/{jobid}/rescales/history": "belongs to Flink's adaptive scheduler",
    "/jobs/{jobid}/rescales/overview": "belongs to Flink's adaptive scheduler",
    "/jobs/{jobid}/rescales/summary": "belongs to Flink's adaptive scheduler",
}
# Real slot processes answer these. tests/integration/test_observation.py asks them.
OF_PROCESSES = {"/taskmanagers/{taskmanagerid}/logs", "/taskmanagers/{taskmanagerid}/thread-dump"}
SERVED = {endpoint.path for endpoint in ENDPOINTS if endpoint.method == "GET"}
# Answers about an operation need one first. tests/rest/test_job_control.py checks them.
OPERATIONS = {path for path in FACTS["paths"] if "{triggerid}" in path}


def address(path: str, client: Client, job: RunningJob) -> str:
    vertex = job.description().vertices[1].id
    checkpoint = job.checkpoints()["latest"]["completed"]["id"]
    values = {
        "jobid": str(job.job_id),
        "applicationid": str(job.job_id),
        "vertexid": vertex,
        "subtaskindex": "1",
        "attempt": "0",
        "checkpointid": str(checkpoint),
    }
    if "{taskmanagerid}" in path:
        values["taskmanagerid"] = client.get("/taskmanagers").json()["taskmanagers"][0]["id"]
    return re.sub(r"{(\w+)}", lambda found: values[found.group(1)], path)


def test_every_get_of_flink_is_served_or_has_a_reason() -> None:
    missing = set(FACTS["paths"]) - SERVED - set(ABSENT)
    assert not missing


@pytest.mark.parametrize("path", sorted(set(FACTS["paths"]) & SERVED - OPERATIONS - OF_PROCESSES))
@pytest.mark.parametrize("prefix", ["", "/v1"])
def test_a_reply_has_flinks_fields(path: str, prefix: str, client: Client, job: RunningJob) -> None:
    reply = client.get(prefix + address(path, client, job))
    assert reply.status == 200, reply.text
    assert reply.headers["content-type"] == "application/json"
    assert problems(reply.json(), FACTS["paths"][path]) == []


@pytest.mark.parametrize(
    "path", sorted(path for path in SERVED if path.endswith("/metrics") and path in FACTS["paths"])
)
def test_each_listed_metric_has_a_value(path: str, client: Client, job: RunningJob) -> None:
    where = address(path, client, job)
    names = [metric["id"] for metric in client.get(where).json()]
    found = client.get(where, get=",".join(names)).json()
    missing = set(names) - {metric["id"] for metric in found}
    # Aggregates leave out texts.
    assert all("Path" in name for name in missing)
    assert problems(found, FACTS["paths"][path]) == []


def test_the_body_of_a_get_is_ignored(client: Client, job: RunningJob) -> None:
    reply = client.call("GET", "/v1/jobs/overview", b"{}")
    assert [one["name"] for one in reply.json()["jobs"]] == ["numbers"]
