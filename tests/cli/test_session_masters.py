"""Whole sessions as masters of one group: the leader dies or is frozen, and its jobs continue."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import urllib.error
import urllib.request
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
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

# Collects all records in the client, and writes them with a FileSink too. A snapshot of the function
# in the middle waits as long as the file ``hold`` exists.
COLLECTING = f"""
import sys
import time
from pathlib import Path
from firesteel.common import Encoder, Types, WatermarkStrategy
from firesteel.datastream import MapFunction, StreamExecutionEnvironment
from firesteel.datastream.connectors.datagen import DataGeneratorSource, RateLimiterStrategy
from firesteel.datastream.connectors.file_system import FileSink
from firesteel.datastream.functions import CheckpointedFunction

output, received, hold, interval = sys.argv[1:]


class Same(MapFunction, CheckpointedFunction):
    def map(self, number):
        return number

    def initialize_state(self, context):
        pass

    def snapshot_state(self, context):
        while Path(hold).exists():
            Path(hold + ".reached").touch()
            time.sleep(0.05)


env = StreamExecutionEnvironment.get_execution_environment()
env.enable_checkpointing(int(interval))
source = DataGeneratorSource(lambda number: number, {RECORDS}, RateLimiterStrategy.per_second(400))
numbers = env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers").uid("numbers")
same = numbers.key_by(lambda number: number % 4).map(Same()).uid("same")
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


def processes_below(process_id: int) -> list[int]:
    """Return a process, and all that it has started directly or indirectly."""
    found, todo = [], [process_id]
    while todo:
        pid = todo.pop()
        found.append(pid)
        with suppress(OSError):
            for task in Path(f"/proc/{pid}/task").iterdir():
                todo += map(int, (task / "children").read_text().split())
    return found


@dataclass
class Group:
    """Sessions of one group of masters."""

    commands: Commands
    settings: dict[str, str]
    sessions: dict[str, int] = field(default_factory=dict)
    logs: dict[str, Path] = field(default_factory=dict)

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
        self.logs[address] = Path(started["log"])
        return str(address)

    def leader(self) -> str | None:
        """Return the address of the session that answers and does not redirect."""
        for address in self.sessions:
            with suppress(OSError, urllib.error.URLError):
                answer = _open(f"http://{address}/v1/overview")
                if answer.status == 200:
                    return address
        return None

    def log(self, address: str) -> str:
        return self.logs[address].read_text()

    def has_jobs(self, address: str) -> bool:
        return bool(json.loads(self.commands("list", "-a", "-m", address, "--json"))["jobs"])

    def wait_for_leader(self) -> str:
        wait_until(lambda: self.leader() is not None)
        leader = self.leader()
        assert leader is not None
        return leader

    def pids(self, address: str) -> list[int]:
        """Return the processes of a session: all of its process tree."""
        return processes_below(self.sessions[address])

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


def settings_of(kind: str, request: pytest.FixtureRequest, directory: Path) -> dict[str, str]:
    """Return the settings of a new group of masters."""
    leases = {
        "high-availability.type": "filesystem",
        "firesteel.high-availability.lease-duration": "6 s",
        "firesteel.high-availability.lease-renewal": "500 ms",
    }
    if kind == "s3":
        s3 = request.getfixturevalue("s3")
        return {
            **leases,
            "high-availability.storageDir": f"s3://checkpoints/{uuid.uuid4().hex}",
            "s3.endpoint": s3.s3_endpoint,
            "s3.access-key": s3.s3_access_key,
            "s3.secret-key": s3.s3_secret_key,
            "s3.endpoint.region": s3.s3_region,
        }
    storage = {"high-availability.storageDir": str(directory / "ha")}
    if kind == "zookeeper":
        return {
            **storage,
            "high-availability.type": "zookeeper",
            "high-availability.zookeeper.quorum": request.getfixturevalue("ensemble").quorum,
            "high-availability.zookeeper.path.root": f"/{uuid.uuid4().hex}",
            "high-availability.zookeeper.client.session-timeout": "4 s",
        }
    return {**leases, **storage}


@pytest.fixture
def group(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Group]:
    home = tmp_path / "home"
    home.mkdir()
    kind = getattr(request, "param", "filesystem")
    settings = settings_of(kind, request, tmp_path)
    made = Group(Commands(home), {**settings, "high-availability.cluster-id": "test"})
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


def start_client(group: Group, tmp_path: Path, checkpoint_interval: int = 500) -> Client:
    """Start the program. The interval of its checkpoints is in milliseconds."""
    program = tmp_path / "collecting.py"
    program.write_text(COLLECTING)
    output, received, hold = (tmp_path / name for name in ("output", "received", "hold"))
    options = [f"-D{key}={value}" for key, value in group.settings.items()]
    process = group.commands.start(
        "run", "-m", ",".join(group.sessions), *options, str(program),
        str(output), str(received), str(hold), str(checkpoint_interval),
    )  # fmt: skip
    return Client(process, output, received)


@pytest.mark.slow
@pytest.mark.parametrize("group", ["filesystem", "s3", "zookeeper"], indirect=True)
def test_a_job_and_its_client_survive_the_death_of_the_leader(group, tmp_path):
    leader = group.start()
    standby = group.start()
    assert group.wait_for_leader() == leader
    wait_until(lambda: "Spark is warm" in group.log(standby), lambda: group.log(standby))
    assert "warm" not in group.log(leader)
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


def runs(pid: int) -> bool:
    """Return True for a process that has not ended, even if its parent does not notice the end."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


@pytest.mark.slow
def test_the_processes_of_a_leader_end_when_its_main_process_is_killed(group, tmp_path):
    leader, standby = group.start(), group.start()
    assert group.wait_for_leader() == leader
    client = start_client(group, tmp_path)
    wait_until(lambda: client.count() > 500 or client.process.poll() is not None)
    processes = group.pids(leader)
    os.kill(group.sessions.pop(leader), signal.SIGKILL)
    assert group.wait_for_leader() == standby
    wait_until(lambda: not any(map(runs, processes)), lambda: str(list(filter(runs, processes))))
    client.check()


@pytest.mark.slow
@pytest.mark.parametrize("frozen", ["all processes", "the main process"])
def test_a_frozen_leader_wakes_up_as_a_standby(frozen, group, tmp_path):
    leader, standby = group.start(), group.start()
    assert group.wait_for_leader() == leader
    client = start_client(group, tmp_path)
    wait_until(lambda: client.count() > 500 or client.process.poll() is not None)
    processes = group.pids(leader)
    if frozen == "the main process":
        # The process of the job does not know it. It can complete no checkpoint.
        processes = processes[:1]
    for pid in processes:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGSTOP)
    process_id = group.sessions.pop(leader)
    assert group.wait_for_leader() == standby
    known = client.count()
    wait_until(lambda: client.count() > known + 200 or client.process.poll() is not None)
    group.sessions[leader] = process_id
    for pid in processes:
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


def jvm_of(processes: list[int]) -> int:
    found = []
    for pid in processes:
        with suppress(OSError):
            if b"org.apache.spark.deploy.SparkSubmit" in Path(f"/proc/{pid}/cmdline").read_bytes():
                found.append(pid)
    [jvm] = found
    return jvm


@pytest.mark.slow
def test_a_leader_whose_jvm_is_killed_ends_and_its_jobs_continue(group, tmp_path):
    """As the system does it when memory is short."""
    leader, standby = group.start(), group.start()
    assert group.wait_for_leader() == leader
    client = start_client(group, tmp_path)
    wait_until(lambda: client.count() > 500 or client.process.poll() is not None)
    processes = group.pids(leader)
    os.kill(jvm_of(processes), signal.SIGKILL)
    wait_until(lambda: not any(map(runs, processes)), lambda: str(list(filter(runs, processes))))
    assert "Spark's JVM has ended by itself" in group.log(leader)
    del group.sessions[leader]
    assert group.wait_for_leader() == standby
    client.check()


@pytest.mark.slow
def test_a_program_whose_jvm_is_killed_ends_and_continues_in_the_next_run(
    group: Group, tmp_path: Path
) -> None:
    program = tmp_path / "writing.py"
    program.write_text(WRITING)
    options = [f"-D{key}={value}" for key, value in group.settings.items()]
    output, checkpoints = tmp_path / "output", tmp_path / "ha" / "test"

    def start() -> subprocess.Popen[str]:
        return group.commands.start("run", "--ha", *options, str(program), str(output))

    first = start()
    wait_until(lambda: any(checkpoints.glob("term-*/checkpoints/*")) or first.poll() is not None)
    os.kill(jvm_of(processes_below(first.pid)), signal.SIGKILL)
    out, err = first.communicate(timeout=120)
    assert first.returncode not in (0, None), out + err
    again = start()
    out, err = again.communicate(timeout=300)
    assert again.returncode == 0, out + err
    parts = [path for path in output.rglob("part-*") if path.is_file()]
    written = sorted(int(line) for path in parts for line in path.read_text().split())
    assert written == list(range(2000))


CRASHING = WRITING.replace(
    'env.execute("writing")',
    """
from pathlib import Path
job = env.execute_async("writing")
crashed = Path(sys.argv[2])
if not crashed.exists():
    while not any(Path(sys.argv[3]).glob("term-*/checkpoints/*")):
        job.get_job_status().result()
    crashed.touch()
    raise ValueError("the program has a bug")
job.get_job_execution_result().result()
""",
)


@pytest.mark.slow
def test_a_program_that_ends_with_an_error_of_its_own_continues_its_jobs_in_the_next_run(
    group: Group, tmp_path: Path
) -> None:
    """Nobody has canceled them, so they have not ended."""
    program = tmp_path / "crashing.py"
    program.write_text(CRASHING)
    options = [f"-D{key}={value}" for key, value in group.settings.items()]
    output = tmp_path / "output"
    arguments = [str(output), str(tmp_path / "crashed"), str(tmp_path / "ha" / "test")]

    def run() -> tuple[int, str]:
        process = group.commands.start("run", "--ha", *options, str(program), *arguments)
        out, err = process.communicate(timeout=300)
        return process.returncode, out + err

    code, text = run()
    assert code == 1, text
    assert "the program has a bug" in text
    code, text = run()
    assert code == 0, text
    parts = [path for path in output.rglob("part-*") if path.is_file()]
    written = sorted(int(line) for path in parts for line in path.read_text().split())
    assert written == list(range(2000))


def job_of(group: Group, leader: str) -> str:
    """Return the id of the job, once it is running."""
    found: list[dict[str, Any]] = []

    def is_running() -> bool:
        found[:] = json.loads(group.commands("list", "-a", "-m", leader, "--json"))["jobs"]
        return any(job["state"] == "RUNNING" for job in found)

    wait_until(is_running)
    return str(found[0]["jid"])


@pytest.mark.slow
def test_the_leader_dies_while_a_job_is_being_submitted(group, tmp_path):
    leader, standby = group.start(), group.start()
    assert group.wait_for_leader() == leader
    client = start_client(group, tmp_path)
    submissions = tmp_path / "ha" / "test" / "submissions"
    wait_until(lambda: submissions.exists() or client.process.poll() is not None)
    group.kill(leader)
    assert group.wait_for_leader() == standby
    client.check()


@pytest.mark.slow
def test_the_leader_is_stopped_while_a_client_waits(group, tmp_path):
    leader, standby = group.start(), group.start()
    assert group.wait_for_leader() == leader
    client = start_client(group, tmp_path)
    wait_until(lambda: client.count() > 500 or client.process.poll() is not None)
    group.commands("session", "stop", "-m", leader)
    del group.sessions[leader]
    assert group.wait_for_leader() == standby
    client.check()


@pytest.mark.slow
@pytest.mark.parametrize("moment", ["checkpoint", "savepoint", "rescaling"])
def test_the_leader_dies_in_the_middle_of(moment, group, tmp_path):
    leader, standby = group.start(), group.start()
    assert group.wait_for_leader() == leader
    # Only the checkpoints of this test, so that its function waits in the right one.
    client = start_client(group, tmp_path, checkpoint_interval=3_600_000)
    wait_until(lambda: group.has_jobs(leader) or client.process.poll() is not None)
    job = job_of(group, leader)
    group.commands("checkpoint", "-m", leader, job)
    hold = tmp_path / "hold"
    hold.touch()
    arguments = {
        "checkpoint": ("checkpoint", "-m", leader, job),
        "savepoint": ("savepoint", "-m", leader, job, str(tmp_path / "savepoints")),
        "rescaling": ("rescale", "-p", "2", "-m", leader, job),
    }[moment]
    with group.commands.start(*arguments) as asking:
        wait_until(
            lambda: (tmp_path / "hold.reached").exists() or asking.poll() is not None,
            lambda: "the function did not begin its snapshot",
        )
        assert asking.poll() is None, asking.communicate()
        group.kill(leader)
        asking.kill()
    hold.unlink()
    assert group.wait_for_leader() == standby
    client.check()


@pytest.mark.slow
def test_of_two_sessions_that_start_at_once_one_leads(group, tmp_path):
    with ThreadPoolExecutor(2) as starting:
        addresses = list(starting.map(lambda _: group.start(), range(2)))
    leader = group.wait_for_leader()
    [other] = [address for address in addresses if address != leader]
    with pytest.raises(urllib.error.HTTPError) as redirected:
        _open(f"http://{other}/v1/overview")
    assert redirected.value.headers["Location"] == f"http://{leader}/v1/overview"
    client = start_client(group, tmp_path)
    client.check()
    [term] = [path.name for path in (tmp_path / "ha" / "test").glob("term-*")]
    assert term == "term-0000000001"


@pytest.mark.slow
def test_a_standby_of_a_different_version_is_refused_with_the_reason(group, tmp_path):
    leader = group.start()
    assert group.wait_for_leader() == leader
    newer = (
        "import sys, firesteel.version\n"
        "firesteel.version.__version__ = '99.0'\n"
        "from firesteel.cli.main import main\n"
        "main(sys.argv[1:])\n"
    )
    options = [f"-D{key}={value}" for key, value in group.settings.items()]
    done = subprocess.run(
        [sys.executable, "-c", newer, "session", "start", "--standby", "--port", "0", *options],
        capture_output=True,
        text=True,
        timeout=300,
        env=group.commands.environment,
        cwd=tmp_path,
        check=False,
    )
    assert done.returncode != 0
    assert "The leader runs Firesteel" in done.stderr
    assert "99.0" in done.stderr
    assert group.leader() == leader


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
