"""Random job histories: files in use stay, no file leaks, and every request is answered."""

from __future__ import annotations

from collections import Counter

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from firesteel.checkpoint.metadata import SnapshotType
from firesteel.checkpoint.rules.decisions import (
    AnswerRequest,
    CleanUp,
    Decision,
    DeleteCheckpoint,
    DeleteSavepoint,
    FailJob,
    NotifyCheckpointComplete,
    WriteSnapshot,
)
from firesteel.checkpoint.rules.requests import SnapshotRequest
from firesteel.common.job_status import JobStatus
from firesteel.datastream.externalized_checkpoint_retention import ExternalizedCheckpointRetention
from tests.checkpoint.coordination import acks, coordinator, savepoint
from tests.thoroughness import examples

_MAX_CONCURRENT = 2
_RETAINED = 2


class JobHistory(RuleBasedStateMachine):
    """Epochs write files and forget some; checkpoints come, are written, fail and expire."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.epoch = 0
        self.it = coordinator(
            max_concurrent=_MAX_CONCURRENT,
            retained=_RETAINED,
            timeout=60.0,
            tolerable_failures=1,
            retention=ExternalizedCheckpointRetention.RETAIN_ON_CANCELLATION,
        )
        self.running: set[str] = set()
        self.existing: set[str] = set()
        self.directories: set[str] = set()
        self.writes: list[WriteSnapshot] = []
        self.notified = 0
        self.asked: Counter[str] = Counter()
        self.answered: Counter[str] = Counter()
        self.saving: list[int] = []

    def carry_out(self, decisions: list[Decision]) -> None:
        for decision in decisions:
            if isinstance(decision, WriteSnapshot):
                self.writes.append(decision)
            elif isinstance(decision, NotifyCheckpointComplete):
                assert decision.checkpoint_id > self.notified
                self.notified = decision.checkpoint_id
            elif isinstance(decision, DeleteCheckpoint):
                self.delete(decision)
            elif isinstance(decision, AnswerRequest):
                self.answered[decision.request_id] += 1
            elif isinstance(decision, FailJob):
                self.restart()

    def delete(self, decision: DeleteCheckpoint) -> None:
        needed = set(self.running)
        for checkpoint in self.it.store.checkpoints:
            needed |= checkpoint.files
            assert checkpoint.location != decision.directory
        for pending in self.it.pending:
            if pending.metadata is not None and pending.target is None:
                needed |= pending.metadata.files()
        assert not needed & set(decision.files)
        self.existing -= set(decision.files)
        self.directories.discard(decision.directory or "")

    def restart(self) -> None:
        self.carry_out(self.it.job_failed(self.now))
        latest = self.it.store.latest
        self.running = set(latest.files) if latest is not None else set()
        if latest is not None:
            self.carry_out(self.it.restored(latest, self.now))
        else:
            self.carry_out(self.it.running_files([]))

    @rule(seconds=st.floats(0, 40), forget=st.sets(st.integers(0, 5)), writes=st.integers(0, 2))
    def an_epoch(self, seconds: float, forget: set[int], writes: int) -> None:
        self.now += seconds
        self.epoch += 1
        barrier = self.it.trigger(self.now, self.epoch)
        kept = [file for i, file in enumerate(sorted(self.running)) if i not in forget]
        new = [f"/job/shared/{self.epoch}-{number}" for number in range(writes)]
        self.existing.update(new)
        self.running = {*kept, *new}
        self.carry_out(self.it.running_files(self.running))
        if barrier is not None:
            names = [file.removeprefix("/job/shared/") for file in sorted(self.running)]
            ack = acks(files=names, epoch=self.epoch)
            decisions = self.it.acknowledge(barrier.checkpoint_id, ack, self.now)
            if barrier.target is not None:
                assert decisions == []
                self.saving.append(barrier.checkpoint_id)
            else:
                assert any(isinstance(decision, WriteSnapshot) for decision in decisions)
            self.carry_out(decisions)

    @precondition(lambda self: self.saving)
    @rule(which=st.integers(0, 3), succeeds=st.booleans())
    def slots_have_written_a_savepoint(self, which: int, succeeds: bool) -> None:
        checkpoint_id = self.saving.pop(which % len(self.saving))
        was_pending = any(one.checkpoint_id == checkpoint_id for one in self.it.pending)
        if succeeds:
            decisions = self.it.files_written(checkpoint_id, [], self.now)
        else:
            decisions = self.it.write_failed(checkpoint_id, OSError("disk full"), self.now)
            assert any(isinstance(one, DeleteSavepoint) for one in decisions) is was_pending
        assert bool(decisions) is was_pending
        self.carry_out(decisions)

    @precondition(lambda self: self.writes)
    @rule(which=st.integers(0, 3), succeeds=st.booleans())
    def a_write_ends(self, which: int, succeeds: bool) -> None:
        write = self.writes.pop(which % len(self.writes))
        checkpoint_id = write.metadata.checkpoint_id
        if not succeeds:
            error = OSError("disk full")
            self.carry_out(self.it.write_failed(checkpoint_id, error, self.now))
            return
        location = f"/job/chk-{checkpoint_id}"
        self.directories.add(location)
        self.carry_out(self.it.snapshot_written(checkpoint_id, location, write.metadata, self.now))

    @rule(is_savepoint=st.booleans())
    def a_request(self, is_savepoint: bool) -> None:
        request_id = f"r{self.asked.total()}"
        self.asked[request_id] += 1
        request = (
            savepoint(request_id)
            if is_savepoint
            else SnapshotRequest(request_id, SnapshotType.CHECKPOINT)
        )
        self.carry_out(self.it.request(request))

    @rule()
    def a_failure(self) -> None:
        self.restart()

    @rule(seconds=st.floats(0, 100))
    def time_passes(self, seconds: float) -> None:
        self.now += seconds
        self.carry_out(self.it.expire(self.now))

    @invariant()
    def what_is_needed_exists(self) -> None:
        for checkpoint in self.it.store.checkpoints:
            assert checkpoint.files <= self.existing
            assert checkpoint.location in self.directories
        assert self.running <= self.existing
        assert len(self.it.store.checkpoints) <= _RETAINED
        assert all(count == 1 for count in self.answered.values())

    def teardown(self) -> None:
        for write in self.writes:
            self.carry_out(
                self.it.write_failed(write.metadata.checkpoint_id, OSError("end"), self.now)
            )
        # Only the user deletes a savepoint.
        self.running = set()
        decisions = self.it.shutdown(JobStatus.CANCELED, self.now)
        self.carry_out(decisions)
        assert self.answered == self.asked
        assert decisions[-1] == CleanUp(self.it.store.checkpoints)
        retained = {file for kept in self.it.store.checkpoints for file in kept.files}
        assert self.existing == retained


TestJobHistory = JobHistory.TestCase
TestJobHistory.settings = settings(max_examples=examples(60), stateful_step_count=40, deadline=None)
