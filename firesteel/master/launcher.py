"""Starts jobs: the one door from the API to the engine."""

from __future__ import annotations

import threading
import time
from concurrent.futures import Future
from typing import Any

from firesteel.checkpoint.metadata import SnapshotType
from firesteel.checkpoint.rules.requests import SnapshotRequest, StopMode
from firesteel.checkpoint.savepoints.savepoint import savepoint_directory
from firesteel.common.job_client import JobClient
from firesteel.common.job_execution_result import JobExecutionResult
from firesteel.common.job_id import JobID
from firesteel.common.job_status import JobStatus
from firesteel.config import checkpoint_options
from firesteel.errors import FiresteelError, InvalidProgramError, JobCancelledError
from firesteel.graph.levels import Levels
from firesteel.graph.settings import JobSettings
from firesteel.graph.stream_graph import StreamGraph
from firesteel.master.job_status import explained
from firesteel.master.running_jobs import running_jobs


def launch(stream_graph: StreamGraph, levels: Levels, settings: JobSettings) -> JobClient:
    """Start a job in a thread of its own."""
    return JobClient(RunningJob(stream_graph, levels, settings))


class RunningJob:
    """What a JobClient steers: a job that runs in a thread of its own."""

    def __init__(self, graph: StreamGraph, levels: Levels, settings: JobSettings) -> None:
        from firesteel.spark.engine import SparkEngine

        self.job_id = JobID.generate()
        self._settings = settings
        self._started = time.monotonic()
        self._result: Future[JobExecutionResult] = Future()
        # Made here, not in the thread: a program that cannot run must fail where it was submitted.
        self._engine = SparkEngine(str(self.job_id), graph, levels, settings)
        self._thread = threading.Thread(target=self._run, name=f"firesteel-{settings.job_name}")
        self._thread.daemon = True
        running_jobs.add(self)
        self._thread.start()

    def _run(self) -> None:
        try:
            outcome = self._run_to_its_end()
        except BaseException as error:  # noqa: BLE001 - whoever waits must not wait forever
            outcome = self._explained(error)
        if isinstance(outcome, FiresteelError):
            self._result.set_exception(outcome)
        else:
            self._result.set_result(outcome)
        running_jobs.discard(self)

    def _run_to_its_end(self) -> JobExecutionResult | FiresteelError:
        try:
            self._engine.run()
        except BaseException as error:  # noqa: BLE001 - it reaches whoever waits for the result
            failure = self._explained(error)
            self._engine.master.fail(failure)
            self._engine.master.abandon()
            return failure
        if self.status() is JobStatus.CANCELED:
            return JobCancelledError(str(self.job_id))
        if self._engine.master.failure is not None:
            return self._engine.master.failure
        runtime = int((time.monotonic() - self._started) * 1000)
        return JobExecutionResult(
            self.job_id, runtime, self.accumulators(), self._settings.job_name
        )

    def _explained(self, error: BaseException) -> FiresteelError:
        return explained(error, str(self.job_id), self._settings.job_name)

    def status(self) -> JobStatus:
        return self._engine.status

    def cancel(self) -> Future[None]:
        """Ends when the job has ended."""
        self._engine.cancel()
        done: Future[None] = Future()
        self._result.add_done_callback(lambda _: done.set_result(None))
        return done

    def cancel_and_wait(self) -> None:
        """As Ctrl-C does it: one more of them, and nothing is waited for that can be ended by force."""
        end = self.cancel()
        try:
            end.result()
        except KeyboardInterrupt:
            self.give_up()
            end.result()

    def give_up(self) -> None:
        """Do not wait for the running epoch any more."""
        self._engine.give_up()

    def result(self) -> Future[JobExecutionResult]:
        return self._result

    def accumulators(self) -> dict[str, Any]:
        """Counters of the user's functions, by name: Flink's accumulators are counters here."""
        return {**self._engine.master.metrics.user_counters()}

    def metrics(self) -> dict[str, Any]:
        return self._engine.master.metrics.user_metrics()

    def overview(self) -> dict[str, Any]:
        return self._engine.master.overview()

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

        return self._engine.request_snapshot(request)

    def checkpoint(self) -> Future[str]:
        """Take a checkpoint now, besides the regular ones."""
        return self._engine.request_snapshot(
            lambda request_id: SnapshotRequest(request_id, SnapshotType.CHECKPOINT)
        )

    def checkpoints(self) -> dict[str, Any]:
        return self._engine.checkpoint_overview()

    def checkpoint_details(self, checkpoint_id: int) -> dict[str, Any] | None:
        return self._engine.checkpoint_details(checkpoint_id)
