"""A driver with its slots in a process that kills itself between two steps of the protocol."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import wraps
from multiprocessing.process import BaseProcess
from pathlib import Path
from random import Random
from typing import Any

from firesteel.checkpoint.rules.requests import StopMode
from firesteel.checkpoint.storage.checkpoint_directory import CheckpointDirectory
from firesteel.common import Configuration
from firesteel.connectors.kafka.committer import KafkaCommitter
from firesteel.connectors.kafka.transactions import KafkaTransactions
from firesteel.connectors.kafka.wire import Broker
from firesteel.connectors.kafka.writer import KafkaWriter, TransactionalKafkaWriter
from firesteel.errors import FiresteelError
from firesteel.testing import Fault, JobHarness
from tests.recovery.topic_to_topic import Topics

RECORDS_PER_EPOCH = (6, 2, 9)

# The steps before and after which a driver may die.
STEPS: tuple[tuple[type, str], ...] = (
    (TransactionalKafkaWriter, "_begin"),
    (TransactionalKafkaWriter, "_new_producer"),
    (TransactionalKafkaWriter, "_pre_commit"),
    (TransactionalKafkaWriter, "write_batch"),
    (TransactionalKafkaWriter, "notify_checkpoint_complete"),
    (KafkaWriter, "_flush"),
    (KafkaCommitter, "commit"),
    (KafkaCommitter, "recover"),
    (KafkaTransactions, "commit"),
    (KafkaTransactions, "describe"),
    (KafkaTransactions, "fence"),
    (KafkaTransactions, "matching"),
    (Broker, "request"),
    # A request has been sent, and its answer has not been read.
    (Broker, "_receive"),
    (CheckpointDirectory, "write"),
)


def moments(owner: type, name: str) -> tuple[str, str]:
    return f"before {owner.__name__}.{name}", f"after {owner.__name__}.{name}"


MOMENTS = [moment for step in STEPS for moment in moments(*step)]

ACTIONS = (
    *("epoch",) * 6,
    *("checkpoint",) * 5,
    *("faults", "slow_checkpoint", "crash", "savepoint", "stop", "rescale"),
)


@dataclass(frozen=True)
class Life:
    """One life of a driver.

    dies_at: the step before or after which it dies, or None for all steps.
    dies_after: the number of such steps, or None to live to the end of the job.
    """

    topics: Topics
    directory: Path
    seed: int
    dies_at: str | None = None
    dies_after: int | None = None

    def start(self) -> BaseProcess:
        """Start the driver. A server with all modules forks it, which takes milliseconds."""
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload([__name__])
        process = context.Process(target=_live, args=(self,))
        process.start()
        return process

    @property
    def running(self) -> Path:
        """The file that tells that the job has recovered and runs."""
        return self.directory / "running"

    @property
    def died_at(self) -> Path:
        """The file with the steps at which drivers have died."""
        return self.directory / "died-at"

    @property
    def errors(self) -> Path:
        return self.directory / "errors"


def _live(life: Life) -> None:
    log = life.errors.open("a")
    os.dup2(log.fileno(), 2)
    sys.stderr = log
    try:
        _Driver(life).run()
    except BaseException:
        traceback.print_exc()
        log.flush()
        os._exit(1)
    # Threads of clients need not be waited for.
    log.flush()
    os._exit(0)


class _Driver:
    def __init__(self, life: Life) -> None:
        self._life = life
        self._random = Random(life.seed)
        self._steps_left = life.dies_after or sys.maxsize
        for owner, name in STEPS:
            setattr(owner, name, self._counted(owner, name))
        configuration = Configuration.from_dict(
            {
                "restart-strategy.type": "fixed-delay",
                "restart-strategy.fixed-delay.attempts": "1000",
                "restart-strategy.fixed-delay.delay": "1 s",
                "execution.checkpointing.dir": str(life.directory / "checkpoints"),
                "execution.checkpointing.externalized-checkpoint-retention": "RETAIN_ON_CANCELLATION",
                "firesteel.execution": self._random.choice(["micro-batch", "real-time"]),
            }
        )
        origin = newest_snapshot(life.directory)
        self._note(f"restores {origin}")
        if origin is not None:
            configuration.set_string("execution.state-recovery.path", str(origin))
        self._harness = JobHarness(
            life.topics.build,
            parallelism=self._random.randint(2, 3),
            records_per_epoch=RECORDS_PER_EPOCH,
            configuration=configuration,
            checkpoint_every=0,
            seed=life.seed,
        )

    def run(self) -> None:
        self._harness.run_epoch()
        self._life.running.touch()
        while not self._harness.status.is_terminal_state():
            action = self._random.choice(ACTIONS)
            self._note(f"{action} {sorted(self._snapshots())}")
            getattr(self, f"_{action}")()
        self._harness.run()

    def _note(self, text: str) -> None:
        """Write down what happens, for a history that fails."""
        print(f"life {self._life.seed}: {text}", file=sys.stderr, flush=True)

    def _snapshots(self) -> list[str]:
        found = snapshots(self._life.directory)
        return [str(file.parent.relative_to(self._life.directory)) for file in found]

    def _counted(self, owner: type, name: str) -> Callable[..., Any]:
        method = getattr(owner, name)

        @wraps(method)
        def counted(*arguments: Any, **options: Any) -> Any:
            before, after = moments(owner, name)
            self._step(before)
            result = method(*arguments, **options)
            self._step(after)
            return result

        return counted

    def _step(self, name: str) -> None:
        if self._life.dies_at in (None, name):
            self._steps_left -= 1
        if self._steps_left <= 0:
            with self._life.died_at.open("a") as file:
                file.write(f"{name}\n")
            self._note(f"dies {name}")
            os.kill(os.getpid(), signal.SIGKILL)

    # Actions

    def _epoch(self) -> None:
        self._harness.run_epoch()

    def _checkpoint(self) -> None:
        self._harness.request_checkpoint()
        self._harness.run_epoch()

    def _faults(self) -> None:
        places = self._harness.places()
        chosen = self._random.sample(places, self._random.randint(1, len(places)))
        self._harness.run_epoch({place: self._random.choice([*Fault]) for place in chosen})

    def _slow_checkpoint(self) -> None:
        self._harness.storage_is_stuck = True
        self._checkpoint()
        for _ in range(self._random.randint(0, 2)):
            self._harness.run_epoch()
        self._harness.storage_is_stuck = False

    def _crash(self) -> None:
        self._harness.crash()

    def _savepoint(self) -> None:
        answer = self._harness.request_savepoint(str(self._life.directory / "savepoints"))
        while not answer.done() and self._harness.run_epoch():
            pass

    def _stop(self) -> None:
        """Stop the job, and start it from its savepoint with a different parallelism."""
        stopped = str(self._life.directory / "stopped")
        answer = self._harness.request_savepoint(stopped, StopMode.SUSPEND)
        self._harness.run()
        if answer.exception() is None:
            self._harness = self._harness.resume(
                answer.result(),
                parallelism=self._random.randint(2, 3),
                records_per_epoch=RECORDS_PER_EPOCH,
            )

    def _rescale(self) -> None:
        if self._harness.run_epoch():
            # A job that has just failed starts again instead.
            with suppress(FiresteelError):
                self._harness.rescale(self._random.randint(2, 3))


def newest_snapshot(directory: Path) -> Path | None:
    """Return the newest checkpoint, or the newer savepoint with which a job was stopped."""
    found = snapshots(directory)
    return max(found, key=lambda file: file.stat().st_mtime_ns).parent if found else None


def snapshots(directory: Path) -> list[Path]:
    return [
        *directory.glob("checkpoints/*/chk-*/_metadata"),
        *directory.glob("stopped/*/_metadata"),
    ]
