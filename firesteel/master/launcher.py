"""Launches jobs: runs a job in a thread and gives its client control of it."""

from __future__ import annotations

import threading
import time
from concurrent.futures import Future
from typing import Any

from firesteel.checkpoint.metadata import SnapshotType
from firesteel.checkpoint.rules.requests import SnapshotRequest, StopMode
from firesteel.checkpoint.savepoints.savepoint import savepoint_directory
from firesteel.common.job_execution_result import JobExecutionResult
from firesteel.common.job_id import JobID
from firesteel.common.job_status import JobStatus
from firesteel.config import checkpoint_options
from firesteel.errors import FiresteelError, InvalidProgramError, JobCancelledError
from firesteel.graph.levels import Levels
from firesteel.graph.settings import JobSettings
from firesteel.graph.stream_graph import StreamGraph
from firesteel.master.edge import ThreadedEdge
from firesteel.master.job_runner import JobRunner, explained
from firesteel.master.running_jobs import running_jobs


def launch(stream_graph: StreamGraph, levels: Levels, settings: JobSettings) -> RunningJob:
    """Start a job on Spark, in a thread of its own."""
    # The only way from here to Spark.
    from firesteel.spark.executor import SparkExecutor

    job_id = JobID.generate()
    # Made here, not in the thread: a program that cannot run must fail where it is submitted.
    runner = JobRunner(str(job_id), stream_graph, levels, settings, SparkExecutor, ThreadedEdge())
    return RunningJob(job_id, settings, runner)


class RunningJob:
    """A job in a thread of its own, as its program and its JobClient control it."""

    def __init__(self, job_id: JobID, settings: JobSettings, runner: JobRunner) -> None:
        self.job_id = job_id
        self._settings = settings
        self._runner = runner
        self._started = time.monotonic()
        self._result: Future[JobExecutionResult] = Future()
        self._thread = threading.Thread(target=self._run, name=f"firesteel-{settings.job_name}")
        self._thread.daemon = True
        running_jobs.add(self)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._runner.run()
            outcome = self._outcome()
        except BaseException as error:  # noqa: BLE001 - it reaches the callers that wait
            outcome = explained(error, str(self.job_id), self._settings.job_name)
        if isinstance(outcome, FiresteelError):
            self._result.set_exception(outcome)
        else:
            self._result.set_result(outcome)
        running_jobs.discard(self)

    def _outcome(self) -> JobExecutionResult | FiresteelError:
        if self._runner.failure is not None:
            return self._runner.failure
        if self.status() is not JobStatus.FINISHED:
            return JobCancelledError(str(self.job_id))
        runtime = int((time.monotonic() - self._started) * 1000)
        return JobExecutionResult(
            self.job_id, runtime, self.accumulators(), self._settings.job_name
        )

    def status(self) -> JobStatus:
        return self._runner.status

    def cancel(self) -> Future[None]:
        """Cancel the job. The future ends with the job."""
        return self._end_as(JobStatus.CANCELED)

    def suspend(self) -> Future[None]:
        """End the job, but keep its checkpoints. The future ends with the job."""
        return self._end_as(JobStatus.SUSPENDED)

    def _end_as(self, status: JobStatus) -> Future[None]:
        self._runner.cancel(status)
        done: Future[None] = Future()
        self._result.add_done_callback(lambda _: done.set_result(None))
        return done

    def cancel_and_wait(self) -> None:
        """Cancel the job because of Ctrl-C. A second Ctrl-C ends the running epoch by force."""
        end = self.cancel()
        try:
            end.result()
        except KeyboardInterrupt:
            self.give_up()
            end.result()

    def give_up(self) -> None:
        """Wait for the running epoch no longer."""
        self._runner.give_up()

    def result(self) -> Future[JobExecutionResult]:
        return self._result

    def accumulators(self) -> dict[str, Any]:
        """Return counters of the user's functions by name: they are Flink's accumulators here."""
        return {**self._runner.master.metrics.user_counters()}

    def metrics(self) -> dict[str, Any]:
        return self._runner.master.metrics.user_metrics()

    def overview(self) -> dict[str, Any]:
        return self._runner.master.overview()

    def savepoint(self, directory: str | None, stop: str | None) -> Future[str]:
        """Take a savepoint below ``directory``; with ``stop`` the job ends with it."""
        directory = directory or self._settings.configuration.get(checkpoint_options.SAVEPOINT_DIR)
        if directory is None:
            raise InvalidProgramError(
                "There is no directory for the savepoint: name one, or set "
                f"{checkpoint_options.SAVEPOINT_DIR.key}"
            )

        mode = None if stop is None else StopMode(stop)

        def request(request_id: str) -> SnapshotRequest:
            target = savepoint_directory(directory, str(self.job_id), request_id)
            return SnapshotRequest(request_id, SnapshotType.SAVEPOINT, target, mode)

        return self._runner.request_snapshot(request)

    def checkpoint(self) -> Future[str]:
        """Take a checkpoint now, besides the regular ones."""
        return self._runner.request_snapshot(
            lambda request_id: SnapshotRequest(request_id, SnapshotType.CHECKPOINT)
        )

    def checkpoints(self) -> dict[str, Any]:
        return self._runner.checkpoint_overview()

    def checkpoint_details(self, checkpoint_id: int) -> dict[str, Any] | None:
        return self._runner.checkpoint_details(checkpoint_id)
