"""The metrics of Prometheus: the text format, and the files in docs/monitoring with a real server."""

from __future__ import annotations

import json
import re
import shutil
import socket
import subprocess
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from urllib.error import URLError
from urllib.parse import urlencode
from urllib.request import urlopen

import pytest
import yaml

from firesteel.master.running_jobs import RunningJob
from tests.rest.client import Client
from tests.waiting import wait_until

DOCS = Path(__file__).parents[2] / "docs" / "monitoring"
LINE = re.compile(r'([a-zA-Z_:][\w:]*)\{((?:\w+="(?:[^"\\]|\\.)*",?)*)\} (-?[\d.e+]+|NaN|[+-]Inf)')


def metrics(text: str) -> dict[str, list[dict[str, str]]]:
    """Return the labels by name. Each line must have the form that Prometheus wants."""
    found: dict[str, list[dict[str, str]]] = {}
    closed: set[str] = set()
    previous = ""
    for line in text.splitlines():
        if line.startswith("#"):
            assert re.fullmatch(r"# (HELP \S+ .+|TYPE \S+ gauge)", line), line
            continue
        matched = LINE.fullmatch(line)
        assert matched, line
        name = matched.group(1)
        if name != previous:
            assert name not in closed, f"{name} comes in two places"
            closed.add(previous)
            previous = name
        labels = dict(re.findall(r'(\w+)="((?:[^"\\]|\\.)*)"', matched.group(2)))
        found.setdefault(name, []).append(labels)
    return found


def test_the_names_and_labels_are_flinks(client: Client, job: RunningJob) -> None:
    reply = client.get("/metrics")
    assert reply.headers["content-type"].startswith("text/plain; version=0.0.4")
    found = metrics(reply.text)
    assert {
        "flink_jobmanager_numRunningJobs",
        "flink_jobmanager_job_numRestarts",
        "flink_jobmanager_job_numberOfCompletedCheckpoints",
        "flink_taskmanager_job_task_busyTimeMsPerSecond",
        "flink_taskmanager_job_task_buffers_inPoolUsage",
        "flink_taskmanager_job_task_checkpointAlignmentTime",
        "flink_taskmanager_job_task_checkpointStartDelayNanos",
        "flink_taskmanager_job_task_operator_numRecordsIn",
        "flink_taskmanager_job_task_operator_currentOutputWatermark",
        "flink_taskmanager_Status_JVM_CPU_Time",
        "flink_jobmanager_Status_JVM_Threads_Count",
        "flink_taskmanager_job_task_operator_seen",
    } <= set(found)
    labels = found["flink_taskmanager_job_task_numRecordsIn"][0]
    assert set(labels) >= {"job_id", "job_name", "task_id", "task_name", "subtask_index", "tm_id"}
    assert labels["job_name"] == "numbers"
    process = found["flink_taskmanager_Status_JVM_Memory_Heap_Used"][0]
    assert process["tm_id"] == labels["tm_id"]
    operators = {one["operator_name"] for one in found["flink_taskmanager_job_task_operator_seen"]}
    assert operators == {"count <&> ship"}


def test_the_dashboard_of_grafana_asks_for_metrics_that_exist(
    client: Client, job: RunningJob
) -> None:
    document = json.loads((DOCS / "grafana.json").read_text())
    asked = set(re.findall(r"flink_\w+", json.dumps(document)))
    # It appears with the first watermark.
    found = set(metrics(client.get("/metrics").text)) | {"flink_taskmanager_job_task_watermarkLag"}
    assert asked
    assert asked <= found


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture
def prometheus(tmp_path: Path) -> str:
    """The path of Prometheus: installed, or unpacked from Debian's package."""
    installed = shutil.which("prometheus")
    if installed:
        return installed
    if not shutil.which("apt-get") or not shutil.which("dpkg"):
        pytest.skip("Prometheus is not installed")
    got = subprocess.run(
        ["apt-get", "download", "-q", "prometheus"], cwd=tmp_path, capture_output=True, check=False
    )
    packages = list(tmp_path.glob("prometheus_*.deb"))
    if got.returncode or not packages:
        pytest.skip("Prometheus cannot be downloaded")
    subprocess.run(["dpkg", "-x", str(packages[0]), str(tmp_path / "root")], check=True)
    return str(tmp_path / "root" / "usr" / "bin" / "prometheus")


@pytest.fixture
def server(prometheus: str, client: Client, job: RunningJob, tmp_path: Path) -> Iterator[str]:
    """A running Prometheus that scrapes the REST server with the configuration of the manual."""
    settings = yaml.safe_load((DOCS / "prometheus.yml").read_text())
    settings["global"]["scrape_interval"] = "1s"
    settings["scrape_configs"][0]["static_configs"][0]["targets"] = [f"localhost:{client.port}"]
    file = tmp_path / "prometheus.yml"
    file.write_text(yaml.safe_dump(settings))
    port = free_port()
    process = subprocess.Popen(
        [
            prometheus,
            f"--config.file={file}",
            f"--storage.tsdb.path={tmp_path / 'data'}",
            f"--web.listen-address=127.0.0.1:{port}",
        ],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(30)


def query(server: str, expression: str) -> list[dict]:
    try:
        with urlopen(f"{server}/api/v1/query?{urlencode({'query': expression})}") as reply:
            found: list[dict] = json.loads(reply.read())["data"]["result"]
            return found
    except URLError:
        return []


@pytest.mark.slow
def test_a_real_prometheus_reads_the_metrics(server: str, job: RunningJob) -> None:
    wait_until(lambda: query(server, 'up{job="firesteel"} == 1'))
    document = json.loads((DOCS / "grafana.json").read_text())
    for panel in document["panels"]:
        if panel["title"] == "Watermark lag":
            continue
        for target in panel["targets"]:
            expression = target["expr"].replace("$job", "numbers")
            wait_until(partial(query, server, expression), partial(str, panel["title"]), 30.0)
    (records,) = query(server, 'sum(flink_taskmanager_job_task_operator_seen{job_name="numbers"})')
    assert float(records["value"][1]) == 20
