"""Logs, thread dumps and flame graphs of slots on Spark, over REST."""

from __future__ import annotations

import logging
import time

import pytest

from firesteel.common.watermark_strategy import WatermarkStrategy
from firesteel.datastream import StreamExecutionEnvironment
from firesteel.datastream.connectors.number_seq import NumberSequenceSource
from firesteel.datastream.functions import MapFunction
from tests.integration.conftest import MakeEnvironment
from tests.integration.test_back_pressure import Nowhere, watched
from tests.rest.flink_schema import FACTS, problems
from tests.waiting import wait_until

pytestmark = pytest.mark.execution("real-time")

WORKER = "/taskmanagers/{taskmanagerid}"


class Talkative(MapFunction):
    def open(self, runtime_context) -> None:
        logging.getLogger("shop").info("the counter opens")
        print("hello from the function")

    def map(self, value: int) -> int:
        return burn(value)


def burn(value: int) -> int:
    until = time.perf_counter() + 0.001
    while time.perf_counter() < until:
        value = (value * 7) % 1_000_003
    return value


def build(env: StreamExecutionEnvironment) -> None:
    source = NumberSequenceSource(0, 10**12)
    numbers = env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers")
    numbers.rebalance().map(Talkative()).name("talk").add_sink(Nowhere())


def test_slots_show_their_logs_threads_and_stacks(make_env: MakeEnvironment) -> None:
    with watched(make_env(parallelism=1), build) as job:
        wait_until(lambda: min(job.busy("talk")) > 0.5, job.everything)
        client = job.client
        vertex = job.find("talk")
        subtask = client.get(f"{job.path}/vertices/{vertex}").json()["subtasks"][0]
        worker = f"/taskmanagers/{subtask['taskmanager-id']}"

        (line,) = [one for one in client.get(f"{worker}/log").text.splitlines() if "shop" in one]
        assert "INFO" in line
        assert "[pressure: talk" in line
        assert "(1/1)] shop: the counter opens" in line
        assert "hello from the function\n" in client.get(f"{worker}/stdout").text
        files = client.get(f"{worker}/logs").json()
        assert problems(files, FACTS["paths"][f"{WORKER}/logs"]) == []
        names = [file["name"] for file in files["logs"]]
        assert names == ["taskmanager.log", "taskmanager.out"]
        assert client.get(f"{worker}/logs/taskmanager.log").status == 200

        dump = client.get(f"{worker}/thread-dump").json()
        assert problems(dump, FACTS["paths"][f"{WORKER}/thread-dump"]) == []
        # A dump is one moment, and between two batches the function does not run.
        wait_until(lambda: "burn" in client.get(f"{worker}/thread-dump").text)

        where = f"{job.path}/vertices/{vertex}/flamegraph"
        assert client.get(where).json() == {"endTimestamp": -1, "data": None}
        wait_until(lambda: client.get(where).json()["data"] is not None)
        graph = client.get(where, type="on_cpu").json()
        assert problems(graph, FACTS["paths"]["/jobs/{jobid}/vertices/{vertexid}/flamegraph"]) == []
        assert samples_of(graph["data"], "burn") >= 0.5 * graph["data"]["value"] > 0
        started = client.call("POST", f"{worker}/profiler", {"mode": "CPU", "duration": 1})
        assert started.json()["status"] == "RUNNING"
        wait_until(lambda: client.get(f"{worker}/profiler").text.count("FINISHED"))
        (profile,) = client.get(f"{worker}/profiler").json()["profilingList"]
        page = client.get(f"{worker}/profiler/{profile['outputFile']}")
        assert "test_observation.burn" in page.text.partition("</table>")[0]

        # The function computes, so it is not among the stacks that wait.
        waiting = client.get(where, type="off_cpu").json()["data"]
        assert samples_of(waiting, "burn") <= 0.2 * graph["data"]["value"]


def samples_of(node: dict, function: str) -> int:
    """Return the samples below nodes whose name contains the function, each counted once."""
    if function in node["name"]:
        return int(node["value"])
    return sum(samples_of(child, function) for child in node["children"])
