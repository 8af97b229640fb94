"""Flink's own dashboard works with Firesteel's REST server, in a real browser."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from firesteel.common.configuration import Configuration
from firesteel.dispatcher.dispatcher import Dispatcher
from firesteel.master.running_jobs import RunningJob
from firesteel.rest.server import RestServer
from tests.rest.conftest import numbers
from tests.rest.jobs import checkpointed, ended, start
from tests.servers.chromium import Browser
from tests.servers.flink import unpack_dashboard, why_not
from tests.waiting import wait_until

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(600),
    pytest.mark.skipif(why_not() is not None, reason=str(why_not())),
]

# Pages, and texts that they show. J is the job, V one of its vertices, T a task manager.
PAGES = {
    "overview": ["Available Task Slots", "observed"],
    "job/running": ["observed", "RUNNING"],
    "job/running/J/overview": ["Source: numbers", "Bytes Received", "Backpressured"],
    "job/running/J/overview/V/detail": ["Detail"],
    "job/running/J/overview/V/subtasks": ["SubTasks", "RUNNING"],
    "job/running/J/overview/V/taskmanagers": ["TaskManagers"],
    "job/running/J/overview/V/watermarks": ["Watermarks"],
    "job/running/J/overview/V/accumulators": ["Accumulators"],
    "job/running/J/overview/V/backpressure": ["Back Pressure Status", "OK"],
    "job/running/J/overview/V/metrics": ["Metrics"],
    "job/running/J/exceptions": ["Root Exception"],
    "job/running/J/timeline": ["TimeLine"],
    "job/running/J/checkpoints": ["Checkpoint Counts", "Latest Completed Checkpoint"],
    "job/running/J/dataskew": ["numbers"],
    "job/running/J/configuration": ["Execution Configuration"],
    "task-manager": ["Path, ID", "Data Port"],
    "task-manager/T/metrics": ["Memory"],
    "task-manager/T/profiler": ["Create Profiling Instance", "Trigger Time"],
    "job-manager/profiler": ["Create Profiling Instance", "Trigger Time"],
    "job-manager/metrics": ["Memory"],
    "job-manager/config": ["rest.port"],
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[RestServer, RunningJob]]:
    directory = tmp_path_factory.mktemp("flink")
    web = unpack_dashboard(directory)
    settings = {"rest.port": "0", "firesteel.web.dir": str(web)}
    dispatcher = Dispatcher(Configuration.from_dict(settings))
    with RestServer(dispatcher) as server:
        job = start(dispatcher, numbers, "observed", **checkpointed(directory))
        with ended(job):
            wait_until(lambda: job.checkpoints()["latest"]["completed"])
            yield server, job


@pytest.mark.parametrize("page", PAGES)
def test_a_page(browser: Browser, server: tuple[RestServer, RunningJob], page: str) -> None:
    running, job = server
    vertex = job.description().vertices[-1].id
    task_manager = _task_manager(running)
    place = page.replace("/J", f"/{job.job_id}").replace("/V/", f"/{vertex}/")
    with browser.without_messages():
        browser.open(f"{running.url}/#/{place.replace('/T/', f'/{task_manager}/')}")
        browser.see(*PAGES[page])


def _task_manager(server: RestServer) -> str:
    from tests.rest.client import Client

    found: str = Client(server.port).get("/taskmanagers").json()["taskmanagers"][0]["id"]
    return found


def test_the_buttons_change_the_parallelism_and_cancel_the_job(
    browser: Browser, tmp_path: Path
) -> None:
    dispatcher = Dispatcher(
        Configuration.from_dict(
            {"rest.port": "0", "firesteel.web.dir": str(unpack_dashboard(tmp_path / "again"))}
        )
    )
    with RestServer(dispatcher) as own:
        job = start(dispatcher, numbers, "changed", **checkpointed(tmp_path))
        with ended(job):
            wait_until(lambda: job.status().name == "RUNNING")
            last = job.description().vertices[-1]
            browser.open(f"{own.url}/#/job/running/{job.job_id}/overview")
            browser.see("changed")
            buttons = browser.wait_for(
                lambda: browser.all("flink-job-overview-list button"),
                "the buttons that scale a vertex",
            )
            browser.run("arguments[0].click()", buttons[-2])
            wait_until(
                lambda: job.description().vertices[-1].parallelism != last.parallelism,
                browser.text,
            )
            # Not a click with the mouse: a message of the page may cover the link for a while.
            browser.run("arguments[0].click()", browser.find("a", "Cancel Job"))
            browser.run("arguments[0].click()", browser.find(".ant-popover button", "Yes"))
            wait_until(lambda: job.status().name == "CANCELED", browser.text)
