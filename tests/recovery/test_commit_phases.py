"""A crash in each phase of a commit, with a FileSink, a sink with a committer, and transactions.

The phases: before pre-commit, between pre-commit and the completion of the checkpoint, between
completion and commit, after the commit and before it has been noted.
"""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from typing import Any

import pytest

from firesteel.common import Configuration
from firesteel.connectors.files import committer as file_committer
from firesteel.datastream.connectors.file_system import RollingPolicy
from firesteel.testing import Fault, JobHarness
from tests.recovery.jobs import RESTARTS, Job, Trap, assert_exactly_once, golden, seeds
from tests.transactions import StoreSink

POLICIES: dict[str, Callable[[], RollingPolicy]] = {
    "each checkpoint finishes files": RollingPolicy.on_checkpoint_rolling_policy,
    "files grow across checkpoints": RollingPolicy.default_rolling_policy,
}


@pytest.fixture(params=POLICIES)
def rolling(request: pytest.FixtureRequest) -> RollingPolicy:
    return POLICIES[request.param]()


def start(job: Job, **more: Any) -> JobHarness:
    arguments = {"records_per_epoch": 3, "checkpoint_every": 0, "configuration": RESTARTS}
    return JobHarness(job, parallelism=2, **{**arguments, **more})


def run_epochs(harness: JobHarness, count: int) -> None:
    for _ in range(count):
        assert harness.run_epoch()


def before_pre_commit(harness: JobHarness) -> None:
    run_epochs(harness, 2)


def before_completion(harness: JobHarness) -> None:
    """The sinks have prepared their part of a checkpoint that is never written."""
    harness.storage_is_stuck = True
    harness.request_checkpoint()
    run_epochs(harness, 2)
    harness.storage_is_stuck = False
    harness._edge.storage.drop()


def before_commit(harness: JobHarness) -> None:
    harness.checkpoint()


def before_the_note(harness: JobHarness) -> None:
    """The tasks have committed, but the epoch that told them to never comes to its end."""
    harness.checkpoint()
    now = harness._edge.now()
    assert harness.master.delay(now) == 0.0
    plan = harness.master.plan_epoch(now)
    assert any(control.completed_checkpoint for control in plan.controls)
    harness._executor.slots.run_epoch(plan)


PHASES: dict[str, Callable[[JobHarness], None]] = {
    phase.__name__: phase
    for phase in (before_pre_commit, before_completion, before_commit, before_the_note)
}


@pytest.mark.parametrize("phase", PHASES)
@pytest.mark.parametrize("whole_driver", [False, True], ids=["job", "driver"])
def test_a_crash_of_the_whole(
    tmp_path: Path, phase: str, whole_driver: bool, rolling: RollingPolicy
) -> None:
    """Twice: with a checkpoint behind it, and again right after the recovery."""
    job = Job(tmp_path, rolling=rolling)
    harness = start(job)
    harness.run_epoch()
    harness.checkpoint()
    run_epochs(harness, 2)
    collected: list[Any] = []
    for _ in range(2):
        PHASES[phase](harness)
        if whole_driver:
            harness.kill()
            # What was collected is the user's, but it is gone with him: only sinks are compared.
            harness = harness.resume()
        else:
            harness.crash()
    harness.run()
    collected = job.outputs()["list"] if whole_driver else harness.collected
    assert_exactly_once(job, harness, collected=collected, processes_killed=whole_driver)


@pytest.mark.parametrize(
    "place", ["before pre-commit", "after pre-commit", "before commit", "after commit"]
)
@pytest.mark.parametrize("times", [1, 3])
def test_an_exception_of_a_transaction(tmp_path: Path, place: str, times: int) -> None:
    job = Job(tmp_path, Trap(tmp_path, times=times), lambda where, _: where == place)
    harness = start(job, checkpoint_every=3)
    harness.run()
    assert job.trap is not None
    assert job.trap.met == times
    assert_exactly_once(job, harness)


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_an_exception_while_files_are_finished(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, after: bool, rolling: RollingPolicy
) -> None:
    job = Job(tmp_path, rolling=rolling)
    trap = Trap(tmp_path, times=3)
    commit = file_committer._finish

    def fail(committable: Any) -> None:
        if after:
            commit(committable)
        trap.meet()
        commit(committable)

    monkeypatch.setattr(file_committer, "_finish", fail)
    harness = start(job, checkpoint_every=4)
    harness.run()
    assert trap.met == 3
    assert_exactly_once(job, harness)


@pytest.mark.parametrize("every", [1, 3])
def test_a_zombie_that_works_after_its_retry_has_succeeded(
    tmp_path: Path, every: int, rolling: RollingPolicy
) -> None:
    job = Job(tmp_path, rolling=rolling)
    harness = start(job, checkpoint_every=every, seed=every, batch_bytes=200)
    # The source holds records in memory that only checkpoints save: losing it would fail the job.
    places = [place for place in harness.places() if place[0] > 0]
    harness.run({epoch: dict.fromkeys(places, Fault.ZOMBIE) for epoch in range(2, 40, 3)})
    assert_exactly_once(job, harness, processes_killed=True)


@pytest.mark.parametrize("fault", Fault)
def test_faults_of_single_tasks_between_checkpoints_and_crashes(
    tmp_path: Path, fault: Fault, rolling: RollingPolicy
) -> None:
    job = Job(tmp_path, rolling=rolling)
    harness = start(job, checkpoint_every=4, seed=3)
    number = 0
    while not harness.status.is_terminal_state():
        number += 1
        places = [place for place in harness.places() if (place[0] + number) % 3 == 0]
        harness.run_epoch(dict.fromkeys(places, fault) if number % 2 else None)
        if number in (7, 11, 30):
            harness.crash()
    killed = fault in (Fault.LOSE_HOST_LATE, Fault.ZOMBIE)
    assert_exactly_once(job, harness, processes_killed=killed)


@pytest.mark.parametrize("execution", ["micro-batch", "real-time"])
@pytest.mark.parametrize("seed", seeds(2, 40))
def test_a_retry_that_cannot_begin_leaves_no_transaction(
    tmp_path: Path, execution: str, seed: int
) -> None:
    """Epochs are repeated, and functions may fail to open then. No process is lost."""
    random, armed = Random(seed), tmp_path / "armed"

    def is_trapped(place: str, _: Any) -> bool:
        """The first function that is opened fails. The restart after it succeeds."""
        if "open" not in place or not armed.exists():
            return False
        armed.unlink()
        return True

    job = Job(tmp_path, Trap(tmp_path, times=100), is_trapped)
    configuration = Configuration(RESTARTS).set_string("firesteel.execution", execution)
    every = random.randint(1, 6)
    harness = start(job, checkpoint_every=every, configuration=configuration, seed=seed)
    for _ in range(5):
        for _ in range(random.randint(0, 6)):
            harness.run_epoch()
        if random.random() < 0.6:
            armed.touch()
        fault = random.choice([Fault.RETRY, Fault.BREAK_OFF])
        harness.run_epoch(dict.fromkeys(harness.places(), fault))
        armed.unlink(missing_ok=True)
    harness.run()
    assert_exactly_once(job, harness)


class TidySink(StoreSink):
    """Knows by the prefix in its user context which transactions of the store are its own."""

    def initialize_user_context(self) -> str:
        return uuid.uuid4().hex

    def begin_transaction(self) -> str:
        name = super().begin_transaction()
        self._note(name).touch()
        return name

    def finish_recovering_context(self, handled_transactions: Sequence[str]) -> None:
        for note in self.store.directory.glob(self._note("*").name):
            name = note.name.rpartition("-")[2]
            if name not in handled_transactions and not self.store.is_committed(name):
                self.store.abort(name)

    def _note(self, name: str) -> Path:
        return self.store.directory / f"note-{self.get_user_context()}-{name}"


@pytest.mark.parametrize("epochs", range(3, 15))
def test_a_user_context_finds_what_a_killed_driver_has_left_behind(
    tmp_path: Path, epochs: int
) -> None:
    """Also with the last epochs of the job, when the driver commits for subtasks that ended."""
    sink = TidySink(tmp_path)

    def program(env: Any) -> None:
        env.from_sequence(0, 29).add_sink(sink).uid("sink")

    harness = JobHarness(
        program,
        parallelism=2,
        records_per_epoch=2,
        checkpoint_every=3,
        configuration=RESTARTS,
    )
    for _ in range(epochs):
        harness.run_epoch()
    if not harness.status.is_terminal_state():
        harness.kill()
        harness = harness.resume()
        harness.run()
    assert Counter(sink.store.committed) == Counter(range(30))
    assert sink.store.in_phase("prepared") == sink.store.in_phase("open") == []


def test_a_file_that_a_consumer_has_taken_away_is_no_obstacle(tmp_path: Path) -> None:
    """A restored job commits again what its checkpoint holds; meanwhile the file may be gone."""
    job = Job(tmp_path)
    harness = start(job)
    run_epochs(harness, 3)
    before_the_note(harness)
    taken = [path for path in (tmp_path / "files").iterdir() if not path.name.startswith(".")]
    lines = [line for path in taken for line in path.read_text().splitlines()]
    assert lines
    for path in taken:
        path.unlink()
    harness.crash()
    harness.run()
    (tmp_path / "files" / "taken").write_text("".join(f"{line}\n" for line in lines))
    assert_exactly_once(job, harness)


def test_without_checkpoints_a_job_that_starts_over_repeats_its_output(tmp_path: Path) -> None:
    """The other side of it: nothing holds the output back, so it is there twice."""
    job = Job(tmp_path, Trap(tmp_path), lambda place, value: place == "map" and value == 30)
    harness = start(job, checkpoint_every=None)
    harness.run()
    extra = Counter(job.outputs()["list"]) - Counter(golden())
    assert (0, 1, 0) in extra
