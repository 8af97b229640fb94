"""A light master as a process: stands for election, and runs one job in the harness while it leads.

``python -m tests.recovery.master_process <settings> <directory> <records> <seed> [<fault>]``. The
settings are JSON. The job writes numbers with transactions to the directory. Its events go to
standard output. A fault such as ``SIGSTOP:metadata`` hits the process at a point of a checkpoint.
"""

from __future__ import annotations

import json
import os
import queue
import signal
import sys
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

from firesteel.checkpoint.storage.checkpoint_directory import CheckpointDirectory
from firesteel.common import Configuration, WatermarkStrategy
from firesteel.datastream import StreamExecutionEnvironment
from firesteel.datastream.connectors.number_seq import NumberSequenceSource
from firesteel.errors import FiresteelError
from firesteel.leader.job_ledger import JobLedger
from firesteel.leader.services import Listener, Member
from firesteel.leader.settings import settings_from_json
from firesteel.master.job_runner import JobRunner
from firesteel.master.rate_control import RateControl
from firesteel.testing import JobHarness
from tests.transactions import DirectoryStore, StoreSink

JOB_ID = "f1" * 16
_EPOCH_SECONDS = 0.004


class UniqueTransactions(DirectoryStore):
    """Transactions of several processes. Every change is logged with the process and the time."""

    def begin(self) -> str:
        # The names of DirectoryStore are numbers.
        name = str(uuid.uuid4().int)
        self._file(name, "open").touch()
        return name

    def commit(self, name: str) -> None:
        was_committed = self.is_committed(name)
        super().commit(name)
        line = json.dumps([os.getpid(), name, was_committed, time.monotonic()])
        with (self.directory / "commits.log").open("a") as log:
            log.write(line + "\n")


class LoggedSink(StoreSink):
    def __init__(self, directory: Path) -> None:
        self.store = UniqueTransactions(directory)


class LedHarness(JobHarness):
    """A job that continues from the entries of earlier masters."""

    def __init__(self, ledger: JobLedger, program: Any, **options: Any) -> None:
        self._ledger = ledger
        super().__init__(program, **options)

    def _make_runner(self, make_rate: Callable[[], RateControl]) -> JobRunner:
        return JobRunner(
            JOB_ID,
            self._graph,
            self._job.levels,
            self._job.settings,
            self._make_executor,
            self._edge,
            make_rate=make_rate,
            ledger=self._ledger,
        )


def run_job(ledger: JobLedger, directory: Path, records: int, random: Random) -> None:
    def pause(number: int) -> int:
        if number % 10 == 0:
            time.sleep(_EPOCH_SECONDS)
        return number

    def program(env: StreamExecutionEnvironment) -> None:
        source = NumberSequenceSource(1, records)
        numbers = env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers")
        numbers.map(pause).key_by(lambda number: number % 7).map(lambda number: number).add_sink(
            LoggedSink(directory / "sink")
        )

    configuration = Configuration()
    configuration.set_string("execution.checkpointing.dir", str(directory / "checkpoints"))
    harness = LedHarness(
        ledger,
        program,
        parallelism=2,
        records_per_epoch=[5, 20, 10],
        seed=random.randrange(1 << 30),
        inline_threshold=64,
        configuration=configuration,
        checkpoint_every=2,
    )
    harness.run()


# The points of a checkpoint at which a process can be hit: before or after a call.
POINTS = {
    "begin": (JobLedger, "begin", "before"),
    "metadata": (CheckpointDirectory, "write", "after"),
    "pointer": (JobLedger, "complete", "after"),
    "commit": (UniqueTransactions, "commit", "before"),
    "committed": (UniqueTransactions, "commit", "after"),
    "delete": (JobLedger, "forget", "before"),
    "deleted": (JobLedger, "forget", "after"),
    "end": (JobLedger, "end", "before"),
    "ended": (JobLedger, "end", "after"),
}


def plant(fault: str) -> None:
    """Let a signal hit this process at a point, at the third time that it gets there."""
    name, _, point = fault.partition(":")
    owner, method, when = POINTS[point]
    real = getattr(owner, method)
    left = [1 if point in ("end", "ended") else 3]

    def hit() -> None:
        left[0] -= 1
        if left[0] == 0:
            tell("hit", point)
            os.kill(os.getpid(), signal.Signals[name])

    def wrapped(*arguments: Any, **options: Any) -> Any:
        if when == "before":
            hit()
        result = real(*arguments, **options)
        if when == "after":
            hit()
        return result

    setattr(owner, method, wrapped)


def tell(*event: Any) -> None:
    print(*event, time.monotonic(), flush=True)


def main(arguments: list[str]) -> None:
    document, place, records, seed, *faults = arguments
    for fault in faults:
        plant(fault)
    settings, _ = settings_from_json(json.loads(document))
    directory, random = Path(place), Random(int(seed))
    events: queue.SimpleQueue[int] = queue.SimpleQueue()
    services = settings.open()
    election = services.contend(
        Member(), Listener(events.put, lambda term, _: tell("revoked", term))
    )
    tell("standing")
    while True:
        term = events.get()
        tell("granted", term)
        try:
            ledger = settings.ledger(services, term, JOB_ID)
            if ledger.ended() is None:
                run_job(ledger, directory, int(records), random)
            tell("finished", term)
            break
        except FiresteelError as error:
            tell("lost", term, repr(str(error)))
    election.close()
    services.close()


if __name__ == "__main__":
    main(sys.argv[1:])
