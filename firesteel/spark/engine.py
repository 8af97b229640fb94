"""Runs one job on Spark, from the first file to the last."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import ExitStack
from typing import Any

from firesteel.checkpoint.rules.requests import SnapshotRequest
from firesteel.common.execution_config import ExecutionConfig
from firesteel.common.job_status import JobStatus
from firesteel.config import options
from firesteel.datastream.checkpointing_mode import CheckpointingMode
from firesteel.datastream.execution_mode import RuntimeExecutionMode
from firesteel.filesystems.settings import file_system_options
from firesteel.graph.levels import Levels
from firesteel.graph.operator_specs import DataFrameSourceSpec
from firesteel.graph.settings import JobSettings
from firesteel.graph.stream_graph import StreamGraph
from firesteel.master.epoch_rows import hand_out
from firesteel.master.job_attempts import JobAttempts, JobRecovery
from firesteel.master.job_master import JobMaster
from firesteel.master.rate_control import RateControl, target_duration
from firesteel.master.running_jobs import running_jobs
from firesteel.protocol.program import JobProgram
from firesteel.spark.batch_job import BatchJob
from firesteel.spark.job_files import JobFiles
from firesteel.spark.session import (
    acquire_session,
    host_settings,
    is_local,
    release_session,
    task_attempts,
)
from firesteel.spark.shipping import ship, stage_resources
from firesteel.spark.slot_task import SlotTask
from firesteel.spark.streaming_job import StreamingJob
from firesteel.state.backend_factory import check_installed, settings_of

_IN_WORKER = "in-worker"


class SparkEngine:
    """``run`` returns when the job is over; ``master`` knows how it ended.

    Made where the job is submitted, so that one that cannot run fails there; ``run`` has a thread.

    A job that fails may have several attempts. Each has a program, a job master and a Spark query of
    its own; checkpoints, files and the session outlive them.
    """

    def __init__(
        self, job_id: str, graph: StreamGraph, levels: Levels, settings: JobSettings
    ) -> None:
        configuration = settings.configuration
        self._settings = settings
        self._graph = graph
        self._changed = threading.Condition()
        self._canceled = threading.Event()
        self._restarting = False
        self._is_over = False
        self._recovery = JobRecovery(job_id, settings.job_name, configuration, levels)
        with ExitStack() as held:
            self._session = acquire_session(
                levels.required_slots, configuration, may_restart=not _has_frames(graph)
            )
            held.callback(release_session)
            self._files = JobFiles(job_id, configuration)
            held.callback(self._files.remove)
            program = self._make_program(job_id)
            self._attempts = JobAttempts(self._recovery, program, self._changed)
            held.callback(self._attempts.close)
            self._begin_attempt()
            # Until the job is over.
            self._held = held.pop_all()

    def _make_program(self, job_id: str) -> JobProgram:
        settings, configuration = self._settings, self._settings.configuration
        context = self._session.sparkContext
        shared_disk = is_local(self._session)
        state_backend = settings_of(configuration)
        check_installed(state_backend)
        # Before the program is packed: it takes the module search path along.
        ship(context, settings, self._files.root, local=shared_disk)
        return JobProgram(
            job_id=job_id,
            job_name=settings.job_name,
            attempt=0,
            levels=self._recovery.levels,
            job_parameters=configuration.get(options.GLOBAL_JOB_PARAMETERS),
            segment_directory=self._segment_directory(shared_disk=shared_disk),
            inline_threshold=configuration.get(options.STATE_INLINE_THRESHOLD),
            batch=self._is_batch,
            checkpointed=self._recovery.is_periodic and not self._is_batch,
            exactly_once=self._recovery.settings.mode is CheckpointingMode.EXACTLY_ONCE,
            file_systems=file_system_options(configuration),
            resources=stage_resources(context, settings, self._files.root, local=shared_disk),
            state_backend=state_backend,
            auto_watermark_interval=ExecutionConfig(configuration).get_auto_watermark_interval(),
        )

    def _segment_directory(self, *, shared_disk: bool) -> str | None:
        """Where large state goes: to the checkpoints, so that they only have to refer to it."""
        if self._recovery.is_periodic:
            shared = self._recovery.storage.shared
            return None if shared is None else shared.location
        return str(self._files.segments) if shared_disk else None

    @property
    def _is_batch(self) -> bool:
        return self._settings.runtime_mode is RuntimeExecutionMode.BATCH

    @property
    def master(self) -> JobMaster:
        """Of the attempt that runs, or ran last."""
        return self._attempts.master

    # Attempts

    def _begin_attempt(self) -> None:
        configuration = self._settings.configuration
        target = configuration.get(options.EPOCH_TARGET_DURATION)
        rate = RateControl(
            target_seconds=target.total_seconds()
            if target is not None
            else target_duration(self._settings.buffer_timeout),
            max_records=configuration.get(options.EPOCH_MAX_RECORDS),
        )
        program = self._attempts.begin(rate)
        task = self._slot_task(program)
        self._job: BatchJob | StreamingJob
        if self._is_batch:
            self._job = BatchJob(self._session, program, self._graph, self.master, task)
        else:
            self._job = StreamingJob(
                self._session,
                program,
                self._graph,
                self._attempts,
                self._files,
                task,
                self._changed,
                configuration.get(options.CANCELLATION_TIMEOUT).total_seconds(),
            )

    def _slot_task(self, program: JobProgram) -> SlotTask:
        settings, configuration = self._settings, self._settings.configuration
        program_file = self._files.write_program(program)
        if not is_local(self._session):
            self._session.sparkContext.addFile(program_file)
        in_worker = self._is_batch or configuration.get(options.SLOT_HOST) == _IN_WORKER
        idle_timeout = configuration.get(options.SLOT_HOST_IDLE_TIMEOUT).total_seconds()
        return SlotTask(
            program_file,
            None
            if in_worker
            else host_settings(
                self._session,
                idle_timeout,
                # A process has one working directory, which archives change.
                only_job=program.job_id if settings.python_archives else None,
            ),
            batch=self._is_batch,
            max_attempts=task_attempts(self._session),
        )

    def run(self) -> None:
        try:
            self._job.run()
            while self._restarts():
                self._begin_attempt()
                if self._canceled.is_set():
                    self._job.cancel()
                self._restarting = False
                self._job.run()
        finally:
            self._is_over = True
            self._end()

    def _restarts(self) -> bool:
        """Whether the job has failed and is to be started again; waits for the right moment."""
        if self.master.failure is None or self._canceled.is_set():
            return False
        decision = self._attempts.failed()
        self._restarting = decision.restart
        return decision.restart and not self._canceled.wait(decision.delay)

    @property
    def status(self) -> JobStatus:
        status = self.master.status
        if self._is_over or (not self._restarting and status is not JobStatus.FAILED):
            return JobStatus.CANCELED if self.was_canceled_between_attempts else status
        if self._canceled.is_set():
            return JobStatus.CANCELLING
        # Whether a failure is final is not known before the restart strategy has been asked.
        return JobStatus.RESTARTING if self._restarting else JobStatus.FAILING

    def cancel(self) -> None:
        self._canceled.set()
        self._job.cancel()

    def give_up(self) -> None:
        """The job has been canceled: do not wait for the epoch that runs."""
        self._job.give_up()

    @property
    def was_canceled_between_attempts(self) -> bool:
        """A job that was canceled while it waited for its restart has not failed."""
        return self._canceled.is_set() and self.master.status is JobStatus.FAILED

    # Savepoints

    def request_snapshot(self, make: Callable[[str], SnapshotRequest]) -> Future[str]:
        return self._attempts.executor.request(make)

    def checkpoint_overview(self) -> dict[str, Any]:
        with self._changed:
            return self._recovery.coordinator.stats.overview()

    def checkpoint_details(self, checkpoint_id: int) -> dict[str, Any] | None:
        with self._changed:
            stats = self._recovery.coordinator.stats.find(checkpoint_id)
            return None if stats is None else stats.details()

    def _end(self) -> None:
        try:
            suspended = running_jobs.suspended and self.status is JobStatus.CANCELED
            self._attempts.end(JobStatus.SUSPENDED if suspended else self.status)
            hand_out(self._graph, self._attempts.collected.take())
        finally:
            self._held.close()


def _has_frames(graph: StreamGraph) -> bool:
    """DataFrames belong to a session: one that has made some must not be started over."""
    return any(isinstance(node.spec, DataFrameSourceSpec) for node in graph.nodes.values())
