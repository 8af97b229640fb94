"""Archived jobs: a new session and the history server show them like jobs of their own."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from firesteel.cli.main import main
from firesteel.common.configuration import Configuration
from firesteel.dispatcher.dispatcher import Dispatcher
from firesteel.dispatcher.history import HistoryDispatcher
from firesteel.errors import ConfigurationError
from firesteel.master.running_jobs import RunningJob
from firesteel.rest.endpoints import ENDPOINTS
from firesteel.rest.server import RestServer
from tests.rest.client import Client
from tests.rest.conftest import numbers
from tests.rest.flink_schema import FACTS, problems
from tests.rest.jobs import checkpointed, start
from tests.waiting import wait_until


def history(archive: Path) -> HistoryDispatcher:
    return HistoryDispatcher(
        Configuration.from_dict(
            {
                "rest.port": "0",
                "historyserver.archive.fs.dir": str(archive),
                "historyserver.archive.fs.refresh-interval": "10 ms",
            }
        )
    )


def archiving(archive: Path) -> Dispatcher:
    settings = {"rest.port": "0", "jobmanager.archive.fs.dir": str(archive)}
    return Dispatcher(Configuration.from_dict(settings))


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("archive")


@pytest.fixture(scope="module")
def job(archive: Path, tmp_path_factory: pytest.TempPathFactory) -> RunningJob:
    """A job with checkpoints that was canceled and archived."""
    directory = tmp_path_factory.mktemp("job")
    job = start(archiving(archive), numbers, "archived", **checkpointed(directory))
    wait_until(lambda: job.checkpoints()["counts"]["completed"] >= 1)
    wait_until(lambda: job.accumulators().get("count <&> ship.seen") == 20)
    job.cancel().result(30)
    wait_until((archive / f"{job.job_id}.json").exists)
    return job


@pytest.fixture(scope="module")
def client(archive: Path, job: RunningJob) -> Iterator[Client]:
    dispatcher = history(archive)
    with RestServer(dispatcher) as server:
        yield Client(server.port)
    dispatcher.close()


@pytest.mark.parametrize(
    "path",
    sorted(
        endpoint.path
        for endpoint in ENDPOINTS
        if endpoint.method == "GET"
        and endpoint.path in FACTS["paths"]
        and endpoint.path.startswith("/jobs/{jobid}")
        and "{triggerid}" not in endpoint.path
    ),
)
def test_the_history_server_answers_as_flink_does(
    client: Client, job: RunningJob, path: str
) -> None:
    values = {
        "jobid": str(job.job_id),
        "vertexid": job.description().vertices[1].id,
        "subtaskindex": "1",
        "attempt": "0",
        "checkpointid": str(job.checkpoints()["latest"]["completed"]["id"]),
    }
    reply = client.get(path.format_map(values))
    assert reply.status == 200, reply.text
    assert problems(reply.json(), FACTS["paths"][path]) == []


def test_the_job_is_listed_with_its_figures(client: Client, job: RunningJob) -> None:
    (found,) = client.get("/jobs/overview").json()["jobs"]
    assert (found["jid"], found["name"], found["state"]) == (
        str(job.job_id),
        "archived",
        "CANCELED",
    )
    counters = client.get(f"/jobs/{job.job_id}/accumulators").json()["user-task-accumulators"]
    assert [one["value"] for one in counters] == ["20"]
    assert client.get("/overview").json()["slots-total"] == 0
    assert client.get("/config").json()["features"]["web-history"]


def test_an_archived_job_cannot_be_changed(client: Client, job: RunningJob) -> None:
    path = f"/jobs/{job.job_id}"
    assert client.call("POST", f"{path}/savepoints", {}).status == 409
    assert client.call("PATCH", f"{path}/rescaling?parallelism=2").status == 409
    assert client.get(f"{path}/log").status == 404


def test_a_new_dispatcher_shows_the_archived_jobs(archive: Path, job: RunningJob) -> None:
    dispatcher = archiving(archive)
    dispatcher.load_archive()
    assert [found.name for found in dispatcher.jobs()] == ["archived"]


def test_new_and_deleted_jobs_are_noticed(archive: Path, job: RunningJob, tmp_path: Path) -> None:
    dispatcher = history(tmp_path)
    assert dispatcher.jobs() == []
    file = archive / f"{job.job_id}.json"
    (tmp_path / file.name).write_bytes(file.read_bytes())
    (tmp_path / f"{'0' * 32}.json").write_text("{")
    (tmp_path / f"{'1' * 32}.json").write_text(json.dumps({"version": 99}))
    wait_until(lambda: [found.name for found in dispatcher.jobs()] == ["archived"])
    (tmp_path / file.name).unlink()
    wait_until(lambda: dispatcher.jobs() == [])
    dispatcher.close()


def test_a_job_that_its_session_has_suspended_does_not_run(
    archive: Path, job: RunningJob, tmp_path: Path
) -> None:
    document = json.loads((archive / f"{job.job_id}.json").read_text())
    document["status"] = "SUSPENDED"
    (tmp_path / f"{job.job_id}.json").write_text(json.dumps(document))
    dispatcher = archiving(tmp_path)
    dispatcher.load_archive()
    with RestServer(dispatcher) as server:
        address = f"localhost:{server.port}"
        assert Client(server.port).get("/overview").json()["jobs-running"] == 0
        listed = CliRunner().invoke(main, ["list", "-a", "-m", address]).output
        assert f"{job.job_id} : archived (SUSPENDED)" in listed.partition("Terminated Jobs")[2]
        assert "No running jobs." in CliRunner().invoke(main, ["list", "-m", address]).output


def test_the_directory_must_be_named() -> None:
    with pytest.raises(ConfigurationError, match=r"historyserver\.archive\.fs\.dir"):
        HistoryDispatcher(Configuration())
