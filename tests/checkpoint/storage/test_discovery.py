"""Coordinator, storage and discovery together, with failing storage and drivers that die."""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from firesteel.checkpoint.metadata import CheckpointMetadata, SnapshotType, SubtaskState
from firesteel.checkpoint.rules.completed_checkpoint import CompletedCheckpoint
from firesteel.checkpoint.rules.coordinator import CheckpointCoordinator
from firesteel.checkpoint.rules.decisions import (
    AnswerRequest,
    Barrier,
    CleanUp,
    Decision,
    DeleteCheckpoint,
    DeleteSavepoint,
    WriteSnapshot,
)
from firesteel.checkpoint.rules.requests import SnapshotRequest
from firesteel.checkpoint.rules.restore import RestoreTarget, plan_restore
from firesteel.checkpoint.rules.settings import CheckpointSettings
from firesteel.checkpoint.rules.tasks import OperatorInfo, TaskAck
from firesteel.checkpoint.snapshot_writer import SnapshotWriter
from firesteel.checkpoint.storage.checkpoint_directory import CheckpointDirectory
from firesteel.checkpoint.storage.discovery import (
    find_checkpoint,
    find_latest_checkpoint,
    latest_run,
)
from firesteel.checkpoint.storage.metadata_file import CheckpointNotFoundError, write_metadata
from firesteel.checkpoint.storage.segment_store import StorageSegmentStore
from firesteel.checkpoint.storage.storage import Storage, StorageError, open_storage
from firesteel.common.job_status import JobStatus
from firesteel.errors import WriteFailedError
from firesteel.state.changelog import Segment, with_segment
from firesteel.state.hashmap.backend import HashMapKeyedStateBackend
from firesteel.state.key_groups import key_group_of, subtask_of
from firesteel.task.state.restoring import restore_keyed_state
from firesteel.testing import StorageFault, StorageFaultKind, with_faults
from tests.checkpoint.builders import metadata, written_files
from tests.thoroughness import examples

_MAX = 8
_FAULTS = st.builds(
    StorageFault,
    st.sampled_from([StorageFaultKind.FAIL, StorageFaultKind.FULL, StorageFaultKind.LOST_ANSWER]),
    st.sampled_from(["write", "rename", "sync"]),
    st.sampled_from(["*_metadata*", "*/shared/*", "*/state-*"]),
    call=st.just(1),
)


@pytest.mark.parametrize("name", ["checkpoints", "of [all] jobs *"])
def test_the_latest_run_is_found_by_one_checkpoint_per_run(storage: Storage, name: str) -> None:
    root = storage.at(name)
    assert latest_run(root, "count") == 0
    runs = [("a", "count", 1), ("b", "count", 3), ("c", "sum", 9), ("d", "count", 2)]
    for job_id, job_name, run in runs:
        for number in (9, 10):
            content = replace(metadata(), job_id=job_id, job_name=job_name, run=run)
            write_metadata(content, root.at(f"{job_id}/chk-{number}"))
        root.write(f"{job_id}/shared/segment", b"state")
    assert latest_run(root, "count") == 3
    assert latest_run(root, "other") == 0
    # The newest checkpoint of the run is damaged, and has no metadata after that.
    root.write("b/chk-10/_metadata", b"damaged")
    assert latest_run(root, "count") == 3
    root.delete("b/chk-10/_metadata")
    assert latest_run(root, "count") == 3
    root.delete("b/chk-9/_metadata")
    assert latest_run(root, "count") == 2


class Job:
    """One attempt of a driver: it has its own directory, coordinator and backends."""

    def __init__(self, root: Storage, number: int, parallelism: int, skew: float = 0.0) -> None:
        self.directory = CheckpointDirectory(root, f"job-{number}")
        self.store = StorageSegmentStore(self.directory.job.at("shared"), inline_threshold=40)
        self.parallelism = parallelism
        info = OperatorInfo("count", "counter", "count", parallelism, _MAX, vertex=1)
        self.it = CheckpointCoordinator(
            CheckpointSettings(interval=2.0, tolerable_failures=10**6, retained=2),
            [info],
            f"job-{number}",
            "counting",
            now=0.0,
            wall_clock_offset=skew,
        )
        self.writer = SnapshotWriter(self.directory)
        self.backends = [HashMapKeyedStateBackend() for _ in range(parallelism)]
        self.logs: list[list[Segment]] = [[] for _ in range(parallelism)]

    def restore(self, metadata: CheckpointMetadata, *, same_directory: bool) -> None:
        target = RestoreTarget("count", "counter", "count", self.parallelism, _MAX)
        plan = plan_restore(metadata, [target], same_directory=same_directory)
        assigned = plan.assignments["count"]
        for index, subtask in enumerate(assigned.subtasks):
            backend = self.backends[index] = HashMapKeyedStateBackend()
            restore_keyed_state(backend, subtask, _MAX, assigned.states, self.store)
            keeps = subtask.keyed and not subtask.must_materialize
            self.logs[index] = list(subtask.keyed[0].segments) if keeps else []

    def put(self, key: int, value: int) -> None:
        owner = subtask_of(key_group_of(key, _MAX), self.parallelism, _MAX)
        self.backends[owner].value_table("counts").put(key, value)

    def seal(self, epoch: int) -> None:
        sealed = [backend.seal(epoch, self.store) for backend in self.backends]
        for index, segments in enumerate(sealed):
            for segment in segments:
                self.logs[index] = with_segment(self.logs[index], segment)
            self.backends[index].confirm()

    def counts(self) -> dict[int, int]:
        return {entry.key: entry.value for one in self.backends for entry in one.entries()}


class Recovery(RuleBasedStateMachine):
    """``expected`` is the state at each checkpoint that was completed, by its id and directory."""

    def __init__(self) -> None:
        super().__init__()
        self.path = Path(tempfile.mkdtemp())
        storage, self.file_system = with_faults(open_storage(str(self.path / "checkpoints")))
        self.root = storage
        self.number = 0
        self.now = 0.0
        self.epoch = 0
        self.value = 0
        self.state: dict[int, int] = {}
        # What was taken at a barrier, by checkpoint id.
        self.taken: dict[tuple[int, int], dict[int, int]] = {}
        self.savepoints: dict[str, dict[int, int]] = {}
        self.requests = 0
        self.has_branched = False
        self.job = Job(self.root, self.number, parallelism=2)

    def carry_out(self, decisions: list[Decision]) -> None:
        for decision in decisions:
            if isinstance(decision, WriteSnapshot):
                self.write(decision)
            elif isinstance(decision, DeleteCheckpoint | DeleteSavepoint | CleanUp):
                self.job.writer.delete(decision)
            elif isinstance(decision, AnswerRequest) and decision.location is not None:
                number = self.job.it.stats.overview()["latest"]["savepoint"]["id"]
                self.savepoints[decision.location] = self.taken[self.number, number]

    def write(self, order: WriteSnapshot) -> None:
        try:
            written = self.job.writer.write(order)
        except StorageError as error:
            failed = self.job.it.write_failed(order.metadata.checkpoint_id, error, self.now)
            self.carry_out(failed)
            return
        self.carry_out(
            self.job.it.snapshot_written(
                written.checkpoint_id, written.location, written.metadata, self.now
            )
        )

    @rule(keys=st.sets(st.integers(0, 30), max_size=6))
    def an_epoch(self, keys: set[int]) -> None:
        self.now += 1
        self.epoch += 1
        barrier = self.job.it.trigger(self.now, self.epoch)
        before = dict(self.state)
        for key in keys:
            self.value += 1
            self.job.put(key, self.value)
            self.state[key] = self.value
        try:
            self.job.seal(self.epoch)
        except (StorageError, WriteFailedError):
            # A task that cannot write its state fails the job.
            self.state = before
            self.fail_over()
            return
        files = {path for log in self.job.logs for segment in log for path in segment.paths()}
        self.carry_out(self.job.it.running_files(files))
        if barrier is not None:
            self.taken[self.number, barrier.checkpoint_id] = dict(self.state)
            acks = [
                TaskAck((1, index), {"count": SubtaskState(tuple(log))})
                for index, log in enumerate(self.job.logs)
            ]
            self.carry_out(self.job.it.acknowledge(barrier.checkpoint_id, acks, self.now))
            if barrier.target is not None:
                self.save(barrier, barrier.target)

    def save(self, barrier: Barrier, target: str) -> None:
        """The slots write their files of a savepoint."""
        (pending,) = (
            one for one in self.job.it.pending if one.checkpoint_id == barrier.checkpoint_id
        )
        assert pending.metadata is not None
        files = written_files(pending.metadata, open_storage(target), self.job.store)
        self.carry_out(self.job.it.files_written(barrier.checkpoint_id, files, self.now))

    @rule()
    def fail_over(self) -> None:
        """A task fails: the same driver goes back to its last checkpoint."""
        self.carry_out(self.job.it.job_failed(self.now))
        latest = self.job.it.store.latest
        if latest is None:
            self.job.backends = [HashMapKeyedStateBackend() for _ in self.job.backends]
            self.job.logs = [[] for _ in self.job.logs]
            self.carry_out(self.job.it.running_files([]))
            self.state = {}
            return
        own = self.job.directory.holds(latest)
        self.job.restore(latest.metadata, same_directory=own)
        self.carry_out(self.job.it.restored(latest, self.now))
        self.state = dict(self.state_of(latest))

    def state_of(self, checkpoint: CompletedCheckpoint) -> dict[int, int]:
        if checkpoint.is_savepoint:
            return self.savepoints[checkpoint.location or ""]
        number = int(checkpoint.metadata.job_id.removeprefix("job-"))
        return self.taken[number, checkpoint.checkpoint_id]

    @rule(parallelism=st.integers(1, 4), skew=st.integers(-1000, 1000))
    def the_driver_is_killed(self, parallelism: int, skew: int) -> None:
        """A new driver, with a clock of its own, finds the newest checkpoint of its predecessors."""
        self.file_system.heal()
        try:
            found = find_latest_checkpoint(self.root, job_name="counting").checkpoint
        except CheckpointNotFoundError:
            found = None
        latest = self.job.it.store.latest
        if latest is not None and not latest.is_savepoint and not self.has_branched:
            assert found is not None
            assert found.location == latest.location
        self.start(found, parallelism, skew)

    @precondition(lambda self: self.savepoints)
    @rule(which=st.integers(0, 5), parallelism=st.integers(1, 4))
    def it_is_started_from_a_savepoint(self, which: int, parallelism: int) -> None:
        self.file_system.heal()
        self.carry_out(self.job.it.shutdown(JobStatus.CANCELED, self.now))
        assert self.job.directory.job.list_files() == []
        location = sorted(self.savepoints)[which % len(self.savepoints)]
        found = find_checkpoint(location).checkpoint
        # Between runs that are not related, only their clocks decide.
        self.has_branched |= found.metadata.job_id != f"job-{self.number}"
        self.start(found, parallelism)

    def start(self, found: CompletedCheckpoint | None, parallelism: int, skew: float = 0.0) -> None:
        self.number += 1
        self.job = Job(self.root, self.number, parallelism, skew)
        self.state = {}
        if found is not None:
            own = self.job.directory.holds(found)
            self.job.restore(found.metadata, same_directory=own)
            self.carry_out(self.job.it.restored(found, self.now))
            self.state = dict(self.state_of(found))

    @rule()
    def a_savepoint_is_asked_for(self) -> None:
        self.requests += 1
        target = str(self.path / "savepoints" / f"s{self.requests}")
        request = SnapshotRequest(f"r{self.requests}", SnapshotType.SAVEPOINT, target)
        self.carry_out(self.job.it.request(request))

    @rule(fault=_FAULTS)
    def storage_breaks(self, fault: StorageFault) -> None:
        self.file_system.heal()
        self.file_system.add(fault)

    @invariant()
    def the_state_is_as_if_nothing_had_happened(self) -> None:
        assert self.job.counts() == self.state

    def teardown(self) -> None:
        self.file_system.heal()
        self.carry_out(self.job.it.shutdown(JobStatus.FINISHED, self.now))
        assert self.job.directory.job.list_files() == []
        for location, state in self.savepoints.items():
            job = Job(self.root, 10**6, parallelism=3)
            job.restore(find_checkpoint(location).checkpoint.metadata, same_directory=False)
            assert job.counts() == state
        shutil.rmtree(self.path)


TestRecovery = Recovery.TestCase
TestRecovery.settings = settings(max_examples=examples(25), stateful_step_count=30, deadline=None)
