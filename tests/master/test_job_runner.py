"""The job runner: attempts, restarts, cancellation, and everything that happens at its edge."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Any

import pytest

from firesteel.checkpoint.metadata import SnapshotType
from firesteel.checkpoint.rules.requests import SnapshotRequest
from firesteel.checkpoint.storage.checkpoint_directory import CheckpointDirectory
from firesteel.common import Configuration
from firesteel.common.job_status import JobStatus
from firesteel.connectors.base import SplitEnumerator
from firesteel.datastream import StreamExecutionEnvironment
from firesteel.errors import FiresteelError, JobExecutionError, UserFunctionError
from firesteel.master import checkpoint_executor, job_checkpoints, job_runner, split_enumerators
from firesteel.master.edge import ThreadedEdge
from firesteel.master.job_master import Raised
from firesteel.master.job_recovery import JobRecovery
from firesteel.master.job_runner import JobRunner
from firesteel.protocol.execution import (
    EpochBrokenOffError,
    EpochPlan,
    EpochRows,
    ExecutionFailedError,
    Placement,
)
from firesteel.protocol.program import JobProgram
from firesteel.testing import JobHarness, ListSink
from firesteel.testing.harness_slots import HarnessExecutor, HarnessSlots
from tests.late_source import (
    HANGING,
    HangingSource,
    LateEnumerator,
    LateSource,
    hanging_enumerators,
)

_SECONDS = 100.0


def _settings(**more: str) -> Configuration:
    configuration = Configuration()
    for key, value in more.items():
        configuration.set_string(key.replace("__", "-").replace("_", "."), value)
    return configuration


_RESTARTS = {
    "restart__strategy_type": "fixed-delay",
    "restart__strategy_fixed__delay_attempts": "2",
    "restart__strategy_fixed__delay_delay": "30 s",
}


def _of(source: LateSource) -> Callable[[StreamExecutionEnvironment], Any]:
    return lambda env: env.from_source(source, None, "late")


# In a harness


def test_a_job_whose_enumerator_hangs_takes_checkpoints_and_can_be_canceled(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # The threads of the harness are never busy, so the end of a job would wait for this one.
    monkeypatch.setattr(split_enumerators, "_CLOSE_SECONDS", 0.0)
    harness = JobHarness(_of(LateSource(splits=3, delay=1.0)), checkpoint_every=0)
    harness.run_epoch()
    harness.enumerators_are_stuck = True
    locations = {harness.checkpoint() for _ in range(3)}
    assert len(locations) == 3
    assert harness.collected == [1]
    harness.cancel()
    assert not harness.run_epoch()
    assert harness.status is JobStatus.CANCELED


def test_an_enumerator_that_answers_again_is_heard() -> None:
    harness = JobHarness(_of(LateSource(splits=3, delay=1.0)), checkpoint_every=0)
    harness.run_epoch()
    harness.enumerators_are_stuck = True
    for _ in range(3):
        harness.checkpoint()
    harness.enumerators_are_stuck = False
    harness.run()
    assert harness.collected == [1, 2, 3]


def test_a_checkpoint_during_a_discovery_loses_no_split_and_has_none_twice() -> None:
    harness = JobHarness(_of(LateSource(splits=3, delay=1.0)), checkpoint_every=0)
    harness.run_epoch()
    harness.enumerators_are_stuck = True
    harness.checkpoint()
    resumed = harness.resume()
    resumed.run()
    assert sorted([*harness.collected, *resumed.collected]) == [1, 2, 3]


class _Flaky(LateSource):
    """Fails in ``method`` the first times it is called."""

    def __init__(self, method: str, times: int, *, skipped: int = 0) -> None:
        super().__init__(splits=2, delay=1.0)
        self._method = method
        self._times = times
        self._skipped = skipped

    def called(self, method: str) -> None:
        if method != self._method:
            return
        self._skipped -= 1
        if self._skipped < 0 and self._times:
            self._times -= 1
            raise OSError(f"{method} is not possible now")


@pytest.mark.parametrize("restarts", [1, 2])
def test_a_discovery_that_fails_restarts_the_job(restarts: int) -> None:
    harness = JobHarness(
        _of(_Flaky("discover_splits", restarts)),
        checkpoint_every=0,
        configuration=_settings(**_RESTARTS),
    )
    harness.run()
    assert harness.collected == [1, 2]
    assert harness.now_millis() >= 30_000 * restarts


def test_a_discovery_that_fails_more_often_than_the_strategy_allows_fails_the_job() -> None:
    harness = JobHarness(
        _of(_Flaky("discover_splits", 3)),
        checkpoint_every=0,
        configuration=_settings(**_RESTARTS),
    )
    with pytest.raises(UserFunctionError, match="discover_splits is not possible now") as caught:
        harness.run()
    assert (caught.value.job, caught.value.operator) == ("harness", "Source: late")
    assert harness.status is JobStatus.FAILED


def test_an_enumerator_that_cannot_be_created_when_a_job_restarts_is_tried_again() -> None:
    """A broker may need longer to come back than the job does."""
    harness = JobHarness(
        _of(_Flaky("create_enumerator", 1, skipped=1)),
        checkpoint_every=0,
        configuration=_settings(**_RESTARTS),
    )
    harness.run_epoch()
    harness.crash()
    assert harness.status is JobStatus.CREATED
    assert harness.now_millis() >= 60_000
    harness.run()
    assert harness.collected == [1, 2]


def test_a_checkpoint_that_cannot_be_read_when_a_job_restarts_is_tried_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Storage may need longer to come back than the job does."""
    harness = JobHarness(
        _of(LateSource(splits=2)), checkpoint_every=1, configuration=_settings(**_RESTARTS)
    )
    harness.run_epoch()
    starting_point, away = JobRecovery.starting_point, [OSError("storage is away")]

    def read(recovery: JobRecovery, now: float) -> Any:
        if away:
            raise away.pop()
        return starting_point(recovery, now)

    monkeypatch.setattr(JobRecovery, "starting_point", read)
    harness.crash()
    assert harness.status is JobStatus.CREATED
    assert harness.now_millis() >= 60_000
    harness.run()
    assert harness.collected == [1, 2]


def test_results_for_an_old_attempt_are_dropped() -> None:
    harness = JobHarness(
        _of(LateSource(splits=3, delay=1.0)),
        checkpoint_every=0,
        configuration=_settings(**_RESTARTS),
    )
    harness.run_epoch()
    runner, old = harness._runner, harness._runner._attempt
    failing: list[str] = []

    def late(master: Any, now: float) -> None:
        failing.append("heard")
        raise OSError("too late")

    harness.crash()
    runner._post(late, old)
    assert failing == []
    runner._post(late, runner._attempt)
    assert failing == ["heard"]
    assert harness.status is JobStatus.FAILING


class _Positions(LateEnumerator):
    def checkpoint_complete(self, splits: Any) -> None:
        self._source.called("checkpoint_complete")


class _WithPositions(_Flaky):
    def create_enumerator(self, parallelism: int, state: Any = None) -> SplitEnumerator:
        return _Positions(self, state or 0)


def test_positions_that_cannot_be_committed_fail_the_job() -> None:
    source = _WithPositions("checkpoint_complete", 1)
    harness = JobHarness(_of(source), checkpoint_every=1, configuration=_settings(**_RESTARTS))
    harness.run_epoch()
    assert harness.status is JobStatus.FAILING
    harness.run()
    assert harness.collected == [1, 2]
    assert harness.now_millis() >= 30_000


def test_a_failed_batch_restarts_as_a_streaming_job_does() -> None:
    from firesteel.datastream import RuntimeExecutionMode

    def program(env: StreamExecutionEnvironment) -> Any:
        env.set_runtime_mode(RuntimeExecutionMode.BATCH)
        return env.from_source(_Flaky("discover_splits", 1), None, "late")

    harness = JobHarness(program, configuration=_settings(**_RESTARTS))
    harness.run()
    assert sorted(harness.collected) == [1, 2]
    assert harness.status is JobStatus.FINISHED


# With real threads


class Slots(HarnessSlots):
    """Slots whose epochs a test can hold up or let fail."""

    def __init__(self, program: JobProgram) -> None:
        super().__init__(
            program,
            Random(0),
            1 << 20,
            lambda: int(time.time() * 1000),
            pass_time=lambda _: None,
            before_close=lambda: None,
        )
        self.epochs = threading.Semaphore(0)
        self.may_continue = threading.Event()
        self.may_continue.set()
        self.failure: JobExecutionError | None = None
        self.broken_off = threading.Event()
        self.forced: list[EpochPlan] = []

    def run_epoch(self, plan: EpochPlan) -> EpochRows:
        if plan.by_force:
            self.forced.append(plan)
        elif self.failure is not None:
            raise ExecutionFailedError(self.failure)
        self.epochs.release()
        while not self.may_continue.wait(0.01) and not plan.by_force:
            if self.broken_off.is_set():
                raise EpochBrokenOffError("broken off")
        return super().run_epoch(plan)

    def break_off(self, seconds: float) -> None:
        if not seconds:
            self.broken_off.set()


class Edge(ThreadedEdge):
    def __init__(self, lines: list[str]) -> None:
        self._lines = lines

    def print_lines(self, lines: list[str]) -> None:
        self._lines += lines


class Job:
    """A runner in a thread."""

    def __init__(self, program: Callable[[Any], Any], configuration: Configuration) -> None:
        env = StreamExecutionEnvironment(configuration).set_parallelism(1)
        program(env).print()
        job = env._compile("job")
        self.attempts: list[Slots] = []
        self.lines: list[str] = []
        self.runner = JobRunner(
            "0123", job.stream_graph, job.levels, job.settings, self._executor, Edge(self.lines)
        )
        self.thread = threading.Thread(target=self.runner.run, daemon=True)
        self.thread.start()

    def _executor(self, *_: Any) -> HarnessExecutor:
        return HarnessExecutor(Placement(), self._start)

    def _start(self, program: JobProgram) -> Slots:
        self.attempts.append(Slots(program))
        return self.attempts[-1]

    def run_epochs(self, count: int) -> None:
        for _ in range(count):
            assert self.attempts[-1].epochs.acquire(timeout=_SECONDS)

    def wait_for(self, status: JobStatus) -> None:
        deadline = time.monotonic() + _SECONDS
        while self.runner.status is not status and time.monotonic() < deadline:
            time.sleep(0.005)
        assert self.runner.status is status

    def end(self) -> JobStatus:
        self.thread.join(_SECONDS)
        assert not self.thread.is_alive()
        return self.runner.status


@pytest.fixture(name="checkpointed")
def _checkpointed(tmp_path: Path) -> Configuration:
    return _settings(
        execution_checkpointing_interval="20 ms",
        execution_checkpointing_dir=str(tmp_path),
        **_RESTARTS,
    )


@pytest.fixture(name="hanging")
def _hanging() -> Iterator[None]:
    with hanging_enumerators():
        yield


@pytest.mark.usefixtures("hanging")
def test_a_hanging_enumerator_stops_neither_checkpoints_nor_the_cancellation(
    checkpointed: Configuration, caplog: pytest.LogCaptureFixture
) -> None:
    job = Job(_of(HangingSource()), checkpointed)
    assert HANGING.wait(_SECONDS)
    stats = job.runner.recovery.coordinator.stats
    deadline = time.monotonic() + _SECONDS
    before = stats.overview()["counts"]["completed"]
    while stats.overview()["counts"]["completed"] < before + 3 and time.monotonic() < deadline:
        job.run_epochs(1)
    assert stats.overview()["counts"]["completed"] >= before + 3
    assert job.lines == ["1"]
    job.runner.cancel()
    assert job.end() is JobStatus.CANCELED
    assert "the enumerator of 'Source: late' is still busy" in caplog.text


@pytest.mark.usefixtures("hanging")
def test_a_batch_that_waits_for_a_hanging_enumerator_can_be_canceled() -> None:
    from firesteel.datastream import RuntimeExecutionMode

    def program(env: StreamExecutionEnvironment) -> Any:
        env.set_runtime_mode(RuntimeExecutionMode.BATCH)
        return env.from_source(HangingSource(), None, "late")

    job = Job(program, _settings())
    assert HANGING.wait(_SECONDS)
    assert job.runner.status is JobStatus.RUNNING
    job.runner.cancel()
    assert job.end() is JobStatus.CANCELED
    assert job.lines == []


def test_a_job_that_waits_for_its_restart_can_be_canceled(checkpointed: Configuration) -> None:
    job = Job(_of(LateSource(splits=3, delay=60.0)), checkpointed)
    job.run_epochs(1)
    job.attempts[0].failure = JobExecutionError("the machine is gone")
    job.wait_for(JobStatus.RESTARTING)
    # The slots have been closed, by force.
    assert [plan.closing for plan in job.attempts[0].forced] == [True]
    job.runner.cancel()
    assert job.end() is JobStatus.CANCELED
    assert len(job.attempts) == 1
    assert job.runner.failure is None


@pytest.mark.parametrize("status", [JobStatus.CANCELED, JobStatus.SUSPENDED])
def test_a_suspended_job_keeps_its_checkpoints(
    checkpointed: Configuration, tmp_path: Path, status: JobStatus
) -> None:
    job = Job(_of(LateSource(splits=3, delay=60.0)), checkpointed)
    job.runner.request_snapshot(_checkpoint).result(_SECONDS)
    job.runner.cancel(status)
    assert job.end() is status
    assert bool([*tmp_path.glob("*/chk-*")]) is (status is JobStatus.SUSPENDED)


def _checkpoint(request_id: str) -> Any:
    from firesteel.checkpoint.metadata import SnapshotType
    from firesteel.checkpoint.rules.requests import SnapshotRequest

    return SnapshotRequest(request_id, SnapshotType.CHECKPOINT)


def test_an_epoch_that_takes_too_long_is_broken_off_and_closed_by_force() -> None:
    job = Job(_of(LateSource(splits=3, delay=60.0)), _settings())
    job.run_epochs(1)
    slots = job.attempts[0]
    slots.may_continue.clear()
    job.runner.request_snapshot(_checkpoint)
    job.run_epochs(1)
    job.runner.cancel()
    job.wait_for(JobStatus.CANCELLING)
    job.runner.give_up()
    assert job.end() is JobStatus.CANCELED
    assert [plan.closing for plan in slots.forced] == [True]


def test_a_failure_without_a_restart_strategy_is_final() -> None:
    job = Job(_of(LateSource(splits=3, delay=0.01)), _settings())
    job.run_epochs(1)
    job.attempts[0].failure = failure = JobExecutionError("the machine is gone")
    assert job.end() is JobStatus.FAILED
    assert job.runner.failure is failure
    answer = job.runner.request_snapshot(_checkpoint)
    with pytest.raises(JobExecutionError, match="the job is not running"):
        answer.result(_SECONDS)


def test_an_error_of_an_old_attempt_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    """Nothing depends on it any more, but it must not vanish."""
    harness = JobHarness(
        _of(LateSource(splits=3, delay=1.0)),
        checkpoint_every=0,
        configuration=_settings(**_RESTARTS),
    )
    harness.run_epoch()
    old = harness._runner._attempt
    harness.crash()
    harness._runner._post(Raised(OSError("the broker is gone")), old)
    assert harness.status is JobStatus.CREATED
    assert "the broker is gone" in caplog.text


def test_a_job_whose_enumerator_is_never_created_is_refused() -> None:
    """The thread that submits the job has no way to cancel it."""
    released = threading.Event()
    began = time.monotonic()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(job_runner, "_FIRST_ENUMERATORS_SECONDS", 0.05)
        with pytest.raises(JobExecutionError, match="1 of 1 sources have not created"):
            Job(_of(_NeverCreated(released)), _settings())
    assert time.monotonic() - began < _SECONDS
    released.set()


class _NeverCreated(LateSource):
    def __init__(self, released: threading.Event) -> None:
        super().__init__()
        self._released = released

    def create_enumerator(self, parallelism: int, state: Any = None) -> SplitEnumerator:
        assert self._released.wait(_SECONDS)
        return super().create_enumerator(parallelism, state)


# Set while sinks may return from ``recover``, and while one of them is in it.
_MAY_RECOVER, _IS_RECOVERING = threading.Event(), threading.Event()


class _SlowToRecover(ListSink):
    def recover(self, committables: Sequence[Any]) -> None:
        _IS_RECOVERING.set()
        assert _MAY_RECOVER.wait(_SECONDS)


def _into_a_slow_sink(tmp_path: Path) -> Callable[[StreamExecutionEnvironment], Any]:
    def program(env: StreamExecutionEnvironment) -> Any:
        late = env.from_source(LateSource(splits=3, delay=1000.0), None, "late")
        late.sink_to(_SlowToRecover(tmp_path / "sink")).name("orders")
        return late

    return program


def test_a_job_whose_sink_never_recovers_is_refused_with_its_name(tmp_path: Path) -> None:
    """The thread that submits the job has no way to cancel it."""
    _MAY_RECOVER.clear()
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(job_runner, "_FIRST_SINKS_SECONDS", 0.05)
            with pytest.raises(JobExecutionError, match=r"'orders: Writer': recover\(\) of"):
                Job(_into_a_slow_sink(tmp_path), _settings())
    finally:
        _MAY_RECOVER.set()


def test_a_restart_whose_sink_never_recovers_can_be_canceled(
    checkpointed: Configuration, tmp_path: Path
) -> None:
    """A restart has no limit: the system of the sink may be away for hours."""
    checkpointed.set_string("restart-strategy.fixed-delay.delay", "0 s")
    _MAY_RECOVER.set()
    job = Job(_into_a_slow_sink(tmp_path / "own"), checkpointed)
    try:
        job.run_epochs(1)
        _MAY_RECOVER.clear()
        _IS_RECOVERING.clear()
        job.attempts[0].failure = JobExecutionError("the machine is gone")
        assert _IS_RECOVERING.wait(_SECONDS)
        job.runner.cancel()
        assert job.end() is JobStatus.CANCELED
        assert len(job.attempts) == 1
    finally:
        _MAY_RECOVER.set()


class _HungStorage:
    """Checkpoint storage that stops working when a test says so, until it is released."""

    def __init__(self) -> None:
        self.hangs = threading.Event()
        self.is_hanging = threading.Event()
        self.released = threading.Event()

    def __call__(self, write: Callable[..., Any]) -> Callable[..., Any]:
        def hanging(*arguments: Any) -> Any:
            if self.hangs.is_set():
                self.is_hanging.set()
                assert self.released.wait(_SECONDS)
            return write(*arguments)

        return hanging


def test_a_job_with_storage_that_hangs_ends(
    checkpointed: Configuration,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    tmp_path: Path,
) -> None:
    """The work is left to its thread, which still deletes the checkpoint that nothing needs."""
    storage = _HungStorage()
    monkeypatch.setattr(checkpoint_executor, "_CLOSE_SECONDS", 0.05)
    monkeypatch.setattr(job_checkpoints, "_DISCARD_SECONDS", 0.05)
    monkeypatch.setattr(CheckpointDirectory, "write", storage(CheckpointDirectory.write))
    job = Job(_of(LateSource(splits=3, delay=1000.0)), checkpointed)
    job.run_epochs(2)
    storage.hangs.set()
    answer = job.runner.request_snapshot(
        lambda request_id: SnapshotRequest(request_id, SnapshotType.CHECKPOINT)
    )
    assert storage.is_hanging.wait(_SECONDS)
    job.runner.cancel()
    assert job.end() is JobStatus.CANCELED
    assert "checkpoint storage is still busy" in caplog.text
    with pytest.raises(FiresteelError):
        answer.result(timeout=0)
    storage.released.set()
    deadline = time.monotonic() + _SECONDS
    while any(tmp_path.rglob("_metadata")) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not any(tmp_path.rglob("_metadata"))


def test_a_job_that_waits_for_hanging_storage_to_restart_can_be_canceled(
    checkpointed: Configuration, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage = _HungStorage()
    monkeypatch.setattr(checkpoint_executor, "_CLOSE_SECONDS", 0.05)
    monkeypatch.setattr(CheckpointDirectory, "clean_up", storage(CheckpointDirectory.clean_up))
    checkpointed.set_string("restart-strategy.fixed-delay.delay", "0 s")
    job = Job(_of(LateSource(splits=3, delay=1000.0)), checkpointed)
    stats = job.runner.recovery.coordinator.stats
    deadline = time.monotonic() + _SECONDS
    while not stats.overview()["counts"]["completed"] and time.monotonic() < deadline:
        job.run_epochs(1)
    storage.hangs.set()
    job.attempts[-1].failure = JobExecutionError("lost")
    assert storage.is_hanging.wait(_SECONDS)
    job.wait_for(JobStatus.RESTARTING)
    job.runner.cancel()
    assert job.end() is JobStatus.CANCELED
    storage.released.set()
