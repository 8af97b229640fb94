"""The checkpoint coordinator turns events into decisions."""

from __future__ import annotations

import pytest

from firesteel.checkpoint.metadata import (
    KeyedStateFile,
    OperatorFiles,
    SnapshotType,
    SubtaskState,
)
from firesteel.checkpoint.payload import Payload
from firesteel.checkpoint.rules.completed_checkpoint import CompletedCheckpoint
from firesteel.checkpoint.rules.decisions import (
    AnswerRequest,
    Barrier,
    CleanUp,
    DeleteCheckpoint,
    DeleteSavepoint,
    DiscardCheckpoints,
    FailJob,
    NotifyCheckpointAborted,
    NotifyCheckpointComplete,
    WriteSnapshot,
)
from firesteel.checkpoint.rules.failure_reason import (
    CheckpointFailureReason,
    StopWithSavepointStoppingError,
    TooManyFailedCheckpointsError,
)
from firesteel.checkpoint.rules.requests import SnapshotRequest, StopMode
from firesteel.checkpoint.rules.tasks import TaskAck
from firesteel.checkpoint.state_descriptions import StateDescription
from firesteel.checkpoint.storage.storage import StorageError
from firesteel.common.job_status import JobStatus
from firesteel.datastream.externalized_checkpoint_retention import ExternalizedCheckpointRetention
from firesteel.errors import JobExecutionError
from firesteel.state.key_groups import KeyGroupRange
from tests.checkpoint.coordination import (
    TASKS,
    acks,
    complete,
    coordinator,
    savepoint,
    segment,
    start,
    written,
)

_DISK_FULL = StorageError("write", "/job/chk-1/_metadata", "No space left on device")


class TestSchedule:
    def test_checkpoints_start_an_interval_apart(self) -> None:
        it = coordinator(interval=10.0)
        assert (it.delay(0.0), it.delay(7.0)) == (10.0, 3.0)
        assert it.trigger(9.9, epoch=1) is None
        assert it.trigger(12.0, epoch=2) == Barrier(
            1, SnapshotType.CHECKPOINT, 2, timestamp=1_012_000
        )
        written(it, it.acknowledge(1, acks(), 13.0), 13.5)
        assert it.delay(13.5) == 8.5
        assert start(it, 22.0).checkpoint_id == 2

    def test_without_an_interval_none_starts_by_itself(self) -> None:
        it = coordinator(interval=None)
        assert it.delay(1e9) is None
        assert it.trigger(1e9, epoch=1) is None

    def test_the_next_waits_for_the_pause_after_the_last(self) -> None:
        it = coordinator(interval=10.0, min_pause=5.0)
        barrier = start(it, 10.0)
        written(it, it.acknowledge(barrier.checkpoint_id, acks(), 17.0), 18.0)
        assert it.delay(20.0) == 3.0
        assert it.trigger(22.9, epoch=2) is None
        assert it.trigger(23.0, epoch=3) is not None

    def test_no_more_are_under_way_than_allowed(self) -> None:
        it = coordinator(max_concurrent=2)
        first, second = start(it, 10.0), start(it, 20.0)
        assert it.delay(30.0) is None
        assert it.trigger(30.0, epoch=3) is None
        written(it, it.acknowledge(first.checkpoint_id, acks(), 31.0), 31.0)
        assert start(it, 31.0).checkpoint_id == second.checkpoint_id + 1

    def test_after_some_tasks_have_finished(self) -> None:
        finished = {(1, 0)}
        on = coordinator()
        barrier = on.trigger(10.0, 1, finished)
        assert barrier is not None
        decisions = on.acknowledge(barrier.checkpoint_id, acks([(2, 0), (2, 1)]), 10.0)
        (write,) = decisions
        assert isinstance(write, WriteSnapshot)
        assert write.metadata.operators[0].subtasks == (SubtaskState(finished=True),)

        off = coordinator(after_tasks_finish=False)
        assert off.delay(20.0, finished) is None
        assert off.trigger(20.0, 1, finished) is None
        (answer,) = off.request(savepoint(), finished)
        assert isinstance(answer, AnswerRequest)
        assert "checkpoints-after-tasks-finish is off" in str(answer.error)


class TestCompletion:
    def test_it_is_written_when_all_subtasks_have_acknowledged(self) -> None:
        it = coordinator()
        start(it, 10.0, epoch=5)
        assert it.acknowledge(1, acks(TASKS[:2], files=["a"]), 11.0) == []
        state = Payload.of({"next": 3})
        (write,) = it.acknowledge(1, acks(TASKS[2:]), 12.0, {"s": state})
        assert isinstance(write, WriteSnapshot)
        assert write.new_files == ("/job/shared/a",)
        metadata = write.metadata
        assert (metadata.checkpoint_id, metadata.epoch) == (1, 5)
        assert (metadata.trigger_time, metadata.completion_time) == (1_010_000, 1_012_000)
        source, count, _ = metadata.operators
        assert (source.coordinator, count.uid, count.parallelism) == (state, "counter", 2)
        assert count.subtasks == (SubtaskState((segment("a"),)), SubtaskState())

    def test_then_sinks_are_told(self) -> None:
        it = coordinator()
        assert complete(it, 10.0, files=["a"]) == [NotifyCheckpointComplete(1)]
        latest = it.store.latest
        assert latest is not None
        assert (latest.checkpoint_id, latest.location) == (1, "/job/chk-1")

    def test_only_new_files_are_named_as_new(self) -> None:
        it = coordinator()
        complete(it, 10.0, files=["a", "b"])
        start(it, 20.0, epoch=2)
        (write,) = it.acknowledge(2, acks(files=["b", "c"]), 20.0)
        assert isinstance(write, WriteSnapshot)
        assert write.new_files == ("/job/shared/c",)

    def test_subtasks_describe_states_together(self) -> None:
        it = coordinator()
        start(it, 10.0)
        value, timers = StateDescription("total", "value"), StateDescription("_timers/x", "value")
        described = [
            TaskAck((1, 0)),
            TaskAck((2, 0), states={"c": (value,)}),
            TaskAck((2, 1), states={"c": (value, timers)}),
        ]
        (write,) = it.acknowledge(1, described, 10.0)
        assert isinstance(write, WriteSnapshot)
        assert write.metadata.operators[1].states == (timers, value)

    def test_acks_that_come_late_twice_or_from_nowhere(self) -> None:
        it = coordinator()
        start(it, 10.0)
        assert it.acknowledge(7, acks(), 10.0) == []
        it.acknowledge(1, acks(TASKS[:2], files=["a"]), 10.0)
        assert it.acknowledge(1, acks(TASKS[:2], files=["b"]), 10.0) == []
        with pytest.raises(ValueError, match="acknowledged by subtask 9 of vertex 2"):
            it.acknowledge(1, acks([(2, 9)]), 10.0)
        (write,) = it.acknowledge(1, acks(TASKS[2:]), 10.0)
        assert isinstance(write, WriteSnapshot)
        assert write.metadata.files() == {"/job/shared/a"}
        assert it.acknowledge(1, acks(), 10.0) == []

    def test_a_newer_one_subsumes_older_ones_under_way(self) -> None:
        it = coordinator(max_concurrent=3)
        for now in (10.0, 20.0):
            start(it, now)
        (old,) = it.acknowledge(1, acks(files=["a"]), 20.0)
        decisions = written(it, it.acknowledge(2, acks(files=["b"]), 21.0), 22.0)
        assert decisions == [
            NotifyCheckpointComplete(2),
            NotifyCheckpointAborted(1),
            DeleteCheckpoint(None, ("/job/shared/a",)),
        ]
        # Its writer comes back all the same.
        assert written(it, [old], 23.0) == [DeleteCheckpoint("/job/chk-1", ("/job/shared/a",))]


class TestFiles:
    def test_subsumed_checkpoints_go_with_the_files_that_nobody_needs(self) -> None:
        it = coordinator(retained=2)
        complete(it, 10.0, files=["a", "b"])
        complete(it, 20.0, files=["b", "c"])
        assert complete(it, 30.0, files=["c", "d"]) == [
            NotifyCheckpointComplete(3),
            DeleteCheckpoint("/job/chk-1", ("/job/shared/a",)),
        ]
        assert [kept.checkpoint_id for kept in it.store.checkpoints] == [2, 3]

    def test_what_the_running_job_needs_is_not_deleted(self) -> None:
        it = coordinator()
        assert it.running_files(["/job/shared/a", "/job/shared/x"]) == []
        complete(it, 10.0, files=["a"])
        assert complete(it, 20.0, files=["b"])[1] == DeleteCheckpoint("/job/chk-1", ())
        assert it.running_files(["/job/shared/x"]) == [DeleteCheckpoint(None, ("/job/shared/a",))]

    def test_an_aborted_one_leaves_nothing_behind(self) -> None:
        it = coordinator(tolerable_failures=1)
        it.running_files(["/job/shared/a", "/job/shared/b"])
        start(it, 10.0)
        it.acknowledge(1, acks(files=["a", "b"]), 10.0)
        it.running_files(["/job/shared/b"])
        assert it.write_failed(1, _DISK_FULL, 11.0) == [
            NotifyCheckpointAborted(1),
            DeleteCheckpoint(None, ("/job/shared/a",)),
        ]


class TestFailures:
    def test_one_failure_too_many_fails_the_job(self) -> None:
        it = coordinator(tolerable_failures=1)
        for checkpoint_id, now in ((1, 10.0), (2, 20.0)):
            start(it, now)
            it.acknowledge(checkpoint_id, acks(), now)
            decisions = it.write_failed(checkpoint_id, _DISK_FULL, now)
        assert decisions[0] == NotifyCheckpointAborted(2)
        (failed,) = decisions[1:]
        assert isinstance(failed, FailJob)
        assert isinstance(failed.error, TooManyFailedCheckpointsError)
        assert "2 checkpoints in a row have failed" in str(failed.error)
        assert "No space left on device" in str(failed.error)

    def test_a_completed_one_sets_the_count_back(self) -> None:
        it = coordinator(tolerable_failures=1)
        for now in (10.0, 30.0, 50.0):
            barrier = start(it, now)
            assert it.write_failed(barrier.checkpoint_id, ValueError("x"), now) == [
                NotifyCheckpointAborted(barrier.checkpoint_id)
            ]
            complete(it, now + 10)

    def test_a_checkpoint_that_takes_too_long_is_given_up(self) -> None:
        it = coordinator(timeout=60.0, tolerable_failures=5)
        start(it, 10.0)
        it.acknowledge(1, acks(TASKS[:1]), 11.0)
        assert it.expire(69.9) == []
        assert it.expire(70.0) == [NotifyCheckpointAborted(1)]
        stats = it.stats.find(1)
        assert stats is not None
        assert stats.failure is not None
        assert "after 60 s 2 of 3 subtasks had not acknowledged it" in stats.failure
        assert it.expire(71.0) == []

    def test_what_is_written_after_its_time_is_deleted(self) -> None:
        it = coordinator(timeout=60.0, tolerable_failures=5)
        it.running_files(["/job/shared/a"])
        start(it, 10.0)
        write = it.acknowledge(1, acks(files=["a"]), 11.0)
        assert it.expire(80.0) == [NotifyCheckpointAborted(1)]
        assert written(it, write, 90.0) == [DeleteCheckpoint("/job/chk-1", ())]
        assert it.store.latest is None

    def test_failures_without_limit(self) -> None:
        it = coordinator(tolerable_failures=2**31 - 1)
        for number in range(1, 100):
            start(it, number * 10.0)
            assert it.write_failed(number, _DISK_FULL, number * 10.0) == [
                NotifyCheckpointAborted(number)
            ]


class TestSavepoints:
    def test_one_that_is_asked_for_comes_first_whatever_is_under_way(self) -> None:
        it = coordinator(min_pause=1000.0)
        start(it, 10.0)
        assert it.request(savepoint()) == []
        assert it.delay(11.0) == 0.0
        assert it.trigger(11.0, epoch=2) == Barrier(
            2, SnapshotType.SAVEPOINT, 2, target="/savepoints/1"
        )

    def test_checkpoints_do_not_wait_for_it(self) -> None:
        """With one checkpoint at a time, a savepoint under way and a finished one do not count."""
        it = coordinator(min_pause=5.0)
        it.request(savepoint())
        saved = start(it, 9.0)
        assert it.acknowledge(saved.checkpoint_id, acks(), 9.0) == []
        assert it.delay(9.5) == 0.5
        barrier = start(it, 10.0, epoch=2)
        assert barrier.type is SnapshotType.CHECKPOINT
        written(it, it.acknowledge(barrier.checkpoint_id, acks(), 10.0), 11.0)
        written(it, it.files_written(saved.checkpoint_id, [], 19.0), 19.0)
        assert it.delay(19.0) == 1.0

    def test_its_metadata_has_the_files_of_slots_and_no_segment(self) -> None:
        it = coordinator()
        it.request(savepoint())
        start(it, 1.0)
        assert it.acknowledge(1, acks(files=["a"]), 1.0) == []
        file = KeyedStateFile("/savepoints/1/state-c-0-0", 10, 1, KeyGroupRange(0, 63))
        state = StateDescription("counts", "value")
        files = [OperatorFiles("c", 0, (file,), (state,))]
        (write,) = it.files_written(1, files, 5.0)
        assert isinstance(write, WriteSnapshot)
        counting = write.metadata.operators[1]
        assert [one.files for one in counting.subtasks] == [(file,), ()]
        assert not any(one.segments for one in counting.subtasks)
        assert counting.states == (state,)
        assert write.metadata.type is SnapshotType.SAVEPOINT
        assert write.metadata.completion_time == 1_005_000

    def test_one_that_takes_too_long_is_given_up_with_its_files(self) -> None:
        it = coordinator(timeout=60.0)
        it.request(savepoint())
        start(it, 1.0)
        it.acknowledge(1, acks(), 2.0)
        aborted, deletion, answer = it.expire(61.0)
        assert aborted == NotifyCheckpointAborted(1)
        assert deletion == DeleteSavepoint("/savepoints/1")
        assert isinstance(answer, AnswerRequest)
        assert "it was still being written" in str(answer.error)
        assert it.files_written(1, [], 70.0) == []

    def test_it_is_answered_and_neither_kept_nor_committed(self) -> None:
        it = coordinator()
        complete(it, 10.0, files=["a"])
        it.request(savepoint())
        barrier = start(it, 11.0)
        assert it.acknowledge(barrier.checkpoint_id, acks(files=["a", "b"]), 11.0) == []
        (write,) = it.files_written(barrier.checkpoint_id, [], 11.0)
        assert isinstance(write, WriteSnapshot)
        assert write.request == savepoint()
        own = write.metadata
        answers = it.snapshot_written(barrier.checkpoint_id, "/savepoints/1", own, 12.0)
        # The slots do not need the segments, so nothing holds them.
        assert answers == [AnswerRequest("r1", "/savepoints/1")]
        latest = it.store.latest
        assert latest is not None
        assert latest.checkpoint_id == 1

    def test_its_failure_fails_no_job(self) -> None:
        it = coordinator()
        it.request(savepoint())
        start(it, 1.0)
        aborted, deletion, answer = it.write_failed(1, _DISK_FULL, 1.0)
        assert aborted == NotifyCheckpointAborted(1)
        assert deletion == DeleteSavepoint("/savepoints/1")
        assert isinstance(answer, AnswerRequest)
        assert "savepoint 1 failed: it could not be written to checkpoint storage" in str(
            answer.error
        )

    @pytest.mark.parametrize("stop", [StopMode.SUSPEND, StopMode.DRAIN])
    def test_stopping_with_one(self, stop: StopMode) -> None:
        it = coordinator()
        it.request(savepoint(stop=stop))
        assert start(it, 1.0) == Barrier(1, SnapshotType.SAVEPOINT, 1, stop, target="/savepoints/1")
        assert it.is_stopping
        assert it.delay(1000.0) is None
        assert it.trigger(1000.0, epoch=2) is None
        (refused,) = it.request(savepoint("r2"))
        assert isinstance(refused, AnswerRequest)
        assert "a different savepoint is already stopping it" in str(refused.error)
        it.acknowledge(1, acks(), 2.0)
        write = it.files_written(1, [], 2.0)
        assert written(it, write, 3.0) == [NotifyCheckpointComplete(1)]
        assert it.stopped_with is not None
        answer, *_ = it.shutdown(JobStatus.FINISHED, 4.0)
        assert answer == AnswerRequest("r1", "/job/chk-1")

    def test_rescaling_at_a_checkpoint(self) -> None:
        it = coordinator()
        it.request(
            SnapshotRequest("r1", SnapshotType.CHECKPOINT, stop=StopMode.RESCALE),
        )
        assert start(it, 1.0) == Barrier(1, SnapshotType.CHECKPOINT, 1, StopMode.RESCALE, 1_001_000)
        assert it.is_stopping
        decisions = written(it, it.acknowledge(1, acks(), 2.0), 3.0)
        # The user gets the answer when the next attempt starts.
        assert decisions == [NotifyCheckpointComplete(1)]
        assert it.is_rescaling
        assert it.stopped_with == it.store.latest
        failure = JobExecutionError("the slots could not be closed")
        assert it.final_failure(failure) is failure
        assert it.rescaled(()) == [AnswerRequest("r1", "/job/chk-1")]
        assert it.stopped_with is None
        assert it.store.latest is not None

    def test_a_checkpoint_for_rescaling_that_fails_concerns_its_user_only(self) -> None:
        it = coordinator(tolerable_failures=0)
        it.request(SnapshotRequest("r1", SnapshotType.CHECKPOINT, stop=StopMode.RESCALE))
        start(it, 1.0)
        it.acknowledge(1, acks(), 2.0)
        decisions = it.write_failed(1, _DISK_FULL, 3.0)
        assert not any(isinstance(one, FailJob) for one in decisions)
        assert any(isinstance(one, AnswerRequest) and one.error for one in decisions)
        assert not it.is_stopping

    def test_its_savepoint_is_the_only_point_to_return_to(self) -> None:
        """Sinks commit it, so a job that went back behind it would write records again."""
        it = coordinator(retained=3, max_concurrent=2)
        complete(it, 10.0, files=["a"])
        complete(it, 20.0, files=["b"])
        start(it, 30.0)
        it.request(savepoint(stop=StopMode.SUSPEND))
        start(it, 31.0)
        it.acknowledge(4, acks(), 32.0)
        decisions = written(it, it.files_written(4, [], 32.0), 33.0)
        assert NotifyCheckpointComplete(4) in decisions
        # A checkpoint before it that is still under way does not count any more.
        assert NotifyCheckpointAborted(3) in decisions
        deleted = [one.directory for one in decisions if isinstance(one, DeleteCheckpoint)]
        assert deleted == ["/job/chk-1", "/job/chk-2"]
        latest = it.store.latest
        assert latest is not None
        assert latest.location == "/job/chk-4"
        assert it.store.checkpoints == (latest,)
        # It belongs to the user.
        assert not any(
            isinstance(one, DeleteCheckpoint) and one.directory
            for one in it.shutdown(JobStatus.FINISHED, 40.0)
        )

    @pytest.mark.parametrize("status", [JobStatus.FAILED, JobStatus.CANCELED])
    def test_a_job_that_does_not_end_well_after_it_says_where_it_is(
        self, status: JobStatus
    ) -> None:
        it = coordinator()
        it.request(savepoint(stop=StopMode.SUSPEND))
        start(it, 1.0)
        it.acknowledge(1, acks(), 2.0)
        written(it, it.files_written(1, [], 2.0), 3.0)
        failure = None
        if status is JobStatus.FAILED:
            failure = it.final_failure(JobExecutionError("the commit failed"))
        answer, *_ = it.shutdown(status, 4.0, failure)
        assert isinstance(answer, AnswerRequest)
        assert isinstance(answer.error, StopWithSavepointStoppingError)
        assert answer.error.savepoint == "/job/chk-1"
        assert "/job/chk-1 is complete" in str(answer.error)
        assert ("the commit failed" in str(answer.error)) is (failure is not None)

    def test_if_that_fails_the_job_goes_on(self) -> None:
        it = coordinator()
        it.request(savepoint(stop=StopMode.SUSPEND))
        start(it, 1.0)
        decisions = it.write_failed(1, _DISK_FULL, 1.0)
        assert not any(isinstance(decision, FailJob) for decision in decisions)
        assert not it.is_stopping
        assert it.trigger(20.0, epoch=2) is not None

    def test_a_drained_job_cannot_go_on_and_must_be_restarted(self) -> None:
        it = coordinator()
        it.request(savepoint(stop=StopMode.DRAIN))
        start(it, 1.0)
        assert isinstance(it.write_failed(1, _DISK_FULL, 1.0)[-1], FailJob)

    def test_an_extra_checkpoint_is_a_checkpoint_that_is_answered(self) -> None:
        it = coordinator()
        it.request(SnapshotRequest("r", SnapshotType.CHECKPOINT))
        assert complete(it, 1.0) == [
            NotifyCheckpointComplete(1),
            AnswerRequest("r", "/job/chk-1"),
        ]
        assert it.delay(1.0) == 10.0


class TestLifeOfTheJob:
    def test_a_failed_job_loses_what_is_under_way(self) -> None:
        it = coordinator(max_concurrent=2)
        complete(it, 10.0, files=["a"])
        it.running_files(["/job/shared/a", "/job/shared/b"])
        start(it, 20.0)
        it.request(savepoint("under way"))
        start(it, 21.0)
        it.request(savepoint("waiting"))
        decisions = it.job_failed(22.0)
        assert decisions[:2] == [NotifyCheckpointAborted(2), NotifyCheckpointAborted(3)]
        assert [d.request_id for d in decisions if isinstance(d, AnswerRequest)] == [
            "under way",
            "waiting",
        ]
        latest = it.store.latest
        assert latest is not None
        assert it.restored(latest, 25.0) == [
            DeleteCheckpoint(None, ("/job/shared/b",)),
            CleanUp((latest,)),
        ]
        assert it.delay(25.0) == 10.0
        assert start(it, 35.0).checkpoint_id == 4

    def test_a_canceled_job_discards_the_checkpoints_that_storage_may_have(self) -> None:
        it = coordinator(max_concurrent=3)
        complete(it, 10.0)
        start(it, 20.0)
        it.acknowledge(2, acks(), 20.0)
        it.write_failed(2, _DISK_FULL, 21.0)
        start(it, 30.0)
        it.acknowledge(3, acks(), 30.0)
        start(it, 40.0)
        assert it.last_to_return_to == 1
        # The last one has no acks yet, so that nothing of it is written.
        assert it.job_canceled(41.0) == [
            NotifyCheckpointAborted(3),
            NotifyCheckpointAborted(4),
            DiscardCheckpoints((2, 3)),
        ]

    def test_a_canceled_job_without_pending_checkpoints_has_nothing_to_discard(self) -> None:
        it = coordinator()
        complete(it, 10.0)
        assert it.job_canceled(11.0) == []

    def test_the_files_of_what_it_was_started_from_are_not_its_own(self) -> None:
        it = coordinator()
        given = CompletedCheckpoint(_old_checkpoint(), "/old/chk-30", is_owned=False)
        assert it.restored(given, 0.0) == [CleanUp((given,))]
        assert complete(it, 10.0, files=["a"]) == [NotifyCheckpointComplete(31)]
        assert it.running_files(["/job/shared/a"]) == []

    def test_what_was_claimed_goes_with_the_first_own_checkpoint(self) -> None:
        it = coordinator()
        it.restored(CompletedCheckpoint(_old_checkpoint(), "/old/chk-30"), 0.0)
        it.running_files([])
        assert complete(it, 10.0, files=["a"]) == [
            NotifyCheckpointComplete(31),
            DeleteCheckpoint("/old/chk-30", ("/job/shared/old",)),
        ]

    def test_going_back_behind_a_damaged_one_drops_it(self) -> None:
        it = coordinator(retained=2)
        complete(it, 10.0, files=["a"])
        complete(it, 20.0, files=["a", "b"])
        older, _ = it.store.checkpoints
        assert it.restored(older, 30.0) == [
            DeleteCheckpoint("/job/chk-2", ("/job/shared/b",)),
            CleanUp((older,)),
        ]
        assert start(it, 40.0).checkpoint_id == 3

    @pytest.mark.parametrize(
        ("status", "retention", "kept"),
        [
            (JobStatus.FINISHED, "RETAIN_ON_CANCELLATION", False),
            (JobStatus.CANCELED, "RETAIN_ON_CANCELLATION", True),
            (JobStatus.CANCELED, "DELETE_ON_CANCELLATION", False),
            (JobStatus.CANCELED, "NO_EXTERNALIZED_CHECKPOINTS", False),
            (JobStatus.FAILED, "RETAIN_ON_CANCELLATION", True),
            (JobStatus.FAILED, "DELETE_ON_CANCELLATION", True),
            (JobStatus.FAILED, "NO_EXTERNALIZED_CHECKPOINTS", False),
            (JobStatus.SUSPENDED, "NO_EXTERNALIZED_CHECKPOINTS", True),
        ],
    )
    def test_what_is_left_at_the_end(self, status: JobStatus, retention: str, kept: bool) -> None:
        it = coordinator(retention=ExternalizedCheckpointRetention[retention])
        complete(it, 10.0, files=["a"])
        it.running_files(["/job/shared/a", "/job/shared/b"])
        (checkpoint,) = it.store.checkpoints
        start(it, 20.0)
        it.request(savepoint())
        aborted, answer, *deletions = it.shutdown(status, 30.0)
        assert aborted == NotifyCheckpointAborted(2)
        assert isinstance(answer, AnswerRequest)
        assert "the job has ended" in str(answer.error)
        if kept:
            expected = [
                DeleteCheckpoint(None, ("/job/shared/b",)),
                CleanUp((checkpoint,)),
            ]
        else:
            expected = [
                DeleteCheckpoint("/job/chk-1", ()),
                DeleteCheckpoint(None, ("/job/shared/a", "/job/shared/b")),
                CleanUp(()),
            ]
        assert deletions == expected

    def test_reasons_that_say_nothing_about_the_job_do_not_count(self) -> None:
        counted = {reason for reason in CheckpointFailureReason if reason.counts}
        assert counted == {
            CheckpointFailureReason.CHECKPOINT_EXPIRED,
            CheckpointFailureReason.IO_EXCEPTION,
        }


def _old_checkpoint():
    it = coordinator()
    it._next_id = 30
    complete(it, 10.0, files=["old"])
    latest = it.store.latest
    assert latest is not None
    return latest.metadata
