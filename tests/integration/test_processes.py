"""No process and no temporary directory remains, however a job or its driver ends."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.waiting import wait_until

MARK = "FIRESTEEL_TEST_MARK"

ENDLESS = """
import sys

from firesteel.common import Configuration
from firesteel.common.watermark_strategy import WatermarkStrategy
from firesteel.datastream import StreamExecutionEnvironment
from firesteel.datastream.connectors.datagen import DataGeneratorSource, RateLimiterStrategy

configuration = Configuration()
for setting in sys.argv[1:]:
    configuration.set_string(*setting.split("="))
env = StreamExecutionEnvironment.get_execution_environment(configuration)
env.set_parallelism(2)
source = DataGeneratorSource(lambda i: i, 10**9, RateLimiterStrategy.per_second(100))
numbers = env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers")
numbers.key_by(lambda x: x % 2).reduce(lambda a, b: a + b).print()
env.execute("endless")
"""

BOUNDED = """
from firesteel.datastream import StreamExecutionEnvironment

env = StreamExecutionEnvironment.get_execution_environment()
env.set_parallelism(2)


class Tripler:
    def __call__(self, value):
        return Record(value * 3)


class Record:
    def __init__(self, value):
        self.value = value


stream = env.from_collection([1, 2, 3]).map(Tripler())
stream.rebalance().map(lambda record: record.value).print()
env.execute("bounded")
"""

STUCK_AND_LEFT = """
import sys
import time
from pathlib import Path

from firesteel.common import Configuration
from firesteel.datastream import StreamExecutionEnvironment
from firesteel.datastream.connectors.datagen import DataGeneratorSource, RateLimiterStrategy
from firesteel.datastream.functions import MapFunction

DIRECTORY = Path.cwd()


class Logged(MapFunction):
    def open(self, runtime_context):
        self.log("open")

    def map(self, value):
        return value

    def close(self):
        self.log("close")

    def log(self, word):
        with (DIRECTORY / "log").open("a") as file:
            file.write(word + "\\n")


def block(value):
    (DIRECTORY / "blocked").touch()
    time.sleep(600)


configuration = Configuration()
for setting in sys.argv[1:]:
    configuration.set_string(*setting.split("="))
env = StreamExecutionEnvironment.get_execution_environment(configuration)
env.set_parallelism(1)
env.get_config().set_task_cancellation_timeout(2000)


def numbers():
    source = DataGeneratorSource(lambda i: i, 10**9, RateLimiterStrategy.per_second(100))
    return env.from_source(source, None, "numbers")


def wait_until(client, condition):
    while not condition():
        if client.get_job_status().result().is_terminal_state():
            client.get_job_execution_result().result()
        time.sleep(0.1)


numbers().map(block)
stuck = env.execute_async("stuck")
wait_until(stuck, lambda: (DIRECTORY / "blocked").exists())
started = time.monotonic()
stuck.cancel().result()
seconds = time.monotonic() - started
numbers().map(Logged())
left = env.execute_async("left running")
wait_until(left, lambda: left.get_overview()["epochs"] >= 2)
print(stuck.get_job_status().result().name, seconds, flush=True)
left.get_job_execution_result().result()
"""


class Driver:
    """A driver in a process of its own, with a temporary directory of its own."""

    def __init__(self, program: str, directory: Path, *arguments: str) -> None:
        self.mark = uuid.uuid4().hex
        # Short, as the names of sockets must be.
        self.temporary = Path(tempfile.mkdtemp(prefix="fs-"))
        script = directory / "program.py"
        script.write_text(program)
        environment = {**os.environ, MARK: self.mark, "TMPDIR": str(self.temporary)}
        environment["PYTHONPATH"] = str(Path(__file__).parents[2])
        # Java's temporary files follow another variable.
        environment["JAVA_TOOL_OPTIONS"] = f"-Djava.io.tmpdir={self.temporary}"
        self.process = subprocess.Popen(
            [sys.executable, str(script), *arguments],
            cwd=directory,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=(directory / "stderr").open("w"),
            text=True,
        )
        self._errors = directory / "stderr"

    def wait_for_output(self) -> str:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, self.errors()
        return line

    def errors(self) -> str:
        lines = self._errors.read_text().splitlines()
        return "\n".join(line for line in lines if not line.startswith("Picked up JAVA_TOOL"))

    def others(self) -> list[str]:
        """The processes that this driver has started, directly or not."""
        found = []
        for entry in Path("/proc").iterdir():
            if not entry.name.isdigit() or int(entry.name) == self.process.pid:
                continue
            try:
                if f"{MARK}={self.mark}".encode() in (entry / "environ").read_bytes():
                    found.append((entry / "cmdline").read_text().replace("\0", " "))
            except OSError:
                continue
        return found

    def end(self) -> None:
        self.process.kill()
        self.process.wait()
        shutil.rmtree(self.temporary, ignore_errors=True)


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Driver]]:
    drivers: list[Driver] = []

    def start(program: str, *arguments: str) -> Driver:
        drivers.append(Driver(program, tmp_path, *arguments))
        return drivers[-1]

    yield start
    for driver in drivers:
        driver.end()


def assert_nothing_is_left(driver: Driver, *, directories: bool = True) -> None:
    wait_until(lambda: not driver.others(), lambda: f"left: {driver.others()}")
    if directories:
        left = [path.name for path in driver.temporary.iterdir() if "hsperf" not in path.name]
        assert left == []


def test_a_program_of_its_own_runs_prints_only_its_results_and_leaves_nothing(
    start: Callable[..., Driver],
) -> None:
    driver = start(BOUNDED)
    output, _ = driver.process.communicate(timeout=240)
    assert driver.process.returncode == 0, driver.errors()
    assert sorted(line.split("> ")[1] for line in output.splitlines()) == ["3", "6", "9"]
    assert driver.errors() == ""
    assert_nothing_is_left(driver)


def test_ctrl_c_ends_a_job_within_seconds_without_a_traceback(
    start: Callable[..., Driver], execution: str
) -> None:
    driver = start(ENDLESS, f"firesteel.execution={execution}")
    driver.wait_for_output()
    process = "worker_daemon" if execution == "real-time" else "slothost.host"
    assert any(process in command for command in driver.others())
    started = time.monotonic()
    driver.process.send_signal(signal.SIGINT)
    driver.process.communicate(timeout=60)
    assert time.monotonic() - started < 60
    assert driver.process.returncode == 130
    assert driver.errors() == ""
    assert_nothing_is_left(driver)


@pytest.mark.slow
def test_a_function_that_blocks_is_killed_and_sigterm_closes_what_a_program_leaves_running(
    start: Callable[..., Driver], execution: str, tmp_path: Path
) -> None:
    driver = start(STUCK_AND_LEFT, f"firesteel.execution={execution}")
    status, seconds = driver.wait_for_output().split()
    assert status == "CANCELED"
    assert float(seconds) < 30
    driver.process.terminate()
    driver.process.communicate(timeout=60)
    assert driver.process.returncode == 128 + signal.SIGTERM, driver.errors()
    assert (tmp_path / "log").read_text().splitlines() == ["open", "close"]
    (line,) = driver.errors().splitlines()
    assert line.endswith(
        "level 0, slot 0: a function of the canceled job does not return, so its process ends"
    )
    assert_nothing_is_left(driver)


def test_no_process_outlives_a_driver_that_is_killed_and_one_setting_shows_sparks_log(
    start: Callable[..., Driver],
) -> None:
    driver = start(ENDLESS, "firesteel.log-level=INFO")
    driver.wait_for_output()
    assert " INFO DAGScheduler: " in driver.errors()
    driver.process.kill()
    driver.process.wait()
    # Its directories cannot be cleaned up by a process that was killed.
    assert_nothing_is_left(driver, directories=False)
