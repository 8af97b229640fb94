"""A job in a driver of its own, on Spark, whose processes are killed until it has ended."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

from tests.integration.test_recovery import descendants
from tests.waiting import wait_until

REPOSITORY = Path(__file__).parents[2]

_PROGRAM = """
import importlib, json, sys
from firesteel.common import Configuration
from firesteel.datastream import StreamExecutionEnvironment

module, name, arguments, settings = map(json.loads, sys.argv[1:])
job = getattr(importlib.import_module(module), name)(**arguments)
env = StreamExecutionEnvironment.get_execution_environment(Configuration.from_dict(settings))
env.set_parallelism(2)
job.build(env)
env.execute("killed")
"""


class KilledJob:
    """Runs a job again and again, each time from the last checkpoint of its predecessor."""

    def __init__(
        self, job: Any, arguments: dict[str, Any], directory: Path, seed: int, execution: str
    ) -> None:
        """Create a job, without starting it.

        Args:
            job: The class of the job. It has a method ``build``.
            arguments: The arguments of the class, as JSON.
            directory: The directory of checkpoints and logs.
            seed: The seed of the kills.
            execution: The way to execute.
        """
        self._job = job
        self._arguments = arguments
        self._directory = directory
        self._random = Random(seed)
        self._execution = execution
        #: The processes that were killed.
        self.kills: Counter[str] = Counter()

    def run(
        self,
        kills: int,
        others: dict[str, Callable[[], None]],
        results: Callable[[], int],
        enough: int,
    ) -> None:
        """Run the job to its end.

        A driver that is killed after its job has ended would start the job from the beginning.

        Args:
            kills: The largest number of kills.
            others: More that can be killed, by name, such as a server.
            results: Returns the number of results so far.
            enough: The number of results after which nothing is killed.
        """
        driver = self._start()
        try:
            while self.kills.total() < kills and driver.poll() is None:
                before = results()
                wait_until(
                    lambda: results() != before or driver.poll() is not None,  # noqa: B023 - at once
                    self._log,
                )
                if results() >= enough:
                    break
                time.sleep(self._random.uniform(0.0, 1.0))
                target = self._random.choice(["driver", "worker", *others])
                if driver.poll() is not None:
                    break
                self.kills[target] += 1
                if target in others:
                    others[target]()
                elif target == "worker":
                    self._kill_worker(driver)
                else:
                    _kill_all(driver)
                    driver = self._start()
            assert driver.wait(timeout=240) == 0, self._log()
        finally:
            _kill_all(driver)

    def _kill_worker(self, driver: subprocess.Popen[bytes]) -> None:
        """Kill a Python process that runs tasks or keeps slots. Spark's daemon stays."""
        found = [pid for pid, command in descendants(driver.pid) if "java" not in command]
        workers = [pid for pid in found if not any(descendants(pid))]
        if workers:
            try:
                os.kill(self._random.choice(workers), signal.SIGKILL)
            except ProcessLookupError:
                return

    def _start(self) -> subprocess.Popen[bytes]:
        settings = {
            "firesteel.execution": self._execution,
            "firesteel.spark.master": "local[8]",
            "taskmanager.numberOfTaskSlots": "8",
            "execution.checkpointing.interval": "300 ms",
            "execution.checkpointing.dir": str(self._directory / "checkpoints"),
            "execution.checkpointing.externalized-checkpoint-retention": "RETAIN_ON_CANCELLATION",
            "restart-strategy.type": "fixed-delay",
            "restart-strategy.fixed-delay.attempts": "1000",
            "restart-strategy.fixed-delay.delay": "200 ms",
        }
        if any((self._directory / "checkpoints").glob("*/chk-*/_metadata")):
            settings["execution.state-recovery.path"] = str(self._directory / "checkpoints")
        arguments = (self._job.__module__, self._job.__name__, self._arguments, settings)
        with (self._directory / "log").open("ab") as log:
            return subprocess.Popen(
                [sys.executable, "-c", _PROGRAM, *map(json.dumps, arguments)],
                env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
                stdout=log,
                stderr=log,
            )

    def _log(self) -> str:
        return (self._directory / "log").read_text()[-5000:]


def _kill_all(driver: subprocess.Popen[bytes]) -> None:
    """Kill a driver with its JVM and its workers."""
    pids = [driver.pid, *(pid for pid, _ in descendants(driver.pid))]
    for pid in pids:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue
    driver.wait()
