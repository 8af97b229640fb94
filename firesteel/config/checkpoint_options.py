"""Settings of checkpoints and savepoints, of the places they go to, and of recovery from them."""

from __future__ import annotations

from datetime import timedelta

from firesteel.config.option import Option
from firesteel.config.values import BOOLEAN, DURATION, INT, MEMORY_SIZE, STRING, choice

_CP = "execution.checkpointing."
CHECKPOINTING_INTERVAL: Option[timedelta | None] = Option(
    _CP + "interval",
    DURATION,
    None,
    "The time between the starts of two checkpoints. Without it there are none.",
)
CHECKPOINTING_MODE: Option[str] = Option(
    _CP + "mode",
    choice("EXACTLY_ONCE", "AT_LEAST_ONCE"),
    "EXACTLY_ONCE",
    "What a checkpoint guarantees of the state after a recovery.",
)
CHECKPOINTING_TIMEOUT: Option[timedelta] = Option(
    _CP + "timeout",
    DURATION,
    timedelta(minutes=10),
    "A checkpoint that is not complete after this time is given up.",
)
CHECKPOINTING_MIN_PAUSE: Option[timedelta] = Option(
    _CP + "min-pause",
    DURATION,
    timedelta(0),
    "The least time between the end of a checkpoint and the start of the next.",
)
MAX_CONCURRENT_CHECKPOINTS: Option[int] = Option(
    _CP + "max-concurrent-checkpoints", INT, 1, "How many checkpoints may be under way at once."
)
TOLERABLE_FAILED_CHECKPOINTS: Option[int] = Option(
    _CP + "tolerable-failed-checkpoints",
    INT,
    0,
    "How many checkpoints may fail in a row before the job fails.",
)
RETAINED_CHECKPOINTS: Option[int] = Option(
    _CP + "num-retained",
    INT,
    1,
    "How many completed checkpoints are kept.",
    deprecated_keys=("state.checkpoints.num-retained",),
)
CHECKPOINT_DIR: Option[str | None] = Option(
    _CP + "dir",
    STRING,
    None,
    "Where checkpoints are written: a path that driver and tasks see, or s3://bucket/path.",
    deprecated_keys=("state.checkpoints.dir",),
)
SAVEPOINT_DIR: Option[str | None] = Option(
    _CP + "savepoint-dir",
    STRING,
    None,
    "Where savepoints are written, if the one who asks for one does not say.",
    deprecated_keys=("state.savepoints.dir",),
)
CHECKPOINT_STORAGE: Option[str | None] = Option(
    _CP + "storage",
    choice("jobmanager", "filesystem"),
    None,
    "jobmanager keeps checkpoints in the driver's memory. Without it: filesystem if there is a "
    "directory, else jobmanager.",
    deprecated_keys=("state.checkpoint-storage",),
)
MAX_STATE_SIZE: Option[int] = Option(
    "firesteel.checkpointing.max-state-size",
    MEMORY_SIZE,
    5 * 1024 * 1024,
    "With checkpoints in the driver's memory: how large the state of one operator subtask may be.",
)
EXTERNALIZED_RETENTION: Option[str] = Option(
    _CP + "externalized-checkpoint-retention",
    choice("NO_EXTERNALIZED_CHECKPOINTS", "DELETE_ON_CANCELLATION", "RETAIN_ON_CANCELLATION"),
    "NO_EXTERNALIZED_CHECKPOINTS",
    "What is left when a job has ended: nothing; the checkpoints of a job that failed; those of a "
    "job that failed or was canceled.",
)
UNALIGNED_CHECKPOINTS: Option[bool] = Option(
    _CP + "unaligned.enabled",
    BOOLEAN,
    False,
    "Whether barriers overtake data. At the end of an epoch there is none to overtake.",
    is_used=False,
)
FORCE_UNALIGNED: Option[bool] = Option(
    _CP + "unaligned.forced",
    BOOLEAN,
    False,
    "Whether barriers overtake data even where Flink advises against it.",
    is_used=False,
)
ALIGNED_TIMEOUT: Option[timedelta] = Option(
    _CP + "aligned-checkpoint-timeout",
    DURATION,
    timedelta(0),
    "When an aligned checkpoint becomes unaligned.",
    is_used=False,
)
CHECKPOINTS_AFTER_FINISH: Option[bool] = Option(
    _CP + "checkpoints-after-tasks-finish",
    BOOLEAN,
    True,
    "Whether checkpoints go on when some tasks are done.",
    deprecated_keys=(_CP + "checkpoints-after-tasks-finish.enabled",),
)
SNAPSHOT_COMPRESSION: Option[bool] = Option(
    _CP + "snapshot-compression",
    BOOLEAN,
    False,
    "Whether keyed state is compressed in savepoints and in the hash map's full snapshots.",
    deprecated_keys=("execution.snapshot-compression",),
)
INTERVAL_DURING_BACKLOG: Option[timedelta | None] = Option(
    _CP + "interval-during-backlog",
    DURATION,
    None,
    "The interval while a source catches up.",
    is_used=False,
)
LOCAL_BACKUP: Option[bool] = Option(
    _CP + "local-backup.enabled", BOOLEAN, False, "A copy on local disk.", is_used=False
)
CHANGELOG_STATE_BACKEND: Option[bool] = Option(
    "state.backend.changelog.enabled",
    BOOLEAN,
    False,
    "Whether state changes are written as they happen. They are, always.",
    is_used=False,
)

# Object stores

S3_ACCESS_KEY: Option[str | None] = Option(
    "s3.access-key",
    STRING,
    None,
    "The access key of S3. Without it: what the environment offers, as for other tools of AWS.",
    deprecated_keys=("s3.access.key",),
)
S3_SECRET_KEY: Option[str | None] = Option(
    "s3.secret-key",
    STRING,
    None,
    "The secret key of S3.",
    deprecated_keys=("s3.secret.key",),
)
S3_SESSION_TOKEN: Option[str | None] = Option(
    "s3.session.token", STRING, None, "The token that goes with temporary keys of S3."
)
S3_ENDPOINT: Option[str | None] = Option(
    "s3.endpoint", STRING, None, "The address of an object store that is not Amazon's."
)
S3_REGION: Option[str | None] = Option(
    "s3.endpoint.region", STRING, None, "The region of S3; found out by itself on AWS."
)
S3_PATH_STYLE: Option[bool | None] = Option(
    "s3.path.style.access",
    BOOLEAN,
    None,
    "Whether the bucket is part of the path instead of the host name. Without it: with an "
    "endpoint of your own.",
    deprecated_keys=("s3.path-style-access",),
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
    "Whether state that belongs to no operator of the job may be left behind.",
    deprecated_keys=("execution.savepoint.ignore-unclaimed-state",),
)
CLAIM_MODE: Option[str] = Option(
    _SR + "claim-mode",
    choice("CLAIM", "NO_CLAIM"),
    "NO_CLAIM",
    "CLAIM: the job deletes what it was restored from once it has newer checkpoints.",
    deprecated_keys=("execution.savepoint-restore-mode",),
)
RECOVERY_FROM_LOCAL: Option[bool] = Option(
    _SR + "from-local",
    BOOLEAN,
    False,
    "Whether local copies are used.",
    deprecated_keys=("state.backend.local-recovery",),
    is_used=False,
)
