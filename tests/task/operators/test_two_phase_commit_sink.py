"""A crash in every phase of a transaction, against a store that refuses invalid requests."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from firesteel.datastream import RuntimeExecutionMode, TwoPhaseCommitSinkFunction
from firesteel.errors import InvalidProgramError, UserFunctionError
from firesteel.protocol.messages import OperatorHandle, SubtaskHandle
from firesteel.testing import Fault, JobHarness, ListSink, OperatorHarness, OperatorSnapshot
from tests.thoroughness import examples
from tests.transactions import DirectoryStore, StoreSink


@pytest.fixture
def store(tmp_path: Path) -> DirectoryStore:
    return DirectoryStore(tmp_path)


def sink_of(function: TwoPhaseCommitSinkFunction[Any, Any, Any]) -> Any:
    return lambda stream: stream.add_sink(function).name("ledger")


@pytest.fixture
def program(tmp_path: Path) -> Any:
    return sink_of(StoreSink(tmp_path))


def after_first_checkpoint(program: Any) -> tuple[OperatorHarness, OperatorSnapshot]:
    """A job with [1, 2] committed, and [3] written since."""
    harness = OperatorHarness.of(program)
    harness.process_elements([1, 2])
    snapshot = harness.snapshot(1)
    harness.notify_checkpoint_complete(1)
    harness.process_element(3)
    return harness, snapshot


def goes_on(program: Any, snapshot: OperatorSnapshot, replayed: list[Any]) -> None:
    """The restored job reads again what came after the checkpoint, and completes another one."""
    with OperatorHarness.restored(program, snapshot) as restored:
        restored.process_elements([*replayed, 4])
        restored.snapshot(9)
        restored.notify_checkpoint_complete(9)


def test_records_are_visible_once_their_checkpoint_is_complete(program, store):
    harness, _ = after_first_checkpoint(program)
    harness.snapshot(2)
    assert store.committed == [1, 2]
    harness.notify_checkpoint_complete(2)
    assert store.committed == [1, 2, 3]


def test_a_crash_before_pre_commit(program, store):
    _, snapshot = after_first_checkpoint(program)
    goes_on(program, snapshot, [3])
    assert store.in_phase("committed") == [[1, 2], [3, 4]]
    assert store.in_phase("open") == store.in_phase("prepared") == []


def test_a_crash_between_pre_commit_and_the_completion_of_the_checkpoint(program, store):
    harness, snapshot = after_first_checkpoint(program)
    harness.snapshot(2)
    assert store.in_phase("prepared") == [[3]]
    goes_on(program, snapshot, [3])
    assert store.in_phase("committed") == [[1, 2], [3, 4]]
    assert store.in_phase("prepared") == []


def test_a_crash_between_completion_and_commit(program, store):
    harness, _ = after_first_checkpoint(program)
    completed = harness.snapshot(2)
    goes_on(program, completed, [])
    assert store.in_phase("committed") == [[1, 2], [3], [4]]


def test_a_crash_after_commit_and_before_its_note(program, store):
    harness, _ = after_first_checkpoint(program)
    completed = harness.snapshot(2)
    harness.notify_checkpoint_complete(2)
    goes_on(program, completed, [])
    assert store.in_phase("committed") == [[1, 2], [3], [4]]


def test_a_crash_before_the_first_checkpoint_leaves_nothing_visible(program, store):
    OperatorHarness.of(program).process_elements([1, 2])
    with OperatorHarness.of(program) as again:
        again.process_elements([1, 2])
        again.snapshot(1)
        again.notify_checkpoint_complete(1)
    assert store.committed == [1, 2]


def test_a_checkpoint_stands_for_earlier_ones_that_were_aborted(program, store):
    with OperatorHarness.of(program) as harness:
        for number in (1, 2, 3):
            harness.process_element(number)
            harness.snapshot(number)
        harness.notify_checkpoint_aborted(1)
        assert store.committed == []
        harness.notify_checkpoint_complete(2)
        assert store.committed == [1, 2]
        harness.notify_checkpoint_complete(3)
        assert store.committed == [1, 2, 3]


def test_each_epoch_has_a_transaction_and_a_checkpoint_gathers_them(program, store):
    with OperatorHarness.of(program) as harness:
        harness.process_elements([1, 2])
        harness.end_epoch()
        harness.end_epoch()
        harness.process_element(3)
        harness.snapshot(1)
        assert store.in_phase("prepared") == [[1, 2], [3]]
        harness.notify_checkpoint_complete(1)
        assert store.in_phase("committed") == [[1, 2], [3]]


def test_close_aborts_what_is_open_and_nothing_else(program, store):
    with OperatorHarness.of(program) as harness:
        harness.process_element(1)
        harness.snapshot(1)
        harness.process_element(2)
    assert store.in_phase("open") == []
    assert store.in_phase("prepared") == [[1]]


# Attempts of one epoch, while the job goes on


def handle_of(harness: OperatorHarness, snapshot: OperatorSnapshot) -> SubtaskHandle:
    return SubtaskHandle({harness._node.id: OperatorHandle(whole=snapshot.whole)})


def retried(harness: OperatorHarness, snapshot: OperatorSnapshot) -> None:
    """The slot restores the epoch before: the task runs again in the same process."""
    harness._subtask.restore(handle_of(harness, snapshot), harness._store)


def moved(program: Any, snapshot: OperatorSnapshot, attempt: int = 0) -> OperatorHarness:
    """The task runs again in another process."""
    harness = OperatorHarness(program, attempt=attempt)
    harness._begin(handle_of(harness, snapshot))
    return harness


def test_an_attempt_that_broke_off_is_aborted_when_the_slot_restores(program, store):
    with OperatorHarness.of(program) as harness:
        harness.process_element(1)
        before = harness.end_epoch()
        harness.process_elements([2, 3])
        retried(harness, before)
        assert store.in_phase("open") == [[]]
        harness.process_elements([2, 3, 4])
        harness.snapshot(1)
        harness.notify_checkpoint_complete(1)
    assert store.in_phase("committed") == [[1], [2, 3, 4]]


def test_a_complete_attempt_whose_output_was_lost_is_aborted_when_the_slot_restores(program, store):
    with OperatorHarness.of(program) as harness:
        harness.process_element(1)
        before = harness.end_epoch()
        harness.process_element(2)
        harness.snapshot(1)
        retried(harness, before)
        assert store.in_phase("prepared") == [[1]]
        harness.process_element(2)
        harness.snapshot(1)
        harness.notify_checkpoint_complete(1)
    assert store.in_phase("committed") == [[1], [2]]


@pytest.mark.parametrize("epochs_before", [0, 1])
def test_also_when_it_is_lost_again_and_in_the_first_epoch(program, store, epochs_before):
    with OperatorHarness.of(program) as harness:
        handle = SubtaskHandle()
        for _ in range(epochs_before):
            handle = handle_of(harness, harness.end_epoch())
        for _ in range(3):
            harness.process_element(1)
            harness.snapshot(1)
            assert store.in_phase("prepared") == [[1]]
            harness._subtask.restore(handle, harness._store)
            assert store.in_phase("prepared") == []


@pytest.mark.parametrize("times", [1, 2])
def test_an_epoch_whose_retry_cannot_be_restored_leaves_no_transaction(program, store, times):
    """A different function of the slot could not be restored. Nothing else ends the transaction."""
    with OperatorHarness.of(program) as harness:
        harness.process_element(1)
        before = harness.end_epoch()
        for _ in range(times):
            retried(harness, before)
            harness.process_element(2)
            harness.snapshot(1)
        with OperatorHarness(program) as successor:
            successor._subtask.replace(harness._subtask)
            successor._subtask.restore_failed(handle_of(harness, before))
            assert store.in_phase("prepared") == [[1]]


def test_the_transaction_of_a_lost_process_is_aborted_by_the_next(program, store):
    lost = OperatorHarness.of(program)
    lost.process_element(1)
    before = lost.end_epoch()
    lost.process_element(2)
    with moved(program, before) as harness:
        assert store.in_phase("open") == [[]]
        harness.process_element(2)
        harness.snapshot(1)
        harness.notify_checkpoint_complete(1)
    assert store.in_phase("committed") == [[1], [2]]


def test_a_zombie_that_goes_on_after_its_retry_changes_nothing(program, store):
    zombie = OperatorHarness.of(program)
    zombie.process_element(1)
    before = zombie.end_epoch()
    with moved(program, before) as harness:
        harness.process_element(2)
        harness.snapshot(1)
        zombie.process_element(2)
        zombie.snapshot(1)
        zombie.close()
        harness.notify_checkpoint_complete(1)
    assert store.in_phase("committed") == [[1], [2]]


def test_a_slot_that_comes_back_does_not_abort_what_was_committed_elsewhere(program, store):
    here = OperatorHarness.of(program)
    here.process_element(1)
    first = here.snapshot(1)
    with moved(program, first) as there:
        there.notify_checkpoint_complete(1)
        there.process_element(2)
        there.end_epoch()
        there.process_element(3)
        third = there.snapshot(2)
        retried(here, third)
        here.notify_checkpoint_complete(2)
    assert store.committed == [1, 2, 3]


def test_the_note_of_a_checkpoint_may_come_twice(program, store):
    with OperatorHarness.of(program) as harness:
        harness.process_element(1)
        before = harness.snapshot(1)
        harness.notify_checkpoint_complete(1)
        harness.process_element(2)
        retried(harness, before)
        harness.notify_checkpoint_complete(1)
        assert store.committed == [1]


class Job:
    """A driver in short: epochs with attempts that fail, checkpoints, and crashes of the whole job."""

    def __init__(self, program: Any) -> None:
        self.program = program
        self.executions = 0
        self.position = 0
        self.harness = OperatorHarness(program).open()
        self.acked = self.harness.end_epoch()
        self.completed = (0, self.acked)
        self.acked_barriers: dict[int, tuple[int, OperatorSnapshot]] = {}
        self.checkpoints = 0
        self.note: int | None = None

    def epoch(self, records: int, fault: str, *, barrier: bool) -> None:
        number = None
        if barrier:
            number = self.checkpoints = self.checkpoints + 1
        if fault != "none":
            self._begin(records if fault != "breaks off" else records // 2)
            if fault in ("output lost", "process lost late"):
                self._end(number)
            if fault.startswith("process lost"):
                self.harness = moved(self.program, self.acked, self.executions)
            else:
                retried(self.harness, self.acked)
        self._begin(records)
        self.acked = self._end(number)
        self.position += records
        self.note = None
        if number is not None:
            self.acked_barriers[number] = (self.position, self.acked)

    def _end(self, number: int | None) -> OperatorSnapshot:
        return self.harness.end_epoch() if number is None else self.harness.snapshot(number)

    def _begin(self, records: int) -> None:
        if self.note is not None:
            self.harness.notify_checkpoint_complete(self.note)
        self.harness.process_elements(range(self.position, self.position + records))

    def complete(self, number: int) -> None:
        if number in self.acked_barriers:
            self.completed = self.acked_barriers.pop(number)
            self.acked_barriers = {n: c for n, c in self.acked_barriers.items() if n > number}
            self.note = number

    def crash(self) -> None:
        self.executions += 1
        self.position, snapshot = self.completed
        self.harness = moved(self.program, snapshot, self.executions)
        # It keeps the state it was restored from until its first epoch is acked.
        self.acked = snapshot
        self.acked_barriers.clear()
        self.note = None


_FAULTS = ("none", "none", "breaks off", "output lost", "process lost", "process lost late")
_STEPS = st.one_of(
    st.tuples(st.just("epoch"), st.integers(0, 3), st.sampled_from(_FAULTS), st.booleans()),
    st.tuples(st.just("complete"), st.integers(1, 6)),
    st.tuples(st.just("crash")),
)


@settings(deadline=None, max_examples=examples(150))
@given(steps=st.lists(_STEPS, max_size=14))
def test_every_record_is_committed_once_whatever_happens_in_whatever_order(steps):
    with TemporaryDirectory() as directory:
        store = DirectoryStore(Path(directory))
        job = Job(sink_of(StoreSink(Path(directory))))
        for step in steps:
            if step[0] == "epoch":
                job.epoch(step[1], step[2], barrier=step[3])
            elif step[0] == "complete":
                job.complete(step[1])
            else:
                job.crash()
            assert set(store.committed) <= set(range(job.position))
        job.epoch(1, "none", barrier=True)
        job.complete(job.checkpoints)
        job.epoch(0, "none", barrier=False)
        assert Counter(store.committed) == Counter(range(job.position))


# Without checkpoints


@pytest.mark.parametrize("fault", Fault)
def test_a_bounded_job_without_checkpoints_commits_at_its_end(program, store, fault):
    def job(env: Any) -> None:
        program(env.from_collection(range(20)))

    harness = JobHarness(job, records_per_epoch=6)
    faults = {epoch: dict.fromkeys(harness.places(), fault) for epoch in (1, 3)}
    for epoch in range(1, 5):
        harness.run_epoch(faults.get(epoch))
        assert store.committed == []
    harness.run()
    assert store.committed == list(range(20))


@pytest.mark.parametrize("seed", range(12))
def test_no_lost_input_aborts_what_the_driver_is_to_commit_at_the_end(tmp_path, seed):
    sink = StoreSink(tmp_path)

    def job(env: Any) -> None:
        env.from_collection(range(6)).rebalance().add_sink(sink)

    harness = JobHarness(job, records_per_epoch=6, seed=seed, parallelism=2)
    fault = dict.fromkeys(harness.places(), Fault.LOSE_INPUT)
    harness.run(dict.fromkeys(range(1, 9), fault))
    assert sorted(sink.store.committed) == list(range(6))


@pytest.mark.parametrize("fault", Fault)
def test_a_batch_job_commits_at_its_end(program, store, fault):
    def job(env: Any) -> None:
        env.set_runtime_mode(RuntimeExecutionMode.BATCH)
        program(env.from_collection(range(20)))

    harness = JobHarness(job)
    harness.run({1: dict.fromkeys(harness.places(), fault)})
    assert store.committed == list(range(20))


def test_a_failed_job_commits_nothing(program, store):
    def job(env: Any) -> None:
        program(env.from_collection([1, 2, 0]).map(lambda value: 1 // value))

    with pytest.raises(UserFunctionError, match="ZeroDivisionError"):
        JobHarness(job, records_per_epoch=1).run()
    assert store.committed == []
    assert store.in_phase("open") == []


def test_it_stands_beside_other_sinks(program, store):
    sink = ListSink()

    def job(env: Any) -> None:
        stream = env.from_collection(range(5))
        program(stream)
        stream.sink_to(sink)

    JobHarness(job, records_per_epoch=2).run()
    assert store.committed == sink.values() == list(range(5))


# The user context


class Numbered(StoreSink):
    """Keeps the number of its next transaction in the user context."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self.events: list[Any] = []

    def initialize_user_context(self) -> Any:
        self.events.append("initialized")
        return {"next": 0}

    def begin_transaction(self) -> str:
        context = self.get_user_context()
        assert context is not None
        context["next"] += 1
        self.events.append(context["next"])
        return super().begin_transaction()

    def finish_recovering_context(self, handled_transactions: Any) -> None:
        self.events.append(list(handled_transactions))


def test_the_user_context_is_part_of_the_state(tmp_path):
    first = Numbered(tmp_path)
    harness = OperatorHarness.of(sink_of(first))
    harness.process_element(1)
    snapshot = harness.snapshot(1)
    assert first.events == ["initialized", 1, 2]
    second = Numbered(tmp_path)
    with OperatorHarness.restored(sink_of(second), snapshot):
        assert second.events == [["0", "1"], 3]


def test_a_repeated_epoch_finds_the_user_context_that_it_found_first(tmp_path):
    function = Numbered(tmp_path)
    with OperatorHarness.of(sink_of(function)) as harness:
        before = harness.end_epoch()
        harness.process_element(1)
        harness.end_epoch()
        retried(harness, before)
        assert function.events == ["initialized", 1, 2, 2]


def test_a_function_can_see_its_transactions(tmp_path):
    function = StoreSink(tmp_path)
    with pytest.raises(InvalidProgramError, match="only in a task"):
        function.current_transaction()
    with OperatorHarness.of(sink_of(function)) as harness:
        harness.process_element("a")
        harness.snapshot(7)
        assert list(function.pending_transactions()) == [(7, "0")]
        assert function.current_transaction() == "1"
        assert function.get_user_context() is None


# Failures and timeouts


class Refusing(StoreSink):
    refused: set[str] = {"0"}

    def commit(self, transaction: str) -> None:
        if transaction in self.refused:
            raise ConnectionError(f"transaction {transaction} is gone")
        super().commit(transaction)


def test_a_failed_commit_names_the_function_and_does_not_stop_the_others(tmp_path, store):
    with OperatorHarness.of(sink_of(Refusing(tmp_path))) as harness:
        for value in (1, 2):
            harness.process_element(value)
            harness.snapshot(value)
        with pytest.raises(UserFunctionError, match="transaction 0 is gone") as caught:
            harness.notify_checkpoint_complete(2)
    assert caught.value.operator == "Sink: ledger"
    assert caught.value.function == "Refusing.commit"
    assert store.committed == [2]


def test_a_failed_write_names_the_record(tmp_path, blames):
    class Divides(StoreSink):
        def invoke(self, transaction, value, context):  # type: ignore[override]  # Flink's overload
            super().invoke(transaction, 1 // value, context)

    blames(
        OperatorHarness.of(sink_of(Divides(tmp_path))),
        [1, 0],
        operator="Sink: ledger",
        function=Divides.invoke,
    )


def test_a_handle_that_cannot_travel_is_an_error_that_names_its_maker(tmp_path):
    class Connected(StoreSink):
        def begin_transaction(self):
            return (super().begin_transaction(), Path(tmp_path / "lock").open("w"))

        def abort(self, transaction):
            """Accept the pair, which the store does not know."""

    with (
        OperatorHarness.of(sink_of(Connected(tmp_path))) as harness,
        pytest.raises(UserFunctionError, match="pickle") as caught,
    ):
        harness.end_epoch()
    assert caught.value.function.endswith("Connected.begin_transaction")


def _snapshot_of_an_old_transaction(tmp_path: Path) -> OperatorSnapshot:
    harness = OperatorHarness.of(sink_of(Refusing(tmp_path)))
    harness.process_element(1)
    return harness.snapshot(1)


def test_recovery_fails_while_a_transaction_cannot_be_committed(tmp_path):
    snapshot = _snapshot_of_an_old_transaction(tmp_path)
    function = Refusing(tmp_path).set_transaction_timeout(1000)
    with pytest.raises(UserFunctionError, match="transaction 0 is gone"):
        OperatorHarness.restored(sink_of(function), snapshot)


def test_failures_after_the_timeout_can_be_ignored(tmp_path, caplog):
    snapshot = _snapshot_of_an_old_transaction(tmp_path)
    function = Refusing(tmp_path).set_transaction_timeout(1000)
    function.ignore_failures_after_transaction_timeout()

    def program(stream):
        return sink_of(function)(stream)

    harness = OperatorHarness(program, attempt=1)
    harness.clock.set(1000)
    with pytest.raises(UserFunctionError):  # not yet over
        harness._begin(handle_of(harness, snapshot))
    harness = OperatorHarness(program, attempt=1)
    harness.clock.set(1001)
    harness._begin(handle_of(harness, snapshot))
    assert "its records may be lost" in caplog.text


def test_a_warning_says_that_a_transaction_comes_close_to_its_timeout(tmp_path, caplog):
    function = StoreSink(tmp_path).set_transaction_timeout(1000)
    function.enable_transaction_timeout_warnings(0.8)
    with OperatorHarness.of(sink_of(function)) as harness:
        for number, age in ((1, 800), (2, 801)):
            harness.process_element(number)
            harness.advance_processing_time(age)
            harness.snapshot(number)
            harness.notify_checkpoint_complete(number)
            assert ("open for 801 ms" in caplog.text) is (age == 801)


@pytest.mark.parametrize("ratio", [-0.1, 1.1])
def test_settings_are_checked(tmp_path, ratio):
    with pytest.raises(InvalidProgramError, match="warning_ratio"):
        StoreSink(tmp_path).enable_transaction_timeout_warnings(ratio)
    with pytest.raises(InvalidProgramError, match="negative"):
        StoreSink(tmp_path).set_transaction_timeout(-1)
