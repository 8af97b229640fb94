"""The Spark session that jobs run on: the session of the user, or one that Firesteel starts."""

from __future__ import annotations

import os
import secrets
import shutil
import sys
import threading
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from pyspark import SparkConf, SparkContext
from pyspark.sql import SparkSession

from firesteel.common.configuration import Configuration
from firesteel.config import options
from firesteel.config.spark_master import local_master
from firesteel.errors import InsufficientSlotsError
from firesteel.filesystems.scratch import ScratchDirectory
from firesteel.logs import set_log_level
from firesteel.master.running_jobs import running_jobs
from firesteel.protocol.rows import LIVE_BUFFER_BYTES
from firesteel.slothost.client import HostSettings
from firesteel.slothost.directory import SlotDirectory
from firesteel.spark.class_archive import ClassArchive
from firesteel.spark.java import find_java, java_environment
from firesteel.spark.own_packages import EXECUTOR_DAEMON, write_executor_files
from firesteel.spark.program_end import program_end
from firesteel.spark.task_slots import task_slots

# Settings that the plan of a job needs. Each job has its own session, so the user's settings stay.
_JOB_SETTINGS = {
    # Adaptive execution would merge slots.
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "256",
    # Rows are buffers: a batch of the default size would hold 64 MB.
    "spark.sql.execution.arrow.maxBytesPerBatch": str(4 << 20),
    # Spark would hash every byte to compare two runs of a stage. Firesteel's runs have numbers.
    "spark.sql.shuffle.orderIndependentChecksum.enabled": "false",
    "spark.sql.shuffle.orderIndependentChecksum.enableFullRetryOnMismatch": "false",
    "spark.sql.streaming.checkpoint.fileChecksum.enabled": "false",
    "spark.sql.streaming.minBatchesToRetain": "2",
    # Progress is tracked in memory only, so Spark must keep it there.
    "spark.sql.streaming.metadataCache.enabled": "true",
    "spark.sql.streaming.numRecentProgressUpdates": "1",
    "spark.sql.streaming.forceDeleteTempCheckpointLocation": "true",
    "spark.sql.streaming.pollingDelay": "1ms",
    "spark.sql.streaming.noDataMicroBatches.enabled": "false",
    "spark.sql.streaming.stopTimeout": "10s",
    # SQL_TIME in DataFrames: Spark has the type, but hides it.
    "spark.sql.timeType.enabled": "true",
}
# Copied from the user's session into the session of a job, because timestamps depend on it.
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
    # A second run of a stage or task may give different output, because sources read by the clock.
    # So no stage runs again after its output was used, and no task runs twice at once.
    "spark.stage.maxConsecutiveAttempts": "1",
    "spark.speculation": "false",
    "spark.sql.warehouse.dir": "spark-warehouse",
}
# Settings of the context without which Real-time Mode is slow, or does not work at all.
LIVE_SETTINGS = {
    "spark.python.udf.pipelined.enabled": "true",
    "spark.python.unix.domain.socket.enabled": "true",
    # A thread per task sends buffers that are not full, this often. Live slots fill theirs.
    "spark.shuffle.streaming.networkBufferSize": str(LIVE_BUFFER_BYTES),
    "spark.shuffle.streaming.networkBufferMaxWaitTimeMs": "1000",
    # Rows that wait for a slow slot: at least two buffers per target. Spark counts a row that is
    # larger than its buffer as one buffer. More of them would only make barriers late.
    "spark.shuffle.streaming.writerMaxMemory": "1",
    "spark.shuffle.streaming.readerMaxMemory": str(64 << 10),
}
# On one machine an exchange does not leave memory, and large buffers are compressed already.
_LOCAL_SETTINGS = {
    "spark.shuffle.compress": "false",
    # On a cluster the module that starts the daemon travels to the executors.
    "spark.python.daemon.module": "firesteel.spark.worker_daemon",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
}
_FILES = "spark.files"
_TASK_ATTEMPTS = 4
# In real time the JVM only moves rows. Optimized code would make that a tenth cheaper, after minutes
# in which the compiler takes a fifth of the CPU time on two cores.
_NO_OPTIMIZING_COMPILER = "-XX:TieredStopAtLevel=1"
# With a few rows per second, the JVM would interpret the code that moves them for minutes. So it is
# compiled after a tenth of the usual number of calls.
_COMPILE_SOON = "-XX:CompileThresholdScaling=0.1"
# More code is compiled then. Without the optimizing compiler Java has room for 48 MB of it, which
# some dozen jobs fill. This is the room that it has otherwise.
_ROOM_FOR_CODE = "-XX:ReservedCodeCacheSize=240m"
# Threads of Spark on one machine. A job in real time needs one per slot of every level, and they
# cost nothing while no task uses them.
_LEAST_THREADS = 64


class _OwnSession:
    """The session that Firesteel started, or None, and the number of jobs that use it."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.session: SparkSession | None = None
        self.is_quiet = True
        # The archive of the classes of its JVM, or None.
        self.archive: ClassArchive | None = None
        self.jobs = 0
        # Task slots that jobs in real time occupy.
        self.live_slots = 0
        # Files that executors of a cluster fetch, at any time.
        self.executor_files: ScratchDirectory | None = None


_own = _OwnSession()
_hosts: dict[str, HostSettings] = {}
# The slot directories of applications on a cluster, by the same keys.
_directories: dict[str, SlotDirectory] = {}


def acquire_session(
    required_slots: int,
    configuration: Configuration,
    *,
    may_restart: bool = True,
    live_slots: int | None = None,
) -> SparkSession:
    """Return a session for one job, with its own SQL settings. ``release_session`` gives it back.

    A session that Firesteel started, and that has too few slots, is restarted if no job uses it.
    ``live_slots`` are those that the job would need in real time.
    """
    with _own.lock:
        session = _base_session(
            required_slots, configuration, may_restart=may_restart, live_slots=live_slots
        )
        _own.jobs += 1
    available = _slots(session, required_slots, live_slots or 0)
    if available < required_slots:
        with _own.lock:
            _own.jobs -= 1
        raise InsufficientSlotsError(required_slots, available)
    job_session = session.newSession()
    for key, value in _JOB_SETTINGS.items():
        job_session.conf.set(key, value)
    job_session.conf.set(_TIME_ZONE, str(session.conf.get(_TIME_ZONE)))
    return job_session


def _slots(session: SparkSession, required: int, live: int) -> int:
    """Return the number of slots for micro-batches. On a cluster, wait for those that a job needs."""
    context = session.sparkContext
    return (
        context.defaultParallelism
        if is_local(session)
        else task_slots(context, max(required, live))
    )


def live_slots(session: SparkSession) -> int:
    """Return the number of task slots that are free for a job in real time."""
    total = task_slots(session.sparkContext)
    with _own.lock:
        return total - _own.live_slots


def occupy_live_slots(count: int) -> None:
    """Count task slots as taken, until they are released with a negative number."""
    with _own.lock:
        _own.live_slots += count


def user_session(required_slots: int, configuration: Configuration) -> SparkSession:
    """Return the session that jobs will run on, for DataFrames of the user."""
    with _own.lock:
        return _base_session(required_slots, configuration, may_restart=False)


def is_local(session: SparkSession) -> bool:
    """Return True if driver and tasks share the disk of this machine."""
    return local_master(str(session.sparkContext.master)) is not None


def task_attempts(session: SparkSession) -> int:
    """Return the attempts that Spark makes per task: from ``local[n,attempts]``, or its setting."""
    local = local_master(str(session.sparkContext.master))
    if local is not None:
        return local.attempts
    return int(session.sparkContext.getConf().get("spark.task.maxFailures", "4"))


def release_session() -> None:
    """Count a job less that uses the session."""
    with _own.lock:
        _own.jobs -= 1


def _base_session(
    required_slots: int,
    configuration: Configuration,
    *,
    may_restart: bool,
    live_slots: int | None = None,
) -> SparkSession:
    level = configuration.get_optional(options.LOG_LEVEL_OPTION)
    if level is not None:
        set_log_level(level)
    session = _active_or_new_session(
        required_slots, configuration, may_restart=may_restart, live_slots=live_slots
    )
    # PySpark has set its own signal handler by now, so Firesteel's handler replaces it.
    program_end.watch(stop_own_session)
    return session


def _active_or_new_session(
    required_slots: int,
    configuration: Configuration,
    *,
    may_restart: bool,
    live_slots: int | None = None,
) -> SparkSession:
    active = SparkSession.getActiveSession()
    if active is None and SparkContext._active_spark_context is not None:  # noqa: SLF001 - PySpark has no public name
        active = SparkSession.builder.getOrCreate()
    if active is not None and active.sparkContext._jsc is None:  # noqa: SLF001 - how PySpark tells a stopped context
        active = None
    if active is not None and may_restart and _is_ours(active) and _own.jobs == 0:
        too_small = _slots(active, required_slots, 0) < required_slots
        if too_small and configuration.get_optional(options.TASK_SLOTS) is not None:
            too_small = False
        local = local_master(str(active.sparkContext.master))
        if live_slots is not None and local is not None and local.threads is not None:
            too_small = too_small or local.threads < live_slots
        if too_small:
            # No job runs, so restart Spark with as many slots as this job needs.
            active.stop()
            active = None
    if active is not None:
        return active
    return _start(required_slots, configuration, live_slots)


def _is_ours(session: SparkSession) -> bool:
    return _own.session is not None and session.sparkContext is _own.session.sparkContext


def _start(
    required_slots: int, configuration: Configuration, live_slots: int | None
) -> SparkSession:
    defaults: dict[str, str] = {}
    # Workers and hosts run the Python that runs the driver.
    executable = configuration.get_optional(options.PYTHON_EXECUTABLE)
    if executable is not None:
        os.environ["PYSPARK_PYTHON"] = executable
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    master = configuration.get_optional(options.SPARK_MASTER)
    if master is None:
        slots = configuration.get_optional(options.TASK_SLOTS)
        slots = slots if slots is not None else max(os.cpu_count() or 1, required_slots)
        threads = max(_LEAST_THREADS, live_slots or 0, slots)
        master = f"local[{threads},{_TASK_ATTEMPTS}]"
        defaults["spark.default.parallelism"] = str(slots)
    conf = SparkConf().setMaster(master).setAppName("firesteel")
    level = configuration.get(options.LOG_LEVEL_OPTION).upper()
    settings = _CONTEXT_SETTINGS | LIVE_SETTINGS | defaults
    if local_master(master) is not None:
        # Not on a cluster: executors must reach the driver, and compression saves network traffic.
        settings |= _LOCAL_SETTINGS
    else:
        settings |= _executor_settings(configuration)
    quiet = Path(__file__).parent / "log4j2-quiet.properties"
    verbose = level in ("INFO", "DEBUG", "TRACE")
    log_options = f"-Dlog4j2.configurationFile=file:{quiet}"
    if verbose:
        log_options += f" -Dfiresteel.log.level={level.lower()}"
    settings["spark.driver.extraJavaOptions"] = log_options
    conf.setAll(list(settings.items()))
    for key, value in configuration.to_dict().items():
        if key.startswith("spark.") and not (key == _FILES and _FILES in settings):
            conf.set(key, value)
    java = find_java()
    archive = None
    java_options: list[str] = []
    if local_master(master) is not None:
        if configuration.get(options.CLASS_ARCHIVE):
            archive = ClassArchive(java)
            java_options += archive.java_options()
        java_options += compiler_options(configuration, is_for_live_job=live_slots is not None)
    with java_environment(java, java_options), program_end.interrupts_wait() as take_over:
        SparkContext.getOrCreate(conf)
        take_over()
        session = SparkSession.builder.config(conf=conf).getOrCreate()
        session.sparkContext.setLogLevel(level if verbose else "ERROR")
    _own.session, _own.is_quiet, _own.archive = session, not verbose, archive
    return session


def compiler_options(configuration: Configuration, *, is_for_live_job: bool) -> list[str]:
    """Return the options of a new JVM for its compilers.

    is_for_live_job: Spark starts for a job in real time, not for DataFrames or micro-batches.
    """
    optimizes = configuration.get_optional(options.OPTIMIZING_COMPILER)
    if optimizes is None:
        optimizes = not is_for_live_job
    return [] if optimizes else [_NO_OPTIMIZING_COMPILER, _COMPILE_SOON, _ROOM_FOR_CODE]


def _executor_settings(configuration: Configuration) -> dict[str, str]:
    """Let executors fetch the worker daemon, and start it. They do not have Firesteel installed."""
    given = configuration.to_dict()
    if "spark.python.daemon.module" in given:
        return {}
    _own.executor_files = ScratchDirectory("executors")
    files = [*filter(None, given.get(_FILES, "").split(","))]
    files += [str(file) for file in write_executor_files(_own.executor_files.path)]
    return {"spark.python.daemon.module": EXECUTOR_DAEMON, _FILES: ",".join(files)}


def host_settings(
    session: SparkSession, idle_timeout: float, only_job: str | None = None
) -> HostSettings:
    """Return the address and token of the slot hosts of this application.

    Args:
        session: The session of the application.
        idle_timeout: The seconds after which an idle host ends.
        only_job: The id of a job that needs hosts of its own, or None to share the hosts.
    """
    application = str(session.sparkContext.applicationId)
    if only_job is not None:
        application = f"{application}-{only_job[:8]}"
    settings = _hosts.get(application)
    if settings is None:
        settings = HostSettings(f"{application}-{secrets.token_hex(4)}", secrets.token_hex(16))
        if not is_local(session):
            directory = SlotDirectory(driver_host(session), settings.token)
            _directories[application] = directory
            settings = replace(settings, slot_directory=directory.location)
        _hosts[application] = settings
    return replace(settings, idle_timeout=idle_timeout)


def forget_slots(job_id: str) -> None:
    """Remove the slots of a job that is over from the slot directories."""
    for directory in _directories.values():
        directory.forget(job_id)


def driver_host(session: SparkSession) -> str:
    """Return the address at which Spark's executors reach the driver."""
    return str(session.sparkContext.getConf().get("spark.driver.host", "127.0.0.1"))


def _silence(context: SparkContext) -> None:
    """Turn off logs of Spark and PySpark, because killed tasks write errors while Spark stops."""
    context.setLogLevel("OFF")
    context._accumulatorServer.handle_error = lambda *_: None  # type: ignore[method-assign]  # noqa: SLF001 - PySpark has no setting


def stop_own_session() -> None:
    """Cancel the jobs that still run, then end Spark if Firesteel started it."""
    running_jobs.cancel_all()
    with _own.lock:
        session, _own.session = _own.session, None
    if session is not None:
        if _own.archive is not None and program_end.is_at_leisure:
            _own.archive.write(session)
        with suppress(Exception):
            if _own.is_quiet:
                _silence(session.sparkContext)
            session.stop()
    files, _own.executor_files = _own.executor_files, None
    if files is not None:
        files.remove()
    for settings in _hosts.values():
        shutil.rmtree(settings.directory, ignore_errors=True)
    while _directories:
        _directories.popitem()[1].close()
