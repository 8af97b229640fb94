"""The dispatcher of a session: takes jobs of clients, and runs them on one Spark application."""

from __future__ import annotations

import logging
import shutil
import threading
import time
from collections import deque
from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path

from firesteel.common.configuration import Configuration
from firesteel.common.job_id import JobID
from firesteel.config import check_keys, options
from firesteel.dispatcher.dispatcher import Dispatcher, Slots
from firesteel.dispatcher.job_handle import JobHandle
from firesteel.dispatcher.programs import Programs
from firesteel.dispatcher.session_job import MASTER_FILES, SessionJob
from firesteel.dispatcher.slot_pool import NoResourceAvailableError, SlotPool, SlotRequest
from firesteel.errors import FiresteelError, InvalidProgramError
from firesteel.filesystems.scratch import ScratchDirectory
from firesteel.master.job_description import JobDescription
from firesteel.protocol.submission import (
    MANIFEST,
    Manifest,
    python_version,
    read_manifest,
    unpack_submission,
)
from firesteel.spark.application import Gateway, total_slots
from firesteel.spark.session import stop_own_session, user_session
from firesteel.version import __version__

_log = logging.getLogger("firesteel")

# Slots of a session on one machine, unless taskmanager.numberOfTaskSlots or the master says so.
# They are threads of Spark, which cost nothing while no task uses them.
_DEFAULT_SLOTS = 128
_TASK_ATTEMPTS = 4
# Spark's daemon of a job that has ended is gone after this time, so its name is free again.
_WORKERS_REST_SECONDS = 120.0
_END_SECONDS = 30.0
# Settings of a session that its jobs inherit.
_FOR_JOBS = (
    "execution.checkpointing.",
    "firesteel.state.",
    "firesteel.working-dir",
    "restart-strategy.",
    "s3.",
    "state.",
    "task.cancellation.",
    "web.",
)


class SessionDispatcher(Dispatcher):
    """Runs each job in a process of its own, once it has its slots."""

    def __init__(self, configuration: Configuration) -> None:
        super().__init__(configuration)
        self._scratch = ScratchDirectory("session", configuration.get(options.WORKING_DIR))
        self._session = user_session(1, _with_master(configuration))
        self._pool = SlotPool(total_slots(self._session))
        self._waits = configuration.get(options.SESSION_WHEN_FULL) == "wait"
        self._timeout = configuration.get(options.SLOT_REQUEST_TIMEOUT).total_seconds()
        self._submitting = threading.Lock()
        self._workers = WorkerNames(self._scratch.path / "workers")
        self.programs = Programs(self._scratch.path / "programs")
        # The URL of the session for programs that it runs.
        self.url = ""
        self._is_closed = False
        # A client has asked for the end of the session.
        self.stop_requested = threading.Event()
        self.load_archive()

    def submit(self, submission: Path) -> SessionJob:
        """Take the job that a client has packed. The file is removed.

        Raises:
            InvalidProgramError: The file is no job, or one of an incompatible client.
            NoResourceAvailableError: The session has too few slots.
        """
        try:
            manifest = read_manifest(submission)
            self._check(manifest)
            directory = self._scratch.path / f"job-{manifest.job_id}"
            with self._submitting:
                if directory.exists():
                    raise InvalidProgramError(
                        f"The job {manifest.job_id} has been submitted already."
                    )
                directory.mkdir()
            unpack_submission(submission, directory)
        finally:
            submission.unlink(missing_ok=True)
        try:
            job = SessionJob(self._with_defaults(manifest, directory), directory)
            self._request_slots(job)
        except BaseException:
            shutil.rmtree(directory, ignore_errors=True)
            raise
        _log.info("job %s (%s) was submitted", job.job_id, job.name)
        self.add(job)
        self._start_jobs()
        return job

    def new_file(self) -> Path:
        """Return a path for a submission that is being received."""
        directory = self._scratch.path / "received"
        directory.mkdir(exist_ok=True)
        return directory / f"{JobID.generate()}.zip"

    def _check(self, manifest: Manifest) -> None:
        if self._is_closed:
            raise InvalidProgramError("The session is being stopped and takes no jobs.")
        if manifest.python != python_version():
            raise InvalidProgramError(
                f"The client runs Python {manifest.python}, but the session runs Python "
                f"{python_version()}, which cannot load its functions. Use the same version."
            )
        if manifest.firesteel != __version__:
            raise InvalidProgramError(
                f"The client has Firesteel {manifest.firesteel}, but the session has {__version__}. "
                "Use the same version."
            )
        JobID(manifest.job_id)
        check_keys(manifest.configuration)

    def _with_defaults(self, manifest: Manifest, directory: Path) -> Manifest:
        """Give a job the settings of the session that are meant for jobs. Its own take precedence."""
        defaults = {
            key: value
            for key, value in self.configuration.to_dict().items()
            if key.startswith(_FOR_JOBS)
        }
        whole = replace(manifest, configuration={**defaults, **manifest.configuration})
        (directory / MANIFEST).write_text(whole.to_json())
        return whole

    def _request_slots(self, job: SessionJob) -> None:
        with self._submitting:
            self._pool.request(SlotRequest(str(job.job_id), job.slot_choices()))
            if not self._waits and min(job.slot_choices()) > self._pool.free:
                raise self._pool.refuse(str(job.job_id), "firesteel.session.when-full is refuse")
        if self._timeout > 0:
            timer = threading.Timer(self._timeout, self._give_up_waiting, (job,))
            timer.daemon = True
            timer.start()
            job.result().add_done_callback(lambda _: timer.cancel())

    def _give_up_waiting(self, job: SessionJob) -> None:
        with self._submitting:
            if str(job.job_id) not in self._pool.waiting():
                return
            error = self._pool.refuse(
                str(job.job_id), f"no more became free within {self._timeout:.0f} s"
            )
        job.fail(error)

    def _start_jobs(self) -> None:
        """Start the jobs for which there are slots now."""
        with self._submitting:
            granted = [] if self._is_closed else self._pool.grant()
        for job_id, slots in granted:
            job = self.job(job_id)
            assert isinstance(job, SessionJob)
            # Opening a gateway takes some milliseconds, and starting a process some more.
            threading.Thread(target=self._start, args=(job, slots), daemon=True).start()

    def _start(self, job: SessionJob, slots: int) -> None:
        try:
            gateway = Gateway(self._session)
            workers = self._workers.take()
        except Exception as error:  # noqa: BLE001 - the job fails with it
            _log.exception("job %s could not start", job.job_id)
            job.fail(FiresteelError(f"The job could not start: {error}"))
            return

        def end(_: object = None) -> None:
            gateway.close()
            self._workers.give_back(workers)

        job.start(slots, gateway.environment, str(workers))
        if job.process_id is None:
            # It was canceled meanwhile.
            end()
        else:
            workers.write_text(str(job.process_id))
            job.when_gone(end)

    def _ended(self, job: JobHandle) -> None:
        _log.info("job %s (%s) is %s", job.job_id, job.name, job.status().name)
        with self._submitting:
            self._pool.release(str(job.job_id))
        self._start_jobs()
        super()._ended(job)

    def slots(self) -> Slots:
        with self._submitting:
            taken = {key: self._pool.taken_by(key) for key in self._running()}
        return Slots(self._pool.total, {key: count for key, count in taken.items() if count})

    def rescale(
        self, job: JobHandle, parallelism: int | Mapping[str, int]
    ) -> Future[JobDescription]:
        """Change the parallelism of a running job, with slots that are free or its own."""
        assert isinstance(job, SessionJob)
        key, needed = str(job.job_id), job.slots_of(job.plan_rescale(parallelism))
        with self._submitting:
            before = self._pool.taken_by(key)
            self._pool.resize(key, max(needed, before))
        changing = job.rescale(parallelism)

        def finish(done: Future[JobDescription]) -> None:
            with self._submitting:
                if self._pool.taken_by(key):
                    self._pool.resize(key, needed if done.exception() is None else before)
            self._start_jobs()

        changing.add_done_callback(finish)
        return changing

    def job_file(self, job: JobHandle, ending: str) -> Path | None:
        return job.directory / MASTER_FILES[ending] if isinstance(job, SessionJob) else None

    def _running(self) -> list[str]:
        return [str(job.job_id) for job in self.jobs() if not job.result().done()]

    def _forgotten(self, job: JobHandle) -> None:
        if isinstance(job, SessionJob):
            shutil.rmtree(job.directory, ignore_errors=True)

    def close(self) -> None:
        """End the session. Its jobs are suspended: their checkpoints stay."""
        with self._submitting:
            self._is_closed = True
        super().close()
        jobs = [job for job in self.jobs() if isinstance(job, SessionJob)]
        for job in jobs:
            job.suspend()
        deadline = time.monotonic() + _END_SECONDS
        for job in jobs:
            if not job.wait_until_gone(deadline - time.monotonic()):
                job.kill()
        stop_own_session()
        self._scratch.remove()


class WorkerNames:
    """Names for groups of Python workers: files with the process id of the driver that has them.

    Spark keeps a thread for each name that it has ever seen, so names are used again. Before that
    they rest until the processes of their last job have ended.
    """

    def __init__(self, directory: Path) -> None:
        directory.mkdir()
        self._directory = directory
        self._lock = threading.Lock()
        self._resting: deque[tuple[float, Path]] = deque()
        self._made = 0

    def take(self) -> Path:
        with self._lock:
            if self._resting and self._resting[0][0] <= time.monotonic():
                return self._resting.popleft()[1]
            self._made += 1
            return self._directory / str(self._made)

    def give_back(self, name: Path) -> None:
        with self._lock:
            self._resting.append((time.monotonic() + _WORKERS_REST_SECONDS, name))


def _with_master(configuration: Configuration) -> Configuration:
    """Return the settings with a master that has the slots of a session."""
    if configuration.get_optional(options.SPARK_MASTER) is not None:
        return configuration
    slots = configuration.get_optional(options.TASK_SLOTS) or _DEFAULT_SLOTS
    master = f"local[{slots},{_TASK_ATTEMPTS}]"
    return Configuration(configuration).set_string(options.SPARK_MASTER.key, master)


__all__ = ["NoResourceAvailableError", "SessionDispatcher"]
