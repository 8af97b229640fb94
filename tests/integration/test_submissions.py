"""Jobs that have ended leave nothing behind in the driver and in Spark's JVM."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from firesteel.datastream import StreamExecutionEnvironment
from firesteel.datastream.connectors.datagen import DataGeneratorSource, RateLimiterStrategy
from firesteel.datastream.functions import SinkFunction
from tests.integration.conftest import MakeEnvironment
from tests.waiting import wait_until

_REPOSITORY = Path(__file__).parents[2]
# Runs a job both ways and cancels it.
_PROGRAM = """
import time

from firesteel.common import Configuration
from firesteel.datastream import StreamExecutionEnvironment
from firesteel.datastream.connectors.datagen import DataGeneratorSource, RateLimiterStrategy

for execution in ("real-time", "micro-batch"):
    configuration = Configuration.from_dict({"firesteel.execution": execution})
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    env.set_parallelism(2)
    source = DataGeneratorSource(lambda n: n, 10**9, RateLimiterStrategy.per_second(200))
    numbers = env.from_source(source, None, "numbers")
    numbers.key_by(lambda n: n % 7).map(lambda n: n).print()
    client = env.execute_async(execution)
    while client.get_overview()["epochs"] < 3:
        time.sleep(0.02)
    client.cancel().result()
"""
# Spark's own pools. Their threads end when they have been idle for a minute.
_POOLS = ("block-manager-", "Executor task ", "python-udf-", "stream execution thread", "shuffle-")
_JOBS = 3


class Nowhere(SinkFunction):
    def invoke(self, value: Any, context: Any) -> None:
        pass


class Leftovers:
    """Threads and handles of the driver and of the JVM, by kind."""

    def __init__(self) -> None:
        session = SparkSession.builder.getOrCreate()
        jvm: Any = session._jvm
        self.driver_threads = Counter(_kind(thread.name) for thread in threading.enumerate())
        self.driver_handles = _handles(os.getpid())
        names = [thread.getName() for thread in jvm.java.lang.Thread.getAllStackTraces().keySet()]
        self.jvm_threads = Counter(_kind(name) for name in names if not name.startswith(_POOLS))
        self.jvm_handles = _handles(int(jvm.java.lang.ProcessHandle.current().pid()))
        self.queries = len(session.streams.active)

    def since(self, before: Leftovers) -> dict[str, Any]:
        """Return everything of which there is more than before."""
        more: dict[str, Any] = {
            "threads of the driver": self.driver_threads - before.driver_threads,
            "handles of the driver": self.driver_handles - before.driver_handles,
            "threads of the JVM": self.jvm_threads - before.jvm_threads,
            "handles of the JVM": self.jvm_handles - before.jvm_handles,
            "queries": self.queries - before.queries,
        }
        return {
            title: found
            for title, found in more.items()
            if (found.total() if isinstance(found, Counter) else found) > 0
        }


def _kind(name: str) -> str:
    """A thread's name without its numbers."""
    return re.sub(r"[0-9a-f]{8,}|\d+", "#", name)


def _handles(process: int) -> Counter[str]:
    """Open files and sockets of a process, by kind."""
    found: Counter[str] = Counter()
    for handle in Path(f"/proc/{process}/fd").iterdir():
        try:
            found[re.sub(r"\[\d+\]", "", os.readlink(handle)).split("firesteel-")[0]] += 1
        except OSError:
            continue
    return found


def job(env: StreamExecutionEnvironment) -> None:
    source = DataGeneratorSource(lambda n: n, 10**9, RateLimiterStrategy.per_second(200))
    numbers = env.from_source(source, None, "numbers")
    numbers.key_by(lambda n: n % 7).map(lambda n: n).add_sink(Nowhere())


@pytest.mark.slow
def test_jobs_that_have_ended_leave_no_threads_and_no_handles(
    make_env: MakeEnvironment, tmp_path: Path
) -> None:
    def submit(end: Callable[[Any], Any]) -> None:
        env = make_env(
            parallelism=2,
            execution_checkpointing_interval="100 ms",
            execution_checkpointing_dir=str(tmp_path / "checkpoints"),
        )
        job(env)
        client = env.execute_async("short")
        wait_until(lambda: client.get_checkpoints()["counts"]["completed"] > 0)
        end(client).result(120)

    ends = (
        lambda client: client.cancel(),
        lambda client: client.stop_with_savepoint(False, str(tmp_path / "savepoints")),
    )
    for end in ends:
        submit(end)
    before = Leftovers()
    for _ in range(_JOBS):
        for end in ends:
            submit(end)
    # Threads end a moment after their job.
    wait_until(
        lambda: not Leftovers().since(before),
        lambda: f"left by {_JOBS * len(ends)} jobs: {Leftovers().since(before)}",
        seconds=60,
    )


@pytest.mark.slow
def test_jobs_that_are_canceled_write_nothing_to_standard_error(tmp_path: Path) -> None:
    """Spark ends the connections to Python workers, which must not take this for an error."""
    script = tmp_path / "program.py"
    script.write_text(_PROGRAM)
    ended = subprocess.run(
        [sys.executable, str(script)],
        env={**os.environ, "PYTHONPATH": str(_REPOSITORY)},
        capture_output=True,
        text=True,
        timeout=250,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    assert "Traceback" not in ended.stderr
    assert "Error" not in ended.stderr
