"""The dashboard of the real REST server with real jobs: a crash, a savepoint, a stop, a cancel."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from firesteel.common.configuration import Configuration
from firesteel.common.job_status import JobStatus
from firesteel.common.time import Time
from firesteel.common.watermark_strategy import TimestampAssigner, WatermarkStrategy
from firesteel.datastream.connectors.datagen import DataGeneratorSource, RateLimiterStrategy
from firesteel.datastream.functions import MapFunction
from firesteel.datastream.window import TumblingEventTimeWindows
from firesteel.dispatcher.dispatcher import Dispatcher
from firesteel.rest.server import RestServer
from tests.rest.jobs import checkpointed, ended, start
from tests.servers.chromium import Browser
from tests.waiting import wait_until


class Position(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp) -> int:
        return int(value)


class Check(MapFunction):
    """Slow, and crashes when the file is there."""

    def __init__(self, order: Path) -> None:
        self.order = order

    def open(self, runtime_context) -> None:
        self.checked = runtime_context.get_metrics_group().counter("checked")

    def map(self, value):
        time.sleep(0.0001)
        self.checked.inc()
        if self.order.exists():
            self.order.unlink()
            raise ValueError(f"{value} is not an order")
        return (value % 5, 1)


class _Numbers:
    def __init__(self, directory: Path) -> None:
        self.order = directory / "crash"

    def __call__(self, env) -> None:
        env.set_parallelism(2)
        strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Position())
        # Not as fast as possible: epochs are short, and the browser gets its share of the machine.
        source = DataGeneratorSource(lambda n: n, 10**9, RateLimiterStrategy.per_second(2_000))
        numbers = env.from_source(source, strategy, "numbers")
        checked = numbers.rebalance().map(Check(self.order)).name("check")
        windows = checked.key_by(lambda pair: pair[0]).window(
            TumblingEventTimeWindows.of(Time.milliseconds(500))
        )
        windows.reduce(lambda a, b: (a[0], a[1] + b[1])).name("count").print().name("print")


@pytest.fixture(scope="module")
def dispatcher() -> Dispatcher:
    settings = {"rest.port": "0", "web.refresh-interval": "500 ms"}
    return Dispatcher(Configuration.from_dict(settings))


@pytest.fixture(scope="module")
def address(dispatcher: Dispatcher) -> Iterator[str]:
    with RestServer(dispatcher) as server:
        yield f"{server.url}/"


def _settings(directory: Path) -> dict[str, str]:
    return {
        **checkpointed(directory),
        "execution__checkpointing__interval": "300 ms",
        "restart_strategy__type": "fixed-delay",
        "restart_strategy__fixed_delay__attempts": "5",
        "restart_strategy__fixed_delay__delay": "10 ms",
    }


def test_a_job_with_a_crash_a_savepoint_and_a_rescale_until_it_is_stopped(
    browser: Browser, dispatcher: Dispatcher, address: str, tmp_path: Path
) -> None:
    numbers = _Numbers(tmp_path)
    job = start(dispatcher, numbers, "numbers of orders", **_settings(tmp_path))
    with ended(job), browser.without_messages():
        wait_until(lambda: job.checkpoints()["counts"]["completed"] >= 2)
        browser.open(address)
        browser.click(".job-name", "numbers of orders")
        browser.see("3 vertices", "Source: numbers", "count → Sink: print")
        browser.find(".node", "check")

        numbers.order.touch()
        browser.click(".tabs a", "Exceptions")
        browser.see("ValueError:", "is not an order", "Record")
        assert "in map" in browser.find(".traceback .own", "test_dashboard_jobs.py").text
        wait_until(lambda: job.status() is JobStatus.RUNNING)

        browser.click(".tabs a", "Checkpoints")
        browser.find(".stat", "Restored")
        browser.wait_for(
            lambda: "Restored\n1" in browser.find(".stat", "Restored").text, "a restored checkpoint"
        )
        browser.click(".actions button", "Savepoint")
        browser.click("dialog button[type=submit]")
        browser.find(".toast", "Savepoint completed.")
        assert list((tmp_path / "savepoints").iterdir())
        browser.click(".toast [aria-label=Dismiss]")

        browser.click(".menu summary")
        browser.click(".menu [role=menuitem]", "Rescale")
        browser.click("[aria-label='More parallelism everywhere']")
        browser.click("dialog button[type=submit]")
        browser.find(".toast", "is being rescaled")
        wait_until(lambda: {one.parallelism for one in job.description().vertices} == {3})
        wait_until(lambda: job.status() is JobStatus.RUNNING)
        browser.click(".toast [aria-label=Dismiss]")
        browser.wait_for(
            lambda: "Restored\n2" in browser.find(".stat", "Restored").text, "the rescaled job"
        )

        for tab, texts in {
            "Timeline": ["Job", "check"],
            "Data skew": ["Busy time"],
            "Configuration": ["fixed", "Parallelism"],
        }.items():
            browser.click(".tabs a", tab)
            browser.see(*texts)

        browser.click(".actions button", "Stop")
        browser.click("dialog button[type=submit]")
        browser.find(".toast", "has stopped with a savepoint")
        browser.find(".head-facts .status", "Finished")
        assert job.status() is JobStatus.FINISHED


def test_the_drawer_of_a_real_vertex(
    browser: Browser, dispatcher: Dispatcher, address: str, tmp_path: Path
) -> None:
    job = start(dispatcher, _Numbers(tmp_path), "vertices", **_settings(tmp_path))
    with ended(job), browser.without_messages():
        browser.open(f"{address}#/job/{job.job_id}")
        browser.click(".vertex-name", "check")
        for tab, texts in {
            "Detail": ["Records in", "(at most 128)"],
            "Subtasks": ["Runs on"],
            "Watermarks": ["Behind the clock"],
            "Accumulators": ["checked"],
            "Task managers": ["Address"],
        }.items():
            browser.click(".drawer .tabs a", tab)
            browser.see(*texts)
        for tab in ("Back pressure", "Metrics", "Flame graph"):
            browser.click(".drawer .tabs a", tab)
            browser.find(".drawer-body > :not(.skeleton)")


def test_a_job_that_is_canceled_and_one_that_failed(
    browser: Browser, dispatcher: Dispatcher, address: str, tmp_path: Path
) -> None:
    canceled = start(dispatcher, _Numbers(tmp_path), "to be canceled", **_settings(tmp_path))

    def dividing(env) -> None:
        numbers = env.from_collection([4, 2, 0])
        numbers.map(lambda value: 8 // value).name("divide").print()

    failed = start(dispatcher, dividing, "fails", restart_strategy__type="none")
    with ended(canceled), browser.without_messages():
        failed.result().exception(60)
        browser.open(f"{address}#/job/{failed.job_id}/exceptions")
        browser.see("ZeroDivisionError", "numbers.map(lambda value: 8 // value)")
        assert browser.find(".record code").text == "0"

        browser.run("location.hash = arguments[0]", f"#/job/{canceled.job_id}")
        browser.click(".menu summary")
        browser.click(".menu [role=menuitem]", "Cancel the job")
        browser.click("dialog button[type=submit]")
        browser.find(".head-facts .status", "Canceled")
        browser.run("location.hash = '#/jobs/canceled'")
        browser.find(".job-name", "to be canceled")


def test_pages_about_the_cluster(browser: Browser, address: str) -> None:
    with browser.without_messages():
        browser.open(f"{address}#/overview")
        browser.see("Slots in use")
        for page, texts in {
            "task-managers": ["Task managers"],
            "job-manager/configuration": ["web.refresh-interval"],
            "job-manager/metrics": ["numRunningJobs"],
            "job-manager/environment": ["Python 3"],
            "job-manager/thread-dump": ["threads"],
            "job-manager/log": ["Log"],
            "job-manager/stdout": ["Standard output"],
            "job-manager/logs": ["Log files"],
        }.items():
            browser.run("location.hash = arguments[0]", f"#/{page}")
            browser.see(*texts)
            browser.gone(".skeleton")
