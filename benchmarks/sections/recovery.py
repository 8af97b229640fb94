"""Recovery time of a job with 1,000,000 keys: from a failure to the first new result.

A function raises an exception, or the process of a task is killed.
"""

import os
import signal
import statistics
import tempfile
import time
import uuid
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from benchmarks.cases import BY_NAME, modulo_million
from benchmarks.measure import Arguments, Figures, report
from benchmarks.peers.firesteel_jobs import Firesteel, numbers
from benchmarks.sections.checkpoint import count_one
from benchmarks.sections.section import Section
from benchmarks.text import below
from firesteel.common.job_client import JobClient
from firesteel.datastream.functions import MapFunction, SinkFunction

_KEYS = 1_000_000
# More records than a run can read. The section cancels the job after its recovery.
_RECORDS = 1 << 40
_LONGEST_SECONDS = 60.0
_SETTINGS = {
    "execution.checkpointing.interval": "1 s",
    "restart-strategy.type": "fixed-delay",
    "restart-strategy.fixed-delay.delay": "0 s",
}
# Checking for the signal costs a system call.
_LOOK_EVERY = 10_000
_WAYS = ("exception", "killed process")
_GOAL_SECONDS = 3.0


class Fail(MapFunction):
    """Fails once, on request."""

    def __init__(self, directory: str, way: str) -> None:
        self.way = way
        self.signal = Path(directory, "fail")
        self.failed = Path(directory, "failed")
        self.calls = 0

    def map(self, value: Any) -> Any:
        self.calls += 1
        if self.calls % _LOOK_EVERY == 0 and self.signal.exists() and not self.failed.exists():
            self.failed.write_text(str(time.time()))
            if self.way == "killed process":
                os.kill(os.getpid(), signal.SIGKILL)
            raise RuntimeError("requested by the benchmark")
        return value


class FirstResult(SinkFunction):
    """Records the time of the first result after the failure."""

    def __init__(self, directory: str) -> None:
        self.directory = directory
        self.waits = False

    def open(self, runtime_context: Any) -> None:
        self.waits = Path(self.directory, "failed").exists()

    def invoke(self, value: Any, context: SinkFunction.Context) -> None:
        if self.waits:
            self.waits = False
            # Rename the complete file, so that readers never see a partial one.
            path = Path(self.directory, uuid.uuid4().hex)
            path.write_text(str(time.time()))
            path.rename(path.with_suffix(".result"))


def wait_until(client: JobClient, condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + _LONGEST_SECONDS
    while not condition():
        if client.get_job_status().result().is_terminal_state():
            client.get_job_execution_result().result()
        if time.monotonic() > deadline:
            raise TimeoutError(f"{what} took longer than {_LONGEST_SECONDS:.0f} s")
        time.sleep(0.05)


def records_read(client: JobClient) -> int:
    """Return the minimum over all sources. Each source covers all keys in turn."""
    sources = client.get_overview()["vertices"][0]["subtasks"]
    return min(int(subtask["records_in"]) for subtask in sources)


def completed(client: JobClient) -> int:
    count: int = client.get_checkpoints()["counts"]["completed"]
    return count


def seconds_away(parallelism: int, keys: int, way: str) -> float:
    with tempfile.TemporaryDirectory() as directory:
        settings = _SETTINGS | {"execution.checkpointing.dir": str(Path(directory, "checkpoints"))}
        env = Firesteel(parallelism, settings).environment()
        counts = numbers(env, 0, _RECORDS).key_by(modulo(keys)).fold(0, count_one)
        counts.map(Fail(directory, way)).add_sink(FirstResult(directory))
        client = env.execute_async("recovery")
        try:
            wait_until(client, lambda: records_read(client) >= keys, "reading every key")
            before = completed(client)
            # The next checkpoint may have started already. The one after it has every key.
            wait_until(client, lambda: completed(client) >= before + 2, "a checkpoint")
            Path(directory, "fail").touch()
            wait_until(client, lambda: any(Path(directory).glob("*.result")), "recovering")
            first = min(float(path.read_text()) for path in Path(directory).glob("*.result"))
            return first - float(Path(directory, "failed").read_text())
        finally:
            with suppress(Exception):
                client.cancel().result()


def modulo(keys: int) -> Callable[[int], int]:
    if keys == _KEYS:
        return modulo_million
    return lambda number: number % keys


def measure(arguments: Arguments) -> None:
    keys = arguments.records_of(BY_NAME["reduce_1m"], _KEYS)
    for way in _WAYS:
        begin = time.monotonic()
        found: list[float] = []
        for _ in range(arguments.repeats):
            found.append(seconds_away(arguments.parallelism, keys, way))
            if time.monotonic() - begin > _LONGEST_SECONDS / 2:
                break
        seconds = statistics.median(found)
        report(section="recovery", keys=keys, way=way, seconds=seconds, runs=len(found))


def row(figures: Figures) -> list[str]:
    seconds = figures["seconds"]
    return [
        f"{figures['keys']:,} keys, {figures['way']}",
        below(seconds, _GOAL_SECONDS, f"{seconds:.1f} s"),
    ]


SECTION = Section("recovery", ("from a failure to the first new result", ""), row, measure)
