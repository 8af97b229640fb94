"""A cluster: Spark's standalone master and two workers in separate processes.

The executors' Python has pyspark and pyarrow, but neither Firesteel nor the user's module.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pyspark
import pytest

from tests.waiting import wait_until

SPARK_CLASS = Path(pyspark.__file__).parent / "bin" / "spark-class"

HELPER = """
def triple(value):
    return value * 3
"""

PROGRAM = """
import os
import sys

from firesteel.common import Configuration
from firesteel.common.watermark_strategy import WatermarkStrategy
from firesteel.datastream import MapFunction, RuntimeExecutionMode, StreamExecutionEnvironment
from firesteel.datastream.connectors.number_seq import NumberSequenceSource

from helper_of_user import triple

configuration = Configuration()
configuration.set_string("firesteel.spark.master", sys.argv[1])
configuration.set_string("spark.executorEnv.PYTHONPATH", sys.argv[2])
configuration.set_string("spark.executor.memory", "512m")
# No task starts before both executors are there.
configuration.set_string("spark.cores.max", "2")
configuration.set_string("spark.scheduler.minRegisteredResourcesRatio", "1.0")
configuration.set_string("firesteel.epoch.max-records", "2000")
env = StreamExecutionEnvironment.get_execution_environment(configuration)
env.set_parallelism(2)
here = os.path.dirname(__file__)
env.add_python_file(os.path.join(here, "helper_of_user.py"))
env.add_python_archive(os.path.join(here, "data.zip"), "data")
env.register_cached_file(os.path.join(here, "zero.txt"), "zero")


class AddZero(MapFunction):
    def open(self, runtime_context):
        with open("data/zero.txt") as file:
            self.zero = int(file.read())
        with open(runtime_context.get_distributed_cache().get_file("zero")) as file:
            self.zero += int(file.read())

    def map(self, value):
        return value + self.zero


def daemon():
    # The module that the daemon of this worker runs.
    with open(f"/proc/{os.getpgrp()}/cmdline") as file:
        return file.read().split(chr(0))[2]


def sums():
    source = NumberSequenceSource(1, 10000)
    numbers = env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers")
    return (
        numbers.map(triple)
        .map(AddZero())
        # The processes of an executor, slot hosts among them, are one group.
        .map(lambda x: (x % 2, x, frozenset({(os.getpgrp(), daemon())})))
        .key_by(lambda t: t[0])
        .reduce(lambda a, b: (a[0], a[1] + b[1], a[2] | b[2]))
    )


def show(results):
    last = {}
    executors = set()
    for key, total, groups in results:
        last[key] = max(total, last.get(key, 0))
        executors |= groups
    print(sorted(last.items()), len(executors), {daemon for _, daemon in executors})


with sums().execute_and_collect() as results:
    show(results)

env.set_runtime_mode(RuntimeExecutionMode.BATCH)
with sums().execute_and_collect() as results:
    show(results)
"""


def start(*arguments: str, log: Path, home: Path | None = None) -> subprocess.Popen[bytes]:
    """Start a process of Spark, with the temporary directory of a machine."""
    environment = dict(os.environ)
    if home is not None:
        environment["TMPDIR"] = str(home / "tmp")
    return subprocess.Popen(
        [str(SPARK_CLASS), *arguments],
        stdout=log.open("wb"),
        stderr=subprocess.STDOUT,
        env=environment,
        cwd=home,
    )


def wait_for_text(log: Path, pattern: str, seconds: float = 90) -> str:
    deadline = time.monotonic() + seconds
    while True:
        match = re.search(pattern, log.read_text())
        if match:
            return match.group(0)
        assert time.monotonic() < deadline, log.read_text()
        time.sleep(0.1)


@contextmanager
def started_program(
    directory: Path, text: str, master_url: str, *arguments: str
) -> Iterator[subprocess.Popen[str]]:
    """Start a driver. The Python of the executors has pyspark and pyarrow, but not Firesteel."""
    packages = directory / "packages"
    packages.mkdir()
    for name in ("pyspark", "py4j", "pyarrow"):
        location = Path(str(__import__(name).__file__)).parent
        (packages / name).symlink_to(location)
        for extra in location.parent.glob(f"{name}.libs"):
            (packages / extra.name).symlink_to(extra)
    program = directory / "program.py"
    program.write_text(text)
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    # An interpreter without this environment's packages.
    environment["PYSPARK_PYTHON"] = os.path.realpath(sys.executable)
    environment["PYSPARK_DRIVER_PYTHON"] = sys.executable
    process = subprocess.Popen(
        [sys.executable, str(program), master_url, str(packages), *arguments],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


@dataclass
class Cluster:
    """A master and workers that share no directory. Each stands for a machine."""

    url: str
    workers: list[subprocess.Popen[bytes]]
    directories: list[Path]

    def left_files(self) -> list[Path]:
        """Return the temporary files that are left on the machines."""
        return [file for home in self.directories for file in (home / "tmp").glob("firesteel*")]

    def processes(self, machine: int) -> dict[int, str]:
        """Return the processes that run on a machine, apart from the worker: their ids and commands."""
        mark = f"TMPDIR={self.directories[machine] / 'tmp'}".encode()
        found = {}
        for entry in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                if mark in (entry / "environ").read_bytes().split(b"\0"):
                    found[int(entry.name)] = (entry / "cmdline").read_text().replace("\0", " ")
        return {pid: line for pid, line in found.items() if "deploy.worker.Worker" not in line}


@contextmanager
def started_cluster(root: Path, *, cores: int) -> Iterator[Cluster]:
    """Start two workers with this many cores each."""
    prefix = "org.apache.spark.deploy"
    own = ["--host", "127.0.0.1", "--webui-port", "0"]
    master_log = root / "master.log"
    processes = [start(f"{prefix}.master.Master", *own, "--port", "0", log=master_log)]
    directories = [root / f"machine{number}" for number in range(2)]
    try:
        url = wait_for_text(master_log, r"spark://127\.0\.0\.1:\d+")
        for home in directories:
            (home / "tmp").mkdir(parents=True)
            resources = ["--cores", str(cores), "--memory", "1g", "--work-dir", str(home / "work")]
            log = home / "worker.log"
            processes.append(
                start(f"{prefix}.worker.Worker", *own, *resources, url, log=log, home=home)
            )
            wait_for_text(log, "Successfully registered")
        yield Cluster(url, processes[1:], directories)
    finally:
        for process in processes:
            process.kill()
            process.wait()


@pytest.fixture
def master_url(tmp_path: Path) -> Iterator[str]:
    with started_cluster(tmp_path, cores=1) as cluster:
        yield cluster.url


@pytest.mark.slow
def test_user_code_and_firesteel_itself_reach_the_executors(
    master_url: str, tmp_path: Path
) -> None:
    (tmp_path / "helper_of_user.py").write_text(HELPER)
    (tmp_path / "zero.txt").write_text("0")
    with zipfile.ZipFile(tmp_path / "data.zip", "w") as archive:
        archive.write(tmp_path / "zero.txt", "zero.txt")
    with started_program(tmp_path, PROGRAM, master_url) as program:
        output, errors = program.communicate(timeout=280)
    assert program.returncode == 0, errors
    numbers = [3 * x for x in range(1, 10001)]
    sums = [(key, sum(x for x in numbers if x % 2 == key)) for key in (0, 1)]
    # Streaming and batch, and both executors have taken part, with the worker daemon of Firesteel.
    expected = f"{sums} 2 {{'firesteel_executor_daemon'}}"
    assert output.splitlines() == [expected, expected]


LIVES = """
import os
import sys
import time
from pathlib import Path

from firesteel.common import Configuration
from firesteel.common.watermark_strategy import WatermarkStrategy
from firesteel.datastream import MapFunction, StreamExecutionEnvironment
from firesteel.datastream.connectors.number_seq import NumberSequenceSource
from firesteel.datastream.functions import CheckpointedFunction

master, packages, execution, log, checkpoints, count = sys.argv[1:]
configuration = Configuration()
for key, value in {
    "firesteel.spark.master": master,
    "firesteel.execution": execution,
    "firesteel.epoch.max-records": "200",
    "execution.checkpointing.dir": checkpoints,
    "execution.checkpointing.interval": "1 s",
    "restart-strategy.type": "fixed-delay",
    "restart-strategy.fixed-delay.attempts": "5",
    "restart-strategy.fixed-delay.delay": "0 s",
    "spark.executorEnv.PYTHONPATH": packages,
    "spark.executor.memory": "512m",
    "spark.cores.max": "8",
    "spark.scheduler.minRegisteredResourcesRatio": "1.0",
}.items():
    configuration.set_string(key, value)
env = StreamExecutionEnvironment.get_execution_environment(configuration)
env.set_parallelism(2)


class Life(MapFunction, CheckpointedFunction):
    def __init__(self, name):
        self.name = name

    def tell(self, event):
        with open(log, "a") as file:
            file.write(f"{event} {self.name} {self.subtask} {self.attempt}\\n")

    def open(self, runtime_context):
        self.subtask = runtime_context.get_index_of_this_subtask()
        self.attempt = runtime_context.get_attempt_number()
        self.tell("open")

    def initialize_state(self, context):
        self.seen = 0

    def snapshot_state(self, context):
        pass

    def map(self, value):
        self.seen += 1
        if self.name == "first" and self.seen % 100 == 0:
            time.sleep(0.05)
        return value

    def close(self):
        self.tell("close")


numbers = env.from_source(
    NumberSequenceSource(1, int(count)), WatermarkStrategy.no_watermarks(), "numbers"
)
sums = (
    numbers.map(Life("first"))
    .map(lambda x: (x % 2, x))
    .key_by(lambda pair: pair[0])
    .reduce(lambda a, b: (a[0], a[1] + b[1]))
    .map(Life("second"))
)
with sums.execute_and_collect() as results:
    last = {key: total for key, total in results}
print(sorted(last.items()))
"""


def test_a_subtask_lives_on_one_machine_and_leaves_nothing_there(
    tmp_path: Path, execution: str
) -> None:
    log = tmp_path / "lives"
    count = 8000
    with started_cluster(tmp_path, cores=4) as cluster:
        arguments = (execution, str(log), str(tmp_path / "checkpoints"), str(count))
        with started_program(tmp_path, LIVES, cluster.url, *arguments) as program:
            output, errors = program.communicate(timeout=280)
        assert program.returncode == 0, errors
        assert output == f"{expected_sums(count)}\n"
        events = sorted(log.read_text().splitlines())
        assert events == [
            f"{event} {name} {subtask} 0"
            for event in ("close", "open")
            for name in ("first", "second")
            for subtask in (0, 1)
        ]
        wait_until(lambda: not cluster.processes(0) and not cluster.processes(1), seconds=60)
        assert cluster.left_files() == []


@pytest.mark.slow
def test_a_killed_worker_moves_its_subtasks_to_the_other(tmp_path: Path, execution: str) -> None:
    log = tmp_path / "lives"
    count = 40000
    with started_cluster(tmp_path, cores=4) as cluster:
        arguments = (execution, str(log), str(tmp_path / "checkpoints"), str(count))
        with started_program(tmp_path, LIVES, cluster.url, *arguments) as program:
            wait_until(lambda: log.exists() and log.read_text().count("open") == 4, seconds=120)
            time.sleep(3)
            assert program.poll() is None, "the job was over before the worker died"
            cluster.workers[1].kill()
            for pid in cluster.processes(1):
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            output, errors = program.communicate(timeout=280)
        assert program.returncode == 0, errors
        assert output == f"{expected_sums(count)}\n"
        wait_until(lambda: not cluster.processes(0), seconds=60)
        assert [file for file in cluster.left_files() if "machine0" in str(file)] == []


def expected_sums(count: int) -> list[tuple[int, int]]:
    return [(key, sum(x for x in range(1, count + 1) if x % 2 == key)) for key in (0, 1)]
