"""Whole sessions as masters of one group: the leader dies or is frozen, and its jobs continue."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from firesteel.processes import is_alive
from tests.cli.conftest import Commands
from tests.waiting import wait_until

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]

RECORDS = 6000

# Collects all records in the client, and writes them with a FileSink too.
COLLECTING = f"""
import sys
from firesteel.common import Encoder, Types, WatermarkStrategy
from firesteel.datastream import StreamExecutionEnvironment
from firesteel.datastream.connectors.datagen import DataGeneratorSource, RateLimiterStrategy
from firesteel.datastream.connectors.file_system import FileSink

output, received = sys.argv[1:]
env = StreamExecutionEnvironment.get_execution_environment()
env.enable_checkpointing(500)
source = DataGeneratorSource(lambda number: number, {RECORDS}, RateLimiterStrategy.per_second(400))
numbers = env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers").uid("numbers")
same = numbers.key_by(lambda number: number % 4).map(lambda number: number).uid("same")
sink = FileSink.for_row_format(output, Encoder.simple_string_encoder()).build()
same.map(str, Types.STRING()).uid("text").sink_to(sink).uid("files")
with same.execute_and_collect("collecting") as records, open(received, "w") as file:
    for record in records:
        print(record, file=file, flush=True)
"""

WRITING = """
import sys
from firesteel.common import Encoder, Types, WatermarkStrategy
from firesteel.datastream import StreamExecutionEnvironment
from firesteel.datastream.connectors.datagen import DataGeneratorSource, RateLimiterStrategy
from firesteel.datastream.connectors.file_system import FileSink

env = StreamExecutionEnvironment.get_execution_environment()
env.enable_checkpointing(300)
source = DataGeneratorSource(lambda number: number, 2000, RateLimiterStrategy.per_second(200))
numbers = env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers").uid("numbers")
sink = FileSink.for_row_format(sys.argv[1], Encoder.simple_string_encoder()).build()
numbers.map(str, Types.STRING()).uid("text").sink_to(sink).uid("files")
env.execute("writing")
"""


@dataclass
class Group:
    """Sessions of one group of masters."""

    commands: Commands
    settings: dict[str, str]
    sessions: dict[str, int] = field(default_factory=dict)

    def start(self, *more: str) -> str:
        """Start a session and return its address."""
        options = [f"-D{key}={value}" for key, value in self.settings.items()]
        output = self.commands(
            "session", "start", "-d", "--json", "--standby", "--port", "0",
            "--master", "local[16,4]", *options, *more,
        )  # fmt: skip
        started = json.loads(output)
        address = started["url"].removeprefix("http://")
        self.sessions[address] = started["processId"]
        return str(address)

    def leader(self) -> str | None:
        """Return the address of the session that answers and does not redirect."""
        for address in self.sessions:
            with suppress(OSError, urllib.error.URLError):
                answer = _open(f"http://{address}/v1/overview")
                if answer.status == 200:
                    return address
        return None

    def wait_for_leader(self) -> str:
        wait_until(lambda: self.leader() is not None)
        leader = self.leader()
        assert leader is not None
        return leader

    def pids(self, address: str) -> list[int]:
        """Return the processes of a session: all of its process tree."""
        found, todo = [], [self.sessions[address]]
        while todo:
            pid = todo.pop()
            found.append(pid)
            with suppress(OSError):
                for task in Path(f"/proc/{pid}/task").iterdir():
                    todo += map(int, (task / "children").read_text().split())
        return found

    def kill(self, address: str) -> None:
        """Kill a session and everything that it has started, as a machine that dies."""
        for pid in self.pids(address):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        del self.sessions[address]

    def close(self) -> None:
        for address in list(self.sessions):
            for pid in self.pids(address):
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGCONT)
            pid = self.sessions[address]
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)
        for pid in self.sessions.values():
            with suppress(AssertionError):
                wait_until(lambda: not is_alive(pid), seconds=60)  # noqa: B023
        for address in list(self.sessions):
            self.kill(address)


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any) -> None:
        return None


def _open(url: str) -> Any:
    return urllib.request.build_opener(_NoRedirects()).open(url, timeout=10)


@pytest.fixture
def group(tmp_path: Path) -> Iterator[Group]:
    home = tmp_path / "home"
    home.mkdir()
    made = Group(
        Commands(home),
        {
            "high-availability.type": "filesystem",
            "high-availability.storageDir": str(tmp_path / "ha"),
            "high-availability.cluster-id": "test",
            "firesteel.high-availability.lease-duration": "3 s",
            "firesteel.high-availability.lease-renewal": "500 ms",
        },
    )
    try:
        yield made
    finally:
        made.close()


@dataclass
class Client:
    """A program that collects the records of a job in the group."""

    process: subprocess.Popen[str]
    output: Path
    received: Path

    def count(self) -> int:
        return len(self.received.read_text().splitlines()) if self.received.exists() else 0

    def check(self) -> None:
        """Nothing is lost, and nothing comes twice: at the client, and in the files."""
        out, err = self.process.communicate(timeout=300)
        assert self.process.returncode == 0, out + err
        assert sorted(map(int, self.received.read_text().split())) == list(range(RECORDS))
        parts = [path for path in self.output.rglob("part-*") if path.is_file()]
        written = sorted(int(line) for path in parts for line in path.read_text().split())
        assert written == list(range(RECORDS))


def start_client(group: Group, tmp_path: Path) -> Client:
    program = tmp_path / "collecting.py"
    program.write_text(COLLECTING)
    output, received = tmp_path / "output", tmp_path / "received"
    options = [f"-D{key}={value}" for key, value in group.settings.items()]
    process = group.commands.start(
        "run", "-m", ",".join(group.sessions), *options, str(program), str(output), str(received)
    )
    return Client(process, output, received)


@pytest.mark.slow
def test_a_job_and_its_client_survive_the_death_of_the_leader(group, tmp_path):
    leader = group.start()
    standby = group.start()
    assert group.wait_for_leader() == leader
    with pytest.raises(urllib.error.HTTPError) as redirected:
        _open(f"http://{standby}/v1/jobs/overview?x=1")
    assert redirected.value.code == 307
    assert redirected.value.headers["Location"] == f"http://{leader}/v1/jobs/overview?x=1"
    client = start_client(group, tmp_path)
    wait_until(
        lambda: client.count() > 500 or client.process.poll() is not None,
        lambda: f"{client.count()} records, {client.process.poll()}",
    )
    assert client.process.poll() is None, client.process.communicate()
    group.kill(leader)
    assert group.wait_for_leader() == standby
    client.check()
    jobs = json.loads(group.commands("list", "-a", "-m", standby, "--json"))["jobs"]
    assert [job["state"] for job in jobs] == ["FINISHED"]


@pytest.mark.slow
def test_a_frozen_leader_wakes_up_as_a_standby(group, tmp_path):
    leader, standby = group.start(), group.start()
    assert group.wait_for_leader() == leader
    client = start_client(group, tmp_path)
    wait_until(lambda: client.count() > 500 or client.process.poll() is not None)
    frozen = group.pids(leader)
    for pid in frozen:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGSTOP)
    process_id = group.sessions.pop(leader)
    assert group.wait_for_leader() == standby
    known = client.count()
    wait_until(lambda: client.count() > known + 200 or client.process.poll() is not None)
    group.sessions[leader] = process_id
    for pid in frozen:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)
    client.check()

    def location() -> str | None:
        try:
            _open(f"http://{leader}/v1/overview")
        except urllib.error.HTTPError as error:
            return error.headers["Location"]
        return None

    wait_until(lambda: location() == f"http://{standby}/v1/overview")


@pytest.mark.slow
def test_a_program_that_is_started_again_continues_from_its_newest_checkpoint(
    group: Group, tmp_path: Path
) -> None:
    program = tmp_path / "writing.py"
    program.write_text(WRITING)
    options = [f"-D{key}={value}" for key, value in group.settings.items()]
    output = tmp_path / "output"

    def start() -> subprocess.Popen[str]:
        return group.commands.start("run", "--ha", *options, str(program), str(output))

    checkpoints = tmp_path / "ha" / "test"
    first = start()
    wait_until(lambda: any(checkpoints.glob("term-*/checkpoints/*")) or first.poll() is not None)
    waiting = start()
    os.kill(first.pid, signal.SIGKILL)
    first.communicate()
    out, err = waiting.communicate(timeout=300)
    assert waiting.returncode == 0, out + err
    parts = [path for path in output.rglob("part-*") if path.is_file()]
    written = sorted(int(line) for path in parts for line in path.read_text().split())
    assert written == list(range(2000))
    again = start()
    out, err = again.communicate(timeout=300)
    assert again.returncode == 0, out + err
    assert "has ended as FINISHED in an earlier run" in err


def job_of(group: Group, leader: str) -> str:
    jobs = json.loads(group.commands("list", "-a", "-m", leader, "--json"))["jobs"]
    return str(jobs[0]["jid"])


@pytest.mark.slow
@pytest.mark.parametrize("moment", ["submission", "savepoint", "rescaling"])
def test_the_leader_dies_in_the_middle_of(moment, group, tmp_path):
    leader, standby = group.start(), group.start()
    assert group.wait_for_leader() == leader
    client = start_client(group, tmp_path)
    if moment == "submission":
        submissions = tmp_path / "ha" / "test" / "submissions"
        wait_until(lambda: submissions.exists() or client.process.poll() is not None)
    else:
        wait_until(lambda: client.count() > 300 or client.process.poll() is not None)
        job = job_of(group, leader)
        arguments = {
            "savepoint": ("savepoint", "-m", leader, job, str(tmp_path / "savepoints")),
            "rescaling": ("rescale", "-p", "2", "-m", leader, job),
        }[moment]
        with group.commands.start(*arguments) as asking:
            with suppress(subprocess.TimeoutExpired):
                asking.wait(1.5)
            group.kill(leader)
            asking.kill()
    if leader in group.sessions:
        group.kill(leader)
    assert group.wait_for_leader() == standby
    client.check()


@pytest.mark.slow
def test_a_job_master_that_is_killed_is_started_again(group, tmp_path):
    leader = group.start()
    group.wait_for_leader()
    client = start_client(group, tmp_path)
    wait_until(lambda: client.count() > 300 or client.process.poll() is not None)
    [master] = [
        pid
        for pid in group.pids(leader)
        if b"firesteel.dispatcher.job_process" in Path(f"/proc/{pid}/cmdline").read_bytes()
    ]
    os.kill(master, signal.SIGKILL)
    client.check()
