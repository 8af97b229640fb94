"""The Spark session that jobs run on: the user's, or one of our own on this machine."""

from __future__ import annotations

import os
import secrets
import shutil
import sys
import threading
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from pyspark import SparkContext
from pyspark.sql import SparkSession

from firesteel.common.configuration import Configuration
from firesteel.config import options
from firesteel.config.spark_master import local_master
from firesteel.errors import InsufficientSlotsError
from firesteel.log import set_log_level
from firesteel.master.running_jobs import running_jobs
from firesteel.slothost.client import HostSettings
from firesteel.spark.java import java_environment
from firesteel.spark.program_end import program_end

# What every job's plan needs, set in a session of the job's own: the user's settings stay.
_JOB_SETTINGS = {
    # Adaptive execution would merge slots.
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "256",
    # Rows are buffers: a batch of the default size would hold 64 MB.
    "spark.sql.execution.arrow.maxBytesPerBatch": str(4 << 20),
    # A hash over every byte, for stages that run again; runs have numbers that tell them apart.
    "spark.sql.shuffle.orderIndependentChecksum.enabled": "false",
    "spark.sql.shuffle.orderIndependentChecksum.enableFullRetryOnMismatch": "false",
    "spark.sql.streaming.checkpoint.fileChecksum.enabled": "false",
    "spark.sql.streaming.minBatchesToRetain": "2",
    # What is tracked in memory must be kept there.
    "spark.sql.streaming.metadataCache.enabled": "true",
    "spark.sql.streaming.numRecentProgressUpdates": "1",
    "spark.sql.streaming.forceDeleteTempCheckpointLocation": "true",
    "spark.sql.streaming.pollingDelay": "1ms",
    "spark.sql.streaming.noDataMicroBatches.enabled": "false",
    "spark.sql.streaming.stopTimeout": "10s",
    # SQL_TIME in DataFrames: Spark has the type, but hides it.
    "spark.sql.timeType.enabled": "true",
}
# What a job's session takes over from the one it is started from: it decides what timestamps mean.
_TIME_ZONE = "spark.sql.session.timeZone"
_CONTEXT_SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.ui.retainedExecutions": "5",
    "spark.ui.retainedJobs": "5",
    "spark.ui.retainedStages": "10",
    "spark.ui.retainedTasks": "100",
    "spark.sql.streaming.ui.retainedProgressUpdates": "1",
    "spark.sql.streaming.ui.retainedQueries": "1",
    # A stage that runs again after its output was used, or a task that runs twice at once, may
    # give other output: sources read by the clock.
    "spark.stage.maxConsecutiveAttempts": "1",
    "spark.speculation": "false",
    "spark.sql.warehouse.dir": "spark-warehouse",
}
# On one machine an exchange does not leave memory, and large buffers are compressed already.
_LOCAL_SETTINGS = {
    "spark.shuffle.compress": "false",
    # Only here: the package reaches executors of a cluster with the job, after their daemons have started.
    "spark.python.daemon.module": "firesteel.spark.worker_daemon",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
}
_TASK_ATTEMPTS = 4


class _OwnSession:
    """The session that Firesteel started, if it did."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.session: SparkSession | None = None
        self.is_quiet = True
        self.jobs = 0


_own = _OwnSession()
_hosts: dict[str, HostSettings] = {}


def acquire_session(
    required_slots: int, configuration: Configuration, *, may_restart: bool = True
) -> SparkSession:
    """A session for one job, with its own SQL settings. Give it back with ``release_session``.

    A session of our own that has too few slots is started over if nothing else needs it.
    """
    with _own.lock:
        session = _base_session(required_slots, configuration, may_restart=may_restart)
        _own.jobs += 1
    context = session.sparkContext
    available = context.defaultParallelism
    if available < required_slots:
        with _own.lock:
            _own.jobs -= 1
        raise InsufficientSlotsError(required_slots, available)
    job_session = session.newSession()
    for key, value in _JOB_SETTINGS.items():
        job_session.conf.set(key, value)
    job_session.conf.set(_TIME_ZONE, str(session.conf.get(_TIME_ZONE)))
    return job_session


def user_session(required_slots: int, configuration: Configuration) -> SparkSession:
    """The session that jobs will run on, for the user to make DataFrames with."""
    with _own.lock:
        return _base_session(required_slots, configuration, may_restart=False)


def is_local(session: SparkSession) -> bool:
    """Whether driver and tasks share this machine's disk."""
    return local_master(str(session.sparkContext.master)) is not None


def task_attempts(session: SparkSession) -> int:
    """How often Spark tries a task before it gives up: ``local[n,attempts]``, or its setting."""
    local = local_master(str(session.sparkContext.master))
    if local is not None:
        return local.attempts
    return int(session.sparkContext.getConf().get("spark.task.maxFailures", "4"))


def release_session() -> None:
    with _own.lock:
        _own.jobs -= 1


def _base_session(
    required_slots: int, configuration: Configuration, *, may_restart: bool
) -> SparkSession:
    level = configuration.get_optional(options.LOG_LEVEL_OPTION)
    if level is not None:
        set_log_level(level)
    session = _active_or_new_session(required_slots, configuration, may_restart=may_restart)
    # After PySpark, which sets a handler of its own.
    program_end.watch(stop_own_session)
    return session


def _active_or_new_session(
    required_slots: int, configuration: Configuration, *, may_restart: bool
) -> SparkSession:
    active = SparkSession.getActiveSession()
    if active is None and SparkContext._active_spark_context is not None:  # noqa: SLF001
        active = SparkSession.builder.getOrCreate()
    if active is not None and active.sparkContext._jsc is None:  # noqa: SLF001
        active = None
    if active is not None and may_restart and _is_ours(active) and _own.jobs == 0:
        too_small = active.sparkContext.defaultParallelism < required_slots
        if too_small and configuration.get_optional(options.TASK_SLOTS) is None:
            # Nothing runs: start over with as many slots as the job needs.
            active.stop()
            active = None
    if active is not None:
        return active
    return _start(required_slots, configuration)


def _is_ours(session: SparkSession) -> bool:
    return _own.session is not None and session.sparkContext is _own.session.sparkContext


def _start(required_slots: int, configuration: Configuration) -> SparkSession:
    # Workers and hosts run the Python that runs the driver.
    executable = configuration.get_optional(options.PYTHON_EXECUTABLE)
    if executable is not None:
        os.environ["PYSPARK_PYTHON"] = executable
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    master = configuration.get_optional(options.SPARK_MASTER)
    if master is None:
        slots = configuration.get_optional(options.TASK_SLOTS)
        threads = slots if slots is not None else max(os.cpu_count() or 1, required_slots)
        master = f"local[{threads},{_TASK_ATTEMPTS}]"
    builder = SparkSession.builder.master(master).appName("firesteel")
    level = configuration.get(options.LOG_LEVEL_OPTION).upper()
    settings = dict(_CONTEXT_SETTINGS)
    if local_master(master) is not None:
        # Executors on other machines must reach the driver, and pay for every byte.
        settings |= _LOCAL_SETTINGS
    quiet = Path(__file__).parent / "log4j2-quiet.properties"
    verbose = level in ("INFO", "DEBUG", "TRACE")
    log_options = f"-Dlog4j2.configurationFile=file:{quiet}"
    if verbose:
        log_options += f" -Dfiresteel.log.level={level.lower()}"
    settings["spark.driver.extraJavaOptions"] = log_options
    for key, value in settings.items():
        builder = builder.config(key, value)
    for key, value in configuration.to_dict().items():
        if key.startswith("spark."):
            builder = builder.config(key, value)
    with java_environment():
        session = builder.getOrCreate()
    session.sparkContext.setLogLevel(level if verbose else "ERROR")
    _own.session, _own.is_quiet = session, not verbose
    return session


def host_settings(
    session: SparkSession, idle_timeout: float, only_job: str | None = None
) -> HostSettings:
    """How the slot hosts of this application, or of one of its jobs only, are found and protected."""
    application = str(session.sparkContext.applicationId)
    if only_job is not None:
        application = f"{application}-{only_job[:8]}"
    settings = _hosts.get(application)
    if settings is None:
        name = f"{application}-{secrets.token_hex(4)}"
        settings = _hosts[application] = HostSettings(name, secrets.token_hex(16))
    return replace(settings, idle_timeout=idle_timeout)


def _silence(context: SparkContext) -> None:
    """Tasks that were killed a moment ago complain when Spark goes, in the JVM and in PySpark."""
    context.setLogLevel("OFF")
    context._accumulatorServer.handle_error = lambda *_: None  # type: ignore[method-assign]  # noqa: SLF001


def stop_own_session() -> None:
    """Cancel the jobs that still run, then end Spark if Firesteel started it."""
    running_jobs.cancel_all()
    with _own.lock:
        session, _own.session = _own.session, None
    if session is not None:
        with suppress(Exception):
            if _own.is_quiet:
                _silence(session.sparkContext)
            session.stop()
    for settings in _hosts.values():
        shutil.rmtree(settings.directory, ignore_errors=True)
