"""The dispatcher of a session: takes jobs of clients, and runs them on one Spark application."""

from __future__ import annotations

import logging
import os
import shutil
import subprocess
import sys
import threading
import time
from collections import Counter, deque
from collections.abc import Mapping
from concurrent.futures import Future, wait
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

from firesteel.common.configuration import Configuration
from firesteel.common.job_id import JobID
from firesteel.common.job_status import JobStatus
from firesteel.config import check_keys, options
from firesteel.config.loader import CONF_DIR_VARIABLES
from firesteel.dispatcher.dispatcher import Dispatcher, Slots
from firesteel.dispatcher.durable_results import DurableResultReader, reader_of_ended_job
from firesteel.dispatcher.job_handle import JobHandle
from firesteel.dispatcher.job_process import write_leader_file
from firesteel.dispatcher.job_store import JobStore, StoredJob
from firesteel.dispatcher.programs import Programs
from firesteel.dispatcher.results import ResultReader
from firesteel.dispatcher.session_job import MASTER_FILES, SessionJob
from firesteel.dispatcher.slot_pool import NoResourceAvailableError, SlotPool, SlotRequest
from firesteel.errors import FiresteelError, InvalidProgramError, LeadershipLostError
from firesteel.filesystems.scratch import ScratchDirectory
from firesteel.leader.services import is_passing
from firesteel.master.job_description import JobDescription
from firesteel.protocol.submission import (
    MANIFEST,
    Manifest,
    python_version,
    read_manifest,
    unpack_submission,
)
from firesteel.spark.application import Gateway, when_spark_ends
from firesteel.spark.session import stop_own_session, user_session
from firesteel.spark.task_slots import task_slots
from firesteel.version import __version__

_log = logging.getLogger("firesteel")

# Slots of a session on one machine, unless taskmanager.numberOfTaskSlots or the master says so.
# They are threads of Spark, which cost nothing while no task uses them.
_DEFAULT_SLOTS = 128
_TASK_ATTEMPTS = 4
# Spark's daemon of a job that has ended is gone after this time, so its name is free again.
_WORKERS_REST_SECONDS = 120.0
_END_SECONDS = 30.0
# A job whose master is killed more often fails.
_MOST_DEATHS = 10
# A job whose entries or checkpoints cannot be read is started again after this time.
_POSTPONED_SECONDS = 3.0
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
        self._pool = SlotPool(self._task_slots(wanted=sys.maxsize))
        self._waits = configuration.get(options.SESSION_WHEN_FULL) == "wait"
        self._timeout = configuration.get(options.SLOT_REQUEST_TIMEOUT).total_seconds()
        self._submitting = threading.Lock()
        self._workers = WorkerNames(self._scratch.path / "workers")
        self.programs = Programs(self._scratch.path / "programs")
        # The URL of the session for programs that it runs.
        self.url = ""
        self._is_closed = False
        # The jobs for the next leader, while this master leads one of several.
        self._store: JobStore | None = None
        self._is_one_of_several = False
        # The number of times that the master of a job was killed, by job.
        self._deaths: Counter[str] = Counter()
        # Jobs whose end is noted. A job that has failed without that continues with the next leader.
        self._noted: set[str] = set()
        self._warming: subprocess.Popen[bytes] | None = None
        #: The error with which the session ends by itself.
        self.failure: FiresteelError | None = None
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
            known = self._known(manifest.job_id)
            if known is not None:
                return known
            with self._submitting:
                if directory.exists():
                    raise InvalidProgramError(
                        f"The job {manifest.job_id} has been submitted already."
                    )
                directory.mkdir()
            unpack_submission(submission, directory)
            job = self._take(manifest, directory, submission)
        finally:
            submission.unlink(missing_ok=True)
        _log.info("job %s (%s) was submitted", job.job_id, job.name)
        self.add(job)
        self._start_jobs()
        return job

    def _known(self, job_id: str) -> SessionJob | None:
        """Return the job of a client that repeats its call, because the last leader has died."""
        with self._lock:
            job = self._jobs.get(job_id)
        return job if self._store is not None and isinstance(job, SessionJob) else None

    def _take(self, manifest: Manifest, directory: Path, submission: Path) -> SessionJob:
        """Make the job of a submission, and let it wait for slots."""
        job: SessionJob | None = None
        try:
            job = self._make_job(self._with_defaults(manifest, directory), directory)
            self._request_slots(job)
            if self._store is not None:
                self._store.save(manifest, submission)
        except BaseException:
            shutil.rmtree(directory, ignore_errors=True)
            if job is not None:
                with self._submitting:
                    self._pool.release(str(job.job_id))
            raise
        return job

    def _make_job(self, manifest: Manifest, directory: Path) -> SessionJob:
        store = self._store
        if store is None:
            return SessionJob(manifest, directory)
        write_leader_file(directory, store.for_process())
        return SessionJob(
            manifest,
            directory,
            lambda node: DurableResultReader(store.results(manifest.job_id, node), store.term),
            partial(self._replace_dead, store),
        )

    def _replace_dead(
        self, store: JobStore, job: SessionJob, postponed: FiresteelError | None
    ) -> bool:
        """Start a job again, from its newest checkpoint.

        Its master was killed, or was postponed because it could not read entries or checkpoints.
        """
        job_id = str(job.job_id)
        problem: Exception | None = postponed
        self._deaths[job_id] += postponed is None
        while not job.result().done():
            if problem is not None:
                _log.warning("job %s is started again later: %s", job_id, problem)
                wait([job.result()], _POSTPONED_SECONDS)
            if self._store is not store or self._is_closed or self._deaths[job_id] > _MOST_DEATHS:
                return False
            try:
                return self._restart(store, job)
            except (FiresteelError, OSError) as error:
                if not is_passing(error):
                    _log.warning("job %s is not started again: %s", job_id, error)
                    return False
                problem = error
        return False

    def _restart(self, store: JobStore, job: SessionJob) -> bool:
        job_id = str(job.job_id)
        stored = store.unfinished_job(job_id)
        if stored is None:
            return False
        _log.warning("the master of job %s has ended, and is started again", job_id)
        with self._submitting:
            self._pool.release(job_id)
        self._continue(stored)
        return True

    # Several masters

    def lead(self, store: JobStore) -> None:
        """Take over the jobs of the last leader. Called without jobs of an earlier term."""
        self._store = store
        self.load_archive()
        for stored in store.unfinished():
            try:
                self._continue(stored)
            except (FiresteelError, OSError) as error:
                _log.error("The job %s is skipped: %s", stored.job_id, error)

    def _continue(self, stored: StoredJob) -> None:
        directory = self._scratch.path / f"job-{stored.job_id}"
        submission = self.new_file()
        submission.write_bytes(stored.submission)
        try:
            manifest = read_manifest(submission)
            self._check(manifest)
            # A process of the last run may have written there once more before it ended.
            shutil.rmtree(directory, ignore_errors=True)
            directory.mkdir(exist_ok=True)
            unpack_submission(submission, directory)
        finally:
            submission.unlink(missing_ok=True)
        job = self._make_job(self._with_defaults(manifest, directory), directory)
        self._request_slots(job)
        _log.info("job %s (%s) continues with this master", job.job_id, job.name)
        self.add(job)
        self._start_jobs()

    def results(self, job: JobHandle, node: int) -> ResultReader | DurableResultReader | None:
        """Return the reader of a collected stream, or None if the job does not collect it."""
        if isinstance(job, SessionJob):
            return job.results(node) if node in job.manifest.collected else None
        if self._store is None:
            return None
        # The job has ended with an earlier leader, and its client has not read everything.
        return reader_of_ended_job(self._store.results(str(job.job_id), node))

    def stand_by(self) -> None:
        """Take jobs only while this master leads."""
        self._is_one_of_several = True

    def warm_up(self) -> None:
        """Let Spark run a small job that no list shows, and wait for its end.

        So a standby starts the jobs of the last leader faster.
        """
        gateway = Gateway(self._session)
        workers = self._workers.take()
        directory = self._scratch.path / "warm-up"
        directory.mkdir()
        environment = {**os.environ, **gateway.environment}
        for name in CONF_DIR_VARIABLES:
            # The settings of the session are not for this job.
            environment.pop(name, None)
        try:
            with (directory / "log").open("wb") as log, self._submitting:
                if self._is_closed:
                    return
                self._warming = subprocess.Popen(
                    [sys.executable, "-m", "firesteel.dispatcher.warm_up", str(workers)],
                    env=environment,
                    cwd=directory,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    start_new_session=True,
                )
                workers.write_text(str(self._warming.pid))
            if self._warming.wait() == 0:
                _log.info("Spark is warm")
            elif not self._is_closed:
                text = (directory / "log").read_text(errors="replace")
                _log.warning("Spark is not warm, so jobs start more slowly:\n%s", text)
        finally:
            gateway.close()
            self._workers.give_back(workers)

    def step_down(self, reason: str) -> None:
        """End all jobs at once, because a different master may run them now."""
        self._store = None
        with self._lock:
            dropped = [job for job in self._jobs.values() if isinstance(job, SessionJob)]
            self._jobs = {}
        for job in dropped:
            job.abandon(f"The job continues with a different master: {reason}")
        for job in dropped:
            job.wait_until_gone(_END_SECONDS)
            with self._submitting:
                self._pool.release(str(job.job_id))
            shutil.rmtree(job.directory, ignore_errors=True)

    def watch_spark(self) -> None:
        """End the session if Spark ends. A master that cannot run jobs must not lead."""
        when_spark_ends(self._spark_has_ended)

    def _spark_has_ended(self) -> None:
        with self._submitting:
            if self._is_closed:
                return
            self._is_closed = True
        reason = "Spark's JVM has ended by itself, so this session ends, too"
        _log.error("%s", reason)
        self.failure = FiresteelError(
            f"{reason}. Perhaps the system was short of memory and has killed it. The checkpoints of "
            "its jobs are still there."
        )
        for job in self.jobs():
            if isinstance(job, SessionJob):
                job.abandon(reason)
        self.stop_requested.set()

    def new_file(self) -> Path:
        """Return a path for a submission that is being received."""
        directory = self._scratch.path / "received"
        directory.mkdir(exist_ok=True)
        return directory / f"{JobID.generate()}.zip"

    def _check(self, manifest: Manifest) -> None:
        if self._is_closed:
            raise InvalidProgramError("The session is being stopped and takes no jobs.")
        if self._is_one_of_several and self._store is None:
            raise NoResourceAvailableError(1, 0, 0, "this master does not lead")
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

    def _task_slots(self, wanted: int = 0) -> int:
        return task_slots(self._session.sparkContext, wanted)

    def _request_slots(self, job: SessionJob) -> None:
        with self._submitting:
            self._pool.total = self._task_slots()
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
        store = self._store
        if store is not None:
            try:
                if not self._is_over(job, store):
                    return
                self._noted.add(str(job.job_id))
            except (FiresteelError, OSError) as error:
                _log.warning("the end of job %s is left to the next leader: %s", job.job_id, error)
                return
        super()._ended(job)
        if store is not None:
            # After the archive: the next leader shows the job from there.
            with suppress(FiresteelError, OSError):
                store.remove(str(job.job_id))

    def has_ended(self, job: JobHandle) -> bool:
        """Return False for a job that runs, or that a different master continues later."""
        if not super().has_ended(job):
            return False
        if not self._is_one_of_several or not isinstance(job, SessionJob):
            return True
        if job.status() is JobStatus.FAILED:
            return str(job.job_id) in self._noted
        return job.status() is not JobStatus.SUSPENDED

    def _is_over(self, job: JobHandle, store: JobStore) -> bool:
        """Return False for a job that the next leader continues."""
        if store.has_ended(str(job.job_id)):
            return True
        status, error = job.status(), job.result().exception()
        if not status.is_globally_terminal_state() or isinstance(error, LeadershipLostError):
            return False
        if status is JobStatus.FAILED and (
            self._is_closed
            or (isinstance(job, SessionJob) and job.has_told_end)
            or (error and is_passing(error))
        ):
            # Its process was killed because it did not end with the session, or has left the job to
            # the next master on purpose, or could not start yet.
            return False
        # It has ended before its master could note that, for example while it waited for slots.
        store.note_end(str(job.job_id), status.name)
        return True

    def slots(self) -> Slots:
        with self._submitting:
            before, total = self._pool.total, self._task_slots()
            self._pool.total = total
            taken = {key: self._pool.taken_by(key) for key in self._running()}
        if total > before:
            # An executor has come.
            self._start_jobs()
        return Slots(total, {key: count for key, count in taken.items() if count})

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
        self._noted.discard(str(job.job_id))
        if self._store is not None:
            with suppress(FiresteelError, OSError):
                self._store.forget(str(job.job_id))

    def close(self) -> None:
        """End the session. Its jobs are suspended: their checkpoints stay."""
        with self._submitting:
            self._is_closed = True
            if self._warming is not None:
                self._warming.kill()
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
