"""Takeover time of a warm standby: from kill -9 of the leader to the first record of its job."""

import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from benchmarks.measure import Arguments, Figures, report
from benchmarks.sections.section import Section
from benchmarks.text import below

_LONGEST_SECONDS = 120.0
_GOAL_SECONDS = 15.0
# The default of firesteel.high-availability.lease-duration.
_LEASE_SECONDS = 8
_PROGRAM = """
import sys, time, uuid
from pathlib import Path
from firesteel.common import WatermarkStrategy
from firesteel.datastream import StreamExecutionEnvironment
from firesteel.datastream.connectors.datagen import DataGeneratorSource, RateLimiterStrategy
from firesteel.datastream.functions import SinkFunction

class FirstRecord(SinkFunction):
    def __init__(self, directory):
        self.directory = directory

    def open(self, context):
        self.is_new = True

    def invoke(self, value, context):
        if self.is_new:
            self.is_new = False
            path = Path(self.directory, uuid.uuid4().hex)
            path.write_text(str(time.time()))
            path.rename(path.with_suffix(".first"))

env = StreamExecutionEnvironment.get_execution_environment()
source = DataGeneratorSource(lambda number: number, 10**9, RateLimiterStrategy.per_second(1000))
numbers = env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers")
numbers.key_by(lambda number: number % 100).map(lambda number: number).add_sink(
    FirstRecord(sys.argv[1])
)
env.execute("takeover")
"""


class _Session:
    """One of two masters, a process with its own Spark session."""

    def __init__(self, directory: Path) -> None:
        self._environment = {**os.environ, "FIRESTEEL_HOME": str(directory / "home")}
        settings = {
            "high-availability.type": "filesystem",
            "high-availability.storageDir": str(directory / "ha"),
            "high-availability.cluster-id": "benchmark",
            "firesteel.high-availability.lease-duration": f"{_LEASE_SECONDS} s",
            "execution.checkpointing.interval": "1 s",
        }
        options = [f"-D{key}={value}" for key, value in settings.items()]
        output = self.run("session", "start", "-d", "--json", "--standby", "--port", "0", *options)
        started = json.loads(output)
        self.address = str(started["url"]).removeprefix("http://")
        self._pid = int(started["processId"])
        self._log = Path(started["log"])

    def run(self, *arguments: str) -> str:
        command = [sys.executable, "-m", "firesteel", *arguments]
        done = subprocess.run(
            command, capture_output=True, text=True, env=self._environment, check=False
        )
        if done.returncode != 0:
            raise RuntimeError(f"{' '.join(arguments)}: {done.stdout}{done.stderr}")
        return done.stdout

    def is_warm(self) -> bool:
        return "Spark is warm" in self._log.read_text()

    def kill(self) -> None:
        """Kill the process and everything that it has started."""
        todo = [self._pid]
        while todo:
            pid = todo.pop()
            with suppress(OSError):
                for task in Path(f"/proc/{pid}/task").iterdir():
                    todo += map(int, (task / "children").read_text().split())
                os.kill(pid, signal.SIGKILL)


def _wait_until(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + _LONGEST_SECONDS
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"{what} took longer than {_LONGEST_SECONDS:.0f} s")
        time.sleep(0.02)


def seconds_away() -> float:
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        directory = Path(name)
        program = directory / "program.py"
        program.write_text(_PROGRAM)
        leader = _Session(directory)
        standby = _Session(directory)
        try:
            _wait_until(standby.is_warm, "the start of the standby")
            leader.run("run", "-d", "-m", leader.address, str(program), str(directory))
            pointers = directory / "ha" / "benchmark"
            _wait_until(lambda: any(pointers.glob("term-*/checkpoints/*")), "a checkpoint")
            before = set(directory.glob("*.first"))
            killed_at = time.time()
            leader.kill()
            _wait_until(lambda: set(directory.glob("*.first")) > before, "the takeover")
            new = set(directory.glob("*.first")) - before
            return min(float(path.read_text()) for path in new) - killed_at
        finally:
            leader.kill()
            standby.kill()


def measure(arguments: Arguments) -> None:
    found = [seconds_away() for _ in range(arguments.repeats)]
    report(
        section="takeover",
        lease=_LEASE_SECONDS,
        seconds=statistics.median(found),
        longest=max(found),
        runs=len(found),
    )


def row(figures: Figures) -> list[str]:
    seconds = figures["seconds"]
    return [
        f"lease of {figures['lease']} s",
        below(seconds, _GOAL_SECONDS, f"{seconds:.1f} s"),
        f"{figures['longest']:.1f} s",
    ]


SECTION = Section(
    "takeover", ("from kill -9 of the leader to records", "median", "longest"), row, measure
)
