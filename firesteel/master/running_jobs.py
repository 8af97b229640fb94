"""Jobs of the program that have not ended, each in a thread of its own."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future, wait
from typing import Any

from firesteel.checkpoint.metadata import SnapshotType
from firesteel.checkpoint.rules.requests import SnapshotRequest, StopMode
from firesteel.checkpoint.savepoints.savepoint import savepoint_directory
from firesteel.common.job_execution_result import JobExecutionResult
from firesteel.common.job_id import JobID
from firesteel.common.job_status import JobStatus
from firesteel.config import checkpoint_options
from firesteel.config.sensitive import hide_secrets
from firesteel.errors import FiresteelError, InvalidProgramError, JobCancelledError
from firesteel.graph.levels import Levels
from firesteel.graph.rescaling import rescale, uniform_parallelism
from firesteel.graph.settings import JobSettings
from firesteel.master.job_description import FailureRecord, JobDescription, describe_job
from firesteel.master.job_runner import JobRunner, explained

__all__ = ["RunningJob", "RunningJobs", "running_jobs"]

# Jobs end by themselves well within this time; a program must end even if one does not.
_END_SECONDS = 20.0


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

    @property
    def name(self) -> str:
        return self._settings.job_name

    def status(self) -> JobStatus:
        return self._runner.status

    def timestamps(self) -> dict[str, int]:
        """Return the time of the last change to each status by name, in epoch milliseconds."""
        return self._runner.timestamps()

    def description(self) -> JobDescription:
        """Return the job graph as plain data."""
        return describe_job(str(self.job_id), self._settings, self._runner.recovery.levels)

    def configuration(self) -> dict[str, str]:
        """Return the settings of the job as text, without secrets."""
        return hide_secrets(self._settings.configuration.to_dict())

    def failures(self) -> list[FailureRecord]:
        """Return the failures of its attempts, the newest first."""
        return self._runner.failures()

    def restarts(self) -> int:
        """Return the number of restarts after a failure."""
        return self._runner.restarts

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

    def interrupt(self) -> None:
        """Handle Ctrl-C: cancel the job, which belongs to this program."""
        self.cancel_and_wait()

    def cancel_and_wait(self) -> None:
        """Cancel the job. Ctrl-C ends the running epoch by force."""
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
        return self._runner.overview()

    def ask_slot(
        self, level: int, slot: int, what: str, arguments: Mapping[str, Any]
    ) -> Future[Any]:
        """Ask the process of a slot for stacks, threads or its log."""
        return self._runner.ask_slot(level, slot, what, arguments)

    def savepoint(
        self, directory: str | None, stop: str | None, native: bool = False
    ) -> Future[str]:
        """Take a savepoint below ``directory``; with ``stop`` the job ends with it."""
        directory = directory or self._settings.configuration.get(checkpoint_options.SAVEPOINT_DIR)
        if directory is None:
            raise InvalidProgramError(
                "There is no directory for the savepoint: pass a directory, or set "
                f"{checkpoint_options.SAVEPOINT_DIR.key}"
            )

        mode = None if stop is None else StopMode(stop)

        def request(request_id: str) -> SnapshotRequest:
            target = savepoint_directory(directory, str(self.job_id), request_id)
            return SnapshotRequest(request_id, SnapshotType.SAVEPOINT, target, mode, native)

        return self._runner.request_snapshot(request)

    def checkpoint(self) -> Future[str]:
        """Take a checkpoint now, besides the regular ones."""
        return self._runner.request_snapshot(
            lambda request_id: SnapshotRequest(request_id, SnapshotType.CHECKPOINT)
        )

    def plan_rescale(self, parallelism: int | Mapping[str, int]) -> JobDescription:
        """Return the job graph that ``rescale`` would give the job.

        Raises InvalidProgramError if a vertex cannot have its parallelism.
        """
        levels = self._rescaled(self._runner.recovery.levels, parallelism)
        return describe_job(str(self.job_id), self._settings, levels)

    def _rescaled(self, levels: Levels, parallelism: int | Mapping[str, int]) -> Levels:
        graph = levels.job_graph
        if isinstance(parallelism, int):
            return rescale(levels, uniform_parallelism(graph, parallelism))
        vertices = {graph.nodes[one.operators[0]].operator_id: one.id for one in graph.vertices}
        return rescale(levels, {vertices[key]: wanted for key, wanted in parallelism.items()})

    def rescale(self, parallelism: int | Mapping[str, int]) -> Future[JobDescription]:
        """Change the parallelism of the job. It restarts from a checkpoint that it takes for it.

        Args:
            parallelism: That of all vertices, as far as they can have it, or one by vertex id.

        Returns:
            The new job graph, once the job has it.
        """
        answer: Future[JobDescription] = Future()
        done = self._runner.rescale(lambda levels: self._rescaled(levels, parallelism))

        def finish(result: Future[str]) -> None:
            error = result.exception()
            if error is None:
                answer.set_result(self.description())
            else:
                answer.set_exception(error)

        done.add_done_callback(finish)
        return answer

    def checkpoints(self) -> dict[str, Any]:
        return self._runner.checkpoint_overview()

    def checkpoint_details(self, checkpoint_id: int) -> dict[str, Any] | None:
        return self._runner.checkpoint_details(checkpoint_id)


class RunningJobs:
    """Registry of the running jobs, to end all of them at once."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._jobs: set[RunningJob] = set()
        self._listeners: list[Callable[[RunningJob], None]] = []
        # The program is ended from outside (SIGTERM), as when a machine goes down. The user has not
        # canceled the jobs, so their checkpoints stay, as those of a program that is killed.
        self.suspended = False

    def add(self, job: RunningJob) -> None:
        with self._lock:
            self._jobs.add(job)
            listeners = list(self._listeners)
        for listener in listeners:
            listener(job)

    def listen(self, listener: Callable[[RunningJob], None]) -> Callable[[], None]:
        """Call ``listener`` with every job that starts from now on. The result ends that."""
        with self._lock:
            self._listeners.append(listener)

        def end() -> None:
            with self._lock:
                self._listeners.remove(listener)

        return end

    def discard(self, job: RunningJob) -> None:
        with self._lock:
            self._jobs.discard(job)

    def __bool__(self) -> bool:
        # Without the lock: signal handlers ask, and may have interrupted a thread that holds it.
        return bool(self._jobs)

    def cancel_all(self, seconds: float = _END_SECONDS) -> None:
        """Cancel or suspend all jobs and wait for their end; give up those that take too long."""
        with self._lock:
            jobs = list(self._jobs)
        ends = [job.suspend() if self.suspended else job.cancel() for job in jobs]
        if wait(ends, seconds).not_done:
            self.give_up()
            wait(ends, seconds)

    def give_up(self) -> None:
        for job in list(self._jobs):
            job.give_up()


running_jobs = RunningJobs()
