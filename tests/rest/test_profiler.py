"""Profiles over REST, with the calls and fields of Flink's profiler."""

from __future__ import annotations

import re
from concurrent.futures import Future
from typing import Any

import pytest

from firesteel.errors import JobExecutionError
from firesteel.rest import models
from firesteel.rest.calls import RestError
from firesteel.rest.profiler import Profiles, render
from tests.rest.client import Client
from tests.waiting import wait_until

FIELDS = {"status", "mode", "triggerTime", "finishedTime", "duration", "message", "outputFile"}
SAMPLES = [
    {"functions": ["job.main:1", "job.<lambda>:9", "json.loads:3"], "on_cpu": True, "samples": 60},
    {"functions": ["job.main:2", "job.<lambda>:9"], "on_cpu": True, "samples": 30},
    {"functions": ["job.main:1", "queue.get:7"], "on_cpu": False, "samples": 10},
]


def test_the_driver_is_profiled(client: Client) -> None:
    assert client.get("/jobmanager/profiler").json() == {"profilingList": []}
    started = client.call("POST", "/jobmanager/profiler", {"mode": "WALL", "duration": 1})
    assert started.status == 200
    assert set(started.json()) == FIELDS
    assert (started.json()["status"], started.json()["duration"]) == ("RUNNING", 1)
    wait_until(lambda: client.get("/jobmanager/profiler").text.count("FINISHED"))
    (profile,) = client.get("/jobmanager/profiler").json()["profilingList"]
    assert profile["message"] == "Profiling Successful"
    assert profile["finishedTime"] >= profile["triggerTime"]
    assert re.fullmatch(r"jobmanager_WALL_[\d_-]+\.html", profile["outputFile"])
    page = client.get(f"/jobmanager/profiler/{profile['outputFile']}")
    assert page.headers["content-type"].startswith("text/html")
    assert "default-src 'none'" in page.headers["content-security-policy"]
    # The server waits for requests in a thread of its own.
    assert "selectors" in page.text


@pytest.mark.parametrize(
    "body",
    [{"mode": "ALLOC"}, {"mode": "cpu"}, {"duration": 0}, {"duration": 301}, {"duration": "9"}],
    ids=str,
)
def test_wrong_requests(client: Client, body: dict[str, Any]) -> None:
    assert client.call("POST", "/jobmanager/profiler", body).status == 400


def profiled(answer: Any) -> models.Profile:
    sampled: Future[Any] = Future()
    info = Profiles().start("worker-1", "CPU", 30, lambda: sampled)
    assert info["status"] == "RUNNING"
    if isinstance(answer, Exception):
        sampled.set_exception(answer)
    else:
        sampled.set_result(answer)
    return info


def test_a_process_that_ends_is_a_failed_profile() -> None:
    info = profiled(JobExecutionError("the job is not running"))
    assert info["status"] == "FAILED"
    assert "the job is not running" in (info["message"] or "")
    assert profiled({"error": "the slot is gone"})["status"] == "FAILED"
    assert profiled({"stacks": SAMPLES})["status"] == "FINISHED"


def test_the_last_ten_profiles_stay() -> None:
    profiles = Profiles()
    for seconds in range(1, 13):
        sampled: Future[Any] = Future()
        profiles.start("worker-1", "CPU", seconds, lambda: sampled)  # noqa: B023 - called at once
        with pytest.raises(RestError, match="still under profiling"):
            profiles.start("worker-1", "CPU", 1, lambda: sampled)  # noqa: B023
        sampled.set_result({"stacks": []})
    found = profiles.of("worker-1")
    assert found is not None
    assert [profile.info["duration"] for profile in found] == list(range(12, 2, -1))


def test_the_page_shows_hot_functions_first_and_escapes_their_names() -> None:
    info = profiled({"stacks": SAMPLES})
    page = render("worker-1", info, [sample for sample in SAMPLES if sample["on_cpu"]])
    rows = re.findall(r"<td>([\d.]+%)<td>([\d.]+%)<td>([^<]+)", page)
    assert rows == [
        ("66.7%", "66.7%", "json.loads"),
        ("33.3%", "100.0%", "job.&lt;lambda&gt;"),
    ]
    assert "90 samples" in page
    assert "<lambda>" not in page
    assert "queue.get" not in page


def test_a_process_that_waits_has_an_empty_profile() -> None:
    page = render("worker-1", profiled({"stacks": []}), [])
    assert "the process waited" in page
