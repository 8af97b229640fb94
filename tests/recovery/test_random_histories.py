"""Random jobs with random histories: checkpoints, crashes, savepoints, new parallelisms.

After any sequence of faults, each sink has the results of plain Python, once.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import cycle, repeat
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from firesteel.checkpoint.rules.requests import StopMode
from firesteel.checkpoint.storage.discovery import find_checkpoint
from firesteel.common import Configuration
from firesteel.master import job_recovery
from firesteel.master.job_recovery import JobRecovery
from firesteel.master.split_enumerators import EnumeratorOfSource
from firesteel.testing import Fault, JobHarness, ListSink
from tests.properties.random_plans import STATEFUL, Plan, Step, plans
from tests.recovery.jobs import RESTARTS
from tests.thoroughness import examples

SETTINGS = Configuration(RESTARTS).add_all(
    Configuration.from_dict(
        {
            "execution.checkpointing.externalized-checkpoint-retention": "RETAIN_ON_CANCELLATION",
            "restart-strategy.fixed-delay.attempts": "1000",
        }
    )
)

ACTIONS = (
    *("epoch", "epoch", "epoch", "checkpoint", "checkpoint", "faults"),
    *("crash", "unlucky crash", "savepoint", "rescale", "cancel", "kill", "slow checkpoint"),
    "rescale from a checkpoint",
    *("slow savepoint", "slow savepoint"),
)
UNALIGNED = "execution.checkpointing.unaligned.enabled"


@dataclass(slots=True)
class Savepoint:
    """A slow savepoint: its job, the parent of its directory, and the future of its location."""

    harness: JobHarness
    target: Path
    answer: Future[str]
    # The driver was killed before the savepoint was complete.
    driver_was_killed: bool = False

    @property
    def is_complete(self) -> bool:
        return self.answer.done() and self.answer.exception() is None


class History:
    """A job, submitted again and again, and its sinks, which stay."""

    def __init__(
        self,
        plan: Plan,
        seed: int,
        budgets: tuple[int, ...],
        threshold: int,
        execution: str = "micro-batch",
        unaligned: bool = False,
        backend: str = "hashmap",
    ) -> None:
        self.plan = plan
        # State in memory has no files of its own, so its savepoints are canonical in any case.
        self.native = iter(cycle([True, False]) if backend == "rocksdb" else repeat(False))
        self.random = Random(seed)
        self.directory = tempfile.TemporaryDirectory()
        self.sinks = [
            ListSink(Path(self.directory.name, str(number)))
            for number in range(len(plan.evaluate()))
        ]
        self.arguments: dict[str, Any] = {
            "parallelism": plan.parallelism,
            "records_per_epoch": budgets,
            "inline_threshold": threshold,
            "configuration": Configuration(SETTINGS)
            .set_string("firesteel.execution", execution)
            .set_boolean(UNALIGNED, unaligned)
            .set_string("state.backend.type", backend),
            "checkpoint_every": 0,
            "seed": seed,
        }
        # The savepoint, or the directory with checkpoints, that the present job was started from.
        self.origin: str | None = None
        self.savepoints: list[Savepoint] = []
        with self.other_clock():
            self.harness = JobHarness(self.build, **self.arguments)

    @contextmanager
    def other_clock(self) -> Iterator[None]:
        """The next driver runs on a machine whose clock is up to an hour wrong."""
        now = 1_700_000_000 + self.random.uniform(-3600, 3600)
        with patch.object(job_recovery, "time", SimpleNamespace(time=lambda: now)):
            yield

    def build(self, env: Any) -> None:
        for stream, sink in zip(self.plan.build(env), self.sinks, strict=True):
            stream.sink_to(sink)

    def act(self, action: str) -> None:
        """Do it, if the job is not over; then look at what there is."""
        if not self.harness.status.is_terminal_state():
            getattr(self, "_" + action.replace(" ", "_"))()
        self.validate()

    def _epoch(self) -> None:
        self.harness.run_epoch()

    def _faults(self) -> None:
        places = self.harness.places()
        chosen = self.random.sample(places, self.random.randint(1, len(places)))
        self.harness.run_epoch({place: self.random.choice([*Fault]) for place in chosen})

    def _checkpoint(self) -> None:
        self.harness.request_checkpoint()
        self.harness.run_epoch()

    def _slow_checkpoint(self) -> None:
        """It is complete only some epochs later, or never."""
        self.harness.storage_is_stuck = True
        self._checkpoint()
        for _ in range(self.random.randint(0, 2)):
            self.harness.run_epoch()
        self.harness.storage_is_stuck = False

    def _crash(self) -> None:
        self.harness.crash()

    def _unlucky_crash(self) -> None:
        """The next attempts cannot begin: storage or the system of a source is away for a while."""
        place, name = self.random.choice(
            [(JobRecovery, "starting_point"), (EnumeratorOfSource, "create")]
        )
        begin, failures = getattr(place, name), [OSError("away")] * self.random.randint(1, 3)

        def begin_or_fail(*arguments: Any) -> Any:
            if failures:
                raise failures.pop()
            return begin(*arguments)

        with patch.object(place, name, begin_or_fail):
            self.harness.crash()

    def _savepoint(self) -> None:
        answer = self.harness.request_savepoint(native=next(self.native))
        while not answer.done() and self.harness.run_epoch():
            pass
        assert answer.done()

    def _slow_savepoint(self) -> None:
        """Slots write it file by file, while other things happen. Some of them give it up."""
        harness = self.harness
        harness.savepoints_are_stuck = True
        target = Path(self.directory.name, f"savepoints-{len(self.savepoints)}")
        answer = harness.request_savepoint(str(target), native=next(self.native))
        self.savepoints.append(Savepoint(harness, target, answer))
        for _ in range(self.random.randint(1, 4)):
            if harness.status.is_terminal_state() or self.harness is not harness:
                break
            for _ in range(self.random.randint(0, 2)):
                harness.write_savepoint_file()
            self.act(self.random.choice(["epoch", "epoch", "checkpoint", "faults", "crash"]))
        harness.savepoints_are_stuck = False
        if self.random.random() < 0.5:
            while not answer.done() and harness.run_epoch():
                pass

    def assert_no_part_is_left(self) -> None:
        """A directory of a savepoint is complete, or does not exist.

        Only a driver that is killed may leave a part of a savepoint that it has not completed.
        """
        for savepoint in self.savepoints:
            found = list(savepoint.target.glob("*"))
            if savepoint.is_complete:
                assert [str(path) for path in found] == [savepoint.answer.result()]
            elif not savepoint.driver_was_killed:
                assert savepoint.answer.done()
                assert found == []
            for path in found:
                if savepoint.is_complete or (path / "_metadata").exists():
                    find_checkpoint(str(path))

    def _rescale(self) -> None:
        answer = self.harness.request_savepoint(stop=StopMode.SUSPEND, native=next(self.native))
        while not self.harness.master.checkpoints.stopped and self.harness.run_epoch():
            pass
        if self.harness.master.checkpoints.stopped:
            # The savepoint is complete. Whatever happens now, the job must not run on.
            self.act(self.random.choice(["epoch", "faults", "crash", "crash"]))
        self.harness.run()
        if answer.exception() is None:
            self.origin = answer.result()
            self.arguments["parallelism"] = self.random.randint(1, 4)
            with self.other_clock():
                self.harness = self.harness.resume(
                    self.origin,
                    parallelism=self.arguments["parallelism"],
                    records_per_epoch=self.arguments["records_per_epoch"],
                )

    def _cancel(self) -> None:
        self.harness.cancel()
        self.harness.run()
        self._submit_again()

    def _kill(self) -> None:
        self._kill_driver()
        self._submit_again()

    def _kill_driver(self) -> None:
        self.harness.kill()
        for savepoint in self.savepoints:
            # It deletes nothing any more.
            if savepoint.harness is self.harness and not savepoint.is_complete:
                savepoint.driver_was_killed = True

    def _rescale_from_a_checkpoint(self) -> None:
        """The next job may also run in a different way, or align its checkpoints or not."""
        self._kill_driver()
        self.arguments["parallelism"] = self.random.randint(1, 4)
        if self.random.random() < 0.5:
            configuration = Configuration(self.arguments["configuration"])
            configuration.set_boolean(UNALIGNED, self.random.random() < 0.5)
            execution = self.random.choice(["real-time", "real-time", "micro-batch"])
            configuration.set_string("firesteel.execution", execution)
            self.arguments["configuration"] = configuration
        self._submit_again(
            parallelism=self.arguments["parallelism"],
            records_per_epoch=self.arguments["records_per_epoch"],
            configuration=self.arguments["configuration"],
        )

    def _submit_again(self, **changes: Any) -> None:
        """From the newest checkpoint of all runs if it has taken one, else from where it came from."""
        own = self.harness.checkpoint_directory()
        if any(own.glob("chk-*/_metadata")):
            self.origin = str(own.parent)
        with self.other_clock():
            if self.origin is not None:
                self.harness = self.harness.resume(self.origin, **changes)
            else:
                self.harness = JobHarness(self.build, **self.arguments)

    def validate(self) -> None:
        for sink, expected in zip(self.sinks, self.plan.evaluate(), strict=True):
            too_many = Counter(sink.values()) - expected
            assert not too_many, f"too many of {too_many}"

    def finish(self) -> None:
        self.harness.run()
        found = [Counter(sink.values()) for sink in self.sinks]
        assert found == self.plan.evaluate()
        self.assert_no_part_is_left()


@given(
    plans(STATEFUL),
    st.lists(st.sampled_from(ACTIONS), max_size=12),
    st.integers(0, 999),
    st.lists(st.integers(1, 9), min_size=1, max_size=3).map(tuple),
    st.sampled_from([0, 64 * 1024]),
    st.sampled_from(["micro-batch", "real-time"]),
    st.booleans(),
    st.sampled_from(["hashmap", "hashmap", "rocksdb"]),
)
@settings(max_examples=examples(60), deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_whatever_happens_to_a_job_its_output_is_that_of_a_clean_run(
    plan: Plan,
    actions: list[str],
    seed: int,
    budgets: tuple[int, ...],
    threshold: int,
    execution: str,
    unaligned: bool,
    backend: str,
) -> None:
    history = History(plan, seed, budgets, threshold, execution, unaligned, backend)
    for action in actions:
        history.act(action)
    history.finish()


RICH = Plan(
    sources=(tuple(range(900)), tuple(range(1000, 0, -1))),
    steps=(
        Step("union", 0, 1),  # 2
        Step("rebalance", 2),  # 3
        Step("flat_map", 3, parallelism=2),  # 4
        Step("number", 4),  # 5
        Step("filter", 5, parallelism=3),  # 6
        Step("total", 4),  # 7
        Step("number", 6),  # 8
    ),
    parallelism=2,
    chaining=True,
)


@pytest.mark.parametrize(
    ("steps", "seed", "backend"),
    [
        (12, 0, "hashmap"),
        (12, 4, "rocksdb"),
        *(pytest.param(100, seed, "hashmap", marks=pytest.mark.slow) for seed in (1, 2, 3)),
        *(pytest.param(100, seed, "rocksdb", marks=pytest.mark.slow) for seed in (5, 6)),
    ],
)
def test_a_long_life(steps: int, seed: int, backend: str) -> None:
    """The soak: so many steps, each drawn by the seed, and the job must outlive them all."""
    history = History(
        RICH, seed, (3, 5, 2), threshold=200 if seed % 2 else 64 * 1024, backend=backend
    )
    for _ in range(steps):
        history.act(history.random.choice(ACTIONS))
    assert not history.harness.status.is_terminal_state(), "the job has ended before its time"
    # What is left may go fast.
    history.arguments["records_per_epoch"] = (200,)
    history.act("rescale")
    history.finish()
