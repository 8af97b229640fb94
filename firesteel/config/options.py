"""All settings that Firesteel declares: Flink's keys, and its own under ``firesteel.``.

Those of checkpoints and restarts stand in modules of their own next to this one.

Options with ``is_used=False`` belong to features that are still to come; they are checked and
accepted with a note.
"""

from __future__ import annotations

from datetime import timedelta

from firesteel.config import checkpoint_options, restart_options
from firesteel.config.option import Option
from firesteel.config.state_options import (
    INCREMENTAL_CHECKPOINTS,
    ROCKSDB_LOCAL_DIRECTORIES,
    ROCKSDB_MEMORY,
    ROCKSDB_PREDEFINED_OPTIONS,
    ROCKSDB_TRANSFER_THREADS,
    STATE_BACKEND,
)
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

__all__ = [
    "ALL_OPTIONS",
    "INCREMENTAL_CHECKPOINTS",
    "ROCKSDB_LOCAL_DIRECTORIES",
    "ROCKSDB_MEMORY",
    "ROCKSDB_PREDEFINED_OPTIONS",
    "ROCKSDB_TRANSFER_THREADS",
    "STATE_BACKEND",
]

# --- Firesteel's own -------------------------------------------------------------------------

SPARK_MASTER: Option[str | None] = Option(
    "firesteel.spark.master",
    STRING,
    None,
    "Spark's master, for example local[4] or spark://host:7077. Without it: the running Spark "
    "session, or all cores of this machine.",
)
SLOT_HOST: Option[str] = Option(
    "firesteel.slot-host",
    choice("resident", "in-worker"),
    "resident",
    "Where slots live: in a resident process that keeps functions open and state hot, or inside "
    "Spark's Python worker.",
)
SLOT_HOST_IDLE_TIMEOUT: Option[timedelta] = Option(
    "firesteel.slot-host.idle-timeout",
    DURATION,
    timedelta(seconds=60),
    "After this time without work a slot host ends by itself. Jobs share hosts: the last one counts.",
)
EPOCH_TARGET_DURATION: Option[timedelta | None] = Option(
    "firesteel.epoch.target-duration",
    DURATION,
    None,
    "How long an epoch should take; rate control moves the read budget to get there. Without it: "
    "derived from the buffer timeout.",
)
EPOCH_MAX_RECORDS: Option[int | None] = Option(
    "firesteel.epoch.max-records",
    whole_number(1),
    None,
    "The most records that one source subtask reads in an epoch. Without it: only rate control "
    "decides.",
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
    "The directory for scratch files. Without it: a new one in the system's temporary directory.",
)
STATE_INLINE_THRESHOLD: Option[int] = Option(
    "firesteel.state.inline-threshold",
    MEMORY_SIZE,
    64 * 1024,
    "Changelog segments up to this size travel inside acks; larger ones go to checkpoint storage.",
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
    "The parallelism of operators that set none. Without it: the number of cores on local Spark, "
    "1 on a cluster.",
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
    "The number of key groups, which bounds later rescaling; -1 derives it from the parallelism.",
)
AUTO_WATERMARK_INTERVAL: Option[timedelta] = Option(
    "pipeline.auto-watermark-interval",
    DURATION,
    timedelta(milliseconds=200),
    "How often periodic watermark generators are asked.",
)
OBJECT_REUSE: Option[bool] = Option(
    "pipeline.object-reuse",
    BOOLEAN,
    False,
    "Whether Flink may hand the very object that an operator emitted to the next one. Firesteel always "
    "does, also to several: a function must not change the records it is given.",
    is_used=False,
)
CHAIN_DIFFERENT_MAX_PARALLELISM: Option[bool] = Option(
    "pipeline.operator-chaining.chain-operators-with-different-max-parallelism",
    BOOLEAN,
    True,
    "Whether operators with different numbers of key groups may share a chain.",
)
OPERATOR_CHAINING: Option[bool] = Option(
    "pipeline.operator-chaining.enabled",
    BOOLEAN,
    True,
    "Whether operators that need no exchange between them run as one.",
    deprecated_keys=("pipeline.operator-chaining",),
)
AUTO_GENERATE_UIDS: Option[bool] = Option(
    "pipeline.auto-generate-uids",
    BOOLEAN,
    True,
    "If false, every operator must have a uid set by the program.",
)
GLOBAL_JOB_PARAMETERS: Option[dict[str, str]] = Option(
    "pipeline.global-job-parameters",
    MAP,
    {},
    "Parameters that every function can read through its runtime context.",
)
RUNTIME_MODE: Option[str] = Option(
    "execution.runtime-mode",
    choice("STREAMING", "BATCH", "AUTOMATIC"),
    "STREAMING",
    "Whether the job runs epoch by epoch or as one batch; AUTOMATIC decides by its sources.",
)
BUFFER_TIMEOUT: Option[timedelta] = Option(
    "execution.buffer-timeout.interval",
    DURATION,
    timedelta(milliseconds=100),
    "The longest time that a record waits in a buffer; 0 ms sends each record on at once.",
    deprecated_keys=("execution.buffer-timeout",),
)
BUFFER_TIMEOUT_ENABLED: Option[bool] = Option(
    "execution.buffer-timeout.enabled",
    BOOLEAN,
    True,
    "If false, buffers are sent on only when they are full or the epoch ends.",
)

CANCELLATION_TIMEOUT: Option[timedelta] = Option(
    "task.cancellation.timeout",
    DURATION,
    timedelta(seconds=10),
    "How long the running epoch of a canceled job may take to end. Then its tasks are stopped, and "
    "processes whose functions still do not return are killed; 0 ms: never. Flink's default is 3 min.",
)

# --- Flink: not in use yet -------------------------------------------------------------------

ATTACHED: Option[bool] = Option(
    "execution.attached", BOOLEAN, False, "Whether the client waits for the job.", is_used=False
)
TARGET: Option[str | None] = Option(
    "execution.target", STRING, None, "Where to deploy.", is_used=False
)
PIPELINE_JARS: Option[list[str] | None] = Option(
    "pipeline.jars", LIST, None, "Java archives of the job.", is_used=False
)
CLOSURE_CLEANER: Option[str] = Option(
    "pipeline.closure-cleaner-level",
    choice("NONE", "TOP_LEVEL", "RECURSIVE"),
    "RECURSIVE",
    "How far Flink cleans Java closures.",
    is_used=False,
)
GENERIC_TYPES: Option[bool] = Option(
    "pipeline.generic-types", BOOLEAN, True, "Whether untyped streams are allowed.", is_used=False
)
CANCELLATION_INTERVAL: Option[timedelta] = Option(
    "task.cancellation.interval",
    DURATION,
    timedelta(seconds=30),
    "The time between two interrupts of a task in Flink. Here it is interrupted once, when "
    "task.cancellation.timeout is over.",
    is_used=False,
)
LATENCY_INTERVAL: Option[timedelta] = Option(
    "metrics.latency.interval",
    DURATION,
    timedelta(0),
    "How often latency marks are sent; 0 ms means never.",
    is_used=False,
)
TASK_SLOTS: Option[int | None] = Option(
    "taskmanager.numberOfTaskSlots",
    INT,
    None,
    "Slots of the embedded Spark. Unset: one for each core, and more if a job needs more.",
)
HEARTBEAT_TIMEOUT: Option[timedelta] = Option(
    "heartbeat.timeout", DURATION, timedelta(seconds=50), "When a worker is lost.", is_used=False
)
STATE_LATENCY_TRACKING: Option[bool] = Option(
    "state.latency-track.keyed-state-enabled",
    BOOLEAN,
    False,
    "Whether state access is timed.",
    is_used=False,
)

# Python

PYTHON_EXECUTABLE: Option[str] = Option(
    "python.executable", STRING, "python", "The interpreter of the workers."
)
PYTHON_FILES: Option[str | None] = Option(
    "python.files", STRING, None, "Files for the workers' path."
)
PYTHON_REQUIREMENTS: Option[str | None] = Option(
    "python.requirements", STRING, None, "A requirements file."
)
PYTHON_ARCHIVES: Option[str | None] = Option(
    "python.archives", STRING, None, "Archives to unpack for the workers."
)
BUNDLE_SIZE: Option[int] = Option(
    "python.fn-execution.bundle.size", INT, 1000, "Records of a bundle.", is_used=False
)
BUNDLE_TIME: Option[timedelta] = Option(
    "python.fn-execution.bundle.time",
    DURATION,
    timedelta(milliseconds=1000),
    "The time of a bundle.",
    is_used=False,
)
PYTHON_METRICS: Option[bool] = Option(
    "python.metric.enabled", BOOLEAN, True, "Whether functions have metrics.", is_used=False
)
PYTHON_PROFILE: Option[bool] = Option(
    "python.profile.enabled", BOOLEAN, False, "Whether workers are profiled.", is_used=False
)

# Dashboard

REST_PORT: Option[int] = Option("rest.port", INT, 8081, "The port of REST.", is_used=False)
REST_BIND_PORT: Option[str] = Option(
    "rest.bind-port", STRING, "8081", "The port or ports to bind.", is_used=False
)
REST_ADDRESS: Option[str | None] = Option(
    "rest.address", STRING, None, "The address that clients use.", is_used=False
)
WEB_REFRESH: Option[timedelta] = Option(
    "web.refresh-interval",
    DURATION,
    timedelta(seconds=3),
    "How often the dashboard asks.",
    is_used=False,
)
WEB_CHECKPOINT_HISTORY: Option[int] = Option(
    "web.checkpoints.history", INT, 10, "How many checkpoints the history keeps."
)
WEB_EXCEPTION_HISTORY: Option[int] = Option(
    "web.exception-history-size", INT, 16, "Exceptions shown.", is_used=False
)
WEB_CANCEL: Option[bool] = Option(
    "web.cancel.enable", BOOLEAN, True, "Whether jobs can be canceled there.", is_used=False
)
WEB_SUBMIT: Option[bool] = Option(
    "web.submit.enable", BOOLEAN, True, "Whether jobs can be submitted there.", is_used=False
)
METRICS_REPORTERS: Option[str | None] = Option(
    "metrics.reporters", STRING, None, "The names of the reporters.", is_used=False
)
METRICS_FETCHER: Option[timedelta] = Option(
    "metrics.fetcher.update-interval",
    DURATION,
    timedelta(seconds=10),
    "How often the dashboard's figures are renewed.",
    is_used=False,
)
HISTORY_ARCHIVE: Option[str | None] = Option(
    "historyserver.archive.fs.dir", STRING, None, "Where ended jobs are kept.", is_used=False
)

ALL_OPTIONS: tuple[Option[object], ...] = tuple(
    value
    for module in (globals(), vars(checkpoint_options), vars(restart_options))
    for value in list(module.values())
    if isinstance(value, Option)
)
