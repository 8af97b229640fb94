"""Settings of checkpoints and savepoints, of their storage, and of recovery."""

from __future__ import annotations

from datetime import timedelta

from firesteel.config.option import Option
from firesteel.config.values import BOOLEAN, DURATION, INT, MEMORY_SIZE, STRING, choice

_CP = "execution.checkpointing."
CHECKPOINTING_INTERVAL: Option[timedelta | None] = Option(
    _CP + "interval",
    DURATION,
    None,
    "The time between the starts of two checkpoints. Without it there are no periodic checkpoints.",
)
CHECKPOINTING_MODE: Option[str] = Option(
    _CP + "mode",
    choice("EXACTLY_ONCE", "AT_LEAST_ONCE"),
    "EXACTLY_ONCE",
    "The guarantee for state after a recovery. With AT_LEAST_ONCE, records that overtake a barrier in "
    "real-time execution are processed again after a failure.",
)
CHECKPOINTING_TIMEOUT: Option[timedelta] = Option(
    _CP + "timeout",
    DURATION,
    timedelta(minutes=10),
    "A checkpoint that is not complete after this time fails.",
)
CHECKPOINTING_MIN_PAUSE: Option[timedelta] = Option(
    _CP + "min-pause",
    DURATION,
    timedelta(0),
    "The minimum time between the end of a checkpoint and the start of the next one.",
)
MAX_CONCURRENT_CHECKPOINTS: Option[int] = Option(
    _CP + "max-concurrent-checkpoints", INT, 1, "The maximum number of checkpoints in progress."
)
TOLERABLE_FAILED_CHECKPOINTS: Option[int] = Option(
    _CP + "tolerable-failed-checkpoints",
    INT,
    0,
    "The number of consecutive checkpoint failures that do not fail the job.",
)
RETAINED_CHECKPOINTS: Option[int] = Option(
    _CP + "num-retained",
    INT,
    1,
    "The number of completed checkpoints to keep.",
    deprecated_keys=("state.checkpoints.num-retained",),
)
CHECKPOINT_DIR: Option[str | None] = Option(
    _CP + "dir",
    STRING,
    None,
    "The directory of checkpoints: a path that driver and tasks share, or s3://bucket/path.",
    deprecated_keys=("state.checkpoints.dir",),
)
SAVEPOINT_DIR: Option[str | None] = Option(
    _CP + "savepoint-dir",
    STRING,
    None,
    "The default directory of savepoints.",
    deprecated_keys=("state.savepoints.dir",),
)
CHECKPOINT_STORAGE: Option[str | None] = Option(
    _CP + "storage",
    choice("jobmanager", "filesystem"),
    None,
    "The storage of checkpoints: jobmanager is the driver's memory. The default is filesystem if "
    "execution.checkpointing.dir is set, else jobmanager.",
    deprecated_keys=("state.checkpoint-storage",),
)
MAX_STATE_SIZE: Option[int] = Option(
    "firesteel.checkpointing.max-state-size",
    MEMORY_SIZE,
    5 * 1024 * 1024,
    "The maximum state size of an operator subtask for checkpoints in the driver's memory.",
)
EXTERNALIZED_RETENTION: Option[str] = Option(
    _CP + "externalized-checkpoint-retention",
    choice("NO_EXTERNALIZED_CHECKPOINTS", "DELETE_ON_CANCELLATION", "RETAIN_ON_CANCELLATION"),
    "NO_EXTERNALIZED_CHECKPOINTS",
    "The checkpoints to keep after the end of a job: none, those of a failed job, or those of a "
    "failed or canceled job.",
)
UNALIGNED_CHECKPOINTS: Option[bool] = Option(
    _CP + "unaligned.enabled",
    BOOLEAN,
    False,
    "Let the barriers of checkpoints overtake records that wait under back pressure. Those records "
    "become part of the checkpoint. For real-time execution with EXACTLY_ONCE.",
)
FORCE_UNALIGNED: Option[bool] = Option(
    _CP + "unaligned.forced",
    BOOLEAN,
    False,
    "Let barriers overtake data even where Flink advises against it.",
    is_used=False,
)
ALIGNED_TIMEOUT: Option[timedelta] = Option(
    _CP + "aligned-checkpoint-timeout",
    DURATION,
    timedelta(0),
    "The time after which a checkpoint that began aligned becomes unaligned. With 0 ms it is "
    "unaligned from the start.",
)
CHECKPOINTS_AFTER_FINISH: Option[bool] = Option(
    _CP + "checkpoints-after-tasks-finish",
    BOOLEAN,
    True,
    "Continue to take checkpoints after some tasks have finished.",
    deprecated_keys=(_CP + "checkpoints-after-tasks-finish.enabled",),
)
SNAPSHOT_COMPRESSION: Option[bool] = Option(
    _CP + "snapshot-compression",
    BOOLEAN,
    False,
    "Compress keyed state in savepoints and in full snapshots of the hashmap backend.",
    deprecated_keys=("execution.snapshot-compression",),
)
INTERVAL_DURING_BACKLOG: Option[timedelta | None] = Option(
    _CP + "interval-during-backlog",
    DURATION,
    None,
    "The checkpoint interval while a source processes a backlog.",
    is_used=False,
)
LOCAL_BACKUP: Option[bool] = Option(
    _CP + "local-backup.enabled",
    BOOLEAN,
    False,
    "Keep a copy of checkpoints on local disk.",
    is_used=False,
)
CHANGELOG_STATE_BACKEND: Option[bool] = Option(
    "state.backend.changelog.enabled",
    BOOLEAN,
    False,
    "Write state changes as they happen. Firesteel always does this.",
    is_used=False,
)

# Recovery

_SR = "execution.state-recovery."
RECOVERY_PATH: Option[str | None] = Option(
    _SR + "path",
    STRING,
    None,
    "The savepoint or checkpoint to start from.",
    deprecated_keys=("execution.savepoint.path",),
)
IGNORE_UNCLAIMED_STATE: Option[bool] = Option(
    _SR + "ignore-unclaimed-state",
    BOOLEAN,
    False,
    "Allow a restore that drops state that no operator of the job claims.",
    deprecated_keys=("execution.savepoint.ignore-unclaimed-state",),
)
CLAIM_MODE: Option[str] = Option(
    _SR + "claim-mode",
    choice("CLAIM", "NO_CLAIM"),
    "NO_CLAIM",
    "With CLAIM the job owns the restored checkpoint, and deletes it once it has newer ones.",
    deprecated_keys=("execution.savepoint-restore-mode",),
)
RECOVERY_FROM_LOCAL: Option[bool] = Option(
    _SR + "from-local",
    BOOLEAN,
    False,
    "Recover from copies on local disk.",
    deprecated_keys=("state.backend.local-recovery",),
    is_used=False,
)
