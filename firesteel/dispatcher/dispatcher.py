"""The dispatcher of one driver: its running jobs, and the last finished ones."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path

from firesteel.checkpoint.savepoints.savepoint import dispose_savepoint
from firesteel.common.configuration import Configuration
from firesteel.config import rest_options
from firesteel.dispatcher.archive import Archive
from firesteel.dispatcher.job_handle import JobHandle
from firesteel.dispatcher.programs import Programs
from firesteel.dispatcher.slot_pool import NoResourceAvailableError
from firesteel.errors import FiresteelError, InsufficientSlotsError
from firesteel.filesystems.settings import file_system_options
from firesteel.master.job_description import JobDescription
from firesteel.master.running_jobs import running_jobs
from firesteel.spark.application import ExecutorInfo, executors

_log = logging.getLogger("firesteel")

# Spark is asked for its executors at most this often.
_EXECUTORS_SECONDS = 1.0


class UnknownJobError(FiresteelError, LookupError):
    """The dispatcher has no job with this id, or no longer has it."""

    def __init__(self, job_id: str) -> None:
        super().__init__(f"Job {job_id} not found")
        self.job_id = job_id


@dataclass(frozen=True, slots=True)
class Slots:
    """The slots of all task managers, and the number that each running job has taken."""

    total: int
    by_job: Mapping[str, int]

    @property
    def free(self) -> int:
        return max(0, self.total - sum(self.by_job.values()))


@dataclass(frozen=True, slots=True)
class Bounds:
    """The parallelism that a vertex may have. It gets the upper bound if there are slots for it."""

    lower: int
    upper: int


class Dispatcher:
    """Holds the jobs that start in this process, from the first to the last.

    Finished jobs stay, up to ``web.history`` of them. All methods may be called from any thread.
    """

    #: True if all jobs are those of an archive.
    is_history = False
    #: Programs that were uploaded. None if this dispatcher takes no jobs of others.
    programs: Programs | None = None

    def __init__(self, configuration: Configuration) -> None:
        self.configuration = configuration
        self._history = configuration.get(rest_options.WEB_HISTORY)
        self._lock = threading.Lock()
        self._jobs: dict[str, JobHandle] = {}
        self._end: list[Callable[[], None]] = []
        location = configuration.get(rest_options.ARCHIVE_DIR)
        self._archive = (
            None if location is None else Archive(location, file_system_options(configuration))
        )
        self._executors: tuple[float, list[ExecutorInfo]] = (0.0, [])
        self._bounds: dict[str, dict[str, Bounds]] = {}

    def follow_program(self) -> None:
        """Take every job that the program of this process starts from now on."""
        self._end.append(running_jobs.listen(self.add))

    def has_ended(self, job: JobHandle) -> bool:
        """Return True if no master continues the job."""
        return job.result().done()

    def add(self, job: JobHandle) -> None:
        with self._lock:
            self._jobs[str(job.job_id)] = job
        job.result().add_done_callback(lambda _: self._ended(job))

    def jobs(self) -> list[JobHandle]:
        """Return all jobs, in the order of their submission."""
        with self._lock:
            return list(self._jobs.values())

    def job(self, job_id: str) -> JobHandle:
        with self._lock:
            job = self._jobs.get(job_id)
        if job is None:
            raise UnknownJobError(job_id)
        return job

    def task_managers(self) -> list[ExecutorInfo]:
        """Return the executors of Spark. Before the first job there are none."""
        asked_at, known = self._executors
        if time.monotonic() - asked_at > _EXECUTORS_SECONDS or not known:
            known = executors()
            self._executors = time.monotonic(), known
        return known

    def slots(self) -> Slots:
        """Return the slots of the task managers, and the jobs that have some."""
        return Slots(
            sum(executor.slots for executor in self.task_managers()),
            {
                str(job.job_id): _occupied_slots(job)
                for job in self.jobs()
                if not job.result().done()
            },
        )

    def rescale(
        self, job: JobHandle, parallelism: int | Mapping[str, int]
    ) -> Future[JobDescription]:
        """Change the parallelism of a running job: of all vertices, or by vertex id.

        Raises:
            InvalidProgramError: A vertex cannot have its parallelism.
            InsufficientSlotsError, NoResourceAvailableError: There are too few slots.
        """
        return job.rescale(parallelism)

    def requirements(self, job: JobHandle) -> dict[str, Bounds]:
        """Return the bounds of each vertex by its id."""
        known = self._bounds.get(str(job.job_id), {})
        return {
            vertex.id: known.get(vertex.id) or Bounds(1, vertex.parallelism)
            for vertex in job.description().vertices
        }

    def require(self, job: JobHandle, bounds: Mapping[str, Bounds]) -> Future[JobDescription]:
        """Change the bounds, and the parallelism of the running job if it follows from them.

        If there are too few slots for the upper bounds, all vertices get the highest parallelism for
        which there are, within their bounds.
        """
        refusal: FiresteelError | None = None
        for limit in range(max(one.upper for one in bounds.values()), 0, -1):
            wanted = {key: max(one.lower, min(one.upper, limit)) for key, one in bounds.items()}
            try:
                changed = self._rescale_if_different(job, wanted)
            except (InsufficientSlotsError, NoResourceAvailableError) as error:
                refusal = refusal or error
                continue
            self._bounds[str(job.job_id)] = dict(bounds)
            changed.add_done_callback(lambda done: _log_failed_rescaling(job, done))
            return changed
        assert refusal is not None
        raise refusal

    def _rescale_if_different(
        self, job: JobHandle, wanted: Mapping[str, int]
    ) -> Future[JobDescription]:
        description = job.description()
        if wanted != {vertex.id: vertex.parallelism for vertex in description.vertices}:
            return self.rescale(job, wanted)
        same: Future[JobDescription] = Future()
        same.set_result(description)
        return same

    def job_file(self, job: JobHandle, ending: str) -> Path | None:
        """Return the file with the "log" or the "out" of a job master with its own process."""
        return None

    def dispose_savepoint(self, path: str) -> None:
        """Delete a savepoint with its files."""
        dispose_savepoint(path, file_system_options(self.configuration))

    def close(self) -> None:
        """Take no further jobs. Running jobs continue."""
        for end in self._end:
            end()
        self._end.clear()

    def load_archive(self) -> None:
        """Show the newest jobs of the archive, which have ended before this dispatcher started."""
        if self._archive is None:
            return
        found = {str(job.job_id): job for job in self._archive.newest(self._history)}
        with self._lock:
            self._jobs = {**found, **self._jobs}

    def _ended(self, job: JobHandle) -> None:
        if self._archive is not None:
            self._archive.write(job)
        self._forget_oldest()

    def _forget_oldest(self) -> None:
        """Forget the finished jobs that were submitted first, beyond the size of the history."""
        with self._lock:
            finished = [key for key, job in self._jobs.items() if job.result().done()]
            forgotten = [
                self._jobs.pop(key) for key in finished[: max(0, len(finished) - self._history)]
            ]
        for job in forgotten:
            self._bounds.pop(str(job.job_id), None)
            self._forgotten(job)

    def _forgotten(self, job: JobHandle) -> None:
        """Called with each job that is no longer visible."""


def _occupied_slots(job: JobHandle) -> int:
    """Return the slots of a running job: of all levels in real time, or else of the widest one."""
    slots = job.description().slots
    return sum(slots) if job.overview().get("is_live") else max(slots)


def _log_failed_rescaling(job: JobHandle, done: Future[JobDescription]) -> None:
    error = done.exception()
    if error is not None:
        _log.warning("job %s keeps its parallelism: %s", job.job_id, error)
