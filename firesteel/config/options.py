"""All settings that Firesteel declares: Flink's keys, and its own under ``firesteel.``.

Modules next to this one declare the settings of checkpoints, file systems, restarts and state.
Options with ``is_used=False`` have no effect yet. Their values are checked and accepted with a
note.
"""

from __future__ import annotations

from datetime import timedelta

from firesteel.config import (
    checkpoint_options,
    filesystem_options,
    high_availability_options,
    rest_options,
    restart_options,
    state_options,
)
from firesteel.config.option import Option
from firesteel.config.values import (
    BOOLEAN,
    DURATION,
    INT,
    LIST,
    LOG_LEVEL,
    MAP,
    MEMORY_SIZE,
    STRING,
    choice,
    whole_number,
)

# --- Firesteel's own -------------------------------------------------------------------------

SPARK_MASTER: Option[str | None] = Option(
    "firesteel.spark.master",
    STRING,
    None,
    "Spark's master, for example local[4] or spark://host:7077. The default is the running Spark "
    "session, or else all cores of this machine.",
)
CLASS_ARCHIVE: Option[bool] = Option(
    "firesteel.spark.class-archive",
    BOOLEAN,
    True,
    "Keep an archive of the Java classes of the embedded Spark in the cache directory of the user "
    "(about 120 MB), so that programs start faster. The second program on a machine writes it.",
)
OPTIMIZING_COMPILER: Option[bool | None] = Option(
    "firesteel.spark.optimizing-compiler",
    BOOLEAN,
    None,
    "Let the JVM of the embedded Spark use its optimizing compiler, which needs several seconds of "
    "CPU time. By default it does, unless Firesteel starts Spark for a job in real time. There the "
    "JVM only moves rows, and the compiler would take its time from the first minutes of the job.",
)
EXECUTION: Option[str] = Option(
    "firesteel.execution",
    choice("auto", "real-time", "micro-batch"),
    "auto",
    "The way in which streaming jobs run. With real-time, all operators run at the same time for as "
    "long as the job. With micro-batch, Spark runs one small job after the other. The default, auto, "
    "is real-time, unless the job has DataFrames or Spark has too few task slots or no Real-time "
    "Mode.",
)
SLOT_HOST: Option[str] = Option(
    "firesteel.slot-host",
    choice("resident", "in-worker"),
    "resident",
    "The process that slots run in: a resident process that keeps functions open and state in "
    "memory, or Spark's Python worker.",
)
SLOT_HOST_IDLE_TIMEOUT: Option[timedelta] = Option(
    "firesteel.slot-host.idle-timeout",
    DURATION,
    timedelta(seconds=60),
    "The time without work after which a slot host exits. Jobs share hosts, so a host uses the "
    "value of the job that started last.",
)
EPOCH_TARGET_DURATION: Option[timedelta | None] = Option(
    "firesteel.epoch.target-duration",
    DURATION,
    None,
    "The target duration of an epoch. Rate control adjusts the read budget to it. The default is "
    "derived from the buffer timeout.",
)
EPOCH_MAX_RECORDS: Option[int | None] = Option(
    "firesteel.epoch.max-records",
    whole_number(1),
    None,
    "The maximum number of records that a source subtask reads per epoch. The default leaves the "
    "number to rate control.",
)
LOG_LEVEL_OPTION: Option[str] = Option(
    "firesteel.log-level",
    LOG_LEVEL,
    "WARN",
    "The level of Spark's and Firesteel's log on standard error.",
)
WORKING_DIR: Option[str | None] = Option(
    "firesteel.working-dir",
    STRING,
    None,
    "The directory for scratch files. The default is a new directory in the system's temporary "
    "directory.",
)
SESSION_WHEN_FULL: Option[str] = Option(
    "firesteel.session.when-full",
    choice("wait", "refuse"),
    "wait",
    "The answer of a session to a job for which too few slots are free: the job waits for them, at "
    "most for slot.request.timeout, or the submission fails.",
)
COLLECT_SPOOL_SIZE: Option[int] = Option(
    "firesteel.collect.spool-size",
    MEMORY_SIZE,
    1 << 30,
    "The size of collected records that wait on the disk of a session for a slow client. A job that "
    "is further ahead waits for the client.",
)
STATE_INLINE_THRESHOLD: Option[int] = Option(
    "firesteel.state.inline-threshold",
    MEMORY_SIZE,
    64 * 1024,
    "Changelog segments up to this size travel inside acks. Larger ones go to checkpoint storage.",
    deprecated_keys=(
        "execution.checkpointing.data-inline-threshold",
        "state.storage.fs.memory-threshold",
    ),
)

# --- Flink: pipeline and execution -----------------------------------------------------------

DEFAULT_PARALLELISM: Option[int | None] = Option(
    "parallelism.default",
    INT,
    None,
    "The parallelism of operators that do not set their own. The default is the number of cores on "
    "local Spark, and 1 on a cluster.",
)
PIPELINE_NAME: Option[str | None] = Option("pipeline.name", STRING, None, "The name of the job.")
CACHED_FILES: Option[str | None] = Option(
    "pipeline.cached-files",
    STRING,
    None,
    "Files for the distributed cache: name:model,path:/models/m.bin;name:...",
)
MAX_PARALLELISM: Option[int] = Option(
    "pipeline.max-parallelism",
    whole_number(-1, 32768),
    -1,
    "The number of key groups, which limits later rescaling. -1 derives it from the parallelism.",
)
AUTO_WATERMARK_INTERVAL: Option[timedelta] = Option(
    "pipeline.auto-watermark-interval",
    DURATION,
    timedelta(milliseconds=200),
    "The interval between two calls of periodic watermark generators.",
)
OBJECT_REUSE: Option[bool] = Option(
    "pipeline.object-reuse",
    BOOLEAN,
    False,
    "Pass the object that an operator emits to the next operators without a copy. Firesteel always "
    "does this. A function must not change its input records.",
    is_used=False,
)
CHAIN_DIFFERENT_MAX_PARALLELISM: Option[bool] = Option(
    "pipeline.operator-chaining.chain-operators-with-different-max-parallelism",
    BOOLEAN,
    True,
    "Allow operators with different numbers of key groups in a chain.",
)
OPERATOR_CHAINING: Option[bool] = Option(
    "pipeline.operator-chaining.enabled",
    BOOLEAN,
    True,
    "Chain operators that need no exchange between them.",
    deprecated_keys=("pipeline.operator-chaining",),
)
AUTO_GENERATE_UIDS: Option[bool] = Option(
    "pipeline.auto-generate-uids",
    BOOLEAN,
    True,
    "Generate uids. If false, the program must set the uid of every operator.",
)
GLOBAL_JOB_PARAMETERS: Option[dict[str, str]] = Option(
    "pipeline.global-job-parameters",
    MAP,
    {},
    "Parameters that functions can read from their runtime context.",
)
RUNTIME_MODE: Option[str] = Option(
    "execution.runtime-mode",
    choice("STREAMING", "BATCH", "AUTOMATIC"),
    "STREAMING",
    "Run the job in epochs or as one batch. AUTOMATIC selects BATCH if all sources are bounded.",
)
BUFFER_TIMEOUT: Option[timedelta] = Option(
    "execution.buffer-timeout.interval",
    DURATION,
    timedelta(milliseconds=100),
    "The maximum time that a record waits in a buffer. 0 ms sends each record at once.",
    deprecated_keys=("execution.buffer-timeout",),
)
BUFFER_TIMEOUT_ENABLED: Option[bool] = Option(
    "execution.buffer-timeout.enabled",
    BOOLEAN,
    True,
    "Use the buffer timeout. If false, buffers are sent only when they are full and at the end of "
    "the epoch.",
)

_DEBLOAT = "taskmanager.network.memory.buffer-debloat."
DEBLOAT_ENABLED: Option[bool] = Option(
    _DEBLOAT + "enabled",
    BOOLEAN,
    True,
    "Limit the records on their way to a slow operator, for real-time execution, so that barriers "
    "reach it in time.",
)
DEBLOAT_TARGET: Option[timedelta] = Option(
    _DEBLOAT + "target",
    DURATION,
    timedelta(seconds=1),
    "The time that an operator may need for the records on their way to it.",
)

TARGET: Option[str | None] = Option(
    "execution.target",
    STRING,
    None,
    "The place where jobs run. With remote it is the session at rest.address and rest.port. All other "
    "values mean the process of the program.",
)
ATTACHED: Option[bool] = Option(
    "execution.attached",
    BOOLEAN,
    False,
    "Let execute() wait for the end of a job that runs in a session. 'firesteel run' sets it.",
)
SHUTDOWN_ON_ATTACHED_EXIT: Option[bool] = Option(
    "execution.shutdown-on-attached-exit",
    BOOLEAN,
    False,
    "Cancel the job of a session if Ctrl-C ends the client that waits for it.",
)
CANCELLATION_TIMEOUT: Option[timedelta] = Option(
    "task.cancellation.timeout",
    DURATION,
    timedelta(seconds=10),
    "The maximum time that the running epoch of a canceled job may take. Then tasks are stopped, "
    "and processes whose functions still do not return are killed. 0 ms waits forever. Flink's "
    "default is 3 min.",
)

# --- Flink: not in use yet -------------------------------------------------------------------

PIPELINE_JARS: Option[list[str] | None] = Option(
    "pipeline.jars", LIST, None, "Java archives of the job.", is_used=False
)
CLOSURE_CLEANER: Option[str] = Option(
    "pipeline.closure-cleaner-level",
    choice("NONE", "TOP_LEVEL", "RECURSIVE"),
    "RECURSIVE",
    "The depth to which Flink cleans Java closures.",
    is_used=False,
)
GENERIC_TYPES: Option[bool] = Option(
    "pipeline.generic-types", BOOLEAN, True, "Allow untyped streams.", is_used=False
)
CANCELLATION_INTERVAL: Option[timedelta] = Option(
    "task.cancellation.interval",
    DURATION,
    timedelta(seconds=30),
    "The time between two interrupts of a task in Flink. Firesteel interrupts it once, after "
    "task.cancellation.timeout.",
    is_used=False,
)
LATENCY_INTERVAL: Option[timedelta] = Option(
    "metrics.latency.interval",
    DURATION,
    timedelta(0),
    "The interval between two latency markers. 0 ms disables them.",
    is_used=False,
)
TASK_SLOTS: Option[int | None] = Option(
    "taskmanager.numberOfTaskSlots",
    INT,
    None,
    "The number of slots of the embedded Spark. The default is one per core, and more if a job "
    "needs more.",
)
SLOT_REQUEST_TIMEOUT: Option[timedelta] = Option(
    "slot.request.timeout",
    DURATION,
    timedelta(minutes=5),
    "The time that a job of a session waits for free slots before it fails.",
)
HEARTBEAT_TIMEOUT: Option[timedelta] = Option(
    "heartbeat.timeout",
    DURATION,
    timedelta(seconds=50),
    "The time without a heartbeat after which a worker is lost.",
    is_used=False,
)
STATE_LATENCY_TRACKING: Option[bool] = Option(
    "state.latency-track.keyed-state-enabled",
    BOOLEAN,
    False,
    "Measure the latency of state access.",
    is_used=False,
)

# Python

PYTHON_EXECUTABLE: Option[str] = Option(
    "python.executable", STRING, "python", "The Python interpreter of the workers."
)
PYTHON_FILES: Option[str | None] = Option(
    "python.files", STRING, None, "Files to add to the Python path of the workers."
)
PYTHON_REQUIREMENTS: Option[str | None] = Option(
    "python.requirements", STRING, None, "A requirements file to install for the workers."
)
PYTHON_ARCHIVES: Option[str | None] = Option(
    "python.archives", STRING, None, "Archives to unpack for the workers."
)
BUNDLE_SIZE: Option[int] = Option(
    "python.fn-execution.bundle.size",
    INT,
    1000,
    "The maximum number of records per bundle.",
    is_used=False,
)
BUNDLE_TIME: Option[timedelta] = Option(
    "python.fn-execution.bundle.time",
    DURATION,
    timedelta(milliseconds=1000),
    "The maximum time of a bundle.",
    is_used=False,
)
PYTHON_METRICS: Option[bool] = Option(
    "python.metric.enabled", BOOLEAN, True, "Enable metrics of functions.", is_used=False
)
PYTHON_PROFILE: Option[bool] = Option(
    "python.profile.enabled", BOOLEAN, False, "Profile the workers.", is_used=False
)

ALL_OPTIONS: tuple[Option[object], ...] = tuple(
    value
    for module in (
        globals(),
        vars(checkpoint_options),
        vars(filesystem_options),
        vars(high_availability_options),
        vars(rest_options),
        vars(restart_options),
        vars(state_options),
    )
    for value in list(module.values())
    if isinstance(value, Option)
)
