"""Jobs of a session do not disturb each other, and clients do not disturb jobs."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from firesteel.client.rest_client import RestClient
from tests.cli.conftest import Commands
from tests.cli.test_session import COUNTING, counts_of, wait_for_counts
from tests.waiting import wait_until

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(900)]

Write = Callable[..., Path]

# A job whose function misbehaves in the way that its argument names.
BAD = """
import ctypes, os, resource, sys, time
from firesteel.common import WatermarkStrategy
from firesteel.datastream import StreamExecutionEnvironment
from firesteel.datastream.connectors.datagen import DataGeneratorSource, RateLimiterStrategy

how = sys.argv[1]

def misbehave(number):
    if number < 20:
        return number
    if how == "crash":
        os._exit(7)
    if how == "segmentation fault":
        ctypes.string_at(0)
    if how == "memory":
        resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30))
        hoard = []
        while True:
            hoard.append(bytearray(64 << 20))
    if how == "hang":
        time.sleep(10**6)
    return number

env = StreamExecutionEnvironment.get_execution_environment()
source = DataGeneratorSource(lambda number: number, 10**9, RateLimiterStrategy.per_second(100))
env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers").map(misbehave).print()
env.execute(how)
"""


@pytest.fixture
def good(session: Commands, write: Write, tmp_path: Path) -> Path:
    """The output of a job that runs during the test."""
    out = tmp_path / "good"
    session.submit(write(COUNTING, "good.py"), arguments=(str(out),))
    wait_for_counts(out, 5)
    return out


@pytest.mark.parametrize("how", ["crash", "segmentation fault", "memory", "hang"])
def test_a_bad_job_leaves_the_others_running(
    session: Commands, write: Write, good: Path, how: str
) -> None:
    client = RestClient(f"http://{session.address}")
    job_id = session.submit(write(BAD), "-Drestart-strategy.type=disable", arguments=(how,))
    if how == "hang":
        session.wait_for_state(job_id, "RUNNING")
        time.sleep(2.0)
        session("cancel", job_id, "-m", session.address)
        session.wait_for_state(job_id, "CANCELED")
    else:
        session.wait_for_state(job_id, "FAILED")
    before = sum(counts_of(good).values())
    wait_until(lambda: sum(counts_of(good).values()) > before + 100)
    assert _good_job(client)["state"] == "RUNNING"
    assert (
        client.get(f"/jobs/{_good_job(client)['jid']}/exceptions")["exceptionHistory"]["entries"]
        == []
    )
    session("cancel", _good_job(client)["jid"], "-m", session.address)


def _good_job(client: RestClient) -> dict[str, str]:
    jobs = client.get("/jobs/overview")["jobs"]
    found: dict[str, str] = next(
        job for job in jobs if job["name"] == "counting" and job["state"] == "RUNNING"
    )
    return found


def _job_master(job_id: str) -> int:
    """Return the process id of a job master."""
    found = subprocess.run(
        ["pgrep", "-f", f"job_process .*job-{job_id}"], capture_output=True, text=True, check=True
    )
    return int(found.stdout.split()[0])


def test_a_killed_job_master_fails_its_job_only(
    session: Commands, write: Write, good: Path
) -> None:
    client = RestClient(f"http://{session.address}")
    job_id = session.submit(write(COUNTING), arguments=(str(good.with_name("other")),))
    session.wait_for_state(job_id, "RUNNING")
    os.kill(_job_master(job_id), signal.SIGKILL)
    session.wait_for_state(job_id, "FAILED")
    entries = client.get(f"/jobs/{job_id}/exceptions")["exceptionHistory"]["entries"]
    assert "signal 9" in entries[0]["stacktrace"]
    before = sum(counts_of(good).values())
    wait_until(lambda: sum(counts_of(good).values()) > before + 100)
    session("cancel", _good_job(client)["jid"], "-m", session.address)


def test_a_job_master_that_hangs_does_not_block_the_session(
    session: Commands, write: Write, good: Path
) -> None:
    client = RestClient(f"http://{session.address}")
    job_id = session.submit(write(COUNTING), arguments=(str(good.with_name("other")),))
    session.wait_for_state(job_id, "RUNNING")
    master = _job_master(job_id)
    os.kill(master, signal.SIGSTOP)
    try:
        for _ in range(20):
            states = {job["jid"]: job["state"] for job in client.get("/jobs/overview")["jobs"]}
            assert states[job_id] == "RUNNING"
        before = sum(counts_of(good).values())
        wait_until(lambda: sum(counts_of(good).values()) > before + 100)
    finally:
        os.kill(master, signal.SIGCONT)
    for job in (job_id, _good_job(client)["jid"]):
        session("cancel", job, "-m", session.address)
        session.wait_for_state(job, "CANCELED")


def test_a_job_waits_for_slots_and_starts_when_they_are_free(
    session: Commands, write: Write, tmp_path: Path
) -> None:
    first = session.submit(write(COUNTING), "-p", "6", arguments=(str(tmp_path / "first"),))
    wait_for_counts(tmp_path / "first", 1)
    second = session.submit(
        write(COUNTING),
        "-p",
        "6",
        "-Dfiresteel.execution=real-time",
        arguments=(str(tmp_path / "second"),),
    )
    listed = session("list", "-m", session.address)
    assert "Scheduled Jobs" in listed
    assert f"{second} : counting (CREATED)" in listed
    overview = RestClient(f"http://{session.address}").get("/overview")
    assert overview["slots-total"] == 12
    session("cancel", first, "-m", session.address)
    wait_for_counts(tmp_path / "second", 1)
    session("cancel", second, "-m", session.address)
    session.wait_for_state(second, "CANCELED")


COLLECTING = """
import sys, time
from firesteel.datastream import StreamExecutionEnvironment
env = StreamExecutionEnvironment.get_execution_environment()
numbers = env.from_sequence(1, 20_000).map(lambda number: number)
results = numbers.execute_and_collect("collecting")
for count, number in enumerate(results, 1):
    if count == 1:
        print("first", flush=True)
        time.sleep(float(sys.argv[1]))
print("total", count, flush=True)
"""


def test_a_slow_reader_does_not_hold_the_job_up(session: Commands, write: Write) -> None:
    client = session.start("run", "-m", session.address, str(write(COLLECTING)), "20")
    assert client.stdout is not None
    line = client.stdout.readline()
    job_id = line.split()[-1]
    # The job is done while its client still sleeps with almost all records unread.
    session.wait_for_state(job_id, "FINISHED")
    assert client.poll() is None
    output, errors = client.communicate(timeout=200)
    assert "total 20000" in output, errors


def test_a_killed_reader_does_not_hold_the_job_up(session: Commands, write: Write) -> None:
    client = session.start("run", "-m", session.address, str(write(COLLECTING)), "1000")
    assert client.stdout is not None
    job_id = client.stdout.readline().split()[-1]
    client.kill()
    client.wait()
    session.wait_for_state(job_id, "FINISHED")


def test_ctrl_c_ends_the_client_and_not_the_job(
    session: Commands, write: Write, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    client = session.start("run", "-m", session.address, str(write(COUNTING)), str(out))
    wait_for_counts(out, 2)
    client.send_signal(signal.SIGINT)
    output, errors = client.communicate(timeout=60)
    assert client.returncode == 130
    job_id = output.partition("JobID ")[2].split()[0]
    assert f"firesteel cancel {job_id}" in errors
    before = sum(counts_of(out).values())
    wait_until(lambda: sum(counts_of(out).values()) > before + 20)
    session("cancel", job_id, "-m", session.address)
    session.wait_for_state(job_id, "CANCELED")


def test_jobs_stay_visible_after_a_restart_and_in_the_history_server(
    commands: Commands, write: Write, tmp_path: Path
) -> None:
    archive = f"-Djobmanager.archive.fs.dir={tmp_path / 'archive'}"

    def start() -> Commands:
        started = json.loads(commands("session", "start", "-d", "--json", "--port", "0", archive))
        return Commands(commands.home, started["url"].removeprefix("http://"))

    session = start()
    program = write("""
from firesteel.datastream import StreamExecutionEnvironment
env = StreamExecutionEnvironment.get_execution_environment()
env.from_collection([1]).print()
env.execute("archived")
""")
    output = session("run", "-m", session.address, str(program))
    job_id = output.partition("JobID ")[2].split()[0]
    session("session", "stop", "-m", session.address)

    session = start()
    assert session.jobs()[job_id]["state"] == "FINISHED"
    details = RestClient(f"http://{session.address}").get(f"/jobs/{job_id}")
    assert details["name"] == "archived"
    session("session", "stop", "-m", session.address)

    history = commands.start(
        "history-server", "--port", "0", f"-Dhistoryserver.archive.fs.dir={tmp_path / 'archive'}"
    )
    try:
        assert history.stderr is not None
        url = history.stderr.readline().split("started at ")[1].split()[0].rstrip(".")
        client = RestClient(url)
        assert [job["jid"] for job in client.get("/jobs/overview")["jobs"]] == [job_id]
        assert client.get(f"/jobs/{job_id}/config")["name"] == "archived"
    finally:
        history.terminate()
        assert history.wait(30) == 0
