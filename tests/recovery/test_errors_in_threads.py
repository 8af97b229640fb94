"""Errors at random places of the threads at the edge of a job: none of them vanishes.

The enumerators of sources, the checkpoint thread, checkpoint storage, the savepoints of slots, and
the committers of sinks raise errors. Each error fails the attempt, is the answer to a request, or
is in the log. The job survives, and its output is that of a run without errors.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any
from unittest.mock import patch

import pytest

from firesteel.checkpoint.rules.coordinator import CheckpointCoordinator
from firesteel.checkpoint.rules.requests import StopMode
from firesteel.checkpoint.snapshot_writer import SnapshotWriter
from firesteel.common import Configuration
from firesteel.common.job_status import JobStatus
from firesteel.datastream.connectors.base import Committer, SourceSplit, SplitEnumerator
from firesteel.task.state import savepoint_writing
from firesteel.testing import JobHarness, ListSink
from tests.late_source import LateEnumerator, LateSource
from tests.recovery.jobs import RESTARTS, cancel, seeds
from tests.transactions import StoreSink

SPLITS = 12
SETTINGS = Configuration(RESTARTS).add_all(
    Configuration.from_dict(
        {
            "execution.checkpointing.tolerable-failed-checkpoints": "3",
            "restart-strategy.fixed-delay.attempts": "100000",
        }
    )
)
# A stop that has not ended after so many epochs will never end.
_MOST_EPOCHS = 300


class Saboteur:
    """Raises an error of its own at random places, as long as it is active."""

    def __init__(self, seed: int, places: Sequence[str], rate: float, times: int) -> None:
        self._random = Random(seed)
        self._times = times
        self._places = places
        self._rate = rate
        self.is_active = True
        self.raised: list[str] = []

    def visit(self, place: str) -> None:
        if not self.is_active or place not in self._places or len(self.raised) == self._times:
            return
        if self._random.random() > self._rate:
            return
        text = f"sabotage {len(self.raised)} in {place}."
        self.raised.append(text)
        kinds = (OSError, ValueError, KeyError, AssertionError, RecursionError, MemoryError)
        raise self._random.choice(kinds)(text)


# Functions of the job are copied to slots, so they find the saboteur here.
SABOTEURS: list[Saboteur] = []


def visit(place: str) -> None:
    for saboteur in SABOTEURS:
        saboteur.visit(place)


class WatchedEnumerator(LateEnumerator):
    def discover_splits(self) -> list[SourceSplit]:
        visit("discover_splits")
        return super().discover_splits()

    def is_complete(self) -> bool:
        visit("is_complete")
        return super().is_complete()

    def next_discovery_delay(self) -> float:
        visit("next_discovery_delay")
        return super().next_discovery_delay()

    def all_splits_read(self) -> None:
        visit("all_splits_read")

    def checkpoint_complete(self, splits: Sequence[SourceSplit]) -> None:
        visit("checkpoint_complete")

    def snapshot_state(self) -> int:
        visit("snapshot_state")
        return super().snapshot_state()

    def close(self) -> None:
        visit("close of an enumerator")


class WatchedSource(LateSource):
    def create_enumerator(self, parallelism: int, state: Any = None) -> SplitEnumerator:
        visit("create_enumerator")
        return WatchedEnumerator(self, state or 0)


class WatchedCommitter(Committer):
    def __init__(self, inner: Committer) -> None:
        self._inner = inner

    def commit(self, committables: Sequence[Any]) -> None:
        visit("commit")
        self._inner.commit(committables)

    def close(self) -> None:
        visit("close of a committer")


class WatchedSink(ListSink):
    def create_committer(self) -> Committer:
        return WatchedCommitter(super().create_committer())

    def recover(self, committables: Sequence[Any]) -> None:
        visit("recover")


class WatchedTransactions(StoreSink):
    def commit(self, transaction: str) -> None:
        visit("commit of a transaction")
        super().commit(transaction)

    def abort(self, transaction: str) -> None:
        visit("abort of a transaction")
        super().abort(transaction)


def watched(place: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """Errors come before the function does its work, so that it may be repeated."""

    def call(*arguments: Any, **named: Any) -> Any:
        visit(place)
        return function(*arguments, **named)

    return call


# Code of ours in threads.
OWN = (
    (SnapshotWriter, "write"),
    (SnapshotWriter, "delete"),
    (SnapshotWriter, "discard"),
    (CheckpointCoordinator, "snapshot_written"),
    (CheckpointCoordinator, "write_failed"),
    (savepoint_writing, "write_frozen_state"),
)
PLACES = (
    *("discover_splits", "is_complete", "next_discovery_delay", "all_splits_read"),
    *("checkpoint_complete", "snapshot_state", "close of an enumerator", "create_enumerator"),
    *("commit", "close of a committer", "recover"),
    *("commit of a transaction", "abort of a transaction"),
    *(name for _, name in OWN),
)


class Logged(logging.Handler):
    """Keeps the text of everything that is logged."""

    def __init__(self) -> None:
        super().__init__()
        self.text = ""

    def emit(self, record: logging.LogRecord) -> None:
        self.text += self.format(record) + "\n"


@contextmanager
def sabotaged(saboteur: Saboteur) -> Iterator[Logged]:
    log, handler = logging.getLogger("firesteel"), Logged()
    patches = [
        patch.object(owner, name, watched(name, getattr(owner, name))) for owner, name in OWN
    ]
    SABOTEURS.append(saboteur)
    log.addHandler(handler)
    for one in patches:
        one.start()
    try:
        yield handler
    finally:
        for one in patches:
            one.stop()
        log.removeHandler(handler)
        SABOTEURS.remove(saboteur)


class Job:
    """A job that is started again from its savepoint whenever it has stopped with one."""

    def __init__(self, directory: Path, seed: int, execution: str) -> None:
        self._directory = directory
        for name in ("list", "transactions"):
            (directory / name).mkdir()
        self.list_sink = WatchedSink(directory / "list")
        self.transactions = WatchedTransactions(directory / "transactions")
        self.answers: list[Future[str]] = []
        # Texts of failures, of all runs.
        self.failures = ""
        self.harness = JobHarness(
            self._build,
            parallelism=2,
            checkpoint_every=3,
            seed=seed,
            configuration=Configuration(SETTINGS).set_string("firesteel.execution", execution),
        )

    def _build(self, env: Any) -> None:
        source = env.from_source(WatchedSource(splits=SPLITS, delay=0.003), None, "late")
        counted = source.uid("late").key_by(lambda n: n % 3).reduce(lambda _, new: new).uid("last")
        counted.sink_to(self.list_sink).uid("list")
        counted.add_sink(self.transactions).uid("transactions")

    def act(self, action: str) -> None:
        if self.harness.status.is_terminal_state():
            return
        if action == "savepoint":
            self.answers.append(self.harness.request_savepoint(str(self._directory / "savepoints")))
        elif action == "stop":
            self.stop()
            return
        elif action == "crash":
            self.harness.crash()
        self.run_epoch()

    def run_epoch(self) -> bool:
        try:
            return self.harness.run_epoch()
        finally:
            self._note_failures()

    def _note_failures(self) -> None:
        failures = [str(one) for one in self.harness._runner.failures()]
        self.failures += "".join(text for text in failures if text not in self.failures)

    def stop(self) -> None:
        """The answer comes in any case. If it is a savepoint, the job has ended."""
        answer = self.harness.request_savepoint(
            str(self._directory / "savepoints"), StopMode.SUSPEND
        )
        self.answers.append(answer)
        for _ in range(_MOST_EPOCHS):
            if answer.done():
                break
            self.run_epoch()
        assert answer.done(), "the stop does not end"
        if answer.exception() is None:
            assert self.harness.status is JobStatus.FINISHED
            self._resume(answer.result())

    def _resume(self, savepoint: str) -> None:
        """Submit the job until that succeeds: nothing restarts a job that cannot be submitted."""
        for _ in range(_MOST_EPOCHS):
            try:
                self.harness = self.harness.resume(savepoint)
                break
            except Exception as error:
                self.failures += str(error)
        else:
            raise AssertionError("the job cannot be submitted")

    def finish(self) -> None:
        self.harness.run()
        self._note_failures()

    def told(self) -> str:
        """Everything that users were told, except the log."""
        errors = [one.exception() for one in self.answers if one.done()]
        return self.failures + "".join(str(error) for error in errors)


ACTIONS = ("epoch", "epoch", "epoch", "savepoint", "stop", "crash")


@pytest.mark.parametrize("execution", ["micro-batch", "real-time"])
@pytest.mark.parametrize("seed", seeds(3, 100))
def test_no_error_vanishes_and_every_stop_ends(tmp_path: Path, seed: int, execution: str) -> None:
    random = Random(seed)
    places = random.sample(PLACES, random.randint(1, 4))
    saboteur = Saboteur(seed, places, random.choice([0.05, 0.3, 0.8]), times=40)
    saboteur.is_active = False
    with sabotaged(saboteur) as log:
        job = Job(tmp_path, seed, execution)
        saboteur.is_active = True
        for _ in range(random.randint(1, 14)):
            job.act(random.choice(ACTIONS))
        saboteur.is_active = False
        job.finish()
        told = log.text + job.told()
    assert [text for text in saboteur.raised if text not in told] == []
    assert all(answer.done() for answer in job.answers)
    expected = Counter(range(1, SPLITS + 1))
    assert Counter(job.list_sink.values()) == expected
    assert Counter(job.transactions.store.committed) == expected


# Errors in other places, without which a place is not visited.
NEEDED = {"write_failed": ["write"]}


@pytest.mark.parametrize("place", PLACES)
def test_errors_in_one_place(tmp_path: Path, place: str) -> None:
    """Each place is visited, so that the random test means something."""
    saboteur = Saboteur(0, [place, *NEEDED.get(place, ())], 1.0, times=6)
    saboteur.is_active = False
    with sabotaged(saboteur) as log:
        job = Job(tmp_path, 0, "micro-batch")
        saboteur.is_active = True
        for action in ("epoch",) * 4 + ("savepoint", "crash", "epoch", "stop", "epoch"):
            job.act(action)
        # A checkpoint is being written when the job is canceled.
        job.harness.storage_is_stuck = True
        job.harness.request_checkpoint()
        job.run_epoch()
        cancel(job.harness)
        saboteur.is_active = False
        told = log.text + job.told()
    assert any(text.endswith(f" in {place}.") for text in saboteur.raised)
    assert [text for text in saboteur.raised if text not in told] == []
