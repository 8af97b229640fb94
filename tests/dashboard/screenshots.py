"""Takes the screenshots of the manual: ``python -m tests.dashboard.screenshots [ADDRESS]``.

ADDRESS is the dashboard of a running job, such as that of ``make demo``. Without it, only the
pictures of the made-up session are taken: those would show paths of the machine.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import Any

from firesteel.rest.profiler import render
from tests.dashboard.fixture_server import serving
from tests.dashboard.session import one_job
from tests.servers.chromium import PHONE, Browser, running_browser

_FIGURES = Path(__file__).parents[2] / "docs" / "figures"
# Charts need some time to show a line.
_WATCH_SECONDS = 20.0
# Pages, with the job J and its busiest vertex V.
_PAGES = {
    "dashboard-overview": "overview",
    "dashboard-job": "job/J",
    "dashboard-vertex": "job/J/overview/V/metrics",
    "dashboard-checkpoints": "job/J/checkpoints",
}
_MADE_UP_PAGES = {
    "dashboard-back-pressure": "job/J",
    "dashboard-flame-graph": "job/J/overview/V/flamegraph",
    "dashboard-exceptions": "job/J/exceptions",
}


def _get(address: str, path: str) -> Any:
    with urllib.request.urlopen(f"{address}{path}") as answer:
        return json.load(answer)


def take(address: str) -> None:
    jobs = _get(address, "/jobs/overview")["jobs"]
    job = next(job["jid"] for job in jobs if job["state"] == "RUNNING")
    vertices = _get(address, f"/jobs/{job}/backpressure")["vertices"]
    vertex = max(vertices, key=lambda vertex: vertex["busy"])["id"]
    with tempfile.TemporaryDirectory() as profile, running_browser(Path(profile)) as browser:
        for name, page in _PAGES.items():
            place = page.replace("/J", f"/{job}").replace("/V", f"/{vertex}")
            _take(browser, f"{address}/#/{place}", name)
        browser.set_colors("dark")
        _take(browser, f"{address}/#/job/{job}", "dashboard-dark")
        browser.set_colors("light")
        browser.set_size(PHONE, phone=True)
        _take(browser, f"{address}/#/job/{job}", "dashboard-phone")


def take_made_up() -> None:
    session = one_job()
    job = session.jobs[0]
    vertex = job.vertex_id(2)
    with (
        tempfile.TemporaryDirectory() as profile,
        running_browser(Path(profile)) as browser,
        serving(session) as address,
    ):
        for name, page in _MADE_UP_PAGES.items():
            place = page.replace("/J", f"/{job.jid}").replace("/V", f"/{vertex}")
            _take(browser, f"{address}#/{place}", name)


def take_profile() -> None:
    slot = "firesteel.task.live_slot.LiveSlot.run:210"
    mapped = [slot, "firesteel.task.operators.map.MapOperator.process_batch:48"]
    stacks = [
        (
            [*mapped, "orders.enrich:48", "json.loads:346", "json.decoder.JSONDecoder.decode:337"],
            910,
        ),
        ([*mapped, "orders.enrich:51", "prices.price:12"], 520),
        ([*mapped, "orders.enrich:53"], 240),
        ([slot, "firesteel.task.exchange.hash_writer.HashWriter.write:88", "pickle.dumps:12"], 310),
        ([slot, "firesteel.task.exchange.input_gate.InputGate.unpack:140"], 150),
    ]
    page = render(
        "worker-3-4711",
        {
            "status": "FINISHED",
            "mode": "CPU",
            "triggerTime": 0,
            "finishedTime": 0,
            "duration": 30,
            "message": None,
            "outputFile": None,
        },
        [{"functions": stack, "on_cpu": True, "samples": count} for stack, count in stacks],
    )
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / "profile.html"
        file.write_text(page)
        with running_browser(Path(directory) / "browser") as browser:
            browser.set_size((1200, 470))
            browser.open(file.as_uri())
            browser.screenshot(_FIGURES / "profile.png")


def _take(browser: Browser, address: str, name: str) -> None:
    browser.open(address)
    time.sleep(_WATCH_SECONDS if "vertex" in name else 6.0)
    browser.screenshot(_FIGURES / f"{name}.png")


if __name__ == "__main__":
    take_made_up()
    take_profile()
    for running in sys.argv[1:]:
        take(running.rstrip("/"))
