"""The supervisor of the soak: starts drivers, brings about faults from a seed, and takes samples."""

from __future__ import annotations

import json
import os
import queue
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tools.soak.resources import Sample, processes_below, take_sample
from tools.soak.workload import Place, environment

_ANSWER_SECONDS = 900.0
_SAMPLE_SECONDS = 2.0
_MEMORY_SECONDS = 10.0
# Without a new checkpoint for this long, the job hangs.
_PATIENCE_SECONDS = 600.0
_FINISH_SECONDS = 900.0
_QUIET_SECONDS = 20
_PROCESSES_END_SECONDS = 60.0
_SETTINGS = {
    "execution.checkpointing.interval": "500 ms",
    "execution.checkpointing.externalized-checkpoint-retention": "RETAIN_ON_CANCELLATION",
    "execution.checkpointing.num-retained": "2",
    "restart-strategy.type": "exponential-delay",
    "restart-strategy.exponential-delay.initial-backoff": "200 ms",
    "restart-strategy.exponential-delay.max-backoff": "1 s",
    "state.backend.type": "rocksdb",
}
# Faults, and how often each one is drawn. A driver must live for minutes to show a slope.
_FAULTS = {
    "kill_process": 18,
    "raise_error": 15,
    "take_savepoint": 9,
    "rescale": 18,
    "disturb_stop": 9,
    "cancel_and_resume": 6,
    "take_storage_away": 12,
    "kill_driver": 1,
    "kill_driver_in_stop": 1,
}


class SoakError(Exception):
    """The job did something that it must not do."""


@dataclass(frozen=True, slots=True)
class Plan:
    """The parameters of a soak. ``execution`` is the setting ``firesteel.execution``."""

    seed: int
    seconds: int
    execution: str = "auto"

    @property
    def input_seconds(self) -> int:
        """The sources end after the last fault: a finished job cannot be resumed."""
        return self.seconds + _QUIET_SECONDS


@dataclass(slots=True)
class Observation:
    """A sample with the figures that the driver itself knows.

    ``heap`` and ``arrow`` are megabytes in the JVM, of live objects and of Arrow's buffers.
    """

    life: int
    resources: Sample
    heap: float | None = None
    arrow: float | None = None
    epoch_ms: float | None = None
    checkpoint_ms: float | None = None


@dataclass(slots=True)
class Course:
    """Everything that was seen. ``faults`` has the seconds and the name of each fault."""

    plan: Plan
    observations: list[Observation] = field(default_factory=list)
    faults: list[tuple[float, str]] = field(default_factory=list)
    submissions: int = 0

    @property
    def counts(self) -> Counter[str]:
        return Counter(name for _, name in self.faults)


def _megabytes(size: int | None) -> float | None:
    return None if size is None else size / (1 << 20)


class DriverProcess:
    """A driver, with its orders and answers."""

    def __init__(self, place: Place) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tools.soak.driver"],
            env=environment(place),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=(place.root / "driver.log").open("ab"),
        )
        self._answers: queue.SimpleQueue[dict[str, Any] | None] = queue.SimpleQueue()
        threading.Thread(target=self._read, daemon=True).start()

    @property
    def pid(self) -> int:
        return self._process.pid

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._answers.put(json.loads(line))
        self._answers.put(None)

    def send(self, order: str, **arguments: Any) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"order": order, **arguments}).encode() + b"\n")
        self._process.stdin.flush()

    def receive(self) -> dict[str, Any]:
        try:
            answer = self._answers.get(timeout=_ANSWER_SECONDS)
        except queue.Empty:
            raise SoakError(f"the driver did not answer within {_ANSWER_SECONDS:g} s") from None
        if answer is None:
            raise SoakError(f"the driver ended by itself with code {self._process.wait()}")
        return answer

    def ask(self, order: str, **arguments: Any) -> dict[str, Any]:
        self.send(order, **arguments)
        return self.receive()

    def kill(self) -> None:
        """Kill the driver alone. Its processes must end by themselves."""
        below = [pid for pid, _ in processes_below(self.pid)]
        self._process.kill()
        self._process.wait()
        deadline = time.monotonic() + _PROCESSES_END_SECONDS
        while left := [pid for pid in below if _runs(pid)]:
            if time.monotonic() > deadline:
                for pid in left:
                    _kill(pid)
                raise SoakError(f"{len(left)} processes outlive their driver")
            time.sleep(0.1)


def _kill(pid: int) -> None:
    """Kill a process, unless it has just ended by itself."""
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def _runs(pid: int) -> bool:
    """Return True if a process exists and is no zombie, which only its parent can remove."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


class Soak:
    """One run of the soak. ``say`` takes lines about its progress."""

    def __init__(self, plan: Plan, root: Path, say: Callable[[str], None]) -> None:
        self.course = Course(plan)
        self._place = Place.at(root)
        self._draw = random.Random(plan.seed)
        self._say = say
        self._life = 0
        self._driver = DriverProcess(self._place)
        # The pace of the sources begins when Spark is ready.
        self._start, self._began = time.time(), time.monotonic()
        self._parallelism = 2
        # The checkpoint or savepoint that the running job was started from, and its own directories.
        self._origin: str | None = None
        self._run = 0
        self._completed = 0
        self._last_status: tuple[float, int] | None = None
        # Figures of the JVM that no observation has yet.
        self._jvm: dict[str, int] = {}
        self._sampled = self._measured = 0.0

    # The run

    def run(self) -> Course:
        try:
            self._driver.ask("start_spark")
            self._start, self._began = time.time(), time.monotonic()
            self._submit(None)
            while self._seconds < self.course.plan.seconds:
                self._wait_for_checkpoint()
                self._pause(self._draw.uniform(0.0, 3.0))
                if self._seconds < self.course.plan.seconds:
                    fault = self._draw.choices(list(_FAULTS), list(_FAULTS.values()))[0]
                    self._note(fault)
                    getattr(self, f"_{fault}")()
            self._finish()
        finally:
            with_children = [pid for pid, _ in processes_below(self._driver.pid)]
            for pid in (self._driver.pid, *with_children):
                _kill(pid)
        return self.course

    @property
    def _seconds(self) -> float:
        return time.monotonic() - self._began

    def _note(self, text: str) -> None:
        self.course.faults.append((self._seconds, text))
        self._say(f"{self._seconds:6.0f} s  {text}")

    def _submit(self, origin: str | None) -> None:
        self._origin = origin
        self._run += 1
        self._completed = 0
        self._last_status = None
        self.course.submissions += 1
        settings = {
            **_SETTINGS,
            "firesteel.execution": self.course.plan.execution,
            "execution.checkpointing.dir": str(self._checkpoints),
            "execution.checkpointing.tolerable-failed-checkpoints": str(self._draw.choice((0, 3))),
        }
        if origin is not None:
            settings["execution.state-recovery.path"] = origin
        answer = self._driver.ask(
            "submit",
            place=str(self._place.root),
            start=self._start,
            seconds=self.course.plan.input_seconds,
            parallelism=self._parallelism,
            settings=settings,
        )
        if "error" in answer:
            raise SoakError(f"the job could not be submitted: {answer['error']}")
        self._clean_up()

    @property
    def _checkpoints(self) -> Path:
        return self._place.checkpoints / str(self._run)

    @property
    def _savepoints(self) -> Path:
        return self._place.savepoints / str(self._run)

    def _clean_up(self) -> None:
        """Delete the checkpoints and savepoints of runs before the last one."""
        for parent in (self._place.checkpoints, self._place.savepoints):
            for directory in parent.iterdir():
                if int(directory.name) < self._run - 1 and not (self._origin or "").startswith(
                    f"{directory}/"
                ):
                    shutil.rmtree(directory, ignore_errors=True)

    def _resume(self) -> None:
        """Start the job again from the newest point that its last run has left."""
        if any(self._checkpoints.glob("*/chk-*/_metadata")):
            origin: str | None = str(self._checkpoints)
        else:
            stopped = sorted(self._savepoints.glob("stop/savepoint-*/_metadata"))
            origin = str(stopped[-1].parent) if stopped else self._origin
        self._submit(origin)

    def _finish(self) -> None:
        deadline = time.monotonic() + _FINISH_SECONDS
        while (status := self._observe()) != "FINISHED":
            if status in ("FAILED", "CANCELED", "SUSPENDED"):
                raise SoakError(f"the job is {status}")
            if time.monotonic() > deadline:
                raise SoakError(f"the job is {status} {_FINISH_SECONDS:g} s after the last record")
            time.sleep(0.2)

    # Observation

    def _pause(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            self._observe()
            time.sleep(0.1)

    def _wait_for_checkpoint(self) -> None:
        """Wait until the job has completed a checkpoint since the last fault."""
        self._observe()
        before, deadline = self._completed, time.monotonic() + _PATIENCE_SECONDS
        while self._completed <= before:
            status = self._observe()
            if status == "FINISHED":
                return
            if status == "FAILED" or time.monotonic() > deadline:
                raise SoakError(f"the job is {status} and takes no more checkpoints")
            time.sleep(0.1)

    def _observe(self) -> str:
        """Ask the driver for its status. Take a sample if it is time."""
        answer = self._driver.ask("status")
        if "error" in answer:
            raise SoakError(answer["error"])
        self._completed = answer["completed"]
        now = time.monotonic()
        if now - self._measured >= _MEMORY_SECONDS:
            self._measured = now
            self._jvm = self._driver.ask("memory")
        if now - self._sampled >= _SAMPLE_SECONDS:
            self._sampled = now
            sample = take_sample(
                self._driver.pid, self._seconds, [self._place.storage, self._place.work]
            )
            self.course.observations.append(
                Observation(
                    self._life,
                    sample,
                    _megabytes(self._jvm.get("heap")),
                    _megabytes(self._jvm.get("arrow")),
                    self._epoch_ms(answer),
                    answer["checkpoint_ms"],
                )
            )
            self._jvm = {}
        return str(answer["status"])

    def _epoch_ms(self, answer: dict[str, Any]) -> float | None:
        """Return the time per epoch since the last call."""
        before, self._last_status = self._last_status, (answer["at"], answer["epochs"])
        if before is None or answer["epochs"] <= before[1]:
            return None
        return 1000.0 * (float(answer["at"]) - before[0]) / (int(answer["epochs"]) - before[1])

    # Faults

    def _kill_process(self) -> None:
        """Kill a process in which slots live."""
        below = processes_below(self._driver.pid)
        found = [
            pid for pid, name in below if name.startswith("python") and not processes_below(pid)
        ]
        if found:
            _kill(self._draw.choice(found))

    def _raise_error(self) -> None:
        self._place.fail.touch()

    def _take_savepoint(self) -> None:
        directory = self._savepoints / "running"
        answer = self._driver.ask("savepoint", directory=str(directory))
        if "error" in answer:
            raise SoakError(f"no savepoint: {answer['error']}")
        shutil.rmtree(directory)

    def _rescale(self) -> None:
        self._stopped(self._driver.ask("stop", directory=str(self._savepoints / "stop")))

    def _disturb_stop(self) -> None:
        """Stop the job, and let a process die or a function fail meanwhile."""
        self._driver.send("stop", directory=str(self._savepoints / "stop"))
        time.sleep(self._draw.uniform(0.0, 0.7))
        if self._draw.random() < 0.5:
            self._kill_process()
        else:
            self._raise_error()
        self._stopped(self._driver.receive())
        self._place.fail.unlink(missing_ok=True)

    def _stopped(self, answer: dict[str, Any]) -> None:
        """Start the job from its savepoint with a different parallelism."""
        if "savepoint" not in answer:
            status = self._observe()
            self._say(f"          no savepoint, the job is {status}: {answer['error']}")
            if status in ("FAILED", "CANCELED"):
                self._resume()
            return
        self._parallelism = self._draw.choice([n for n in (1, 2, 3) if n != self._parallelism])
        self._submit(answer["savepoint"])

    def _cancel_and_resume(self) -> None:
        self._driver.ask("cancel")
        self._resume()

    def _take_storage_away(self) -> None:
        """Let every access to checkpoints and savepoints fail for a while."""
        away = self._place.root / "storage-away"
        self._place.storage.rename(away)
        self._place.storage.touch()
        time.sleep(self._draw.uniform(0.3, 3.0))
        self._place.storage.unlink()
        away.rename(self._place.storage)

    def _kill_driver(self) -> None:
        self._driver.kill()
        self._life += 1
        self._driver = DriverProcess(self._place)
        self._driver.ask("start_spark")
        self._jvm = {}
        self._resume()

    def _kill_driver_in_stop(self) -> None:
        self._driver.send("stop", directory=str(self._savepoints / "stop"))
        time.sleep(self._draw.uniform(0.0, 1.5))
        self._kill_driver()
