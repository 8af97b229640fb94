"""The bodies of replies, with the names and types of Flink's REST API.

Times are epoch milliseconds and durations milliseconds. -1 means that there is no such time yet.
Fields of Firesteel's own are in classes whose docstring says so. Flink's clients ignore them.
"""

from __future__ import annotations

from typing import Any, NotRequired, TypedDict

from firesteel.processes import ThreadInfo

# TypedDict's functional form allows Flink's names with hyphens.

Features = TypedDict(
    "Features", {"web-submit": bool, "web-cancel": bool, "web-rescale": bool, "web-history": bool}
)
DashboardConfiguration = TypedDict(
    "DashboardConfiguration",
    {
        "refresh-interval": int,
        "timezone-name": str,
        "timezone-offset": int,
        "flink-version": str,
        "flink-revision": str,
        "features": Features,
        # Firesteel's own.
        "firesteel-version": str,
    },
)
ClusterOverview = TypedDict(
    "ClusterOverview",
    {
        "taskmanagers": int,
        "slots-total": int,
        "slots-available": int,
        "jobs-running": int,
        "jobs-finished": int,
        "jobs-cancelled": int,
        "jobs-failed": int,
        "flink-version": str,
        "flink-commit": str,
    },
)


class ConfigurationEntry(TypedDict):
    key: str
    value: str


class JvmInfo(TypedDict):
    version: str
    arch: str
    options: list[str]


class EnvironmentInfo(TypedDict):
    """``python`` is Firesteel's own."""

    jvm: JvmInfo
    classpath: list[str]
    python: str


# Jobs


class JobIdWithStatus(TypedDict):
    id: str
    status: str


class JobIdsWithStatus(TypedDict):
    jobs: list[JobIdWithStatus]


class JobStatusInfo(TypedDict):
    status: str


JobSummary = TypedDict(
    "JobSummary",
    {
        "jid": str,
        "name": str,
        "state": str,
        "start-time": int,
        "end-time": int,
        "duration": int,
        "last-modification": int,
        "pending-operators": int,
        "jobType": str,
        "schedulerType": str,
        "tasks": dict[str, int],
    },
)


class JobSummaries(TypedDict):
    jobs: list[JobSummary]


IoMetrics = TypedDict(
    "IoMetrics",
    {
        "read-bytes": int,
        "read-bytes-complete": bool,
        "write-bytes": int,
        "write-bytes-complete": bool,
        "read-records": int,
        "read-records-complete": bool,
        "write-records": int,
        "write-records-complete": bool,
        "accumulated-backpressured-time": int,
        "accumulated-idle-time": int,
        "accumulated-busy-time": float,
    },
)
JobVertexInfo = TypedDict(
    "JobVertexInfo",
    {
        "id": str,
        "slotSharingGroupId": str,
        "name": str,
        "maxParallelism": int,
        "parallelism": int,
        "status": str,
        "start-time": int,
        "end-time": int,
        "duration": int,
        "tasks": dict[str, int],
        "metrics": IoMetrics,
    },
)


class PlanInput(TypedDict):
    num: int
    id: str
    ship_strategy: str
    exchange: str


class PlanNode(TypedDict):
    id: str
    parallelism: int
    operator: str
    operator_strategy: str
    description: str
    inputs: NotRequired[list[PlanInput]]
    optimizer_properties: dict[str, Any]


class Plan(TypedDict):
    jid: str
    name: str
    type: str
    nodes: list[PlanNode]


class PlanInfo(TypedDict):
    plan: Plan


JobDetails = TypedDict(
    "JobDetails",
    {
        "jid": str,
        "name": str,
        "isStoppable": bool,
        "state": str,
        "job-type": str,
        "schedulerType": str,
        "application-id": str,
        "start-time": int,
        "end-time": int,
        "duration": int,
        "maxParallelism": int,
        "now": int,
        "pending-operators": int,
        "timestamps": dict[str, int],
        "vertices": list[JobVertexInfo],
        "status-counts": dict[str, int],
        "plan": Plan,
    },
)
ExecutionConfig = TypedDict(
    "ExecutionConfig",
    {
        "restart-strategy": str,
        "job-parallelism": int,
        "object-reuse-mode": bool,
        "user-config": dict[str, str],
    },
)
JobConfig = TypedDict("JobConfig", {"jid": str, "name": str, "execution-config": ExecutionConfig})


class ExceptionEntry(TypedDict):
    """``record``, ``function`` and ``restarted`` are Firesteel's own."""

    exceptionName: str
    stacktrace: str
    timestamp: int
    failureLabels: dict[str, str]
    taskName: str | None
    endpoint: str | None
    taskManagerId: str | None
    concurrentExceptions: list[Any]
    record: str | None
    function: str | None
    restarted: bool


class ExceptionHistory(TypedDict):
    entries: list[ExceptionEntry]
    truncated: bool


class JobExceptions(TypedDict):
    exceptionHistory: ExceptionHistory


class UserAccumulator(TypedDict):
    name: str
    type: str
    value: str


JobAccumulators = TypedDict(
    "JobAccumulators",
    {
        "job-accumulators": list[Any],
        "user-task-accumulators": list[UserAccumulator],
        "serialized-user-task-accumulators": dict[str, Any],
    },
)


class QueueStatus(TypedDict):
    id: str


JobResult = TypedDict(
    "JobResult",
    {
        # The names of Flink's OpenAPI file.
        "jobId": str,
        "jobName": str,
        "jobStatus": str,
        "success": bool,
        "startTime": int,
        "endTime": int,
        "netRuntime": int,
        "accumulatorResults": dict[str, Any],
        # The names of Flink's replies.
        "id": str,
        "name": str,
        "application-status": str,
        "application-id": str,
        "start-time": int,
        "end-time": int,
        "net-runtime": int,
        "accumulator-results": dict[str, Any],
        "failure-cause": NotRequired[dict[str, str]],
        # Firesteel's own: the error as text.
        "failure": str | None,
    },
)


JobExecutionResult = TypedDict(
    "JobExecutionResult",
    {"status": QueueStatus, "job-execution-result": NotRequired[JobResult]},
)

# Applications: in a session each job is its own.

Application = TypedDict(
    "Application",
    {
        "id": str,
        "name": str,
        "status": str,
        "start-time": int,
        "end-time": int,
        "duration": int,
        "jobs": dict[str, int],
    },
)


class Applications(TypedDict):
    applications: list[Application]


ApplicationDetails = TypedDict(
    "ApplicationDetails",
    {
        "id": str,
        "name": str,
        "status": str,
        "start-time": int,
        "end-time": int,
        "duration": int,
        "timestamps": dict[str, int],
        "jobs": list[JobSummary],
    },
)


class ApplicationExceptionHistory(TypedDict):
    entries: list[dict[str, Any]]


class ApplicationExceptions(TypedDict):
    exceptionHistory: ApplicationExceptionHistory


# Vertices

SubtaskDetails = TypedDict(
    "SubtaskDetails",
    {
        "subtask": int,
        "status": str,
        "attempt": int,
        "endpoint": str,
        "start-time": int,
        # The dashboard of Flink reads this spelling.
        "start_time": int,
        "end-time": int,
        "duration": int,
        "metrics": IoMetrics,
        "taskmanager-id": str,
        "status-duration": dict[str, int],
    },
)
AggregatedTaskDetails = TypedDict(
    "AggregatedTaskDetails",
    {"metrics": dict[str, dict[str, int]], "status-duration": dict[str, dict[str, int]]},
)


class VertexDetails(TypedDict):
    id: str
    name: str
    parallelism: int
    maxParallelism: int
    now: int
    subtasks: list[SubtaskDetails]
    aggregated: AggregatedTaskDetails


VertexTaskManager = TypedDict(
    "VertexTaskManager",
    {
        "endpoint": str,
        "taskmanager-id": str,
        "status": str,
        "start-time": int,
        "end-time": int,
        "duration": int,
        "metrics": IoMetrics,
        "status-counts": dict[str, int],
        "aggregated": AggregatedTaskDetails,
    },
)


class VertexTaskManagers(TypedDict):
    id: str
    name: str
    now: int
    taskmanagers: list[VertexTaskManager]


class SubtaskTime(TypedDict):
    subtask: int
    endpoint: str
    duration: int
    timestamps: dict[str, int]


class SubtaskTimes(TypedDict):
    id: str
    name: str
    now: int
    subtasks: list[SubtaskTime]


SubtaskBackPressure = TypedDict(
    "SubtaskBackPressure",
    {
        "subtask": int,
        "attempt-number": int,
        "backpressureLevel": str,
        "backpressure-level": str,
        "ratio": float,
        "idleRatio": float,
        "busyRatio": float,
    },
)
VertexBackPressure = TypedDict(
    "VertexBackPressure",
    {
        "status": str,
        "backpressureLevel": str,
        "backpressure-level": str,
        "end-timestamp": int,
        "subtasks": list[SubtaskBackPressure],
    },
)
VertexAccumulators = TypedDict(
    "VertexAccumulators", {"id": str, "user-accumulators": list[UserAccumulator]}
)
SubtaskAccumulators = TypedDict(
    "SubtaskAccumulators",
    {
        "subtask": int,
        "attempt": int,
        "endpoint": str,
        "user-accumulators": list[UserAccumulator],
    },
)
AttemptAccumulators = TypedDict(
    "AttemptAccumulators",
    {"id": str, "subtask": int, "attempt": int, "user-accumulators": list[UserAccumulator]},
)


class AllSubtaskAccumulators(TypedDict):
    id: str
    parallelism: int
    subtasks: list[SubtaskAccumulators]


class FlameGraphNode(TypedDict):
    name: str
    value: int
    children: list[Any]


class FlameGraph(TypedDict):
    endTimestamp: int
    data: FlameGraphNode | None


# Firesteel's own: the cause of back pressure in a job.


class BackPressuredVertex(TypedDict):
    """Firesteel's own."""

    id: str
    name: str
    level: str
    ratio: float
    busy: float


class JobBackPressure(TypedDict):
    """Firesteel's own. ``roots`` are the vertices that slow down the vertices before them."""

    roots: list[BackPressuredVertex]
    vertices: list[BackPressuredVertex]


# Metrics


class Metric(TypedDict):
    id: str
    value: NotRequired[str]


class AggregatedMetric(TypedDict, total=False):
    id: str
    min: float
    max: float
    avg: float
    sum: float
    skew: float


# Checkpoints


class Spread(TypedDict):
    """Percentiles are the text "NaN" while there is no value."""

    min: int
    max: int
    avg: int
    p50: float | str
    p90: float | str
    p95: float | str
    p99: float | str
    p999: float | str


class CheckpointCounts(TypedDict):
    restored: int
    total: int
    in_progress: int
    completed: int
    failed: int


class CheckpointSummary(TypedDict):
    checkpointed_size: Spread
    state_size: Spread
    end_to_end_duration: Spread
    alignment_buffered: Spread
    processed_data: Spread
    persisted_data: Spread


class TaskCheckpoint(TypedDict):
    id: int
    status: str
    latest_ack_timestamp: int
    checkpointed_size: int
    state_size: int
    end_to_end_duration: int
    alignment_buffered: int
    processed_data: int
    persisted_data: int
    num_subtasks: int
    num_acknowledged_subtasks: int


class Checkpoint(TypedDict):
    """``explanation`` and ``epoch`` are Firesteel's own."""

    className: str
    id: int
    status: str
    is_savepoint: bool
    savepointFormat: str | None
    trigger_timestamp: int
    latest_ack_timestamp: int
    checkpointed_size: int
    state_size: int
    end_to_end_duration: int
    alignment_buffered: int
    processed_data: int
    persisted_data: int
    num_subtasks: int
    num_acknowledged_subtasks: int
    checkpoint_type: str
    tasks: dict[str, TaskCheckpoint]
    external_path: NotRequired[str]
    discarded: NotRequired[bool]
    failure_timestamp: NotRequired[int]
    failure_message: NotRequired[str]
    explanation: str | None
    epoch: int


class RestoredCheckpoint(TypedDict):
    id: int
    restore_timestamp: int
    is_savepoint: bool
    external_path: str | None


class LatestCheckpoints(TypedDict):
    completed: Checkpoint | None
    savepoint: Checkpoint | None
    failed: Checkpoint | None
    restored: RestoredCheckpoint | None


class Checkpoints(TypedDict):
    counts: CheckpointCounts
    summary: CheckpointSummary
    latest: LatestCheckpoints
    history: list[Checkpoint]


class Externalization(TypedDict):
    enabled: bool
    delete_on_cancellation: bool


class CheckpointConfig(TypedDict):
    mode: str
    interval: int
    timeout: int
    min_pause: int
    max_concurrent: int
    externalization: Externalization
    state_backend: str
    checkpoint_storage: str
    unaligned_checkpoints: bool
    tolerable_failed_checkpoints: int
    aligned_checkpoint_timeout: int
    checkpoints_after_tasks_finish: bool
    state_changelog_enabled: bool
    changelog_storage: str
    changelog_periodic_materialization_interval: int


class Alignment(TypedDict):
    buffered: int
    processed: int
    persisted: int
    duration: int


CheckpointDuration = TypedDict("CheckpointDuration", {"sync": int, "async": int})


class SubtaskCheckpoint(TypedDict):
    className: str
    index: int
    status: str
    ack_timestamp: NotRequired[int]
    end_to_end_duration: NotRequired[int]
    checkpointed_size: NotRequired[int]
    state_size: NotRequired[int]
    checkpoint: NotRequired[CheckpointDuration]
    alignment: NotRequired[Alignment]
    start_delay: NotRequired[int]
    unaligned_checkpoint: NotRequired[bool]
    aborted: NotRequired[bool]


CheckpointDurationSummary = TypedDict(
    "CheckpointDurationSummary", {"sync": Spread, "async": Spread}
)


class AlignmentSummary(TypedDict):
    buffered: Spread
    processed: Spread
    persisted: Spread
    duration: Spread


class TaskCheckpointSummary(TypedDict):
    checkpointed_size: Spread
    state_size: Spread
    end_to_end_duration: Spread
    checkpoint_duration: CheckpointDurationSummary
    alignment: AlignmentSummary
    start_delay: Spread


class TaskCheckpointDetails(TaskCheckpoint):
    summary: TaskCheckpointSummary
    subtasks: list[SubtaskCheckpoint]


# Operations

TriggerResponse = TypedDict("TriggerResponse", {"request-id": str})


class AsyncOperation(TypedDict):
    """The state of an operation: ``operation`` is null while it runs."""

    status: QueueStatus
    operation: dict[str, Any] | None


class Parallelism(TypedDict):
    lowerBound: int
    upperBound: int


class VertexResources(TypedDict):
    parallelism: Parallelism


class Nothing(TypedDict):
    """An empty object."""


# Processes


class Hardware(TypedDict):
    cpuCores: int
    physicalMemory: int
    freeMemory: int
    managedMemory: int


class ResourceProfile(TypedDict):
    """Memory is in megabytes."""

    cpuCores: float
    taskHeapMemory: int
    taskOffHeapMemory: int
    managedMemory: int
    networkMemory: int
    extendedResources: dict[str, float]


class MemoryConfiguration(TypedDict):
    frameworkHeap: int
    taskHeap: int
    frameworkOffHeap: int
    taskOffHeap: int
    networkMemory: int
    managedMemory: int
    jvmMetaspace: int
    jvmOverhead: int
    totalFlinkMemory: int
    totalProcessMemory: int


class TaskManager(TypedDict):
    """``timeSinceLastHeartbeat`` is an epoch time, as in Flink. ``subtasks`` is Firesteel's own."""

    id: str
    path: str
    dataPort: int
    jmxPort: int
    timeSinceLastHeartbeat: int
    slotsNumber: int
    freeSlots: int
    assignedTasks: int
    blocked: bool
    totalResource: ResourceProfile
    freeResource: ResourceProfile
    hardware: Hardware
    memoryConfiguration: MemoryConfiguration
    subtasks: list[str]


class TaskManagers(TypedDict):
    taskmanagers: list[TaskManager]


class AllocatedSlot(TypedDict):
    jobId: str
    assignedTasks: int
    resource: ResourceProfile


class GarbageCollector(TypedDict):
    name: str
    count: int
    time: int


class TaskManagerMetrics(TypedDict):
    heapUsed: int
    heapCommitted: int
    heapMax: int
    nonHeapUsed: int
    nonHeapCommitted: int
    nonHeapMax: int
    directCount: int
    directUsed: int
    directMax: int
    mappedCount: int
    mappedUsed: int
    mappedMax: int
    nettyShuffleMemorySegmentsAvailable: int
    nettyShuffleMemorySegmentsUsed: int
    nettyShuffleMemorySegmentsTotal: int
    nettyShuffleMemoryAvailable: int
    nettyShuffleMemoryUsed: int
    nettyShuffleMemoryTotal: int
    garbageCollectors: list[GarbageCollector]


class TaskManagerDetails(TaskManager):
    allocatedSlots: list[AllocatedSlot]
    metrics: TaskManagerMetrics


class LogFile(TypedDict):
    name: str
    size: int
    mtime: int


class LogFiles(TypedDict):
    logs: list[LogFile]


class ThreadDump(TypedDict):
    threadInfos: list[ThreadInfo]


class Profile(TypedDict):
    status: str
    mode: str
    triggerTime: int
    finishedTime: int | None
    duration: int
    message: str | None
    outputFile: str | None


class ProfileList(TypedDict):
    profilingList: list[Profile]


class Jar(TypedDict):
    id: str
    name: str
    uploaded: int
    entry: list[Any]


class JarList(TypedDict):
    address: str
    files: list[Jar]


class JarUpload(TypedDict):
    filename: str
    status: str


class JarRun(TypedDict):
    jobid: str
