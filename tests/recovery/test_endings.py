"""Jobs that are stopped, drained, canceled, killed or finished, and their continuation."""

from __future__ import annotations

import tempfile
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from firesteel.checkpoint.rules.failure_reason import (
    CheckpointFailedError,
    StopWithSavepointStoppingError,
)
from firesteel.checkpoint.rules.requests import StopMode
from firesteel.checkpoint.storage.metadata_file import CheckpointNotFoundError
from firesteel.checkpoint.storage.storage import open_storage
from firesteel.common import Configuration, Types
from firesteel.common.job_status import JobStatus
from firesteel.datastream.functions import KeyedProcessFunction
from firesteel.datastream.state import ValueStateDescriptor
from firesteel.testing import (
    Fault,
    JobHarness,
    ListSink,
    Pause,
    ScriptedSource,
    StorageFault,
    StorageFaultKind,
    with_faults,
)
from tests.recovery.jobs import (
    RECORDS,
    RESTARTS,
    Job,
    Trap,
    assert_exactly_once,
    cancel,
    golden,
    seeds,
)
from tests.thoroughness import examples
from tests.transactions import DirectoryStore

RETAINING = Configuration(RESTARTS).set_string(
    "execution.checkpointing.externalized-checkpoint-retention", "RETAIN_ON_CANCELLATION"
)


def start(job: Any, **more: Any) -> JobHarness:
    arguments = {"records_per_epoch": 3, "checkpoint_every": 4, "configuration": RETAINING}
    return JobHarness(job, parallelism=2, **{**arguments, **more})


def run_epochs(harness: JobHarness, count: int) -> None:
    for _ in range(count):
        assert harness.run_epoch()


def checkpoints(harness: JobHarness) -> list[Path]:
    return sorted(Path(harness._directory.name, "checkpoints").glob("*/chk-*"))


@pytest.mark.parametrize("checkpointed", [True, False], ids=["checkpoints", "none"])
@pytest.mark.parametrize("epochs", [1, 6, 14, 40])
def test_stop_and_resume(tmp_path: Path, epochs: int, checkpointed: bool) -> None:
    """With the records that were collected before, and those after; also without checkpoints."""
    job = Job(tmp_path)
    harness = start(job, checkpoint_every=4 if checkpointed else None)
    run_epochs(harness, epochs)
    savepoint = harness.stop()
    assert harness.status is JobStatus.FINISHED
    # What sinks had prepared is visible, though no checkpoint came.
    assert Counter(job.outputs()["list"]) == Counter(harness.collected)
    resumed = harness.resume(savepoint)
    resumed.run()
    assert_exactly_once(job, resumed, collected=[*harness.collected, *resumed.collected])


EXECUTIONS = ("micro-batch", "real-time")


@pytest.mark.parametrize("by", ["savepoint", "checkpoint"])
@pytest.mark.parametrize("epochs", [5, 9, 13, 14, 15])
@pytest.mark.parametrize(("first", "second"), [EXECUTIONS, EXECUTIONS[::-1]])
def test_a_job_moves_from_one_way_to_execute_to_the_other(
    tmp_path: Path, first: str, second: str, epochs: int, by: str
) -> None:
    job = Job(tmp_path)
    key = "firesteel.execution"
    harness = start(job, configuration=Configuration(RETAINING).set_string(key, first))
    run_epochs(harness, epochs)
    savepoint = None
    if by == "savepoint":
        savepoint = harness.stop()
    else:
        harness.cancel()
        harness.run()
        assert len(checkpoints(harness)) == 1
    resumed = harness.resume(savepoint, configuration=Configuration().set_string(key, second))
    resumed.run()
    assert_exactly_once(job, resumed, collected=[*harness.collected, *resumed.collected])


LAST_STEPS = ("before commit", "after commit", "close", "crash")


def stop_badly(
    directory: Path, *, step: str, times: int, restarts: int, execution: str, epochs: int = 10
) -> tuple[Job, JobHarness, str]:
    """Stop a job whose last epoch fails so many times. Return its harness and the savepoint."""
    armed = directory / "armed"
    job = Job(directory, Trap(directory, times), lambda place, _: place == step and armed.exists())
    settings = Configuration(RETAINING).set_string("firesteel.execution", execution)
    settings.set_string("restart-strategy.fixed-delay.attempts", str(restarts))
    harness = start(job, configuration=settings)
    run_epochs(harness, epochs)
    answer = harness.request_savepoint(stop=StopMode.SUSPEND)
    while not harness.master.checkpoints.stopped:
        assert harness.run_epoch()
    assert not answer.done()
    armed.touch()
    for _ in range(times if step == "crash" else 0):
        if not harness.status.is_terminal_state():
            harness.crash()
    error: StopWithSavepointStoppingError | None = None
    try:
        harness.run()
    except StopWithSavepointStoppingError as raised:
        error = raised
    assert job.trap is not None
    failures = times if step == "crash" else job.trap.met
    # Two subtasks may fail in the same epoch.
    if failures <= restarts:
        assert error is None
    if failures and not restarts:
        assert error is not None
    if error is None:
        assert harness.status is JobStatus.FINISHED
        savepoint = answer.result(timeout=0)
    else:
        assert harness.status is JobStatus.FAILED
        assert answer.exception(timeout=0) is error
        savepoint = error.savepoint or ""
        assert f"{savepoint} is complete" in str(error)
        assert str(error.__cause__) in str(error)
    armed.unlink()
    # No checkpoint remains from which a job would write again what the savepoint has.
    assert checkpoints(harness) == []
    return job, harness, savepoint


@pytest.mark.parametrize("execution", EXECUTIONS)
@pytest.mark.parametrize("step", LAST_STEPS)
@pytest.mark.parametrize("restarts", [0, 3])
def test_a_job_that_was_told_to_stop_never_runs_on(
    tmp_path: Path, restarts: int, step: str, execution: str
) -> None:
    """It fails after its savepoint: a restart only commits the savepoint, and reads nothing."""
    job, harness, savepoint = stop_badly(
        tmp_path, step=step, times=2, restarts=restarts, execution=execution
    )
    assert job.trap is not None
    assert step == "crash" or job.trap.met
    assert len(harness.collected) < len(golden())
    resumed = harness.resume(savepoint)
    resumed.run()
    assert_exactly_once(job, resumed, collected=[*harness.collected, *resumed.collected])


def test_a_job_that_is_canceled_while_it_stops_says_where_its_savepoint_is(tmp_path: Path) -> None:
    job = Job(tmp_path)
    harness = start(job)
    run_epochs(harness, 10)
    answer = harness.request_savepoint(stop=StopMode.SUSPEND)
    while not harness.master.checkpoints.stopped:
        assert harness.run_epoch()
    harness.cancel()
    harness.run()
    assert harness.status is JobStatus.CANCELED
    with pytest.raises(StopWithSavepointStoppingError, match="was canceled") as raised:
        answer.result(timeout=0)
    resumed = harness.resume(raised.value.savepoint)
    resumed.run()
    assert_exactly_once(job, resumed, collected=[*harness.collected, *resumed.collected])


@given(
    step=st.sampled_from(LAST_STEPS),
    times=st.integers(0, 3),
    restarts=st.integers(0, 3),
    execution=st.sampled_from(EXECUTIONS),
    epochs=st.integers(1, 40),
    parallelism=st.integers(1, 3),
)
@settings(max_examples=examples(15), deadline=None)
def test_however_a_stop_goes_wrong_its_savepoint_continues_exactly_there(
    step: str, times: int, restarts: int, execution: str, epochs: int, parallelism: int
) -> None:
    with tempfile.TemporaryDirectory() as name:
        job, harness, savepoint = stop_badly(
            Path(name),
            step=step,
            times=times,
            restarts=restarts,
            execution=execution,
            epochs=epochs,
        )
        resumed = harness.resume(savepoint, parallelism=parallelism)
        resumed.run()
        assert_exactly_once(job, resumed, collected=[*harness.collected, *resumed.collected])


def test_a_savepoint_in_between_changes_nothing_and_commits_nothing(tmp_path: Path) -> None:
    job = Job(tmp_path)
    harness = start(job, checkpoint_every=0)
    run_epochs(harness, 5)
    harness.savepoint()
    run_epochs(harness, 2)
    assert job.outputs()["list"] == harness.collected == []
    harness.crash()
    harness.run()
    assert_exactly_once(job, harness)


def test_stopping_that_fails_lets_the_job_go_on(tmp_path: Path) -> None:
    job = Job(tmp_path)
    harness = start(job)
    run_epochs(harness, 6)
    blocked = tmp_path / "a file"
    blocked.touch()
    with pytest.raises(CheckpointFailedError, match="savepoint 2 failed"):
        harness.stop(str(blocked))
    harness.run()
    assert harness.status is JobStatus.FINISHED
    assert_exactly_once(job, harness)


def endless(sink: ListSink) -> Any:
    """Two timers wait for the end of event time; the source never ends."""

    def program(env: Any) -> Any:
        script = [*range(RECORDS), *[Pause(0.01)] * 1000]
        source = env.from_source(ScriptedSource(script, bounded=False), None, "script")
        counted = source.key_by(lambda n: n % 2).process(AtTheEnd()).uid("count")
        counted.sink_to(sink).uid("sink")
        return counted

    return program


class AtTheEnd(KeyedProcessFunction):
    def open(self, runtime_context: Any) -> None:
        self.total = runtime_context.get_state(ValueStateDescriptor("total", Types.INT()))

    def process_element(self, value: int, ctx: Any) -> Any:
        self.total.update((self.total.value() or 0) + value)
        ctx.timer_service().register_event_time_timer(10**9)
        yield "record", value

    def on_timer(self, timestamp: int, ctx: Any) -> Any:
        yield "total", self.total.value()


@pytest.mark.parametrize("checkpoint_every", [None, 3])
def test_draining_lets_everything_come_out(checkpoint_every: int | None) -> None:
    sink = ListSink()
    harness = start(endless(sink), checkpoint_every=checkpoint_every)
    run_epochs(harness, 4)
    savepoint = harness.stop(drain=True)
    seen = [value for kind, value in harness.collected if kind == "record"]
    totals = [sum(value for value in seen if value % 2 == key) for key in (0, 1)]
    assert sorted(value for kind, value in harness.collected if kind == "total") == sorted(totals)
    assert Counter(sink.values()) == Counter(harness.collected)
    # It was not made for that, but who resumes it goes on behind what was read.
    resumed = harness.resume(savepoint)
    run_epochs(resumed, 40)
    more = [value for kind, value in resumed.collected if kind == "record"]
    if checkpoint_every is None:
        assert sorted(seen + more) == list(range(RECORDS))
    assert not set(seen) & set(more)


def test_draining_that_fails_starts_the_job_over(tmp_path: Path) -> None:
    """Event time has ended in the tasks: only the last checkpoint can bring it back."""
    sink = ListSink()
    harness = start(endless(sink))
    run_epochs(harness, 6)
    blocked = tmp_path / "a file"
    blocked.touch()
    with pytest.raises(CheckpointFailedError):
        harness.stop(str(blocked), drain=True)
    run_epochs(harness, 60)
    values = [value for kind, value in sink.values()]
    assert values == list(range(len(values)))
    assert len(values) > 20


@pytest.mark.parametrize("epochs", [5, 9, 13, 30])
def test_cancel_and_resume_from_the_retained_checkpoint(tmp_path: Path, epochs: int) -> None:
    job = Job(tmp_path)
    harness = start(job)
    run_epochs(harness, epochs)
    harness.cancel()
    harness.run()
    assert harness.status is JobStatus.CANCELED
    assert len(checkpoints(harness)) == 1
    # What no checkpoint has confirmed is not visible.
    assert Counter(job.outputs()["list"]) == Counter(harness.collected)
    resumed = harness.resume()
    resumed.run()
    assert_exactly_once(job, resumed, collected=[*harness.collected, *resumed.collected])


def prepared(job: Job) -> list[list[Any]]:
    """The records of transactions that are neither committed nor aborted."""
    return DirectoryStore(job.directory / "transactions").in_phase("prepared")


@pytest.mark.parametrize("execution", EXECUTIONS)
@pytest.mark.parametrize("stuck", [False, True], ids=["complete", "pending"])
def test_a_canceled_job_aborts_what_it_prepared_after_its_last_checkpoint(
    tmp_path: Path, execution: str, stuck: bool
) -> None:
    """Also if the next checkpoint is being written: it must not become complete then."""
    job = Job(tmp_path)
    settings = Configuration(RETAINING).set_string("firesteel.execution", execution)
    harness = start(job, configuration=settings, records_per_epoch=2)
    run_epochs(harness, 11)
    harness.storage_is_stuck = stuck
    run_epochs(harness, 3)
    assert len(prepared(job)) > 1
    cancel(harness)
    assert prepared(job) == []
    assert [path.name for path in checkpoints(harness)] == ["chk-2" if stuck else "chk-3"]
    resumed = harness.resume()
    resumed.run()
    assert_exactly_once(job, resumed, collected=[*harness.collected, *resumed.collected])


def test_transactions_of_a_checkpoint_that_storage_may_still_have_are_not_aborted(
    tmp_path: Path,
) -> None:
    """The checkpoint is being written when the job is canceled, and cannot be deleted."""
    job = Job(tmp_path)
    fault = StorageFault(StorageFaultKind.FAIL, "delete", "*chk-3*_metadata*", 1)
    storage, _ = with_faults(open_storage(str(tmp_path / "checkpoints")), fault)
    harness = start(job, storage=storage, records_per_epoch=2)
    run_epochs(harness, 11)
    harness.storage_is_stuck = True
    run_epochs(harness, 1)
    before = prepared(job)
    cancel(harness)
    assert before
    assert prepared(job) == before


@pytest.mark.parametrize("origin", ["savepoint", "checkpoint"])
def test_a_canceled_job_does_not_abort_what_a_savepoint_holds(tmp_path: Path, origin: str) -> None:
    job = Job(tmp_path)
    harness = start(job, records_per_epoch=2)
    run_epochs(harness, 9)
    savepoint = harness.savepoint()
    held = prepared(job)
    run_epochs(harness, 1)
    harness.cancel()
    harness.run()
    assert held
    assert prepared(job) == held
    resumed = harness.resume(savepoint if origin == "savepoint" else None)
    resumed.run()
    # The job from the checkpoint cannot know that nothing returns to the savepoint any more.
    rest = prepared(job)
    assert rest == [] if origin == "savepoint" else all(one in held for one in rest)
    # The canceled job has not delivered the records that it had collected since its checkpoint.
    records = job.outputs()["list"]
    left = origin == "checkpoint"
    assert_exactly_once(job, resumed, collected=records, processes_killed=left)


@pytest.mark.parametrize("execution", EXECUTIONS)
@pytest.mark.parametrize("seed", seeds(1, 60))
def test_whenever_a_job_is_canceled_it_leaves_no_transaction(
    tmp_path: Path, execution: str, seed: int
) -> None:
    job, random = Job(tmp_path), Random(seed)
    configuration = Configuration(RETAINING).set_string("firesteel.execution", execution)
    every = random.randint(1, 6)
    harness = start(job, configuration=configuration, checkpoint_every=every, seed=seed)
    for _ in range(random.randint(1, 30)):
        step = random.choice(["epoch", "epoch", "stuck", "free", "faults", "crash", "checkpoint"])
        if step in ("stuck", "free"):
            harness.storage_is_stuck = step == "stuck"
        elif step == "crash" and not harness.storage_is_stuck:
            harness.crash()
        elif step == "checkpoint":
            harness.request_checkpoint()
        faults = [Fault.RETRY, Fault.BREAK_OFF, Fault.LOSE_INPUT]
        lost = {place: random.choice(faults) for place in harness.places()}
        if not harness.run_epoch(lost if step == "faults" else None):
            break
    was_over = harness.status.is_terminal_state()
    cancel(harness)
    assert prepared(job) == []
    if was_over:
        assert_exactly_once(job, harness)
    elif checkpoints(harness):
        resumed = harness.resume(parallelism=random.randint(1, 3))
        resumed.run()
        assert_exactly_once(job, resumed, collected=[*harness.collected, *resumed.collected])


def test_a_canceled_job_without_retention_leaves_no_checkpoint(tmp_path: Path) -> None:
    harness = start(Job(tmp_path), configuration=RESTARTS)
    run_epochs(harness, 9)
    assert len(checkpoints(harness)) == 1
    harness.cancel()
    harness.run()
    assert checkpoints(harness) == []
    with pytest.raises(CheckpointNotFoundError, match="harness"):
        harness.resume()


def test_a_finished_job_leaves_no_checkpoint_and_no_file(tmp_path: Path) -> None:
    harness = start(Job(tmp_path), inline_threshold=0)
    harness.run()
    left = Path(harness._directory.name, "checkpoints").rglob("*")
    assert [path for path in left if path.is_file()] == []


def test_a_killed_driver_and_what_it_leaves(tmp_path: Path) -> None:
    """Every tenth epoch the driver is killed; a new one takes the newest checkpoint of the job."""
    job = Job(tmp_path)
    harness = start(job, inline_threshold=0)
    for _ in range(20):
        for _ in range(10):
            if not harness.run_epoch():
                break
        if harness.status.is_terminal_state():
            break
        harness.kill()
        harness = harness.resume()
    harness.run()
    assert_exactly_once(job, harness, collected=job.outputs()["list"], processes_killed=True)


def test_a_source_that_had_ended_does_not_start_again(tmp_path: Path) -> None:
    """One source ends early. The job is killed, and neither records nor time come twice."""
    sink = ListSink()

    def program(env: Any) -> Any:
        short = env.from_collection([(0, "short"), (1, "short")])
        script = [(number, "long") for number in range(30)]
        long = env.from_source(ScriptedSource(script), None, "long").set_parallelism(1)
        both = short.union(long)
        both.key_by(lambda record: record[1]).process(Ends()).sink_to(sink)

    harness = start(program, checkpoint_every=2, records_per_epoch=2)
    run_epochs(harness, 6)
    harness.kill()
    harness = harness.resume(parallelism=3)
    run_epochs(harness, 3)
    harness.crash()
    harness.run()
    expected = Counter({("short", 2): 1, ("long", 30): 1})
    assert Counter(sink.values()) == expected


class Ends(KeyedProcessFunction):
    """Counts, and tells when event time has come to its end."""

    def open(self, runtime_context: Any) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.INT()))

    def process_element(self, value: Any, ctx: Any) -> Any:
        self.count.update((self.count.value() or 0) + 1)
        ctx.timer_service().register_event_time_timer(10**9)
        return []

    def on_timer(self, timestamp: int, ctx: Any) -> Any:
        yield ctx.get_current_key(), self.count.value()


def test_the_last_checkpoint_is_taken_even_if_none_may_be_once_tasks_have_finished(
    tmp_path: Path,
) -> None:
    key = "execution.checkpointing.checkpoints-after-tasks-finish"
    job = Job(tmp_path)
    harness = start(job, configuration=Configuration(RESTARTS).set_string(key, "false"))
    harness.run()
    assert_exactly_once(job, harness)


@pytest.mark.parametrize("place", ["before commit", "after commit"])
def test_a_failure_in_the_last_commit_of_all(tmp_path: Path, place: str) -> None:
    """All sources have ended, the last checkpoint is complete, and then the commit fails."""
    job = Job(tmp_path, Trap(tmp_path, times=2), lambda where, _: where == place)
    harness = start(job, checkpoint_every=0)
    harness.run()
    assert job.trap is not None
    assert job.trap.met == 2
    assert_exactly_once(job, harness)
    assert len(harness.collected) == len(golden())


def run_to_a_failing_end(tmp_path: Path, failures: set[int]) -> tuple[list[Any], float]:
    """Let writes of the final checkpoint fail. Return the committed records, and the end in seconds."""
    sink = ListSink()
    configuration = Configuration(RESTARTS)
    configuration.set_string("execution.checkpointing.interval", "10 min")
    configuration.set_string("execution.checkpointing.tolerable-failed-checkpoints", "100")
    faults = [
        StorageFault(StorageFaultKind.FAIL, "write", "*_metadata*", call) for call in failures
    ]
    storage, _ = with_faults(open_storage(str(tmp_path / "checkpoints")), *faults)
    harness = start(
        lambda env: env.from_sequence(1, 9).sink_to(sink),
        configuration=configuration,
        checkpoint_every=0,
        storage=storage,
    )
    harness.run()
    return sorted(sink.values()), harness.now_millis() / 1000


def test_a_final_checkpoint_that_fails_once_is_repeated_at_once(tmp_path: Path) -> None:
    records, seconds = run_to_a_failing_end(tmp_path, {1})
    assert records == [*range(1, 10)]
    assert seconds < 0.5


def test_a_final_checkpoint_that_fails_often_is_repeated_with_pauses(tmp_path: Path) -> None:
    records, seconds = run_to_a_failing_end(tmp_path, {*range(1, 13)})
    assert records == [*range(1, 10)]
    assert 40 < seconds < 100


@given(st.sets(st.integers(1, 8)))
@settings(max_examples=examples(20), deadline=None)
def test_whatever_fails_at_the_end_the_job_does_not_wait_for_the_interval(
    failures: set[int],
) -> None:
    with tempfile.TemporaryDirectory() as directory:
        records, seconds = run_to_a_failing_end(Path(directory), failures)
    assert records == [*range(1, 10)]
    in_a_row = next(number for number in range(1, 10) if number not in failures) - 1
    assert seconds < 0.5 + 0.1 * 2**in_a_row
