"""A job in a driver of its own, on Spark, whose processes are killed until it has ended."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from typing import Any

from firesteel.datastream.connectors.base import (
    Boundedness,
    ReaderContext,
    Source,
    SourceReader,
    SourceSplit,
    SplitEnumerator,
)
from tests.integration.test_recovery import descendants
from tests.waiting import wait_until

REPOSITORY = Path(__file__).parents[2]
# A driver needs a minute to start on a busy machine.
_SECONDS = 400.0

_PROGRAM = """
import importlib, json, sys
from firesteel.common import Configuration, WatermarkStrategy
from firesteel.datastream import StreamExecutionEnvironment
from tests.integration.killed_jobs import Gate

module, name, arguments, settings, gate = map(json.loads, sys.argv[1:])
job = getattr(importlib.import_module(module), name)(**arguments)
env = StreamExecutionEnvironment.get_execution_environment(Configuration.from_dict(settings))
env.set_parallelism(2)
job.build(env)
env.from_source(Gate(gate), WatermarkStrategy.no_watermarks(), "gate").uid("gate").print()
env.execute("killed")
"""


class Gate(Source):
    """A source without records. It ends, and with it the job, as soon as a file exists."""

    def __init__(self, path: str) -> None:
        self.path = path

    def get_boundedness(self) -> Boundedness:
        return Boundedness.BOUNDED

    def create_enumerator(self, parallelism: int, state: Any = None) -> SplitEnumerator:
        return _GateEnumerator(self.path)

    def create_reader(self, context: ReaderContext) -> SourceReader:
        return _GateReader()


class _GateEnumerator(SplitEnumerator):
    def __init__(self, path: str) -> None:
        self._path = path

    def discover_splits(self) -> list[SourceSplit]:
        return []

    def is_complete(self) -> bool:
        return Path(self._path).exists()

    def next_discovery_delay(self) -> float:
        return 0.2


class _GateReader(SourceReader):
    def add_splits(self, splits: Sequence[SourceSplit]) -> None:
        assert not splits

    def read(self, limit: int) -> list[Any]:
        return []

    def snapshot_splits(self) -> list[SourceSplit]:
        return []


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
        self._gate = directory / "gate"
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
        """Run the job to its end, which it reaches only after the last kill.

        A driver that is killed after its job has ended would start the job from the beginning.

        Args:
            kills: The number of kills.
            others: More that can be killed, by name, such as a server.
            results: Returns the number of results so far.
            enough: The number of results after which kills need not wait for more results.
        """
        driver = self._start()
        try:
            while self.kills.total() < kills:
                before = results()
                wait_until(
                    lambda: before >= enough or results() != before or driver.poll() is not None,  # noqa: B023 - at once
                    self._log,
                    _SECONDS,
                )
                time.sleep(self._random.uniform(0.0, 1.0))
                assert driver.poll() is None, self._log()
                target = self._random.choice(["driver", "worker", *others])
                if target == "worker" and not self._kill_worker(driver):
                    continue
                self.kills[target] += 1
                if target in others:
                    others[target]()
                elif target == "driver":
                    _kill_all(driver)
                    driver = self._start()
            self._gate.touch()
            assert driver.wait(timeout=_SECONDS) == 0, self._log()
        finally:
            _kill_all(driver)

    def _kill_worker(self, driver: subprocess.Popen[bytes]) -> bool:
        """Kill a Python process that runs tasks or keeps slots. Spark's daemon stays."""
        found = [pid for pid, command in descendants(driver.pid) if "java" not in command]
        workers = [pid for pid in found if not any(descendants(pid))]
        if not workers:
            return False
        try:
            os.kill(self._random.choice(workers), signal.SIGKILL)
        except ProcessLookupError:
            return False
        return True

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
        arguments = (
            self._job.__module__,
            self._job.__name__,
            self._arguments,
            settings,
            str(self._gate),
        )
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
