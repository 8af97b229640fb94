"""The checkpoint coordinator: takes events, and returns decisions.

It is pure: it has no threads, files or clock. The caller passes the time in seconds of a monotonic
clock. One job master owns it, and does not call it from two threads at once.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from firesteel.checkpoint.metadata import (
    Ancestor,
    CheckpointMetadata,
    OperatorFiles,
    SnapshotType,
    with_files,
)
from firesteel.checkpoint.payload import Payload
from firesteel.checkpoint.rules.completed_checkpoint import CompletedCheckpoint
from firesteel.checkpoint.rules.completed_checkpoint_store import (
    CompletedCheckpointStore,
    SharedStateRegistry,
)
from firesteel.checkpoint.rules.decisions import (
    AnswerRequest,
    Barrier,
    CleanUp,
    Decision,
    DeleteCheckpoint,
    DeleteSavepoint,
    DiscardCheckpoints,
    FailJob,
    NotifyCheckpointAborted,
    NotifyCheckpointComplete,
    WriteSnapshot,
)
from firesteel.checkpoint.rules.failure_reason import (
    CheckpointFailedError,
    CheckpointFailureReason,
    StopWithSavepointStoppingError,
    TooManyFailedCheckpointsError,
)
from firesteel.checkpoint.rules.lineage import lineage_after
from firesteel.checkpoint.rules.pending_checkpoint import PendingCheckpoint
from firesteel.checkpoint.rules.requests import SnapshotRequest, StopMode
from firesteel.checkpoint.rules.settings import CheckpointSettings
from firesteel.checkpoint.rules.stats import CheckpointStatsTracker
from firesteel.checkpoint.rules.tasks import OperatorInfo, TaskAck, TaskId, tasks_of
from firesteel.common.job_status import JobStatus
from firesteel.errors import FiresteelError


class CheckpointSchedule:
    """Starts checkpoints an interval apart. A late checkpoint starts as soon as possible."""

    def __init__(self, settings: CheckpointSettings, now: float) -> None:
        self._settings = settings
        self._due = self._after_interval(now)
        self._last_completed = float("-inf")

    def delay(self, now: float, pending: int) -> float | None:
        """Seconds until a checkpoint may start. None if it depends on a further event."""
        if self._due is None or pending >= self._settings.max_concurrent:
            return None
        earliest = max(self._due, self._last_completed + self._settings.min_pause)
        return max(0.0, earliest - now)

    def triggered(self, now: float) -> None:
        self._due = self._after_interval(now)

    def completed(self, now: float) -> None:
        self._last_completed = now

    def restarted(self, now: float) -> None:
        self._due = self._after_interval(now)

    def _after_interval(self, now: float) -> float | None:
        return None if self._settings.interval is None else now + self._settings.interval


_UNLIMITED = 2**31 - 1


class CheckpointFailureManager:
    """Counts consecutive failures of checkpoints. Savepoints do not count."""

    def __init__(self, tolerable_failures: int) -> None:
        self._tolerable = tolerable_failures
        self._counted: set[int] = set()
        self._last_completed = 0

    def completed(self, checkpoint_id: int) -> None:
        if checkpoint_id > self._last_completed:
            self._last_completed = checkpoint_id
            self._counted.clear()

    def failed(
        self, checkpoint_id: int, error: CheckpointFailedError
    ) -> TooManyFailedCheckpointsError | None:
        """Count a failure. Returns the error of the job if there are too many."""
        late = checkpoint_id <= self._last_completed
        if late or not error.reason.counts or self._tolerable >= _UNLIMITED:
            return None
        self._counted.add(checkpoint_id)
        failures = len(self._counted)
        if failures <= self._tolerable:
            return None
        self._counted.clear()
        return TooManyFailedCheckpointsError(failures, self._tolerable, error)


_RUNNING = "running"
_MOST_GIVEN_UP = 100


class CheckpointCoordinator:
    """Takes checkpoints: barrier, acks, metadata, notification."""

    def __init__(
        self,
        settings: CheckpointSettings,
        operators: Sequence[OperatorInfo],
        job_id: str,
        job_name: str,
        now: float,
        *,
        wall_clock_offset: float = 0.0,
        first_id: int = 1,
        run: int = 1,
    ) -> None:
        """Create a coordinator. A time plus ``wall_clock_offset`` gives seconds since 1970.

        ``first_id`` is the first id of a checkpoint that no earlier master of the job has used.
        ``run`` is higher than the numbers of all earlier runs of the job.
        """
        self._settings = settings
        self._operators = tuple(operators)
        self._tasks = tasks_of(operators)
        self._job_id = job_id
        self._job_name = job_name
        self._wall_clock_offset = wall_clock_offset
        self._files = SharedStateRegistry()
        self._failures = CheckpointFailureManager(settings.tolerable_failures)
        self._schedule = CheckpointSchedule(settings, now)
        self._pending: dict[int, PendingCheckpoint] = {}
        # Checkpoints after the newest complete one whose metadata storage may have.
        self._in_storage: set[int] = set()
        self._requests: deque[SnapshotRequest] = deque()
        self._next_id = first_id
        self._lineage: tuple[Ancestor, ...] = ()
        self._run = run
        self._last_savepoint_id = 0
        # Directories of savepoints that were given up. A process that was cut off may write to one
        # although it was deleted.
        self._given_up: deque[str] = deque(maxlen=_MOST_GIVEN_UP)
        self._stop: tuple[SnapshotRequest, CompletedCheckpoint] | None = None
        self.store = CompletedCheckpointStore(settings.retained, self._files)
        self.stats = CheckpointStatsTracker(operators, settings.history_size, settings.interval)

    # Triggering

    def delay(self, now: float, finished: Collection[TaskId] = ()) -> float | None:
        """Seconds until an epoch with a barrier is due. None if it depends on a further event."""
        if self.is_stopping or not self._may_checkpoint(finished):
            return None
        if self._requests:
            return 0.0
        return self._schedule.delay(now, self._in_progress())

    def trigger(self, now: float, epoch: int, finished: Collection[TaskId] = ()) -> Barrier | None:
        """The barrier of the epoch that is being planned, if one is due.

        ``finished`` tasks need not acknowledge, but their reports are kept.
        """
        if self.is_stopping or not self._may_checkpoint(finished):
            return None
        request = self._requests.popleft() if self._requests else None
        if request is None:
            delay = self._schedule.delay(now, self._in_progress())
            if delay is None or delay > 0:
                return None
        if request is None or request.type is SnapshotType.CHECKPOINT:
            self._schedule.triggered(now)
        checkpoint = PendingCheckpoint(
            checkpoint_id=self._next_id,
            type=SnapshotType.CHECKPOINT if request is None else request.type,
            epoch=epoch,
            triggered_at=now,
            trigger_time=self._wall_clock(now),
            awaited=set(self._tasks.difference(finished)),
            request=request,
        )
        self._next_id += 1
        self._pending[checkpoint.checkpoint_id] = checkpoint
        self.stats.pending(checkpoint)
        return Barrier(
            checkpoint.checkpoint_id,
            checkpoint.type,
            epoch,
            None if request is None else request.stop,
            checkpoint.trigger_time,
            checkpoint.target,
            self._settings.timeout,
            checkpoint.is_native,
        )

    def _in_progress(self) -> int:
        """The number of pending checkpoints. Checkpoints do not wait for savepoints."""
        return sum(one.type is SnapshotType.CHECKPOINT for one in self._pending.values())

    @property
    def is_stopping(self) -> bool:
        """True while a savepoint to stop with, or a checkpoint to rescale at, is in progress.

        Sources must not read further.
        """
        return any(_stop_of(checkpoint) is not None for checkpoint in self._pending.values())

    @property
    def stopped_with(self) -> CompletedCheckpoint | None:
        """The snapshot that the attempt stops with, once it is complete. Nothing is read after it."""
        return None if self._stop is None else self._stop[1]

    @property
    def is_rescaling(self) -> bool:
        """True if the attempt stops so that the next one starts with a different parallelism."""
        return self._stop is not None and self._stop[0].stop is StopMode.RESCALE

    def rescaled(self, operators: Sequence[OperatorInfo]) -> list[Decision]:
        """Continue with different subtasks, from the checkpoint that the attempt has ended with."""
        assert self._stop is not None
        request, checkpoint = self._stop
        self._stop = None
        self._operators = tuple(operators)
        self._tasks = tasks_of(operators)
        self.stats.rescaled(operators)
        return [AnswerRequest(request.request_id, checkpoint.location)]

    def final_failure(self, failure: FiresteelError) -> FiresteelError:
        """The error of a job that is not restarted. It names the savepoint of a job that stops."""
        if self._stop is None or self.is_rescaling:
            return failure
        return StopWithSavepointStoppingError(self._job_name, self._stop[1].location, failure)

    @property
    def has_newer_savepoint(self) -> bool:
        """True if a savepoint is not older than a checkpoint to which the job may go back."""
        oldest = min((one.checkpoint_id for one in self.store.checkpoints), default=1)
        return self._last_savepoint_id >= oldest

    @property
    def pending(self) -> tuple[PendingCheckpoint, ...]:
        return tuple(self._pending.values())

    def _may_checkpoint(self, finished: Collection[TaskId]) -> bool:
        return self._settings.after_tasks_finish or not finished

    # Requests of users

    def request(
        self, request: SnapshotRequest, finished: Collection[TaskId] = ()
    ) -> list[Decision]:
        """Take a savepoint or an additional checkpoint with the next epoch."""
        stopping = self.is_stopping or any(one.stop is not None for one in self._requests)
        if stopping:
            error = CheckpointFailedError(
                request.title,
                CheckpointFailureReason.CHECKPOINT_COORDINATOR_SHUTDOWN,
                "a different savepoint is already stopping it, or it is being rescaled",
            )
            return [AnswerRequest(request.request_id, error=error)]
        if not self._may_checkpoint(finished):
            reason = CheckpointFailureReason.NOT_ALL_REQUIRED_TASKS_RUNNING
            error = CheckpointFailedError(request.title, reason)
            return [AnswerRequest(request.request_id, error=error)]
        self._requests.append(request)
        return []

    # Events

    def acknowledge(
        self,
        checkpoint_id: int,
        acks: Iterable[TaskAck],
        now: float,
        coordinators: Mapping[str, Payload] | None = None,
    ) -> list[Decision]:
        """Take the acks of subtasks, which have taken their snapshots.

        ``coordinators``: the state of sources' coordinators by operator id. Acks of a checkpoint
        that is not pending are ignored.
        """
        checkpoint = self._pending.get(checkpoint_id)
        if checkpoint is None or checkpoint.is_being_written:
            return []
        checkpoint.coordinators.update(coordinators or {})
        since = self._last_epoch()
        for ack in acks:
            if ack.task not in self._tasks:
                raise ValueError(
                    f"checkpoint {checkpoint_id} was acknowledged by subtask {ack.task[1]} of "
                    f"vertex {ack.task[0]}, which the job does not have"
                )
            if checkpoint.acknowledge(ack):
                self.stats.acknowledged(checkpoint_id, ack, since, self._wall_clock(now))
        if not checkpoint.is_acknowledged:
            return []
        metadata = checkpoint.finalize(
            self._operators,
            self._job_id,
            self._job_name,
            self._wall_clock(now),
            self._lineage,
            self._run,
        )
        checkpoint.written_since = now
        if checkpoint.target is not None:
            # The slots write the files. They need no segment for it.
            return []
        return [self._write(checkpoint, metadata)]

    def files_written(
        self, checkpoint_id: int, files: Sequence[OperatorFiles], now: float
    ) -> list[Decision]:
        """All slots have written their files of a savepoint."""
        checkpoint = self._pending.get(checkpoint_id)
        if checkpoint is None or checkpoint.metadata is None:
            return []
        written = replace(
            with_files(checkpoint.metadata, files), completion_time=self._wall_clock(now)
        )
        return [WriteSnapshot(written, checkpoint.request)]

    def _write(self, checkpoint: PendingCheckpoint, metadata: CheckpointMetadata) -> WriteSnapshot:
        files = metadata.files()
        # Files of completed checkpoints are synced already.
        new_files = files - self._stored_files()
        self._files.hold(_holder(checkpoint), files)
        self._in_storage.add(checkpoint.checkpoint_id)
        return WriteSnapshot(metadata, checkpoint.request, tuple(sorted(new_files)))

    def snapshot_written(
        self, checkpoint_id: int, location: str | None, metadata: CheckpointMetadata, now: float
    ) -> list[Decision]:
        """Complete a stored snapshot. The metadata of a savepoint refer to its own files."""
        checkpoint = self._pending.pop(checkpoint_id, None)
        if checkpoint is None:
            # The checkpoint was aborted in the meantime.
            unheld = self._files.orphans(metadata.files())
            return [DeleteCheckpoint(location, tuple(sorted(unheld)))]
        self.stats.completed(
            checkpoint_id,
            location,
            duration=now - checkpoint.triggered_at,
            write_seconds=now - checkpoint.written_since,
        )
        decisions: list[Decision] = []
        request = checkpoint.request
        if checkpoint.type is SnapshotType.CHECKPOINT:
            self._schedule.completed(now)
            completed = CompletedCheckpoint(metadata, location)
            decisions += self._completed(completed, now)
            decisions += self._noted(self.store.add(completed))
            if request is not None and request.stop is StopMode.RESCALE:
                # The request is answered when the next attempt starts.
                self._stop = request, completed
        else:
            self._last_savepoint_id = checkpoint_id
        decisions += self._unheld(self._files.release(_holder(checkpoint)))
        if request is None or self.is_rescaling:
            return decisions
        if request.stop is not None:
            # The user owns the savepoint. The request is answered when the job has stopped.
            completed = CompletedCheckpoint(metadata, location, is_owned=False)
            self._stop = request, completed
            decisions += self._completed(completed, now)
            decisions += self._noted(self.store.return_only_to(completed))
        else:
            # An ordinary savepoint commits nothing: the job may still restore an older checkpoint.
            # A checkpoint without a directory has its name only.
            answer = location or f"chk-{checkpoint_id}"
            decisions.append(AnswerRequest(request.request_id, answer))
        return decisions

    def _completed(self, completed: CompletedCheckpoint, now: float) -> list[Decision]:
        checkpoint_id = completed.checkpoint_id
        self._failures.completed(checkpoint_id)
        self._in_storage = {number for number in self._in_storage if number > checkpoint_id}
        decisions: list[Decision] = [NotifyCheckpointComplete(checkpoint_id)]
        subsumed = [
            pending
            for pending in self._pending.values()
            if pending.checkpoint_id < checkpoint_id and pending.type is SnapshotType.CHECKPOINT
        ]
        for pending in subsumed:
            decisions += self._abort(
                pending, CheckpointFailureReason.CHECKPOINT_SUBSUMED, None, now
            )
        return decisions

    def write_failed(self, checkpoint_id: int, error: Exception, now: float) -> list[Decision]:
        """Abort a checkpoint that could not be stored. The writer has deleted its files."""
        return self._fail(checkpoint_id, CheckpointFailureReason.IO_EXCEPTION, str(error), now)

    def expire(self, now: float) -> list[Decision]:
        """Abort checkpoints that exceed the timeout. The caller polls it."""
        decisions: list[Decision] = []
        for checkpoint in list(self._pending.values()):
            if now - checkpoint.triggered_at >= self._settings.timeout:
                details = f"after {self._settings.timeout:g} s " + _progress(checkpoint)
                reason = CheckpointFailureReason.CHECKPOINT_EXPIRED
                decisions += self._fail(checkpoint.checkpoint_id, reason, details, now)
        return decisions

    def running_files(self, files: Iterable[str]) -> list[Decision]:
        """Take the files of the running job's state. Files without a holder are deleted.

        The caller passes them after every epoch, before the acks of the epoch.
        """
        return self._unheld(self._files.hold(_RUNNING, files))

    # Events of the job

    def job_failed(self, now: float) -> list[Decision]:
        """Abort all pending checkpoints. A restart restores ``store.latest``."""
        return self._abort_all(CheckpointFailureReason.JOB_FAILURE, now)

    def job_canceled(self, now: float) -> list[Decision]:
        """Abort all pending checkpoints before the slots close. None of them becomes complete."""
        reason = CheckpointFailureReason.CHECKPOINT_COORDINATOR_SHUTDOWN
        decisions = self._abort_all(reason, now)
        if self._in_storage:
            decisions.append(DiscardCheckpoints(tuple(sorted(self._in_storage))))
        return decisions

    @property
    def last_to_return_to(self) -> int:
        """The newest checkpoint or savepoint that a job may restore."""
        latest = self.store.latest
        return max(0 if latest is None else latest.checkpoint_id, self._last_savepoint_id)

    def restored(self, checkpoint: CompletedCheckpoint, now: float) -> list[Decision]:
        """Note that the job was restored from its own checkpoint, or from one of a different job."""
        if checkpoint.metadata.job_id != self._job_id:
            self._lineage = lineage_after(checkpoint.metadata)
        decisions = self._noted(self.store.go_back_to(checkpoint))
        self._next_id = max(self._next_id, checkpoint.checkpoint_id + 1)
        self._schedule.restarted(now)
        self.stats.restored(
            checkpoint.checkpoint_id,
            checkpoint.location,
            self._wall_clock(now),
            is_savepoint=checkpoint.is_savepoint,
        )
        decisions += self.running_files(checkpoint.files)
        return [*decisions, CleanUp(self.store.checkpoints)]

    def shutdown(
        self, status: JobStatus, now: float, failure: FiresteelError | None = None
    ) -> list[Decision]:
        """End the job, when no task is running. ``failure`` is its ``final_failure``."""
        reason = CheckpointFailureReason.CHECKPOINT_COORDINATOR_SHUTDOWN
        decisions = self._abort_all(reason, now)
        if self._stop is not None:
            request, savepoint = self._stop
            if self.is_rescaling:
                error = failure or CheckpointFailedError(request.title, reason)
                decisions.append(AnswerRequest(request.request_id, error=error))
            elif status is JobStatus.FINISHED:
                decisions.append(AnswerRequest(request.request_id, savepoint.location))
            else:
                error = failure or StopWithSavepointStoppingError(
                    self._job_name, savepoint.location
                )
                decisions.append(AnswerRequest(request.request_id, error=error))
        decisions += self._noted(self.store.end(status, self._settings.retention))
        decisions += self._unheld(self._files.release(_RUNNING))
        decisions += [DeleteSavepoint(target) for target in self._given_up]
        return [*decisions, CleanUp(self.store.checkpoints)]

    # Failures

    def _fail(
        self, checkpoint_id: int, reason: CheckpointFailureReason, details: str | None, now: float
    ) -> list[Decision]:
        checkpoint = self._pending.get(checkpoint_id)
        if checkpoint is None:
            return []
        decisions = self._abort(checkpoint, reason, details, now)
        error = CheckpointFailedError(checkpoint.title, reason, details)
        if _stop_of(checkpoint) is StopMode.DRAIN:
            # Event time has reached its end in the tasks. Only a restart resets it.
            return [*decisions, FailJob(error)]
        if checkpoint.type is SnapshotType.SAVEPOINT or _stop_of(checkpoint) is StopMode.RESCALE:
            # The user who has asked for it gets the error.
            return decisions
        too_many = self._failures.failed(checkpoint_id, error)
        return decisions if too_many is None else [*decisions, FailJob(too_many)]

    def _abort(
        self,
        checkpoint: PendingCheckpoint,
        reason: CheckpointFailureReason,
        details: str | None,
        now: float,
    ) -> list[Decision]:
        del self._pending[checkpoint.checkpoint_id]
        error = CheckpointFailedError(checkpoint.title, reason, details)
        duration = now - checkpoint.triggered_at
        self.stats.failed(checkpoint.checkpoint_id, str(error), duration, self._wall_clock(now))
        decisions: list[Decision] = [NotifyCheckpointAborted(checkpoint.checkpoint_id)]
        decisions += self._unheld(self._files.release(_holder(checkpoint)))
        if checkpoint.target is not None:
            decisions.append(DeleteSavepoint(checkpoint.target))
            self._given_up.append(checkpoint.target)
        if checkpoint.request is not None:
            decisions.append(AnswerRequest(checkpoint.request.request_id, error=error))
        return decisions

    def _abort_all(self, reason: CheckpointFailureReason, now: float) -> list[Decision]:
        """Abort all pending checkpoints, and refuse those that have not begun."""
        decisions = [
            decision
            for checkpoint in list(self._pending.values())
            for decision in self._abort(checkpoint, reason, None, now)
        ]
        return decisions + self._refuse_requests(reason)

    def _refuse_requests(self, reason: CheckpointFailureReason) -> list[Decision]:
        refused = [
            AnswerRequest(one.request_id, error=CheckpointFailedError(one.title, reason))
            for one in self._requests
        ]
        self._requests.clear()
        return [*refused]

    # Helpers

    def _unheld(self, files: frozenset[str]) -> list[Decision]:
        return [DeleteCheckpoint(None, tuple(sorted(files)))] if files else []

    def _noted(self, deletions: Sequence[DeleteCheckpoint]) -> list[Decision]:
        for deletion in deletions:
            self.stats.discarded(deletion.directory)
        return [*deletions]

    def _stored_files(self) -> frozenset[str]:
        return frozenset(file for completed in self.store.checkpoints for file in completed.files)

    def _last_epoch(self) -> int:
        latest = self.store.latest
        return 0 if latest is None else latest.metadata.epoch

    def _wall_clock(self, now: float) -> int:
        return round((now + self._wall_clock_offset) * 1000)


def _stop_of(checkpoint: PendingCheckpoint) -> StopMode | None:
    return None if checkpoint.request is None else checkpoint.request.stop


def _holder(checkpoint: PendingCheckpoint) -> tuple[str, int]:
    return ("pending", checkpoint.checkpoint_id)


def _progress(checkpoint: PendingCheckpoint) -> str:
    if checkpoint.is_being_written:
        return "it was still being written"
    awaited = len(checkpoint.awaited)
    return f"{awaited} of {awaited + len(checkpoint.acks)} subtasks had not acknowledged it"
